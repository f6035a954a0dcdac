-- {node, after, limit} -> {"ok", sequence, rows of id, token, queue, task}, "unknown", "sealed"
local node = args[1]
local record = call('HMGET', P .. 'node:' .. node, 'sequence', 'sealed')
if not record[1] and not record[2] then
    return {'unknown'}
elseif record[2] == '1' then
    return {'sealed'}
end
local from = '(' .. (args[2] == '' and KEEP or args[2])
local ids = call('ZRANGEBYLEX', P .. 'held:' .. node, from, '+', 'LIMIT', 0, args[3])
local rows = {}
load(ids, {'head', 'where'})
for place, id in ipairs(ids) do
    local _, token = head_of(id)
    local queue, task = where_of(id)
    rows[place] = {id, token or '0', queue or '', task or ''}
end
return {'ok', record[1], rows}
