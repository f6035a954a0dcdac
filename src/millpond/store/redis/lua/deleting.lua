-- Forgetting jobs that have ended. What is left of them in the lists of the ended is passed over later.
local FIELDS = {
    'head', 'where', 'place', 'tally', 'alone', 'expires_at', 'slots', 'body', 'started_at', 'finished_at',
    'reason', 'cancelling', 'result', 'progress', 'attempts', 'parked', 'aside', 'unique', 'children', 'waits',
    'end'
}

local function forget(ids)
    load(ids, {'head', 'where', 'slots'})
    for _, id in ipairs(ids) do
        local state = head_of(id)
        if state == 'dead' and read(id, 'slots') then
            name_slots(read(id, 'slots'), -1)
        end
        leave_end(state, id)
        count(where_of(id) or 'default', state, -1)
        -- Whoever gets this id next has parents of his own
        for _, parent in ipairs(call('SMEMBERS', P .. 'parents:' .. id)) do
            call('SREM', P .. 'children:' .. parent, id)
        end
        call('DEL', P .. 'parents:' .. id)
    end
    for bucket, part in pairs(by_bucket(ids, 1, 1)) do
        for _, name in ipairs(FIELDS) do
            in_parts('HDEL', job_key(name, bucket), part)
        end
    end
    flush()
    return #ids
end
