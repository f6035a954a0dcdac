-- uses: slots lines
-- {queue, paused, rate given, rate, slot, capacity}: a new rate begins with a full bucket, one second's worth.
local queue, name = args[1], args[5]
if queue then
    local key = P .. 'queue:' .. queue
    local is_new = call('SADD', P .. 'queues', queue) == 1
    if is_new or args[2] ~= nil then
        call('HSET', key, 'paused', args[2] and '1' or '0')
    end
    if is_new or args[3] then
        local rate = args[4] and string.format('%.17g', args[4]) or ''
        local tokens = string.format('%.17g', math.max(1, args[4] or 0))
        call('HSET', key, 'rate', rate, 'tokens', tokens, 'filled_at', NOW)
    end
    wake(queue)
end
if name then
    call('HSET', P .. 'slots:capacity', name, args[6])
    call('SADD', P .. 'slots:set', name)
    offer(name)
end
flush()
return 'ok'
