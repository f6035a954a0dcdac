-- When jobs end: unique keys are let go, dependents start or fall with them. A fall that grows beyond its
-- bound is written down in "falls", and whoever comes next goes on with it.
local fallen, unfinished, ended_keys
each_call(function()
    fallen, unfinished, ended_keys = {}, false, {}
end)

local function ended_key(state)
    ended_keys[state] = ended_keys[state] or P .. 'ended:' .. state
    return ended_keys[state]
end

-- A key that lasts for a time outlives its job; the others go with it.
local function release_unique(task, key, id)
    local field = task .. '\0' .. key
    if call('HGET', P .. 'uniques', field) == ':' .. id then
        call('HDEL', P .. 'uniques', field)
    end
end

local function ended(id, state, queue, task)
    local unique = read(id, 'unique')
    if unique then
        release_unique(task or '', string.sub(unique, 2), id)
    end
    if state ~= 'completed' then -- its `end` says when
        jot(id, 'finished_at', NOW)
    end
    count(queue, state, 1)
    note(queue, state, 0)
    enter(state_key(state), '0', id)
    append(ended_key(state), NOW .. ' ' .. id)
    if read(id, 'children') then
        fallen[#fallen + 1] = (state == 'completed' and '+' or '-') .. id
    end
end

-- Cancel a job that waits; false if it does not, or is not among those wanted.
local function cancel_waiting(id, reason, wanted)
    local state, token = head_of(id)
    local queue, task = where_of(id)
    if not queue or (state ~= 'queued' and state ~= 'scheduled' and state ~= 'blocked') then
        return false
    elseif wanted and not wanted(state, queue, task) then
        return false
    end
    step_out(id, state, queue, task)
    if read(id, 'expires_at') then
        leave(P .. 'expiring', id)
    end
    set_head(id, 'cancelled', token, '')
    write(id, 'reason', reason)
    ended(id, 'cancelled', queue, task)
    return true
end

local function unblock(id)
    local state, token = head_of(id)
    local rank, run_at, _, priority = place_of(id)
    if state ~= 'blocked' or not rank then
        return
    end
    local waits = (tonumber(read(id, 'waits')) or 1) - 1
    write(id, 'waits', waits > 0 and text(waits))
    if waits > 0 then
        return
    end
    local queue = where_of(id)
    state = tonumber(run_at) > now and 'scheduled' or 'queued'
    set_head(id, state, token, '')
    count(queue, 'blocked', -1)
    leave(state_key('blocked'), id)
    stand(id, queue, state, rank, run_at, priority)
end

local function fall_one(parent, budget)
    local id, completed = string.sub(parent, 2), string.sub(parent, 1, 1) == '+'
    while budget > 0 do
        local children = call('SPOP', P .. 'children:' .. id, math.min(budget, 100))
        if #children == 0 then
            break
        end
        for _, child in ipairs(children) do
            call('SREM', P .. 'parents:' .. child, id)
            if completed then
                unblock(child)
            else
                cancel_waiting(child, 'dependency')
            end
        end
        budget = budget - #children
    end
    return budget
end

-- Everything that follows from the jobs that ended, and what earlier scripts have left of it.
local function fall()
    local budget, place = SOME, 0
    while budget > 0 do
        place = place + 1
        local parent = fallen[place] or call('LPOP', P .. 'falls')
        if not parent then
            break
        end
        fallen[place] = parent
        budget = fall_one(parent, budget)
    end
    if budget <= 0 then
        local rest = {} -- not by unpack: a batch may end more jobs than a stack holds
        for next_one = place, #fallen do
            rest[#rest + 1] = fallen[next_one]
        end
        in_parts('RPUSH', P .. 'falls', rest)
        unfinished = true
    end
    fallen = {}
    flush()
end

-- A record that cannot be read ends, with what led to it left as it is.
local function bury(id, queue, before)
    local _, token = head_of(id)
    local _, task = where_of(id)
    count(queue, before, -1)
    leave(state_key(before), id)
    leave(P .. 'age:' .. queue, id)
    leave(P .. 'expiring', id)
    set_head(id, 'dead', token or '0', '')
    write(id, 'where', queue .. '\0' .. (task or ''))
    write(id, 'reason', 'damaged')
    for _, name in ipairs({'parked', 'aside', 'cancelling'}) do
        erase(id, name)
    end
    ended(id, 'dead', queue, task)
end
