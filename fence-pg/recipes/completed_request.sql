-- Answers that were given and committed together with their effect, for the helper begin_once of fence_pg's drivers. It is a
-- table of the resource's own, in the resource's own schema, and no part of the guard: take it into a migration, and prune it by
-- age.
CREATE TABLE completed_request (
    -- The claim's class and key: an idempotency key is known within them.
    class text NOT NULL,
    key text NOT NULL,
    idempotency_key text NOT NULL,
    -- Who asked, and what for: with another principal or another content the same key is another request.
    principal text NOT NULL,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    status smallint NOT NULL,
    content_type text NOT NULL,
    answer bytea NOT NULL,
    completed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (class, key, idempotency_key)
);
