-- Transfers that were accepted to be made later. Each stands here from the transaction on that admitted its request, with that
-- request's claim as it was presented, and is presented to the guard once more when it is made. The row itself permits nothing,
-- so that nothing guards this table.
CREATE TABLE transfer_job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    class text NOT NULL,
    from_account text NOT NULL,
    token bigint NOT NULL CHECK (token > 0),
    grant_id text,
    to_account text NOT NULL,
    amount bigint NOT NULL,
    reference text NOT NULL,
    idempotency_key text NOT NULL,
    state text NOT NULL DEFAULT 'accepted' CHECK (state IN ('accepted', 'done', 'refused')),
    -- What was made of it.
    transfer bigint,
    -- Why nothing was: problem details, as they would have been answered.
    problem json,
    CHECK ((state = 'done') = (transfer IS NOT NULL) AND (state = 'refused') = (problem IS NOT NULL))
);
CREATE INDEX transfer_job_undecided ON transfer_job (id) WHERE state = 'accepted';
CREATE INDEX transfer_job_by_sender ON transfer_job (from_account, id);
