-- The transaction is the lock.
SELECT ?1
