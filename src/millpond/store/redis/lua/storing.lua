-- Storing jobs: all or none, no id twice, no unique key twice, children behind their parents.
-- Everything is looked up before anything is written. A job is {id, task, queue, priority, run_at, rank, delay,
-- expires, unique, unique_sort, unique_time, slots, slot_list, parents, body}.

-- Who holds a job's unique key: a job from before, or nobody.
local function holder_of(field)
    local held = call('HGET', P .. 'uniques', field)
    if not held then
        return nil
    end
    local until_when, id = string.match(held, '^(%d*):(.*)$')
    if until_when ~= '' and tonumber(until_when) <= now then
        return nil
    end
    return id
end

-- Which of these are new; the answers for all.
local function sort_out(jobs)
    local ids, seen, taken, new, answers = {}, {}, {}, {}, {}
    for place, job in ipairs(jobs) do
        ids[place] = job[1]
    end
    load(ids, {'head'})
    for place, job in ipairs(jobs) do
        local id, holder = job[1], job[1]
        local is_known = read(id, 'head') or seen[id]
        local field = job[9] and job[2] .. '\0' .. job[9]
        if field and not is_known then
            holder = taken[field] or holder_of(field) or id
        end
        local is_new = not is_known and holder == id
        answers[place] = {holder, is_new and 1 or 0}
        if is_new then
            seen[id] = true
            new[#new + 1] = job
            if field then
                taken[field] = id
            end
        end
    end
    return new, seen, answers
end

-- The state of every parent, or the pair that does not exist. Those of this batch cannot have finished.
local function states_of_parents(jobs, seen)
    local states = {}
    for _, job in ipairs(jobs) do
        for _, parent in ipairs(job[14] or {}) do
            if not states[parent] then
                states[parent] = seen[parent] and 'blocked' or head_of(parent)
            end
            if not states[parent] then
                return nil, {'unknown', job[1], parent}
            end
        end
    end
    return states
end

local function take_unique(job)
    local field, until_when = job[2] .. '\0' .. job[9], ''
    if job[11] then
        until_when = text(now + job[11])
        call('ZADD', P .. 'lapsing', until_when, field)
    end
    call('HSET', P .. 'uniques', field, until_when .. ':' .. job[1])
end

local function set_capacity(name, capacity)
    if call('HGET', P .. 'slots:capacity', name) ~= text(capacity) then
        call('HSET', P .. 'slots:capacity', name, text(capacity))
        call('SREM', P .. 'slots:set', name)
    end
    offer(name)
end

local offered, priorities, ranks
each_call(function()
    offered = {} -- units of a slot that those stored just now may take
    priorities, ranks = {}, {}
end)

-- A slot that is full, or for which others wait already: no need to stand in line.
local function awaited_slot(slots)
    for _, slot in ipairs(slots or {}) do
        local name = slot[1]
        if parked_at(name) > 0 or free_units(name) <= (offered[name] or 0) then
            return name
        end
    end
    for _, slot in ipairs(slots or {}) do
        offered[slot[1]] = (offered[slot[1]] or 0) + 1
    end
end

local function priority_of(job)
    priorities[job[4]] = priorities[job[4]] or text(job[4])
    return priorities[job[4]]
end

local function write_fields(job, state, rank, run_at, waits)
    local id = job[1]
    set_head(id, state, '0', '')
    write(id, 'where', job[3] .. '\0' .. job[2])
    set_place(id, rank, run_at, NOW, priority_of(job))
    jot(id, 'body', job[15])
    if job[9] then
        write(id, 'unique', job[10] .. job[9])
    end
    if job[12] then
        write(id, 'slots', job[12])
        name_slots(job[12], 1)
    end
    if waits > 0 then
        write(id, 'waits', text(waits))
    end
    if job[8] then
        write(id, 'expires_at', text(now + job[8]))
        enter(P .. 'expiring', text(now + job[8]), id)
    end
end

-- The rank of a job of this priority that is due at once.
local function rank_now(priority)
    ranks[priority] = ranks[priority] or text(now - priority * DAY)
    return ranks[priority]
end

local function insert(job, waits)
    local id, queue = job[1], job[3]
    local run_at = job[5] or (job[7] == 0 and NOW) or text(now + job[7])
    local rank = job[6] or (job[7] == 0 and rank_now(job[4])) or text(now + job[7] - job[4] * DAY)
    local state = waits > 0 and 'blocked' or (tonumber(run_at) > now and 'scheduled' or 'queued')
    write_fields(job, state, rank, run_at, waits)
    note(queue, 'enqueued', 0)
    if state == 'blocked' then
        count(queue, 'blocked', 1)
        enter(state_key('blocked'), '0', id)
    else
        stand(id, queue, state, rank, run_at, priority_of(job), state == 'queued' and awaited_slot(job[13]))
    end
end

local function link(job, states, doomed)
    local waits = 0
    for _, parent in ipairs(job[14] or {}) do
        local state = states[parent]
        if state ~= 'completed' then
            waits = waits + 1
            if ENDS[state] then
                doomed[#doomed + 1] = job[1]
            else
                call('SADD', P .. 'children:' .. parent, job[1])
                call('SADD', P .. 'parents:' .. job[1], parent)
            end
        end
    end
    return waits
end

local function store(jobs, doomed, states)
    for _, job in ipairs(jobs) do
        if job[9] then
            take_unique(job)
        end
        for _, slot in ipairs(job[13] or {}) do
            set_capacity(slot[1], slot[2])
        end
    end
    for _, job in ipairs(jobs) do
        insert(job, link(job, states, doomed))
    end
    for parent, state in pairs(states) do
        if not ENDS[state] then
            write(parent, 'children', '1')
        end
    end
    flush()
    for _, id in ipairs(doomed) do
        cancel_waiting(id, 'dependency')
    end
    if #doomed > 0 then
        fall()
    end
end

-- Returns the answers, or nil and what does not exist.
local function enqueue(jobs)
    local new, seen, answers = sort_out(jobs)
    local states, missing = states_of_parents(new, seen)
    if missing then
        return nil, missing
    end
    store(new, {}, states)
    return answers
end

-- Does a job concern nobody else, and may run at once?
local function is_alone(job)
    return not (job[5] or job[6] or job[8] or job[9] or job[12] or job[14]) and job[7] == 0
end

-- The same as `enqueue` for one such job, without the detours: it is waited for. 1 if it is new.
local function enqueue_one(job)
    local id, queue, priority, rank = job[1], job[3], priority_of(job), rank_now(job[4])
    local bucket = bucket_of(id)
    if call('HSETNX', job_key('head', bucket), id, 'queued 0 ') == 0 then
        return 0
    end
    call('HSET', job_key('where', bucket), id, queue .. '\0' .. job[2])
    call('HSET', job_key('place', bucket), id, rank .. ' ' .. NOW .. ' ' .. NOW .. ' ' .. priority)
    call('HSET', job_key('body', bucket), id, job[15])
    call('ZADD', state_key('queued'), '0', id)
    call('SADD', P .. 'lines:' .. queue, priority)
    call('ZADD', line_key(queue, priority), rank, id)
    call('HINCRBY', P .. 'counts', queue .. '\0queued', 1)
    local minute = minute_of(now)
    if call('HINCRBY', P .. 'minute:' .. minute, queue .. '\0enqueued\0' .. '0', 1) == 1 then
        call('ZADD', P .. 'minutes', minute, minute)
    end
    call('PUBLISH', P .. 'wake:' .. queue, '1')
    return 1
end
