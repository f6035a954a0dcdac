DELETE FROM {schema}.statistics WHERE minute < $1
