-- {version:compatible_from} -> {the version that is there, created}: a new namespace is made on first use.
local created = call('SET', KEYS[1], args[1], 'NX')
return {call('GET', KEYS[1]), created and 1 or 0}
