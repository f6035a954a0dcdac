-- Ticks that were recorded, "name\0instant": a set for each hour of their instants. "ticks" names the hours, each by
-- the time at which a tick of it was last recorded, so that a tick of long ago is not forgotten at once.
local function hour_of(tick)
    return text(math.floor(tonumber(string.match(tick, '%z(%-?%d+)$')) / 3600000000))
end

local function record_tick(tick, at)
    local hour = hour_of(tick)
    if call('SADD', P .. 'ticks:' .. hour, tick) == 1 then
        call('ZADD', P .. 'ticks', at, hour)
    end
end

local function is_recorded(tick)
    return call('SISMEMBER', P .. 'ticks:' .. hour_of(tick), tick) == 1
end
