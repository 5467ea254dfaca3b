UPDATE "odd ""name"""."settlement_batch" SET "fence_token" = $2, state = $3 WHERE "id" = $1 AND "fence_token" <= $2 RETURNING amount, "id"::text AS fence_key;
