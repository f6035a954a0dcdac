-- Slots: "slots:capacity", "slots:used", how many jobs are "slots:parked" at one, and how many that wait, run or
-- may be replayed have it "slots:named". "slots:set" are those whose capacity was configured.

-- The names in a slots field, and what it says of their capacities; nil if it cannot be read.
local function slot_names(slots)
    if not slots then
        return {}, {}
    end
    local readable, list = pcall(cjson.decode, slots)
    if not readable or type(list) ~= 'table' then
        return nil
    end
    local names, capacities = {}, {}
    for _, slot in ipairs(list) do
        if type(slot) ~= 'table' or type(slot[1]) ~= 'string' then
            return nil
        end
        if not capacities[slot[1]] then -- a slot that is named twice is taken once
            names[#names + 1] = slot[1]
        end
        capacities[slot[1]] = tonumber(slot[2]) or 0
    end
    return names, capacities
end

-- How many may still run. A slot that was forgotten is again what the job at hand says of it: jobs from before
-- names were counted may wait for one that the end of another job, or `prune`, has taken for unused.
local function free_units(name, capacity)
    local known = call('HGET', P .. 'slots:capacity', name)
    if not known and capacity then
        known = text(capacity)
        call('HSET', P .. 'slots:capacity', name, known)
    end
    return (tonumber(known or 0) or 0) - (tonumber(call('HGET', P .. 'slots:used', name) or 0) or 0)
end

local function parked_at(name)
    return tonumber(call('HGET', P .. 'slots:parked', name) or 0)
end

-- A key for each order or user would otherwise fill the memory for ever: a slot goes with the last job that names
-- it. One that was configured stays, and one at which jobs are parked: they are not looked at without it.
local function forget_slot(name)
    if parked_at(name) == 0 and call('SISMEMBER', P .. 'slots:set', name) == 0 then
        call('HDEL', P .. 'slots:capacity', name)
    end
end

-- A job with these slots begins (1) or ends (-1). A dead one has not ended here: it may be replayed.
local function name_slots(slots, change)
    for _, name in ipairs(slot_names(slots) or {}) do
        if call('HINCRBY', P .. 'slots:named', name, change) <= 0 then
            call('HDEL', P .. 'slots:named', name)
            forget_slot(name)
        end
    end
end
