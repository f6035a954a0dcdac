-- uses: lines ends
-- {} -> 1 if a fall is still unfinished
fall()
return unfinished and 1 or 0
