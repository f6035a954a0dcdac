-- uses: slots lines ends settling
-- {node, verdicts, raise, damaged ids} -> how many were carried out. The fence is checked here: a job that went
-- elsewhere since the verdict was made is left alone. A sealed node with nothing left goes to its grave.
local node, done = args[1], 0
load_verdicts(args[2])
for _, verdict in ipairs(args[2]) do
    if settle(verdict, node, args[3]) then
        done = done + 1
    end
end
fall()
for _, id in ipairs(args[4]) do
    local state, _, holder = head_of(id)
    local is_there = call('ZREM', P .. 'held:' .. node, id) == 1
    call('SREM', P .. 'cancelling:' .. node, id)
    if is_there and not (STATES[state] and (state ~= 'running' or holder ~= node)) then
        bury(id, where_of(id) or 'default', 'running')
        free_slots(read(id, 'slots'))
        done = done + 1
    end
end
fall()
if args[3] and call('HGET', P .. 'node:' .. node, 'sealed') == '1' and call('ZCARD', P .. 'held:' .. node) <= 1 then
    call('ZADD', P .. 'graves', NOW, node)
    call('ZREM', P .. 'nodes', node)
    call('DEL', P .. 'node:' .. node, P .. 'cancelling:' .. node, P .. 'held:' .. node)
end
return done
