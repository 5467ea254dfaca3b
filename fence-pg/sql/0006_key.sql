-- The canonical text of a key, the same as fence-core's Key.
--
-- An integer is its decimal digits, a uuid its 36 lower-case characters, a text is itself. A composite joins its parts with
-- '/', after '\' became '\\' and '/' became '\/' inside each part.
BEGIN;
SET LOCAL client_min_messages = warning;
LOCK TABLE fence.migration IN SHARE ROW EXCLUSIVE MODE;
SET LOCAL lock_timeout = '1s';

CREATE OR REPLACE FUNCTION fence.key(VARIADIC parts text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    joined text;
BEGIN
    IF parts IS NULL OR cardinality(parts) < 2 OR array_position(parts, NULL) IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'a composite key has at least 2 parts, none of them NULL',
            HINT = 'The key of a single column is its value, cast to text.';
    END IF;
    SELECT string_agg(replace(replace(p.part, E'\\', E'\\\\'), '/', E'\\/'), '/' ORDER BY p.n) INTO joined
    FROM unnest(parts) WITH ORDINALITY AS p (part, n);
    IF octet_length(joined) > 512 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('a key is at most 512 bytes, got %s', octet_length(joined)),
            HINT = 'Use a digest of the longest part as the key, in the guarded table too.';
    END IF;
    RETURN joined;
END
$$;

REVOKE ALL ON FUNCTION fence.key FROM PUBLIC;

INSERT INTO fence.migration (name) VALUES ('0006_key.sql') ON CONFLICT DO NOTHING;
COMMIT;
