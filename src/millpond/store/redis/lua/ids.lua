-- {states, below, limit} -> the newest ids below one, of each index: {{id, ...}, ...}
local below, limit, found = args[2], args[3], {}

local function newest(key, number)
    return call('ZREVRANGEBYLEX', key, below == '' and '+' or '(' .. below, '(' .. KEEP, 'LIMIT', 0, number)
end

-- Ended jobs are in a set for each bucket, and a bucket that is named has some: no more are looked at than there
-- are ids wanted, and the one in which `below` is. `sort` is "t" or "r", with ids that begin with `length` letters.
local function newest_ended(state, sort, length)
    local index, ids = P .. 'state:' .. state, {}
    local from = below == '' and '(' .. string.char(string.byte(sort) + 1) or '[' .. sort .. string.sub(below, 1, length)
    while #ids < limit do
        local members = call('ZREVRANGEBYLEX', index, from, '[' .. sort, 'LIMIT', 0, 20)
        for _, member in ipairs(members) do
            for _, id in ipairs(newest(index .. ':' .. string.sub(member, 2), limit - #ids)) do
                ids[#ids + 1] = id
            end
            if #ids == limit then
                return ids
            end
            from = '(' .. member
        end
        if #members < 20 then
            return ids
        end
    end
    return ids
end

for _, state in ipairs(args[1]) do
    if state == 'running' then
        for _, node in ipairs(call('ZRANGE', P .. 'nodes', 0, -1)) do
            found[#found + 1] = newest(P .. 'held:' .. node, limit)
        end
    elseif ENDS[state] then
        found[#found + 1] = newest_ended(state, 't', 8)
        found[#found + 1] = newest_ended(state, 'r', 3)
    else
        found[#found + 1] = newest(P .. 'state:' .. state, limit)
    end
end
return found
