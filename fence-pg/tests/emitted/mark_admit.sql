SELECT fence.admit($1, $2, $3, $4), pg_current_xact_id()::text;
