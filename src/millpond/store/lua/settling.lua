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

-- What the verdicts of one call add to, so that each needs to be looked up but once.
local function ledger(node)
    return {
        heads = column(known, 'head'), wheres = column(known, 'where'),
        head = column(jotted, 'head'), told = column(jotted, 'end'),
        held = column(left, held_key(node)), entered = column(closed, 'completed'),
        ended = column(finished, 'completed'), number = {}, wait = {}, run = {}
    }
end

local function put(list, id, value)
    local size = #list
    list[size + 1], list[size + 2] = id, value
end

local function add(counts, queue, bucket)
    local buckets = counts[queue]
    if not buckets then
        buckets = {}
        counts[queue] = buckets
    end
    buckets[bucket] = (buckets[bucket] or 0) + 1
end

-- The same for a job that has completed and concerns nobody else, without the detours.
local function complete(id, verdict, where, book)
    local head = 'completed ' .. verdict[2] .. ' '
    book.heads[id] = head -- a second verdict on it finds it ended
    put(book.head, id, head)
    put(book.told, id, NOW .. ' ' .. verdict[4])
    book.held[#book.held + 1] = id
    put(book.entered, '0', id)
    book.ended[#book.ended + 1] = NOW .. ' ' .. id
    add(book.number, where, 0)
    if verdict[5] then
        add(book.wait, where, verdict[5])
    end
    if verdict[6] then
        add(book.run, where, verdict[6])
    end
end

-- Count those who were completed; the ledger has them by the text of `where`.
local function close(book)
    for where, numbers in pairs(book.number) do
        local queue = string.match(where, '^(.-)%z')
        count(queue, 'running', -numbers[0])
        count(queue, 'completed', numbers[0])
        note(queue, 'completed', 0, numbers[0])
        for _, what in ipairs({'wait', 'run'}) do
            for bucket, number in pairs(book[what][where] or {}) do
                note(queue, what, bucket, number)
            end
        end
    end
end

-- Carry out the verdicts of a living node; returns the ids of those that are stale.
local function settle_all(verdicts, node)
    load_verdicts(verdicts)
    local stale, special = {}, having({'cancelling', 'unique', 'slots', 'children'})
    local book = ledger(node)
    local wheres = book.wheres
    for _, verdict in ipairs(verdicts) do
        local id = verdict[1]
        local where = wheres[id]
        local is_plain = verdict[3] == 'completed' and where and not special[id]
        if is_plain and is_held(id, node, verdict[2]) then
            complete(id, verdict, where, book)
        elseif not settle(verdict, node, false) then
            stale[#stale + 1] = id
        end
    end
    close(book)
    return stale
end
