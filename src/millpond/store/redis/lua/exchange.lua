-- uses: slots lines ends settling claiming single
-- {node, sequence, verdicts, started, progress, claims, going on} -> {"ok", rows, stale, cancelling, more}

local node, stale, rows = args[1], {}, {}
local refusal = refused(node)
if refusal then
    return {refusal}
end
call('HSET', P .. 'node:' .. node, 'sequence', args[2])

if #args[3] > 0 then
    stale = settle_all(args[3], node)
    fall()
end
for _, item in ipairs(args[4]) do
    if is_held(item[1], node, item[2]) then
        write(item[1], 'started_at', NOW)
    else
        stale[#stale + 1] = item[1]
    end
end
for _, item in ipairs(args[5]) do
    if is_held(item[1], node, item[2]) then
        write(item[1], 'progress', item[3])
    else
        stale[#stale + 1] = item[1]
    end
end
flush()
look_around(args[6], node)
if #args[6] > 0 and not nothing_else then
    expire()
    promote()
end
for _, wanted in ipairs(args[6]) do
    local without = {}
    for _, task in ipairs(wanted[3]) do
        without[task] = true
    end
    claim({queue = wanted[1], limit = wanted[2], without = without, node = node, held = P .. 'held:' .. node}, rows)
end
local cancelling = nothing_else and {} or call('SMEMBERS', P .. 'cancelling:' .. node)
return {'ok', rows, stale, cancelling, more and 1 or 0}
