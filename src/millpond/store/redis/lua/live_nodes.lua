-- {} -> {node, info} of those that have a lease
local found = {}
for _, node in ipairs(call('ZRANGEBYSCORE', P .. 'nodes', '(' .. NOW, '+inf')) do
    found[#found + 1] = {node, call('HGET', P .. 'node:' .. node, 'info') or ''}
end
return found
