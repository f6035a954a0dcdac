-- Was a lease renewed within the last half of its length? Nodes renew five times in it, so a longer pause means
-- that the store was away, for the others as well: after a partition, a fail-over or a paused server a node that
-- had renewed a second later than another one still has its lease when the other's has just run out. Without this
-- it would take a living node for dead: see tests/stores/test_redis_leases.py.
local function is_fresh(until_when, length)
    return now - (tonumber(until_when) - tonumber(length)) < tonumber(length) / 2
end
