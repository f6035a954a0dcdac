-- {} -> the version that is there
return call('GET', P .. 'schema')
