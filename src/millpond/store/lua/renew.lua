-- {node, host, info, lease} -> "ok", "sealed"
local node, length = args[1], args[4]
local record = call('HMGET', P .. 'node:' .. node, 'until', 'steady_since', 'sealed')
local steady_since = NOW
if record[1] then
    if record[3] == '1' then
        return 'sealed'
    elseif tonumber(record[1]) > now then
        steady_since = record[2]
    end
elseif call('ZSCORE', P .. 'graves', node) then
    return 'sealed'
end
local until_when = text(now + length)
call(
    'HSET', P .. 'node:' .. node, 'host', args[2], 'info', args[3], 'until', until_when, 'lease', text(length),
    'steady_since', steady_since
)
call('HSETNX', P .. 'node:' .. node, 'sequence', '0')
call('ZADD', P .. 'held:' .. node, 0, KEEP)
call('ZADD', P .. 'nodes', until_when, node)
return 'ok'
