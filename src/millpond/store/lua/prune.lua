-- uses: deleting
-- {completed, cancelled, dead, statistics, ticks} in microseconds -> {how many jobs were deleted, whether to go on}
local number, more = 0, false

local function old(key, before)
    local found = call('ZRANGEBYSCORE', P .. key, '-inf', before, 'LIMIT', 0, SOME)
    more = more or #found == SOME
    return found
end

local function finished_at(id)
    return read(id, 'finished_at') or string.match(read(id, 'end') or '', '^%d+')
end

-- The jobs at the front of a list of the ended that are old enough, and still what they were.
local function ended_before(state, before)
    local key, ids, passed = P .. 'ended:' .. state, {}, 0
    for _, line in ipairs(call('LRANGE', key, 0, SOME - 1)) do
        local at, id = string.match(line, '^(%d+) (.*)$')
        if tonumber(at) > before then
            break
        end
        passed = passed + 1
        if head_of(id) == state and finished_at(id) == at then
            ids[#ids + 1] = id
        end
    end
    if passed > 0 then
        call('LTRIM', key, passed, -1)
    end
    more = more or passed == SOME
    return ids
end

for place, state in ipairs({'completed', 'cancelled', 'dead'}) do
    number = number + forget(ended_before(state, now - args[place]))
end
for _, field in ipairs(old('lapsing', NOW)) do
    local until_when = string.match(call('HGET', P .. 'uniques', field) or '', '^(%d+):')
    if until_when and tonumber(until_when) <= now then
        call('HDEL', P .. 'uniques', field)
    end
    call('ZREM', P .. 'lapsing', field)
end
for _, minute in ipairs(old('minutes', '(' .. text(math.floor((now - args[4]) / 60000000)))) do
    call('DEL', P .. 'minute:' .. minute)
    call('ZREM', P .. 'minutes', minute)
end
for key, before in pairs({graves = now - 7 * DAY, ticks = now - args[5]}) do
    for _, member in ipairs(old(key, '(' .. text(before))) do
        call('ZREM', P .. key, member)
    end
end
return {number, more and 1 or 0}
