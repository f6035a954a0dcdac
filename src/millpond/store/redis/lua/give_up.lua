-- {node} -> 1 if it had a lease, which is over now
if call('EXISTS', P .. 'node:' .. args[1]) == 0 then
    return 0
end
call('HSET', P .. 'node:' .. args[1], 'sealed', '1')
return 1
