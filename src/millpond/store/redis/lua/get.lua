-- uses: chosen reading
-- {ids, filter or nil} -> rows, of those that exist and are wanted
local wanted, found = args[2] and chooser(args[2]), {}
load(args[1], {'head', 'where'})
for _, id in ipairs(args[1]) do
    local state = head_of(id)
    local queue, task = where_of(id)
    if state and (not wanted or wanted(state, queue, task)) then
        found[#found + 1] = id
    end
end
return whole_rows(found)
