-- Who holds and who waits, and who may use all this.
BEGIN;

CREATE OR REPLACE VIEW fence_lock.held AS
SELECT l.class, l.key, l.last_token AS token, l.grant_id, l.session, l.granted_at, s.expires_at, s.application_name
FROM fence_lock.lock l JOIN fence_lock.session s USING (session)
WHERE s.expires_at > clock_timestamp();

CREATE OR REPLACE VIEW fence_lock.waiting AS
SELECT w.class, w.key, row_number() OVER (PARTITION BY w.class, w.key ORDER BY w.place) AS number,
    w.grant_id, w.session, w.since, s.expires_at, s.application_name
FROM fence_lock.waiter w JOIN fence_lock.session s USING (session)
WHERE s.expires_at > clock_timestamp();

-- Nothing of this is anybody's but the owner's, …
REVOKE ALL ON ALL TABLES IN SCHEMA fence_lock FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA fence_lock FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fence_lock FROM PUBLIC;

-- … until a role is let in: it may then take locks, and see who holds and who waits. It can write no table of these.
CREATE OR REPLACE FUNCTION fence_lock.let_in(holder name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA fence_lock TO %I', holder);
    EXECUTE format('GRANT SELECT ON fence_lock.held, fence_lock.waiting, fence_lock.epoch TO %I', holder);
    EXECUTE format('GRANT EXECUTE ON FUNCTION fence_lock.open(text, bigint), fence_lock.renew(text),'
        ' fence_lock.close(text), fence_lock.acquire(text, text, text[], text, text, text),'
        ' fence_lock.confirm(text, text, text[], text, bigint), fence_lock.release(text, text, text[], text, bigint),'
        ' fence_lock.give_up(text, text, text[], text, boolean) TO %I', holder);
END $$;
REVOKE ALL ON FUNCTION fence_lock.let_in(name) FROM PUBLIC;

COMMIT;
