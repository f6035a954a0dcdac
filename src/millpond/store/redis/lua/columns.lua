-- Jobs by column: each field of the jobs is a hash of its own in each bucket, by id, so that many jobs are read and
-- written by one command.
local known, loaded, changed, jotted
each_call(function()
    known, loaded, changed, jotted = {}, {}, {}, {}
end)

local function load_column(ids, name, bucket)
    local values, key = column(known, name), job_key(name, bucket)
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

-- Fields that every job has; of the others there is often none in the whole bucket, which one look tells.
local USUAL = {head = true, where = true, place = true, body = true}

local function rare_columns(names, bucket)
    local rare, keys = {}, {}
    for _, name in ipairs(names) do
        if not USUAL[name] then
            rare[#rare + 1], keys[#keys + 1] = name, job_key(name, bucket)
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

local function load_bucket(ids, names, bucket)
    local there = rare_columns(names, bucket)
    for _, name in ipairs(names) do
        if USUAL[name] or there[name] then
            load_column(ids, name, bucket)
        end
    end
end

-- Read some fields of many jobs at once.
local function load(ids, names)
    if #ids == 0 then
        return
    end
    local group = {}
    for _, id in ipairs(ids) do
        group[id] = true
    end
    for _, name in ipairs(names) do
        column(known, name)
        loaded[name] = group
    end
    for bucket, part in pairs(by_bucket(ids, 1, 1)) do
        load_bucket(part, names, bucket)
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
    value = call('HGET', job_key(name, bucket_of(id)), id)
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
