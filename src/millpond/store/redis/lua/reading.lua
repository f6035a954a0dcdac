-- Whole jobs, as they are answered.
local WHOLE = {
    'head', 'where', 'place', 'tally', 'alone', 'expires_at', 'slots', 'body', 'started_at', 'finished_at',
    'reason', 'cancelling', 'result', 'progress', 'attempts', 'parked', 'end'
}

local function whole_rows(ids)
    local rows = {}
    load(ids, WHOLE)
    for place, id in ipairs(ids) do
        local row = {id}
        for column, name in ipairs(WHOLE) do
            row[column + 1] = read(id, name)
        end
        rows[place] = row
    end
    return rows
end
