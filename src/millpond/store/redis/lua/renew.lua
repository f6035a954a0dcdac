-- uses: leases
-- {node, host, info, lease} -> {"ok", the version of the namespace}, {"sealed"}
local node, length = args[1], args[4]
local record = call('HMGET', P .. 'node:' .. node, 'until', 'steady_since', 'sealed', 'lease')
local steady_since = NOW
if record[1] then
    if record[3] == '1' then
        return {'sealed'}
    elseif is_fresh(record[1], record[4]) then
        steady_since = record[2]
    end
elseif call('ZSCORE', P .. 'graves', node) then
    return {'sealed'}
end
local until_when = text(now + length)
call(
    'HSET', P .. 'node:' .. node, 'host', args[2], 'info', args[3], 'until', until_when, 'lease', text(length),
    'steady_since', steady_since
)
call('HSETNX', P .. 'node:' .. node, 'sequence', '0')
call('ZADD', P .. 'held:' .. node, 0, KEEP)
call('ZADD', P .. 'nodes', until_when, node)
return {'ok', call('GET', P .. 'schema')}
