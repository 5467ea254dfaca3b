-- Admission: the mark guard's one decision. It raises or it returns; there is no answer to be misread.
--
--     BEGIN;
--     SELECT fence.admit('paydb.account', 'acct-1', 562949953421399, 'b2f1');
--     INSERT INTO transfer ...;
--     COMMIT;
--
-- Admission and write are two statements of one transaction, or of one volatile function, never one statement: that would
-- keep the snapshot that it took before it waited.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;

-- Admits a claim, and holds its key to the end of the transaction. Refusals:
--   ZF001 stale; DETAIL is exactly 'presented N, seen M'     ZF005 outside the registered ranges
--   ZF002 no token, or no grant id where one is needed       ZF006 wrong key
--   ZF003 a token below 1                                    ZF007 unknown class
--   ZF004 an equal token of another grant
-- Further: 55P03 when the key is held for more than 2 s; 40001 above READ COMMITTED when the key was admitted since the
-- transaction's snapshot (present the same claim again in a new transaction).
CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    declared record;
    mark_token bigint;
    mark_grant text;
    -- A class without a tier neither needs nor keeps grant ids.
    holder text;
BEGIN
    IF admit.token IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF002', MESSAGE = 'missing fencing token', DETAIL = 'missing fencing token',
            HINT = 'Present the token that the grant gave.';
    END IF;
    IF admit.token < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF003', MESSAGE = format('token %s is below 1', admit.token),
            DETAIL = format('presented %s', admit.token), HINT = 'Tokens are 1 to 9223372036854775807.';
    END IF;
    SELECT c.tier INTO declared FROM fence.class c WHERE c.name = admit.class;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', admit.class),
            HINT = format('A typing error? SELECT name, tier FROM fence.class lists the classes. '
                          'A new one is declared once: SELECT fence.declare(%L, ''TIER'').', admit.class);
    END IF;
    IF admit.key IS NULL OR octet_length(admit.key) NOT BETWEEN 1 AND 512 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF006', MESSAGE = 'a key is 1 to 512 bytes of text',
            DETAIL = format('got %s bytes', coalesce(octet_length(admit.key)::text, 'no')),
            HINT = 'Present the key of the row that is written.';
    END IF;
    IF declared.tier IS NOT NULL THEN
        holder := nullif(admit.grant_id, '');
        IF holder IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF002', MESSAGE = format('missing grant id for class %s', admit.class),
                DETAIL = 'missing grant id', HINT = 'Present the grant id that came with the token.';
        END IF;
        IF holder COLLATE "C" !~ '^[A-Za-z0-9._:-]{1,64}$' THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = 'a grant id is 1 to 64 of [A-Za-z0-9._:-]', DETAIL = format('got %L', left(holder, 80)),
                HINT = 'Present the grant id as the lock store gave it with the token.';
        END IF;
    END IF;

    PERFORM fence.bound_transaction();
    PERFORM fence.take_key(admit.class, admit.key);

    LOOP
        SELECT h.token, h.grant_id INTO mark_token, mark_grant FROM fence.high_water h
        WHERE h.class = admit.class AND h.key = admit.key FOR UPDATE;
        IF admit.token < mark_token THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF001',
                MESSAGE = format('stale token for class %s, key %L', admit.class, admit.key),
                DETAIL = format('presented %s, seen %s', admit.token, mark_token),
                HINT = 'A newer holder has been here. Stop this work; do not fetch a newer token for it.';
        END IF;
        IF admit.token = mark_token AND declared.tier IS NOT NULL AND holder IS DISTINCT FROM mark_grant THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF004',
                MESSAGE = format('token %s was already used by another grant', admit.token),
                DETAIL = format('token %s, presented by grant %s, seen from grant %s',
                                admit.token, holder, coalesce(mark_grant, 'unknown')),
                HINT = 'The issuer has lost history. Stop, and let an operator advance the epoch.';
        END IF;
        IF declared.tier IS NOT NULL AND (mark_token IS NULL OR admit.token > mark_token) AND NOT EXISTS (
            SELECT FROM fence.epoch_range r
            WHERE r.tier = declared.tier AND admit.token BETWEEN r.first AND r.ceiling
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF005',
                MESSAGE = format('token %s lies outside every range registered for tier %s', admit.token, declared.tier),
                DETAIL = format('presented %s', admit.token),
                HINT = fence.explain_range(declared.tier, admit.token);
        END IF;
        -- Written also when the token stays: a row that was only locked lets a later snapshot miss this admission.
        IF mark_token IS NOT NULL THEN
            UPDATE fence.high_water h SET token = admit.token, grant_id = holder
            WHERE h.class = admit.class AND h.key = admit.key;
            RETURN;
        END IF;
        IF declared.tier IS NULL THEN
            -- The class may be given a tier until its first mark is committed, but not beneath one.
            PERFORM FROM fence.class c WHERE c.name = admit.class AND c.tier IS NULL FOR KEY SHARE NOWAIT;
            IF NOT FOUND THEN
                PERFORM fence.admit(admit.class, admit.key, admit.token, admit.grant_id);
                RETURN;
            END IF;
        END IF;
        INSERT INTO fence.high_water (class, key, token, grant_id)
        VALUES (admit.class, admit.key, admit.token, holder)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN;
        END IF;
        -- Somebody wrote the first mark past the queue: decide again, by what is there now.
    END LOOP;
END
$$;

-- What an operator would do about a token outside every range of a tier, if the token is right.
CREATE OR REPLACE FUNCTION fence.explain_range(tier text, token bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    token_epoch bigint := explain_range.token >> 48;
    known bigint;
BEGIN
    IF token_epoch = 0 OR explain_range.token & 281474976710655 = 0 THEN
        RETURN format('A token of tier %s is an epoch of at least 1 times 2^48, plus a revision; this number is another '
                      'issuer''s. A class for such tokens is declared without a tier.', explain_range.tier);
    END IF;
    SELECT r.ceiling INTO known FROM fence.epoch_range r WHERE r.tier = explain_range.tier AND r.epoch = token_epoch;
    IF FOUND THEN
        RETURN format('Epoch %s is registered up to %s. If the token is right, an operator moves that up: '
                      'SELECT fence.register_epoch(%L, %s, %s).', token_epoch, known, explain_range.tier,
                      token_epoch, explain_range.token);
    END IF;
    RETURN format('If epoch %s is right, an operator registers it: SELECT fence.register_epoch(%L, %s).',
                  token_epoch, explain_range.tier, token_epoch);
END
$$;

-- Raises the mark before any write: called, and committed, right after a grant and before the first read that a write will
-- depend on. It is nothing but an admission.
CREATE OR REPLACE FUNCTION fence.raise_mark(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fence.admit(raise_mark.class, raise_mark.key, raise_mark.token, raise_mark.grant_id);
END
$$;

REVOKE ALL ON FUNCTION fence.admit, fence.explain_range, fence.raise_mark FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0005_admit.sql') ON CONFLICT DO NOTHING;
COMMIT;
