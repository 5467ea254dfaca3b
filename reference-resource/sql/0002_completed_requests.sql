-- Answers that were given and committed together with their effect. A request that comes again under its key gets its
-- stored answer, byte for byte, also from a holder that has been fenced since.
CREATE TABLE completed_request (
    account text NOT NULL,
    idempotency_key text NOT NULL,
    -- What was asked for. The same key with anything else is another request.
    request jsonb NOT NULL,
    status smallint NOT NULL,
    answer text NOT NULL,
    completed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (account, idempotency_key)
);
