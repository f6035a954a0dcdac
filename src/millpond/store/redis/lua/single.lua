-- The usual claim of a node that idles: one job stands in line, and it concerns nobody else. It is waited for,
-- so it takes half the time of `claim`, to which everything out of the ordinary is left before anything is written.
local function is_greater(a, b)
    if #a ~= #b then
        return #a > #b
    end
    for place = 1, #a do
        local x, y = string.byte(a, place), string.byte(b, place)
        if x ~= y then
            return x > y
        end
    end
    return false
end

-- Why a node may not speak, or not say this; nothing if it may.
local function refused(node)
    local record = call('HMGET', P .. 'node:' .. node, 'sequence', 'sealed')
    if not record[1] then
        return 'unknown'
    elseif record[2] == '1' then
        return 'sealed'
    elseif not is_greater(args[2], record[1]) and not (args[7] and args[2] == record[1]) then
        return 'replayed'
    end
end

-- What a job that was never claimed may have beside the usual fields, and what lets it concern others.
local RARE = {'expires_at', 'slots', 'unique'}

-- Nothing is finished, wanted back, set aside or parked that a claim would have to look at.
local function is_calm(claims, node, keys)
    keys[1], keys[2] = P .. 'falls', P .. 'cancelling:' .. node
    for _, wanted in ipairs(claims) do
        if wanted[2] <= 0 or #wanted[3] > 0 then
            return false
        end
        keys[#keys + 1] = P .. 'asides:' .. wanted[1]
        keys[#keys + 1] = P .. 'roomy:' .. wanted[1]
    end
    return true
end

-- Is there nothing at all but lines that nobody has configured, and plain jobs in the bucket?
local function is_bare(claims, keys, bucket)
    local all = {P .. 'due', P .. 'expiring', unpack(keys)}
    for _, name in ipairs(RARE) do
        all[#all + 1] = job_key(name, bucket)
    end
    for _, wanted in ipairs(claims) do
        all[#all + 1] = P .. 'queue:' .. wanted[1]
    end
    return call('EXISTS', unpack(all)) == 0
end

-- Has the time of the first one here come?
local function is_due(key, told)
    local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    return first[2] and tonumber(first[2]) <= clock(told[1], told[2])
end

-- The one job in all the lines, with its queue and line; nothing if there are none or more.
local function only_one(claims)
    local id, queue, line
    for _, wanted in ipairs(claims) do
        for _, priority in ipairs(call('SMEMBERS', P .. 'lines:' .. wanted[1])) do
            local key = P .. 'line:' .. wanted[1] .. '\0' .. priority
            local found = call('ZRANGE', key, 0, 1)
            if #found > 1 or (id and #found == 1) then
                return nil
            elseif #found == 1 then
                id, queue, line = found[1], wanted[1], key
            end
        end
    end
    return id, queue, line
end

-- Does this job concern nobody else, and may be claimed now?
local function is_plain(id, queue, bucket)
    for _, name in ipairs(RARE) do
        if call('HEXISTS', job_key(name, bucket), id) == 1 then
            return false
        end
    end
    local settings = call('HMGET', P .. 'queue:' .. queue, 'paused', 'rate')
    return settings[1] ~= '1' and (not settings[2] or settings[2] == '')
end

shortcut = function(told)
    local node, claims, keys = args[1], args[6], {}
    if #args[3] + #args[4] + #args[5] > 0 or #claims == 0 or not is_calm(claims, node, keys) then
        return nil
    end
    local id, queue, line = only_one(claims)
    if not id then
        return nil
    end
    local bucket = bucket_name(id)
    local bare, head_key = is_bare(claims, keys, bucket), job_key('head', bucket)
    if not bare and (call('EXISTS', unpack(keys)) > 0 or is_due(P .. 'due', told) or is_due(P .. 'expiring', told)) then
        return nil
    end
    if call('HGET', head_key, id) ~= 'queued 0 ' or not (bare or is_plain(id, queue, bucket)) then
        return nil
    end
    local where, place = call('HGET', job_key('where', bucket), id), call('HGET', job_key('place', bucket), id)
    local body = call('HGET', job_key('body', bucket), id)
    if not (where and place and body) or refused(node) then
        return nil
    end
    call('HSET', P .. 'node:' .. node, 'sequence', args[2])
    call('HSET', head_key, id, 'running 1 ' .. node)
    call('ZREM', line, id)
    call('ZREM', P .. 'state:queued', id)
    call('ZADD', P .. 'held:' .. node, '0', id)
    if call('HINCRBY', P .. 'counts', queue .. '\0queued', -1) == 0 then
        call('HDEL', P .. 'counts', queue .. '\0queued')
    end
    call('HINCRBY', P .. 'counts', queue .. '\0running', 1)
    return {'ok', {{id, where, place, '1', body}}, {}, {}, 0}
end
