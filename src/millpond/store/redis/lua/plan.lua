-- uses: slots lines ends storing ticks
-- {{{tick, job}, ...}} -> {"ok", {new, ...}}: a tick is recorded once, and only then enqueues its job.
local fresh, jobs = {}, {}
for place, tick in ipairs(args[1]) do
    fresh[place] = is_recorded(tick[1]) and 0 or 1
    if fresh[place] == 1 and tick[2] then
        jobs[#jobs + 1] = tick[2]
    end
end
local _, missing = enqueue(jobs)
if missing then
    return missing
end
for place, tick in ipairs(args[1]) do
    if fresh[place] == 1 then
        record_tick(tick[1], NOW)
    end
end
return {'ok', fresh}
