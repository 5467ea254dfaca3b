SELECT fence.raise_mark($1, $2, $3, $4), pg_current_xact_id()::text;
