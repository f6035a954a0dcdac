-- Stands before every script: names, the time, jobs by column, and writes that are gathered and made at once.
-- The one key is "{namespace}:schema"; the arguments are a shift of the clock, the frozen time or "", and what
-- the script is told, in MessagePack. A script may stay loaded as a function: what is of one call only is made
-- anew by `begin`, and everything that changes is declared by `each_call`. Whole numbers that may be large travel
-- as text: a Lua number ends at 2^53.
-- Each field of the jobs is a hash of its own, by id, so that many jobs are read and written by one command.
local P, now, NOW, args -- of this call: the prefix of all keys, the time, the time as text, what we are told
local call -- neither this nor the libraries are there while a function is being loaded
local DAY = 86400000000
local SOME = 1000 -- the most a script does of anything that has no bound of its own
local KEEP -- a member that keeps a small sorted set from being packed, which is slow
local WHOLE -- how whole numbers become text: "%d" is quicker, but too short on a 32-bit server
local ENDS = {completed = true, dead = true, cancelled = true}
local STATES = {
    blocked = true, scheduled = true, queued = true, running = true, completed = true, dead = true, cancelled = true
}

local function text(number)
    return string.format(WHOLE, number)
end

local function clock(shift, frozen)
    if frozen ~= '' then
        return tonumber(frozen) + tonumber(shift)
    end
    local time = call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(shift)
end

local shortcut -- the answer in the usual case, without the time and all that `each_call` makes; nothing in others
local starts = {}

local function each_call(start)
    starts[#starts + 1] = start
end

local function begin(keys, told)
    call = redis.call
    if not WHOLE then
        KEEP = string.rep('\0', 65)
        WHOLE = string.format('%d', 2 ^ 52) == '4503599627370496' and '%d' or '%.0f'
    end
    P = string.sub(keys[1], 1, -7)
    args = cmsgpack.unpack(told[3])
    local answer = shortcut and shortcut(told)
    if answer then
        return answer
    end
    now = clock(told[1], told[2])
    NOW = text(now)
    for place = 1, #starts do
        starts[place]()
    end
end

-- --- jobs by column ----------------------------------------------------------------------------------------
local known, loaded, changed, jotted
each_call(function()
    known, loaded, changed, jotted = {}, {}, {}, {}
end)

local function column(columns, name)
    local found = columns[name]
    if not found then
        found = {}
        columns[name] = found
    end
    return found
end

local function load_column(ids, name)
    local values, key = column(known, name), P .. 'job:' .. name
    for first = 1, #ids, 4000 do
        local last = math.min(first + 3999, #ids)
        local found = call('HMGET', key, unpack(ids, first, last))
        for place = first, last do
            if found[place - first + 1] then
                values[ids[place]] = found[place - first + 1]
            end
        end
    end
end

-- Fields that every job has; of the others there is often none in the whole store, which one look tells.
local USUAL = {head = true, where = true, place = true, body = true}

local function rare_columns(names)
    local rare, keys = {}, {}
    for _, name in ipairs(names) do
        if not USUAL[name] then
            rare[#rare + 1], keys[#keys + 1] = name, P .. 'job:' .. name
        end
    end
    if #keys == 0 or call('EXISTS', unpack(keys)) == 0 then
        return {}
    end
    local there = {}
    for place, name in ipairs(rare) do
        there[name] = call('EXISTS', keys[place]) == 1
    end
    return there
end

-- Read some fields of many jobs at once.
local function load(ids, names)
    if #ids == 0 then
        return
    end
    local group, there = {}, rare_columns(names)
    for _, id in ipairs(ids) do
        group[id] = true
    end
    for _, name in ipairs(names) do
        if USUAL[name] or there[name] then
            load_column(ids, name)
        else
            column(known, name)
        end
        loaded[name] = group
    end
end

-- A field of a job; false if it has none.
local function read(id, name)
    local changes, values, group = changed[name], known[name], loaded[name]
    local value = changes and changes[id]
    if value ~= nil then
        return value
    end
    value = values and values[id]
    if value ~= nil then
        return value
    elseif group and group[id] then
        return false
    end
    value = call('HGET', P .. 'job:' .. name, id)
    column(known, name)[id] = value
    return value
end

local function write(id, name, value)
    local changes = changed[name]
    if not changes then
        changes = {}
        changed[name] = changes
    end
    changes[id] = value
end

-- Write a field that this script does not read again before it flushes.
local function jot(id, name, value)
    local list = jotted[name]
    if not list then
        list = {}
        jotted[name] = list
    end
    list[#list + 1] = id
    list[#list + 1] = value
end

local function erase(id, name)
    if read(id, name) then
        write(id, name, false)
    end
end

-- Which of the loaded jobs have one of these fields.
local function having(names)
    local ids = {}
    for _, name in ipairs(names) do
        for id in pairs(known[name] or {}) do
            ids[id] = true
        end
    end
    return ids
end

-- state, token, node; nothing if it is no job
local function head_of(id)
    local head = read(id, 'head')
    if head then
        return string.match(head, '^(%a+) (%d+) (.*)$')
    end
end

local function set_head(id, state, token, node)
    write(id, 'head', state .. ' ' .. token .. ' ' .. node)
end

-- rank, run_at, created_at, priority
local function place_of(id)
    local place = read(id, 'place')
    if place then
        return string.match(place, '^(%-?%d+) (%-?%d+) (%-?%d+) (%-?%d+)$')
    end
end

local function set_place(id, rank, run_at, created_at, priority)
    write(id, 'place', rank .. ' ' .. run_at .. ' ' .. created_at .. ' ' .. priority)
end

local split
each_call(function()
    split = {}
end)

-- queue, task
local function where_of(id)
    local where = read(id, 'where')
    if not where then
        return nil
    end
    local parts = split[where]
    if not parts then
        parts = {string.match(where, '^(.-)%z(.*)$')}
        split[where] = parts
    end
    return parts[1], parts[2]
end

local NEXT = {['0'] = '1', ['1'] = '2', ['2'] = '3'}

-- A token plus one, as text.
local function raised(token)
    if NEXT[token] then
        return NEXT[token]
    end
    if #token < 15 then
        return text(tonumber(token) + 1)
    end
    local digits, place = {string.byte(token, 1, -1)}, #token
    while place > 0 and digits[place] == 57 do
        digits[place] = 48
        place = place - 1
    end
    if place == 0 then
        return '1' .. string.char(unpack(digits))
    end
    digits[place] = digits[place] + 1
    return string.char(unpack(digits))
end

-- --- gathered writes ---------------------------------------------------------------------------------------
local left, entered, appended, counted, noted, woken
each_call(function()
    left, entered, appended, counted, noted, woken = {}, {}, {}, {}, {}, {}
end)

local function leave(key, id)
    local list = column(left, key)
    list[#list + 1] = id
end

local function append(key, value)
    local list = column(appended, key)
    list[#list + 1] = value
end

-- The score as text: a number would be formatted as a fraction is, again for every job.
local function enter(key, score, id)
    local list = column(entered, key)
    list[#list + 1] = score
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

local function in_parts(command, key, list)
    for first = 1, #list, 4000 do
        call(command, key, unpack(list, first, math.min(first + 3999, #list)))
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
        in_parts('HSET', P .. 'job:' .. name, sets)
        in_parts('HDEL', P .. 'job:' .. name, drops)
    end
    for name, list in pairs(jotted) do
        in_parts('HSET', P .. 'job:' .. name, list)
    end
    known, loaded, changed, jotted = {}, {}, {}, {}
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
    local minute = text(math.floor(now / 60000000))
    local key = P .. 'minute:' .. minute
    for queue, whats in pairs(noted) do
        for what, buckets in pairs(whats) do
            for bucket, number in pairs(buckets) do
                call('HINCRBY', key, queue .. '\0' .. what .. '\0' .. bucket, number)
            end
        end
    end
    call('ZADD', P .. 'minutes', minute, minute)
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
    for key, values in pairs(appended) do
        in_parts('RPUSH', key, values)
    end
    write_counts()
    write_notes()
    for queue in pairs(woken) do
        call('PUBLISH', P .. 'wake:' .. queue, '1')
    end
    left, entered, appended, counted, noted, woken = {}, {}, {}, {}, {}, {}
end
