-- uses: slots lines ends chosen
-- {ids, filter} -> how many: waiting jobs end, running ones are asked to.
local wanted, number = chooser(args[2]), 0

local function ask_to_end(id)
    local state, _, node = head_of(id)
    local queue, task = where_of(id)
    if state ~= 'running' or read(id, 'cancelling') or not wanted(state, queue, task) then
        return false
    end
    write(id, 'cancelling', '1')
    call('SADD', P .. 'cancelling:' .. node, id)
    return true
end

load(args[1], {'head', 'where', 'place', 'unique', 'children', 'expires_at', 'parked', 'aside', 'cancelling',
    'slots'})
for _, id in ipairs(args[1]) do
    if cancel_waiting(id, 'cancelled', wanted) or ask_to_end(id) then
        number = number + 1
    end
end
flush()
fall()
return number
