-- uses: slots
-- {cursor, most} -> cursor. A step of the migration: slots that no job names, which old versions have left.
local found = call('HSCAN', P .. 'slots:capacity', args[1], 'COUNT', args[2])
for place = 1, #found[2], 2 do
    local name = found[2][place]
    local used = tonumber(call('HGET', P .. 'slots:used', name) or 0)
    if used <= 0 then
        call('HDEL', P .. 'slots:used', name)
        if call('HEXISTS', P .. 'slots:named', name) == 0 then
            forget_slot(name)
        end
    end
end
return found[1]
