-- uses: slots deleting ticks
-- {cursor, most} -> the next cursor, "0" when nothing is left: a page of the move from version 1, in which each field
-- of all jobs was one key, to buckets.
local AGAIN = 'again' -- instead of "0" while something is left
local cursor, most = args[1] == AGAIN and '0' or args[1], args[2]
local MOVING = P .. 'moving:'

-- The old keys get other names, at once. A process of the older version that still runs meets a text where it looks
-- for a hash, before it has written anything, and fails; otherwise it would take all jobs for damaged and bury them.
local function set_apart()
    local keys = {'ticks'}
    for _, name in ipairs(FIELDS) do
        keys[#keys + 1] = 'job:' .. name
    end
    for state in pairs(ENDS) do
        keys[#keys + 1] = 'state:' .. state
        keys[#keys + 1] = 'ended:' .. state
    end
    for _, key in ipairs(keys) do
        if call('EXISTS', P .. key) == 1 then
            call('RENAME', P .. key, MOVING .. key)
        end
    end
    call('SET', P .. 'job:head', 'in buckets')
end

-- What remains of a job whose head is gone is moved with the first field that it has.
local function move_fields(field)
    local found, ids = call('HSCAN', MOVING .. 'job:' .. field, cursor, 'COUNT', most), {}
    for place = 1, #found[2], 2 do
        ids[#ids + 1] = found[2][place]
    end
    for _, name in ipairs(#ids > 0 and FIELDS or {}) do
        for place, value in ipairs(call('HMGET', MOVING .. 'job:' .. name, unpack(ids))) do
            if value then
                jot(ids[place], name, value)
            end
        end
        call('HDEL', MOVING .. 'job:' .. name, unpack(ids))
    end
    return found[1] == '0' and AGAIN or found[1]
end

local function move_state(state)
    local key = MOVING .. 'state:' .. state
    for _, id in ipairs(call('ZRANGE', key, 0, most - 1)) do
        local list = column(closed, state)
        list[#list + 1] = '0'
        list[#list + 1] = id
    end
    call('ZREMRANGEBYRANK', key, 0, most - 1)
end

local function move_ends(state)
    local key, index = MOVING .. 'ended:' .. state, P .. 'ended:' .. state
    for _, line in ipairs(call('LRANGE', key, 0, most - 1)) do
        local at = tonumber(string.match(line, '^(%d+) '))
        if at then
            call('RPUSH', index .. ':' .. minute_of(at), line)
            call('ZADD', index, minute_of(at), minute_of(at))
        end
    end
    call('LTRIM', key, most, -1)
end

local function move_ticks()
    local found = call('ZRANGE', MOVING .. 'ticks', 0, most - 1, 'WITHSCORES')
    for place = 1, #found, 2 do
        record_tick(found[place], found[place + 1])
    end
    call('ZREMRANGEBYRANK', MOVING .. 'ticks', 0, most - 1)
end

-- Move some of what is still under an old name; nothing if there is none.
local function move_some()
    for _, field in ipairs(FIELDS) do
        if call('EXISTS', MOVING .. 'job:' .. field) == 1 then
            return move_fields(field)
        end
    end
    for state in pairs(ENDS) do
        for kind, move in pairs({state = move_state, ended = move_ends}) do
            if call('EXISTS', MOVING .. kind .. ':' .. state) == 1 then
                move(state)
                return AGAIN
            end
        end
    end
    if call('EXISTS', MOVING .. 'ticks') == 1 then
        move_ticks()
        return AGAIN
    end
end

-- Several may migrate at once: another one has finished meanwhile, and today's keys are not moved again.
if string.match(call('GET', P .. 'schema') or '', '^%d+') ~= '1' then
    return '0'
end
if call('TYPE', P .. 'job:head').ok ~= 'string' then
    set_apart()
end
cursor = move_some()
flush()
return cursor or '0'
