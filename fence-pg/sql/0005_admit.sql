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
SET LOCAL lock_timeout = '1s';

-- Admits a claim, and holds its key to the end of the transaction. Refusals:
--   ZF001 stale; DETAIL is exactly 'presented N, seen M'     ZF005 outside the registered ranges
--   ZF002 no token, or no grant id where one is needed       ZF006 wrong key
--   ZF003 a token below 1                                    ZF007 unknown class
--   ZF004 an equal token of another grant                    ZF008 the database may have lost marks
-- Further: 55P03 when the key is held for more than 2 s; 40001 above READ COMMITTED when the key was admitted since the
-- transaction's snapshot (present the same claim again in a new transaction).
CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    seen bigint;
    -- Takes what set_config returns: an assignment costs less than a PERFORM, which runs a query.
    now_set text;
BEGIN
    IF current_setting('idle_in_transaction_session_timeout') = '0' AND current_setting('synchronous_commit') <> 'off' THEN
        now_set := set_config('idle_in_transaction_session_timeout', '5000', true);
    ELSIF current_setting('idle_in_transaction_session_timeout') <> '5s' OR current_setting('synchronous_commit') = 'off' THEN
        PERFORM fence.bound_transaction();
    END IF;

    -- What is common in one statement: a holder that was admitted before comes again, and nobody is in its way. It takes the
    -- queue of the key last of all, and only when the rest holds. The row is written although no token changes: one that was
    -- only locked would let a later snapshot miss this admission. A row that somebody has locked past the queue is left to
    -- fence.decide, which can bound the wait; so is a grant id that a class without a tier does not ask for.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM fence.require_standing();
    END IF;
    UPDATE fence.high_water h SET admitted_xid = pg_current_xact_id(), admitted_at = transaction_timestamp()
    WHERE h.class = admit.class AND h.key = admit.key AND h.token = admit.token
      AND h.grant_id IS NOT DISTINCT FROM admit.grant_id
      AND h.token >= (SELECT c.floor FROM fence.class c
                      WHERE c.name = admit.class AND (c.tier IS NULL OR admit.grant_id <> '')
                        AND c.sound_start = pg_postmaster_start_time() AND c.sound_home = fence.home())
      AND h.xmax = '0'::xid
      AND pg_try_advisory_xact_lock(fence.queue_of(admit.class, admit.key));
    IF FOUND THEN
        IF coalesce(current_setting('fence.admitted', true), '') = '' THEN
            now_set := set_config('fence.admitted', E'\x1e' || admit.class || E'\x1f' || admit.key, true);
        ELSE
            PERFORM fence.note_admitted(admit.class, admit.key);
        END IF;
        RETURN;
    END IF;

    seen := fence.decide(admit.class, admit.key, admit.token, admit.grant_id);
    IF seen IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF001',
            MESSAGE = format('stale token for class %s, key %L', admit.class, admit.key),
            DETAIL = format('presented %s, seen %s', admit.token, seen),
            HINT = 'A newer holder has been here. Stop this work; do not fetch a newer token for it.';
    END IF;
END
$$;

-- Admits several claims, all or none: the transaction fails when one is refused. All keys together wait 2 s at most, and are
-- taken in one order, so that two batches never wait for each other. Every stale key is named: ZF001, DETAIL has one line for
-- each, 'presented N, seen M, class C, key K' with K quoted (a batch of one key: exactly 'presented N, seen M'). A claim that
-- is given twice counts once; one key with two tokens or grants is an error. No claims: nothing happens.
CREATE OR REPLACE FUNCTION fence.admit_many(classes text[], keys text[], tokens bigint[], grant_ids text[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    claims integer := coalesce(cardinality(classes), 0);
    claim record;
    seen bigint;
    batch integer := 0;
    stale text[] := '{}';
    named text[] := '{}';
BEGIN
    IF coalesce(cardinality(keys), 0) <> claims OR coalesce(cardinality(tokens), 0) <> claims
        OR cardinality(grant_ids) <> claims THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('the arrays of a batch are as long as each other, got %s classes, %s keys, %s tokens, %s grant ids',
                             claims, coalesce(cardinality(keys), 0), coalesce(cardinality(tokens), 0),
                             coalesce(cardinality(grant_ids)::text, 'no')),
            HINT = 'Position by position they are the claims; NULL for all grant ids where no class needs one.';
    END IF;
    IF claims = 0 THEN
        RETURN;
    END IF;
    SELECT p.class, p.key INTO claim
    FROM (SELECT DISTINCT u.class, u.key, u.token, u.grant_id
          FROM unnest(classes, keys, tokens, grant_ids) AS u (class, key, token, grant_id)) p
    GROUP BY p.class, p.key HAVING count(*) > 1
    ORDER BY p.class COLLATE "C", p.key COLLATE "C" LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('class %s, key %L, is presented with two tokens or two grant ids', claim.class, claim.key),
            HINT = 'A key has one holder: present its newest claim alone.';
    END IF;
    PERFORM fence.bound_transaction();

    FOR claim IN
        SELECT DISTINCT u.class, u.key, u.token, u.grant_id, u.class COLLATE "C" AS by_class, u.key COLLATE "C" AS by_key
        FROM unnest(classes, keys, tokens, grant_ids) AS u (class, key, token, grant_id)
        ORDER BY by_class, by_key
    LOOP
        batch := batch + 1;
        IF cardinality(stale) = 0 THEN
            seen := fence.decide(claim.class, claim.key, claim.token, claim.grant_id);
        ELSE
            -- The batch is refused. Marks do not fall: what is committed is enough to name the others, without a wait.
            SELECT greatest(h.token, c.floor) INTO seen FROM fence.class c
            LEFT JOIN fence.high_water h ON h.class = c.name AND h.key = claim.key
            WHERE c.name = claim.class;
            seen := CASE WHEN claim.token < seen THEN seen END;
        END IF;
        IF seen IS NOT NULL THEN
            stale := stale || format('presented %s, seen %s, class %s, key %L', claim.token, seen, claim.class, claim.key);
            named := named || format('class %s, key %L', claim.class, claim.key);
        END IF;
    END LOOP;
    IF cardinality(stale) > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF001',
            MESSAGE = CASE WHEN batch = 1 THEN 'stale token for ' || named[1]
                ELSE format('stale tokens for %s of %s keys: %s', cardinality(stale), batch, array_to_string(named, '; ')) END,
            DETAIL = CASE WHEN batch = 1 THEN split_part(stale[1], ', class ', 1) ELSE array_to_string(stale, E'\n') END,
            HINT = 'A newer holder has been at each of these keys. Stop the work on them; do not fetch newer tokens for it.';
    END IF;
END
$$;

-- Decides a claim, and admits it: returns NULL then, and the mark when the claim is stale. Raises every other refusal.
CREATE OR REPLACE FUNCTION fence.decide(class text, key text, token bigint, grant_id text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    declared record;
    mark_token bigint;
    mark_grant text;
    -- Nobody has written or locked this version of the mark's row.
    free boolean;
    -- This transaction has written it.
    written boolean := false;
    -- A class without a tier neither needs nor keeps grant ids.
    holder text;
BEGIN
    IF decide.token IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF002',
            MESSAGE = format('missing fencing token for class %s, key %L', decide.class, decide.key),
            DETAIL = 'missing fencing token',
            HINT = 'Present the token that the grant gave.';
    END IF;
    IF decide.token < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF003',
            MESSAGE = format('token %s for class %s, key %L, is below 1', decide.token, decide.class, decide.key),
            DETAIL = format('presented %s', decide.token), HINT = 'Tokens are 1 to 9223372036854775807.';
    END IF;
    SELECT c.tier, c.floor, c.sound_start = pg_postmaster_start_time() AND c.sound_home = fence.home() AS sound INTO declared
    FROM fence.class c WHERE c.name = decide.class;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF007', MESSAGE = format('class %L is not declared', decide.class),
            DETAIL = format('presented for key %L', decide.key),
            HINT = format('A typing error? SELECT name, tier FROM fence.class lists the classes. '
                          'A new one is declared once: SELECT fence.declare(%L, ''TIER'').', decide.class);
    END IF;
    IF decide.key IS NULL OR octet_length(decide.key) NOT BETWEEN 1 AND 512 THEN
        RAISE EXCEPTION USING ERRCODE = 'ZF006',
            MESSAGE = format('a key is 1 to 512 bytes of text, got %s of class %s',
                             coalesce(octet_length(decide.key) || ' bytes', 'none'), decide.class),
            DETAIL = format('got %s bytes', coalesce(octet_length(decide.key)::text, 'no')),
            HINT = 'Present the key of the row that is written.';
    END IF;
    IF declared.tier IS NOT NULL THEN
        holder := nullif(decide.grant_id, '');
        IF holder IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF002',
                MESSAGE = format('missing grant id for class %s, key %L', decide.class, decide.key),
                DETAIL = 'missing grant id', HINT = 'Present the grant id that came with the token.';
        END IF;
        IF holder COLLATE "C" !~ '^[A-Za-z0-9._:-]{1,64}$' THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('a grant id is 1 to 64 of [A-Za-z0-9._:-], got another for class %s, key %L',
                                 decide.class, decide.key),
                DETAIL = format('got %L', left(holder, 80)),
                HINT = 'Present the grant id as the lock store gave it with the token.';
        END IF;
    END IF;
    IF declared.sound IS NOT TRUE THEN
        PERFORM fence.require_history(decide.class);
    END IF;

    PERFORM fence.take_queue(decide.class, decide.key);

    LOOP
        SELECT h.token, h.grant_id, h.xmax = '0'::xid INTO mark_token, mark_grant, free FROM fence.high_water h
        WHERE h.class = decide.class AND h.key = decide.key;
        -- Looked at after the wait, and after the mark: a stop or a floor may have come meanwhile, and where there is no mark it
        -- may have gone, which is only below a floor that was raised by then.
        IF current_setting('transaction_isolation') <> 'read committed' THEN
            PERFORM fence.require_standing();
        END IF;
        SELECT c.floor, c.sound_start = pg_postmaster_start_time() AND c.sound_home = fence.home()
        INTO STRICT declared.floor, declared.sound FROM fence.class c WHERE c.name = decide.class;
        IF declared.sound IS NOT TRUE THEN
            PERFORM fence.require_history(decide.class);
        END IF;
        -- A mark below the floor, or none, reads as the floor.
        IF decide.token < mark_token OR decide.token < declared.floor THEN
            RETURN greatest(mark_token, declared.floor);
        END IF;
        IF decide.token = mark_token AND declared.tier IS NOT NULL AND holder IS DISTINCT FROM mark_grant THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF004',
                MESSAGE = format('token %s for class %s, key %L, was already used by another grant',
                                 decide.token, decide.class, decide.key),
                DETAIL = format('token %s, presented by grant %s, seen from grant %s',
                                decide.token, holder, coalesce(mark_grant, 'unknown')),
                HINT = 'The issuer has lost history. Stop, and let an operator advance the epoch.';
        END IF;
        IF declared.tier IS NOT NULL AND (mark_token IS NULL OR decide.token > mark_token) AND NOT EXISTS (
            SELECT FROM fence.epoch_range r
            WHERE r.tier = declared.tier AND decide.token BETWEEN r.first AND r.ceiling
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'ZF005',
                MESSAGE = format('token %s for class %s, key %L, lies outside every range registered for tier %s',
                                 decide.token, decide.class, decide.key, declared.tier),
                DETAIL = format('presented %s', decide.token),
                HINT = fence.explain_range(declared.tier, decide.token);
        END IF;
        IF mark_token IS NOT NULL THEN
            -- Past the queue, somebody has locked or changed the row, or did so once: wait, and decide by what is there then.
            IF NOT free AND NOT written THEN
                PERFORM fence.wait_for_key(decide.class, decide.key, true);
                written := true;
                CONTINUE;
            END IF;
            UPDATE fence.high_water h
            SET token = decide.token, grant_id = holder,
                admitted_xid = pg_current_xact_id(), admitted_at = transaction_timestamp()
            WHERE h.class = decide.class AND h.key = decide.key
              AND h.token = mark_token AND h.grant_id IS NOT DISTINCT FROM mark_grant AND (written OR h.xmax = '0'::xid);
            IF FOUND THEN
                RETURN NULL;
            END IF;
            CONTINUE;
        END IF;
        IF declared.tier IS NULL THEN
            -- The class may be given a tier until its first mark is committed, but not beneath one.
            PERFORM FROM fence.class c WHERE c.name = decide.class AND c.tier IS NULL FOR KEY SHARE NOWAIT;
            IF NOT FOUND THEN
                RETURN fence.decide(decide.class, decide.key, decide.token, decide.grant_id);
            END IF;
        END IF;
        INSERT INTO fence.high_water (class, key, token, grant_id)
        VALUES (decide.class, decide.key, decide.token, holder)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
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

REVOKE ALL ON FUNCTION fence.admit, fence.admit_many, fence.decide, fence.explain_range, fence.raise_mark FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0005_admit.sql') ON CONFLICT DO NOTHING;
COMMIT;
