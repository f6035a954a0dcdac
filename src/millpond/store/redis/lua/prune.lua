-- uses: slots deleting
-- {completed, cancelled, dead, statistics, ticks in microseconds, most}
-- -> {how many jobs were deleted, whether to go on}
local number, more, most = 0, false, args[6]

local function old(key, before)
    local found = call('ZRANGEBYSCORE', P .. key, '-inf', before, 'LIMIT', 0, most)
    more = more or #found == most
    return found
end

local function finished_at(id)
    return read(id, 'finished_at') or string.match(read(id, 'end') or '', '^%d+')
end

-- Take lines that are old enough from the list of a minute; returns how many, and whether none are left in it.
local function take_lines(key, before, limit, ends)
    local lines, passed = call('LRANGE', key, 0, limit - 1), 0
    for _, line in ipairs(lines) do
        local at, id = string.match(line, '^(%d+) (.*)$')
        if tonumber(at) > before then
            break
        end
        passed = passed + 1
        ends[#ends + 1] = {id, at}
    end
    if passed > 0 then
        call('LTRIM', key, passed, -1)
    end
    return passed, passed == #lines and passed < limit
end

-- The first ends of a state that are old enough, {id, when} of each, minute by minute.
local function oldest_ends(state, before, limit)
    local index, ends, passed = P .. 'ended:' .. state, {}, 0
    while passed < limit do
        local minute = call('ZRANGEBYSCORE', index, '-inf', minute_of(before), 'LIMIT', 0, 1)[1]
        if not minute then
            break
        end
        local number, is_over = take_lines(index .. ':' .. minute, before, limit - passed, ends)
        passed = passed + number
        if is_over then
            call('ZREM', index, minute)
        elseif passed < limit then -- the rest is too young
            break
        end
    end
    more = more or passed == limit
    return ends
end

-- The jobs that ended long enough ago, and are still what they were.
local function ended_before(state, before, limit)
    local ends, all, ids = oldest_ends(state, before, limit), {}, {}
    for place, found in ipairs(ends) do
        all[place] = found[1]
    end
    load(all, {'head', 'finished_at', 'end'})
    for _, found in ipairs(ends) do
        if head_of(found[1]) == state and finished_at(found[1]) == found[2] then
            ids[#ids + 1] = found[1]
        end
    end
    return ids
end

for place, state in ipairs({'completed', 'cancelled', 'dead'}) do
    number = number + forget(ended_before(state, now - args[place], most - number))
end
for _, field in ipairs(old('lapsing', NOW)) do
    local until_when = string.match(call('HGET', P .. 'uniques', field) or '', '^(%d+):')
    if until_when and tonumber(until_when) <= now then
        call('HDEL', P .. 'uniques', field)
    end
    call('ZREM', P .. 'lapsing', field)
end
for _, minute in ipairs(old('minutes', '(' .. minute_of(now - args[4]))) do
    call('DEL', P .. 'minute:' .. minute)
    call('ZREM', P .. 'minutes', minute)
end
for key, before in pairs({graves = now - 7 * DAY, ticks = now - args[5]}) do
    for _, member in ipairs(old(key, '(' .. text(before))) do
        call('ZREM', P .. key, member)
        call('UNLINK', P .. key .. ':' .. member) -- the ticks of an hour; a grave has nothing more
    end
end

return {number, more and 1 or 0}
