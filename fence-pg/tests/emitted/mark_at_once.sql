BEGIN ISOLATION LEVEL READ COMMITTED; SELECT fence.admit('paydb.account', 'acct-1', 281474976710690, 'b2f1'), pg_current_xact_id()::text; DELETE FROM transfer -- all
; SELECT pg_current_xact_id_if_assigned()::text; COMMIT;
