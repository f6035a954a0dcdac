-- uses: reading
-- {node, after, limit, sealed} -> {"ok", sequence, now, rows}, "unknown", "sealed"
local node = args[1]
local record = call('HMGET', P .. 'node:' .. node, 'sequence', 'sealed')
if not record[1] and not record[2] then
    return {'unknown'}
elseif record[2] == '1' and not args[4] then
    return {'sealed'}
end
local from = '(' .. (args[2] == '' and KEEP or args[2])
local ids = call('ZRANGEBYLEX', P .. 'held:' .. node, from, '+', 'LIMIT', 0, args[3])
return {'ok', record[1], NOW, whole_rows(ids)}
