-- uses: slots lines ends storing
-- {jobs} -> {"ok", {{id, created}, ...}}, or {"unknown", job, parent}
local jobs = args[1]
if #jobs == 1 and is_alone(jobs[1]) then
    return {'ok', {{jobs[1][1], enqueue_one(jobs[1])}}}
end
local answers, missing = enqueue(jobs)
if missing then
    return missing
end
return {'ok', answers}
