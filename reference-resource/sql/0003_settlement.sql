-- Batches that settlement workers claim and settle, straight in the database. Whoever sets up a batch inserts it:
--
--     INSERT INTO settlement_batch (id, amount) VALUES ('batch-1', 5000);
CREATE TABLE settlement_batch (
    id text PRIMARY KEY,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled')),
    amount bigint NOT NULL CHECK (amount >= 0),
    settled_total bigint,
    -- The guard: the largest token that has written this row.
    fence_token bigint NOT NULL DEFAULT 0,
    -- Who wrote last, as plain data. It guards nothing.
    grant_id text,
    CHECK ((state = 'settled') = (settled_total IS NOT NULL))
);

SELECT fence.declare('paydb.settlement', 'coord');
SELECT fence.protect_column('settlement_batch', 'paydb.settlement', 'id', 'fence_token');
