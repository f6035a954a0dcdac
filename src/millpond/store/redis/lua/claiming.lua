-- Claiming: greedy by (rank, id) over the line of a queue, what was set aside, and what is parked at slots
-- that have room again. Whoever is looked at leaves where he stood: claimed, parked, set aside or buried.
local LOOKS = 5000 -- jobs looked at for one entry
local ROOMY = 500 -- slots with room looked at for one entry
local LARGEST = 1000 -- of them, how many are loaded at once
local LOOKED_AT = {
    'head', 'where', 'place', 'tally', 'alone', 'expires_at', 'slots', 'body', 'unique', 'parked', 'aside',
    'started_at'
}

-- Is there nothing but the lines of these queues, nothing due or expiring, nobody whose end is wanted? One look
-- instead of many, of what a small node finds nearly every time.
local nothing_else
each_call(function()
    nothing_else = false
end)

local function look_around(claims, node)
    local keys = {P .. 'expiring', P .. 'due', P .. 'cancelling:' .. node}
    for _, wanted in ipairs(claims) do
        keys[#keys + 1] = P .. 'asides:' .. wanted[1]
        keys[#keys + 1] = P .. 'roomy:' .. wanted[1]
    end
    nothing_else = call('EXISTS', unpack(keys)) == 0
end

local function first_by_bytes(a, b)
    for place = 1, math.min(#a, #b) do
        local x, y = string.byte(a, place), string.byte(b, place)
        if x ~= y then
            return x < y
        end
    end
    return #a < #b
end

-- Take those who were looked at out of the stream.
local function tidy(stream, queue)
    if #stream.gone == 0 then
        return
    elseif stream.slot then
        unpark(stream.gone, queue, stream.slot)
    elseif stream.task then
        back_from_aside(stream.gone, queue, stream.task)
    else
        call('ZREM', stream.key, unpack(stream.gone))
    end
    stream.gone = {}
end

local function refill(stream, queue)
    tidy(stream, queue)
    stream.ids, stream.ranks = {}, {}
    stream.place = 1
    -- Those in front could not be claimed (expired, wanted by none): the next look takes more at once. With one
    -- at a time, an exchange for one job among 50,000 expired ones kept Redis busy for 3 s.
    stream.chunk = stream.looked_at and math.min(LARGEST, 4 * stream.chunk) or stream.chunk
    stream.looked_at = true
    local found = call('ZRANGE', stream.key, 0, stream.chunk - 1, 'WITHSCORES')
    stream.is_whole = stream.priority and #found < 2 * stream.chunk -- nobody stands behind these
    for place = 1, #found, 2 do
        stream.ids[#stream.ids + 1] = found[place]
        stream.ranks[#stream.ranks + 1] = tonumber(found[place + 1])
    end
    stream.is_loaded = false
end

local function load_stream(stream)
    load(stream.ids, LOOKED_AT)
    stream.is_loaded = true
end

local function all_streams(queue, without)
    local streams = {}
    for _, priority in ipairs(call('SMEMBERS', P .. 'lines:' .. queue)) do
        streams[#streams + 1] = {key = line_key(queue, priority), priority = priority}
    end
    if nothing_else then
        return streams, 0
    end
    for _, task in ipairs(call('SMEMBERS', P .. 'asides:' .. queue)) do
        if not without[task] then
            streams[#streams + 1] = {key = aside_key(queue, task), task = task}
        end
    end
    local roomy = call('SRANDMEMBER', P .. 'roomy:' .. queue, ROOMY)
    for _, name in ipairs(roomy) do
        if free_units(name) > 0 then
            streams[#streams + 1] = {key = parked_key(queue, name), slot = name}
        else
            call('SREM', P .. 'roomy:' .. queue, name)
        end
    end
    return streams, #roomy
end

-- The streams in which some job stands, and whether more slots may have room than were looked at.
local function streams_of(queue, without, limit)
    local streams = {}
    local found, slots = all_streams(queue, without)
    for _, stream in ipairs(found) do
        stream.chunk = #found == 1 and math.min(limit, LARGEST) or 20
        stream.gone = {}
        refill(stream, queue)
        if #stream.ids > 0 then
            streams[#streams + 1] = stream
        elseif stream.priority then
            call('SREM', P .. 'lines:' .. queue, stream.priority)
            announced[stream.key] = nil
        end
    end
    return streams, slots == ROOMY
end

-- The stream whose head is first in line, and how many have one; a stream at a slot that has filled up
-- meanwhile is left alone.
local function best_of(streams, queue, room)
    local best, best_rank, best_id
    local number = 0
    for _, stream in ipairs(streams) do
        if stream.place > #stream.ids and #stream.gone > 0 and not stream.is_whole then
            refill(stream, queue)
        end
        local id = stream.ids[stream.place]
        if id and not (stream.slot and room(stream.slot) <= 0) then
            local rank = stream.ranks[stream.place]
            number = number + 1
            if not best or rank < best_rank or (rank == best_rank and first_by_bytes(id, best_id)) then
                best, best_rank, best_id = stream, rank, id
            end
        end
    end
    return best, number
end

local function full_slot(names, capacities, room)
    for _, name in ipairs(names) do
        if room(name, capacities[name]) <= 0 then
            return name
        end
    end
end

-- Make a job this node's; returns the row of the answer.
local function take(id, queue, task, token, entry)
    token = raised(token)
    set_head(id, 'running', token, entry.node)
    erase(id, 'started_at')
    if read(id, 'parked') or read(id, 'aside') then
        erase(id, 'parked')
        erase(id, 'aside')
        leave(P .. 'age:' .. queue, id)
    end
    local expires_at, unique = read(id, 'expires_at'), read(id, 'unique')
    if expires_at then
        leave(P .. 'expiring', id)
    end
    if unique and string.sub(unique, 1, 1) == 'w' then
        release_unique(task, string.sub(unique, 2), id)
    end
    leave(state_key('queued'), id)
    enter(entry.held, '0', id)
    return {
        id, read(id, 'where'), read(id, 'place'), read(id, 'tally'), token, read(id, 'alone'), expires_at,
        read(id, 'slots'), read(id, 'body')
    }
end

-- It may not run now: it waits elsewhere until it may.
local function send_away(id, queue, task, full)
    nothing_else = false -- the next entry may have to look there
    local rank, run_at = place_of(id)
    erase(id, 'parked')
    erase(id, 'aside')
    if full then
        park(id, queue, rank, run_at, full)
    else
        set_aside(id, queue, rank, run_at, task)
    end
end

-- What becomes of the one at the head of a stream: a row if it was claimed.
local function serve(id, entry, room, used)
    local state, token = head_of(id)
    local queue, task = where_of(id)
    local names, capacities = slot_names(read(id, 'slots'))
    local expires_at = read(id, 'expires_at')
    if STATES[state] and state ~= 'queued' then
        return nil -- it is not in line at all: somebody has tampered with it
    elseif not (state and queue and names and place_of(id) and read(id, 'body')) then
        bury(id, entry.queue, 'queued')
    elseif expires_at and tonumber(expires_at) <= now then
        cancel_waiting(id, 'expired')
    elseif entry.without[task] then
        send_away(id, queue, task)
    else
        local full = full_slot(names, capacities, room)
        if full then
            return send_away(id, queue, task, full)
        end
        for _, name in ipairs(names) do
            used[name] = (used[name] or 0) + 1
        end
        return take(id, queue, task, token, entry)
    end
end

-- The token of a job in line, raised; nothing if it does not stand there.
local function next_token(head)
    local token = string.match(head or '', '^queued (%d+) $')
    return token and raised(token)
end

-- Claim those at the head of the only line who concern nobody else, without the detours; returns how many.
local function take_plain(stream, entry, limit, rows)
    local special = having({'slots', 'expires_at', 'unique', 'parked', 'aside', 'started_at'})
    local heads, wheres, places = known.head, known.where, known.place
    local tallies, alones, bodies = known.tally, known.alone, known.body
    local held, gone, queued = column(entered, entry.held), stream.gone, column(left, state_key('queued'))
    local written, ids, taken = column(jotted, 'head'), stream.ids, {}
    local claimed, first, before = 0, stream.place, #rows
    local in_written, in_held, in_gone, in_queued = #written, #held, #gone, #queued -- asked once, not for each job
    while claimed < limit and ids[first + claimed] do
        local id = ids[first + claimed]
        local head = heads[id]
        local token = head == 'queued 0 ' and '1' or next_token(head)
        local where, place, body = wheres[id], places[id], bodies[id]
        if not (token and where and place and body) or special[id] then
            break
        end
        taken[token] = taken[token] or 'running ' .. token .. ' ' .. entry.node
        written[in_written + 2 * claimed + 1], written[in_written + 2 * claimed + 2] = id, taken[token]
        held[in_held + 2 * claimed + 1], held[in_held + 2 * claimed + 2] = '0', id
        claimed = claimed + 1
        gone[in_gone + claimed], queued[in_queued + claimed] = id, id
        local tally, alone = tallies[id], alones[id]
        rows[before + claimed] = (tally or alone)
            and {id, where, place, tally or false, token, alone or false, false, false, body}
            or {id, where, place, token, body}
    end
    stream.place = first + claimed
    return claimed
end

-- Looking at one after the other, wherever they stand.
local function take_best(streams, entry, limit, rows, room, used)
    local claimed, looks = 0, 0
    while claimed < limit and looks < LOOKS do
        local stream, number = best_of(streams, entry.queue, room)
        if not stream then
            break
        end
        -- The line alone is left: what is plain in it takes no room, so the others stay as they are
        local is_simple = number == 1 and stream.priority and not next(entry.without)
        if is_simple then
            stream.chunk = math.max(stream.chunk, math.min(limit, LARGEST))
        end
        if not stream.is_loaded then
            load_stream(stream)
            claimed = claimed + (is_simple and take_plain(stream, entry, limit - claimed, rows) or 0)
        else
            local id = stream.ids[stream.place]
            stream.place, looks = stream.place + 1, looks + 1
            stream.gone[#stream.gone + 1] = id
            local row = serve(id, entry, room, used)
            if row then
                rows[#rows + 1], claimed = row, claimed + 1
            end
        end
    end
    more = more or looks >= LOOKS
    return claimed
end

local function claim_from(entry, limit, rows)
    local used, before = {}, {}
    local function room(name, capacity)
        before[name] = before[name] or free_units(name, capacity)
        return before[name] - (used[name] or 0)
    end
    local streams, is_part = streams_of(entry.queue, entry.without, limit)
    local claimed = take_best(streams, entry, limit, rows, room, used)
    more = more or (is_part and claimed < limit)
    for _, stream in ipairs(streams) do
        tidy(stream, entry.queue)
    end
    for name, number in pairs(used) do
        call('HINCRBY', P .. 'slots:used', name, number)
    end
    count(entry.queue, 'queued', -claimed)
    count(entry.queue, 'running', claimed)
    return claimed
end

-- A bucket that fills at the rate and holds one second's worth.
local function claim_within_rate(entry, settings, rows)
    local rate, tokens, filled_at = tonumber(settings[2]), tonumber(settings[3]), tonumber(settings[4])
    tokens = math.min(math.max(1, rate), tokens + math.max(0, now - filled_at) / 1000000 * rate)
    local allowed = math.min(entry.limit, math.floor(tokens + 1e-9))
    local claimed = allowed > 0 and claim_from(entry, allowed, rows) or 0
    local left_over = string.format('%.17g', tokens - claimed)
    call('HSET', P .. 'queue:' .. entry.queue, 'tokens', left_over, 'filled_at', text(math.max(now, filled_at)))
end

local function claim(entry, rows)
    local settings = call('HMGET', P .. 'queue:' .. entry.queue, 'paused', 'rate', 'tokens', 'filled_at')
    if settings[1] ~= '1' and entry.limit > 0 then
        if settings[2] and settings[2] ~= '' then
            claim_within_rate(entry, settings, rows)
        else
            claim_from(entry, entry.limit, rows)
        end
    end
    fall() -- also if the queue is paused: the dependents of others must not wait for its sake
end

local function expire()
    local found = call('ZRANGEBYSCORE', P .. 'expiring', '-inf', NOW, 'LIMIT', 0, SOME)
    load(found, LOOKED_AT)
    for _, id in ipairs(found) do
        if not cancel_waiting(id, 'expired') then
            leave(P .. 'expiring', id)
        end
    end
    more = more or #found == SOME
    fall()
end

-- What was scheduled for a time that has come stands in line.
local function promote()
    local due = call('ZRANGEBYSCORE', P .. 'due', '-inf', NOW, 'LIMIT', 0, SOME)
    load(due, {'head', 'where', 'place'})
    for _, id in ipairs(due) do
        local state, token = head_of(id)
        local queue = where_of(id)
        local rank, run_at, _, priority = place_of(id)
        leave(P .. 'due', id)
        leave(state_key('scheduled'), id)
        if state == 'scheduled' and queue and rank then
            set_head(id, 'queued', token, '')
            count(queue, 'scheduled', -1)
            stand(id, queue, 'queued', rank, run_at, priority)
        elseif not STATES[state] or state == 'scheduled' then
            bury(id, queue or 'default', 'scheduled')
        end
    end
    more = more or #due == SOME
    flush()
end
