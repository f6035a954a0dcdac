-- uses: leases
-- {node, {gone, ...}} -> the nodes this one may rescue now, sealed: from here on they are refused.
local rescuer = call('HMGET', P .. 'node:' .. args[1], 'until', 'steady_since', 'lease', 'sealed', 'host')
if not rescuer[1] or rescuer[4] == '1' or tonumber(rescuer[1]) <= now then
    return {}
end
-- Nobody has been steady for longer than the server is up: while it was away no lease could be renewed, and who
-- came back first must not take the others for dead. A server that does not tell is taken to be up for long.
local told = redis.pcall('INFO', 'server')
local up = type(told) == 'string' and tonumber(string.match(told, 'uptime_in_seconds:(%d+)'))
local since = up and clock('0', '') - (up + 1) * 1000000 or 0
if since > now then -- the caller's clock is not the server's
    since = 0
end
local steady = is_fresh(rescuer[1], rescuer[3]) and now - math.max(tonumber(rescuer[2]), since) >= tonumber(rescuer[3])
local gone, sealed = {}, {}
for _, node in ipairs(args[2]) do
    gone[node] = true
end
for _, node in ipairs(call('ZRANGE', P .. 'nodes', 0, -1)) do
    local other = call('HMGET', P .. 'node:' .. node, 'until', 'sealed', 'host')
    local expired = steady and tonumber(other[1] or 0) <= now
    local next_door = gone[node] and other[3] == rescuer[5]
    if node ~= args[1] and (other[2] == '1' or expired or next_door) then
        call('HSET', P .. 'node:' .. node, 'sealed', '1')
        sealed[#sealed + 1] = node
    end
end
return sealed
