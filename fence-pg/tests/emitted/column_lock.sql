SELECT 1 FROM "odd ""name"""."settlement_batch" WHERE "id" = $1 FOR UPDATE;
