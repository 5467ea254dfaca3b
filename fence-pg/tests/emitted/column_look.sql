SELECT "id"::text, "fence_token", "fence_token" > ($2::bigint[])[array_position($1::text[]::bigint[], "id")] FROM "odd ""name"""."settlement_batch" WHERE "id" = ANY ($1::text[]::bigint[]);
