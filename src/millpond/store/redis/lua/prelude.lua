-- Stands before every script, with columns.lua and writes.lua behind it: names, the time, and how a call begins.
-- The one key is "{namespace}:schema"; the arguments are a shift of the clock, the frozen time or "", and what
-- the script is told, in MessagePack. A script may stay loaded as a function: what is of one call only is made
-- anew by `begin`, and everything that changes is declared by `each_call`. Whole numbers that may be large travel
-- as text: a Lua number ends at 2^53.
local P, now, NOW, args -- of this call: the prefix of all keys, the time, the time as text, what we are told
local call -- neither this nor the libraries are there while a function is being loaded
local DAY = 86400000000
local SOME = 1000 -- the most a script does of anything that has no bound of its own
local KEEP -- a member that keeps a small sorted set from being packed, which is slow
local WHOLE -- how whole numbers become text: "%d" is quicker, but too short on a 32-bit server
local ENDS = {completed = true, dead = true, cancelled = true}
local STATES = {
    blocked = true, scheduled = true, queued = true, running = true, completed = true, dead = true, cancelled = true
}

local function text(number)
    return string.format(WHOLE, number)
end

local function clock(shift, frozen)
    if frozen ~= '' then
        return tonumber(frozen) + tonumber(shift)
    end
    local time = call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(shift)
end

local shortcut -- the answer in the usual case, without the time and all that `each_call` makes; nothing in others
local starts = {}

local function each_call(start)
    starts[#starts + 1] = start
end

local function begin(keys, told)
    call = redis.call
    if not WHOLE then
        KEEP = string.rep('\0', 65)
        WHOLE = string.format('%d', 2 ^ 52) == '4503599627370496' and '%d' or '%.0f'
    end
    P = string.sub(keys[1], 1, -7)
    args = cmsgpack.unpack(told[3])
    local answer = shortcut and shortcut(told)
    if answer then
        return answer
    end
    now = clock(told[1], told[2])
    NOW = text(now)
    for place = 1, #starts do
        starts[place]()
    end
end
