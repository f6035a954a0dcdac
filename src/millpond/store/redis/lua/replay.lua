-- uses: slots lines chosen
-- {ids, filter} -> how many dead jobs stand in line again, with fresh budgets
local GONE = {'reason', 'alone', 'cancelling', 'expires_at', 'finished_at', 'started_at', 'result'}
local wanted, number = chooser(args[2]), 0

local function revive(id, token, queue)
    local _, _, created_at, priority = place_of(id)
    local rank = text(now - tonumber(priority) * DAY)
    local attempt = string.match(read(id, 'tally') or '0', '^%d+') or '0'
    set_head(id, 'queued', token, '')
    set_place(id, rank, NOW, created_at, priority)
    write(id, 'tally', attempt .. ' 0 0 0')
    for _, name in ipairs(GONE) do
        erase(id, name)
    end
    count(queue, 'dead', -1)
    note(queue, 'replayed', 0)
    leave_end('dead', id)
    stand(id, queue, 'queued', rank, NOW, priority)
end

load(args[1], {'head', 'where', 'place', 'tally', unpack(GONE)})
for _, id in ipairs(args[1]) do
    local state, token = head_of(id)
    local queue, task = where_of(id)
    if state == 'dead' and read(id, 'reason') ~= 'damaged' and place_of(id) and wanted(state, queue, task) then
        revive(id, token, queue)
        number = number + 1
    end
end
flush()
return number
