-- uses: lines ends storing
-- {jobs} -> {"ok", {{id, created}, ...}, unfinished}, or {"unknown", job, parent}
local answers, missing = enqueue(args[1])
if missing then
    return missing
end
return {'ok', answers, unfinished and 1 or 0}
