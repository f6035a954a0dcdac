-- The filter {states, queue, task} as a question about a job's state, queue and task.
local function chooser(filter)
    local states = nil
    if #filter[1] > 0 then
        states = {}
        for _, state in ipairs(filter[1]) do
            states[state] = true
        end
    end
    return function(state, queue, task)
        return (not states or states[state]) and (not filter[2] or queue == filter[2])
            and (not filter[3] or task == filter[3])
    end
end
