SELECT fence.raise_mark('paydb.account', 'acct-1', 281474976710690, 'b2f1'), pg_current_xact_id()::text;
