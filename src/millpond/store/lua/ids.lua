-- {states, below, limit} -> the newest ids below one, of each index: {{id, ...}, ...}
local from = args[2] == '' and '+' or '(' .. args[2]
local found = {}
local function look(key)
    found[#found + 1] = call('ZREVRANGEBYLEX', key, from, '(' .. KEEP, 'LIMIT', 0, args[3])
end
for _, state in ipairs(args[1]) do
    if state == 'running' then
        for _, node in ipairs(call('ZRANGE', P .. 'nodes', 0, -1)) do
            look(P .. 'held:' .. node)
        end
    else
        look(P .. 'state:' .. state)
    end
end
return found
