-- Recording outcomes: every write about a running job is checked against (node, token) first.
-- A verdict is {id, token, state, reason, result, rank, run_at, tally, alone, line, wait, run}; of a job that has
-- completed {id, token, state, end, wait, run}, all about its end being one text, which is one field of the job.
local SETTLED = {'head', 'where', 'cancelling', 'unique', 'slots', 'children', 'attempts', 'expires_at'}

local function load_verdicts(verdicts)
    local ids = {}
    for place, verdict in ipairs(verdicts) do
        ids[place] = verdict[1]
    end
    load(ids, SETTLED)
end

local held_keys
each_call(function()
    held_keys = {}
end)

local function held_key(node)
    held_keys[node] = held_keys[node] or P .. 'held:' .. node
    return held_keys[node]
end

local function is_held(id, node, token)
    return read(id, 'head') == 'running ' .. token .. ' ' .. node
end

local function requeue(id, verdict, state, queue)
    local _, _, created_at, priority = place_of(id)
    set_place(id, verdict[6], verdict[7], created_at or NOW, priority or '1')
    erase(id, 'started_at')
    if verdict[9] then
        write(id, 'alone', '1')
    else
        erase(id, 'alone')
    end
    note(queue, 'retried', 0)
    local expires_at = read(id, 'expires_at')
    if expires_at then
        enter(P .. 'expiring', expires_at, id)
    end
    stand(id, queue, state, verdict[6], verdict[7], priority or '1')
end

local function finish(id, state, reason, result, queue, task)
    if reason then
        jot(id, 'reason', reason)
    end
    if result then
        jot(id, 'result', result)
    end
    ended(id, state, queue, task)
end

-- The lines about a job's attempts with one more: the first 10 and the last 90 are kept. What is shorter than
-- this has fewer.
local function with_line(lines, line)
    if #lines < 200 then
        return lines .. line .. '\n'
    end
    local list = {}
    for one in string.gmatch(lines .. line .. '\n', '[^\n]*\n') do
        list[#list + 1] = one
    end
    if #list <= 100 then
        return table.concat(list)
    end
    return table.concat(list, '', 1, 10) .. table.concat(list, '', #list - 89)
end

local function apply(verdict, node, token, queue, task)
    local id, state, reason, result = verdict[1], verdict[3], verdict[4], verdict[5]
    if read(id, 'cancelling') then
        call('SREM', P .. 'cancelling:' .. node, id)
        erase(id, 'cancelling')
        if not ENDS[state] then -- a job whose end somebody asked for is not run again: it may only end
            state, reason, result = 'cancelled', 'cancelled', nil
        end
    end
    set_head(id, state, token, '')
    if verdict[3] == 'completed' then
        jot(id, 'end', NOW .. ' ' .. verdict[4])
        reason, result = nil, nil
    else
        jot(id, 'tally', verdict[8])
    end
    if verdict[10] then
        jot(id, 'attempts', with_line(read(id, 'attempts') or '', verdict[10]))
    end
    count(queue, 'running', -1)
    leave(held_key(node), id)
    if ENDS[state] then
        finish(id, state, reason, result, queue, task)
    else
        requeue(id, verdict, state, queue)
    end
    local slots = read(id, 'slots')
    if slots then
        free_slots(slots)
    end
end

local function note_times(verdict, queue)
    local first = verdict[3] == 'completed' and 5 or 11
    if verdict[first] then
        note(queue, 'wait', verdict[first])
    end
    if verdict[first + 1] then
        note(queue, 'run', verdict[first + 1])
    end
end

-- Carry out a verdict; false if the job is not this node's under this token.
local function settle(verdict, node, raise)
    local id, token = verdict[1], verdict[2]
    local queue, task = where_of(id)
    if not is_held(id, node, token) or not queue then
        return false
    end
    apply(verdict, node, raise and raised(token) or token, queue, task)
    note_times(verdict, queue)
    return true
end

-- What is noted of the jobs of one task that have completed, gathered so that each needs one look-up.
local function new_sums(where)
    return {queue = string.match(where, '^(.-)%z'), number = 0, wait = {}, run = {}}
end

local function add(counts, bucket)
    if bucket then
        counts[bucket] = (counts[bucket] or 0) + 1
    end
end

local function close(sums)
    local queue = sums.queue
    count(queue, 'running', -sums.number)
    count(queue, 'completed', sums.number)
    note(queue, 'completed', 0, sums.number)
    for _, what in ipairs({'wait', 'run'}) do
        for bucket, number in pairs(sums[what]) do
            note(queue, what, bucket, number)
        end
    end
end

-- Carry out the verdicts on jobs that have completed and concern nobody else; returns the other verdicts. It comes
-- first in its call, so the lists are empty: they grow by a count, since to ask each for its length, to call a
-- function for each entry and to make each text anew took a tenth of the server's time for a job. The long way is
-- `settle`; tests/stores/test_settling.py holds both equal.
local function complete_plain(verdicts, node)
    local special = having({'cancelling', 'unique', 'slots', 'children'})
    local heads, wheres = column(known, 'head'), column(known, 'where')
    local head, told = column(jotted, 'head'), column(jotted, 'end')
    local held, entered = column(left, held_key(node)), column(closed, 'completed')
    local lines = column(finished, 'completed')
    local before, after, all_sums, others, number = {}, {}, {}, {}, 0
    for _, verdict in ipairs(verdicts) do
        local id, token = verdict[1], verdict[2]
        local where = wheres[id]
        if not before[token] then
            before[token], after[token] = 'running ' .. token .. ' ' .. node, 'completed ' .. token .. ' '
        end
        if verdict[3] == 'completed' and where and not special[id] and heads[id] == before[token] then
            local sums = all_sums[where]
            if not sums then
                sums = new_sums(where)
                all_sums[where] = sums
            end
            sums.number = sums.number + 1
            add(sums.wait, verdict[5])
            add(sums.run, verdict[6])
            heads[id] = after[token] -- a second verdict on it finds it ended
            local first, second = 2 * number + 1, 2 * number + 2
            number = number + 1
            head[first], head[second] = id, after[token]
            told[first], told[second] = id, NOW .. ' ' .. verdict[4]
            entered[first], entered[second] = '0', id
            held[number] = id
            lines[number] = NOW .. ' ' .. id
        else
            others[#others + 1] = verdict
            special[id] = true -- a later verdict on the same job stands behind this one
        end
    end
    for _, sums in pairs(all_sums) do
        close(sums)
    end
    return others
end

-- Carry out the verdicts of a living node; returns the ids of those that are stale.
local function settle_all(verdicts, node)
    load_verdicts(verdicts)
    local stale = {}
    for _, verdict in ipairs(complete_plain(verdicts, node)) do
        if not settle(verdict, node, false) then
            stale[#stale + 1] = verdict[1]
        end
    end
    return stale
end
