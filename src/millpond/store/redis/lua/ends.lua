-- When jobs end: unique keys are let go, dependents start or fall with them. One script reaches SOME of them, however
-- many queues it claims from: a job may have a million, and while a script runs all others wait for the server. The
-- parents of those it does not reach are written down in "falls", and the claims that follow go on with them. See
-- tests/stores/test_redis_dependents.py.
local fallen
local reach -- dependents that this script may still start or cancel
local more -- has this script stopped at a bound, so that the next claim finds more at once?
each_call(function()
    fallen, reach, more = {}, SOME, false
end)

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
    local slots = state ~= 'dead' and read(id, 'slots')
    if slots then
        name_slots(slots, -1)
    end
    if state ~= 'completed' then -- its `end` says when
        jot(id, 'finished_at', NOW)
    end
    count(queue, state, 1)
    note(queue, state, 0)
    enter_end(state, id)
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

-- A fall that is not finished takes the children along under a key of its own. The parent may be replayed before
-- it goes on, and get children that depend on its next life: under the parent's own key they would be cancelled
-- with those of the last one. See tests/stores/test_redis_keys.py. `parent` is then followed by "\0" and a number.
-- Nothing if no child is left.
local function to_be_continued(parent)
    local key = P .. 'children:' .. string.sub(parent, 2)
    if call('EXISTS', key) == 0 then
        return nil
    elseif string.find(parent, '%z') then
        return parent
    end
    local number = '\0' .. text(call('INCR', P .. 'falls:number'))
    call('RENAME', key, key .. number)
    return parent .. number
end

local function fall_one(parent)
    local key, completed = string.sub(parent, 2), string.sub(parent, 1, 1) == '+'
    local id = string.match(key, '^[^%z]*')
    repeat
        local most = math.min(reach, 100)
        local children = call('SPOP', P .. 'children:' .. key, most)
        for _, child in ipairs(children) do
            if call('SREM', P .. 'parents:' .. child, id) == 0 then
                -- deleted meanwhile, and perhaps stored again: it is not the child it was
            elseif completed then
                unblock(child)
            else
                cancel_waiting(child, 'dependency')
            end
        end
        reach = reach - math.max(1, #children)
    until #children < most or reach <= 0
end

-- Everything that follows from the jobs that ended, and what earlier scripts have left of it.
local function fall()
    local place = 1
    while reach > 0 do
        local parent = fallen[place] or call('LPOP', P .. 'falls')
        if not parent then
            break
        end
        fallen[place] = parent
        fall_one(parent)
        place = reach > 0 and place + 1 or place
    end
    if reach <= 0 then
        local rest = {} -- not by unpack: a batch may end more jobs than a stack holds
        for next_one = place, #fallen do
            rest[#rest + 1] = to_be_continued(fallen[next_one])
        end
        in_parts('RPUSH', P .. 'falls', rest)
        more = true
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
