-- Forgetting jobs that have ended. What is left of them in the lists of the ended is passed over later.
local FIELDS = {
    'head', 'where', 'place', 'tally', 'alone', 'expires_at', 'slots', 'body', 'started_at', 'finished_at',
    'reason', 'cancelling', 'result', 'progress', 'attempts', 'parked', 'aside', 'unique', 'children', 'waits',
    'end'
}

local function forget(ids)
    for _, id in ipairs(ids) do
        local state = head_of(id)
        leave(P .. 'state:' .. state, id)
        count(where_of(id) or 'default', state, -1)
        -- Whoever gets this id next has parents of his own
        for _, parent in ipairs(call('SMEMBERS', P .. 'parents:' .. id)) do
            call('SREM', P .. 'children:' .. parent, id)
        end
        call('DEL', P .. 'parents:' .. id)
    end
    for _, name in ipairs(FIELDS) do
        in_parts('HDEL', P .. 'job:' .. name, ids)
    end
    flush()
    return #ids
end
