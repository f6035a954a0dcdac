-- {ready_only} -> {settings, counts, oldest, nodes, now}
local ready_only = args[1] == 1
local settings, oldest, nodes = {}, {}, {}
for place, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
    local found = call('HMGET', P .. 'queue:' .. queue, 'paused', 'rate')
    settings[place] = {queue, found[1], found[2]}
end

-- When the first job of a queue was due, the first of each line or of those who wait beside it; and how
-- many stand in its lines.
local function oldest_of(queue)
    local found = ready_only and {} or call('ZRANGE', P .. 'age:' .. queue, 0, 0, 'WITHSCORES')
    local oldest, number = tonumber(found[2] or ''), 0
    for _, priority in ipairs(call('SMEMBERS', P .. 'lines:' .. queue)) do
        local line = P .. 'line:' .. queue .. '\0' .. priority
        local id = call('ZRANGE', line, 0, 0)[1]
        local _, run_at = place_of(id or '')
        if run_at and (not oldest or tonumber(run_at) < oldest) then
            oldest = tonumber(run_at)
        end
        number = number + call('ZCARD', line)
    end
    return oldest, number
end

local counts, ready = call('HGETALL', P .. 'counts'), {}
for place = 1, #counts, 2 do
    local queue = string.match(counts[place], '^(.*)%zqueued$')
    if queue then
        local first, number = oldest_of(queue)
        if first then
            oldest[#oldest + 1] = {queue, text(first)}
        end
        if number > 0 then
            ready[#ready + 1] = counts[place]
            ready[#ready + 1] = text(number)
        end
    end
end
if ready_only then
    counts = ready
end
for place, node in ipairs(call('ZRANGE', P .. 'nodes', 0, -1)) do
    local found = call('HMGET', P .. 'node:' .. node, 'host', 'info', 'until', 'sequence', 'sealed')
    found[5] = found[5] == '1' and 1 or 0
    nodes[place] = {node, found[1], found[2], found[3], found[4], found[5], call('ZCARD', P .. 'held:' .. node) - 1}
end
return {settings, counts, oldest, nodes, NOW}
