-- Gathered writes: all that a script changes is made at once, by few commands.
local left, entered, closed, finished, reopened, counted, noted, woken
local function gather_anew()
    left, entered, closed, finished, reopened, counted, noted, woken = {}, {}, {}, {}, {}, {}, {}, {}
end
each_call(gather_anew)

local function leave(key, id)
    local list = column(left, key)
    list[#list + 1] = id
end

-- The score as text: a number would be formatted as a fraction is, again for every job.
local function enter(key, score, id)
    local list = column(entered, key)
    list[#list + 1] = score
    list[#list + 1] = id
end

-- A job is among the ended ones of a state from now on; or no longer.
local function enter_end(state, id)
    local list, lines = column(closed, state), column(finished, state)
    list[#list + 1] = '0'
    list[#list + 1] = id
    lines[#lines + 1] = NOW .. ' ' .. id
end

local function leave_end(state, id)
    local list = column(reopened, state)
    list[#list + 1] = id
end

local function count(queue, state, number)
    local states = column(counted, queue)
    states[state] = (states[state] or 0) + number
end

local function note(queue, what, bucket, number)
    local buckets = column(column(noted, queue), what)
    buckets[bucket] = (buckets[bucket] or 0) + (number or 1)
end

local function wake(queue)
    woken[queue] = true
end

-- The answer is that of the last part.
local function in_parts(command, key, list)
    local answer
    for first = 1, #list, 4000 do
        answer = call(command, key, unpack(list, first, math.min(first + 3999, #list)))
    end
    return answer
end

local function minute_of(time)
    return text(math.floor(time / 60000000))
end

local function set_fields(name, list)
    for bucket, part in pairs(by_bucket(list, 2, 1)) do
        in_parts('HSET', job_key(name, bucket), part)
    end
end

local function drop_fields(name, ids)
    for bucket, part in pairs(by_bucket(ids, 1, 1)) do
        in_parts('HDEL', job_key(name, bucket), part)
    end
end

local function write_jobs()
    for name, values in pairs(changed) do
        local sets, drops = {}, {}
        local size = 0
        for id, value in pairs(values) do
            if value then
                sets[size + 1] = id
                sets[size + 2] = value
                size = size + 2
            else
                drops[#drops + 1] = id
            end
        end
        set_fields(name, sets)
        drop_fields(name, drops)
    end
    for name, list in pairs(jotted) do
        set_fields(name, list)
    end
    known, loaded, changed, jotted = {}, {}, {}, {}
end

-- "state:<state>" of an ended state names the buckets that have such jobs, "state:<state>:<bucket>" has their ids. In
-- the names the buckets of version 7 ("t") are apart from the others ("r"): by id, the two lie among each other.
local function bucket_member(bucket)
    return (#bucket == 8 and 't' or 'r') .. bucket
end

local function write_reopened()
    for state, ids in pairs(reopened) do
        local index = P .. 'state:' .. state
        for bucket, part in pairs(by_bucket(ids, 1, 1)) do
            in_parts('ZREM', index .. ':' .. bucket, part)
            if call('EXISTS', index .. ':' .. bucket) == 0 then
                call('ZREM', index, bucket_member(bucket))
            end
        end
    end
end

-- "ended:<state>" names the minutes in which such jobs ended, "ended:<state>:<minute>" has them in that order.
local function write_closed()
    for state, list in pairs(closed) do
        local index = P .. 'state:' .. state
        for bucket, part in pairs(by_bucket(list, 2, 2)) do
            in_parts('ZADD', index .. ':' .. bucket, part)
            call('ZADD', index, '0', bucket_member(bucket))
        end
    end
    for state, lines in pairs(finished) do
        local minute = minute_of(now)
        if in_parts('RPUSH', P .. 'ended:' .. state .. ':' .. minute, lines) == #lines then
            call('ZADD', P .. 'ended:' .. state, minute, minute)
        end
    end
end

local function write_counts()
    for queue, states in pairs(counted) do
        for state, number in pairs(states) do
            local field = queue .. '\0' .. state
            if number ~= 0 and call('HINCRBY', P .. 'counts', field, number) == 0 then
                call('HDEL', P .. 'counts', field)
            end
        end
    end
end

local function write_notes()
    if not next(noted) then
        return
    end
    local minute, is_new = minute_of(now), true
    local key = P .. 'minute:' .. minute
    for queue, whats in pairs(noted) do
        for what, buckets in pairs(whats) do
            for bucket, number in pairs(buckets) do
                local total = call('HINCRBY', key, queue .. '\0' .. what .. '\0' .. bucket, number)
                is_new = is_new and total == number -- so it is of all when a minute begins
            end
        end
    end
    if is_new then
        call('ZADD', P .. 'minutes', minute, minute)
    end
end

-- Make every gathered write. An id may enter or leave one index once between two flushes.
local function flush()
    write_jobs()
    for key, ids in pairs(left) do
        in_parts('ZREM', key, ids)
    end
    for key, pairs_of in pairs(entered) do
        in_parts('ZADD', key, pairs_of)
    end
    write_reopened()
    write_closed()
    write_counts()
    write_notes()
    for queue in pairs(woken) do
        call('PUBLISH', P .. 'wake:' .. queue, '1')
    end
    gather_anew()
end
