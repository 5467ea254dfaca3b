SELECT fence.admit_many($1, $2, $3, $4), pg_current_xact_id()::text;
