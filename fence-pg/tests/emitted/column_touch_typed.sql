UPDATE "odd ""name"""."settlement_batch" SET "fence_token" = $2 WHERE "id" = $1::text::bigint AND "fence_token" <= $2 RETURNING "id"::text AS fence_key;
