-- {name, value or nil, version} -> {"ok", value, version}, or {"conflict"} if somebody else has written
local key = P .. 'document:' .. args[1]
local found = call('HMGET', key, 'value', 'version')
if not args[2] then
    return {'ok', found[1] or '', found[2] or '0'}
elseif (found[2] or '0') ~= args[3] then
    return {'conflict'}
end
call('HSET', key, 'value', args[2])
call('HINCRBY', key, 'version', 1)
return {'ok', args[2], call('HGET', key, 'version')}
