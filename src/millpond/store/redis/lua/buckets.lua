-- Buckets of jobs. A bucket is the beginning of an id: of version 7 its first 32 bits, which are a window of 65 s, of
-- any other its first 12. What is kept of every job, for as long as it is kept, has a key for each bucket, so that no
-- key grows with the history: a cluster that moves a key, and a server that resizes one, are busy with the jobs of
-- about a minute. See tests/stores/test_redis_buckets.py.
local bucket_of_id
each_call(function()
    bucket_of_id = {}
end)

local function column(columns, name)
    local found = columns[name]
    if not found then
        found = {}
        columns[name] = found
    end
    return found
end

-- Also before `each_call`: for the shortcut.
local function bucket_name(id)
    return string.byte(id, 15) == 55 and string.sub(id, 1, 8) or string.sub(id, 1, 3) -- 55 is "7", the version
end

local function bucket_of(id)
    local bucket = bucket_of_id[id]
    if not bucket then
        bucket = bucket_name(id)
        bucket_of_id[id] = bucket
    end
    return bucket
end

local function job_key(name, bucket)
    return P .. 'job:' .. name .. ':' .. bucket
end

-- A flat list with `width` values for each job, its id at the place `at` of them, in parts: {bucket = list}. Jobs
-- that come together were mostly made together: then it is the list itself.
local function by_bucket(list, width, at)
    local size, place = #list, at + width
    if size == 0 then
        return {}
    end
    local first, found = bucket_of(list[at]), bucket_of_id -- looked up here: a call for each job costs more
    while place <= size and (found[list[place]] or bucket_of(list[place])) == first do
        place = place + width
    end
    if place > size then
        return {[first] = list}
    end
    local parts = {}
    for start = 1, size, width do
        local part = column(parts, bucket_of(list[start + at - 1]))
        for offset = 0, width - 1 do
            part[#part + 1] = list[start + offset]
        end
    end
    return parts
end
