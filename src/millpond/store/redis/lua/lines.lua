-- Where queued jobs stand: in the line of their queue, parked at a slot that was full, or set aside because
-- somebody could not run their task.

local function parked_key(queue, name)
    return P .. 'parked:' .. queue .. '\0' .. name
end

local function aside_key(queue, task)
    return P .. 'aside:' .. queue .. '\0' .. task
end

-- A slot may have room: the queues with jobs parked at it will look.
local function offer(name)
    if parked_at(name) > 0 then
        for _, queue in ipairs(call('SMEMBERS', P .. 'waiting:' .. name)) do
            call('SADD', P .. 'roomy:' .. queue, name)
            wake(queue)
        end
    end
end

local function park(id, queue, rank, run_at, name)
    call('ZADD', parked_key(queue, name), rank, id)
    enter(P .. 'age:' .. queue, run_at, id)
    write(id, 'parked', name)
    call('HINCRBY', P .. 'slots:parked', name, 1)
    call('SADD', P .. 'waiting:' .. name, queue)
    if free_units(name) > 0 then
        call('SADD', P .. 'roomy:' .. queue, name)
    end
end

local function unpark(ids, queue, name)
    local key = parked_key(queue, name)
    local number = call('ZREM', key, unpack(ids))
    if call('HINCRBY', P .. 'slots:parked', name, -number) <= 0 then
        call('HDEL', P .. 'slots:parked', name)
    end
    if call('EXISTS', key) == 0 then
        call('SREM', P .. 'waiting:' .. name, queue)
        call('SREM', P .. 'roomy:' .. queue, name)
    end
end

local function set_aside(id, queue, rank, run_at, task)
    call('ZADD', aside_key(queue, task), rank, id)
    enter(P .. 'age:' .. queue, run_at, id)
    write(id, 'aside', '1')
    call('SADD', P .. 'asides:' .. queue, task)
end

local function back_from_aside(ids, queue, task)
    call('ZREM', aside_key(queue, task), unpack(ids))
    if call('EXISTS', aside_key(queue, task)) == 0 then
        call('SREM', P .. 'asides:' .. queue, task)
    end
end

local function free_slots(slots)
    for _, name in ipairs(slot_names(slots) or {}) do
        if call('HINCRBY', P .. 'slots:used', name, -1) <= 0 then
            call('HDEL', P .. 'slots:used', name)
        end
        offer(name)
    end
end

local line_keys, state_keys, announced
each_call(function()
    line_keys, state_keys, announced = {}, {}, {}
end)

-- Every priority of a queue has its own line, in which the order by rank is that by age.
local function line_key(queue, priority)
    local lines = line_keys[queue]
    if not lines then
        lines = {}
        line_keys[queue] = lines
    end
    local key = lines[priority]
    if not key then
        key = P .. 'line:' .. queue .. '\0' .. priority
        lines[priority] = key
    end
    return key
end

local function state_key(state)
    local key = state_keys[state]
    if not key then
        key = P .. 'state:' .. state
        state_keys[state] = key
    end
    return key
end

-- A job begins to wait for its turn, or for its time; one that is parked does not stand in line.
local function stand(id, queue, state, rank, run_at, priority, parked)
    count(queue, state, 1)
    enter(state_key(state), '0', id)
    if state ~= 'queued' then
        enter(P .. 'due', run_at, id)
        return
    elseif parked then
        park(id, queue, rank, run_at, parked)
    else
        local key = line_key(queue, priority)
        if not announced[key] then
            call('SADD', P .. 'lines:' .. queue, priority)
            announced[key] = true
        end
        enter(key, rank, id)
    end
    wake(queue)
end

-- A waiting job waits no longer.
local function step_out(id, state, queue, task)
    count(queue, state, -1)
    leave(state_key(state), id)
    if state == 'scheduled' then
        leave(P .. 'due', id)
    elseif state == 'queued' then
        local parked, _, _, _, priority = read(id, 'parked'), place_of(id)
        if parked then
            unpark({id}, queue, parked)
        elseif read(id, 'aside') then
            back_from_aside({id}, queue, task)
        else
            leave(line_key(queue, priority or '1'), id)
            return
        end
        leave(P .. 'age:' .. queue, id)
        erase(id, 'parked')
        erase(id, 'aside')
    end
end
