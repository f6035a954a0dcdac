-- {name, entries, after, limit, keep} -> {number of the first, {line, ...}}; a line is its instant, a space, its data
local key = P .. 'log:' .. args[1]
for _, entry in ipairs(args[2]) do
    call('RPUSH', key, NOW .. ' ' .. entry)
end
local last = tonumber(call('HGET', P .. 'logs', args[1]) or 0) + #args[2]
if #args[2] > 0 then
    call('HSET', P .. 'logs', args[1], text(last))
    call('LTRIM', key, -args[5], -1)
end
local length = call('LLEN', key)
local skipped = math.max(0, args[3] - (last - length))
if args[4] <= 0 then
    return {0, {}}
end
return {last - length + skipped + 1, call('LRANGE', key, skipped, skipped + args[4] - 1)}
