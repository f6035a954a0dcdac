-- uses: slots chosen deleting
-- {ids, filter} -> how many ended jobs were deleted
local wanted, ended = chooser(args[2]), {}
load(args[1], {'head', 'where'})
for _, id in ipairs(args[1]) do
    local state = head_of(id)
    local queue, task = where_of(id)
    if ENDS[state] and wanted(state, queue, task) then
        ended[#ended + 1] = id
    end
end
return forget(ended)
