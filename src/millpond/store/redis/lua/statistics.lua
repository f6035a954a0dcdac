-- {since, until, limit} -> {{minute, {field, number, ...}}, ...}
local found = {}
local minutes = call('ZRANGEBYSCORE', P .. 'minutes', args[1], '(' .. args[2], 'LIMIT', 0, args[3])
for place, minute in ipairs(minutes) do
    found[place] = {minute, call('HGETALL', P .. 'minute:' .. minute)}
end
return found
