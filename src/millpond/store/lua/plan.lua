-- uses: lines ends storing
-- {{{tick, job}, ...}} -> {"ok", {new, ...}, unfinished}: a tick is recorded once, and only then enqueues its job.
local fresh, jobs = {}, {}
for place, tick in ipairs(args[1]) do
    fresh[place] = call('ZSCORE', P .. 'ticks', tick[1]) and 0 or 1
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
        call('ZADD', P .. 'ticks', NOW, tick[1])
    end
end
return {'ok', fresh, unfinished and 1 or 0}
