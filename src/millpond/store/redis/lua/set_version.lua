-- {the version before, "version:compatible_from"} -> 1 if that version was there
if string.match(call('GET', P .. 'schema') or '', '^%d+') ~= args[1] then
    return 0
end
call('SET', P .. 'schema', args[2])
return 1
