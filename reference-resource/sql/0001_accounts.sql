-- Accounts, and the ledger that their balances are a fold of. Amounts are integers in minor units.
CREATE TABLE account (
    id text PRIMARY KEY,
    balance bigint NOT NULL CHECK (balance >= 0)
);

-- References are free text and not unique, because the fence is what is on show here.
CREATE TABLE transfer (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    from_account text NOT NULL REFERENCES account (id),
    to_account text NOT NULL REFERENCES account (id) CHECK (to_account <> from_account),
    amount bigint NOT NULL CHECK (amount > 0),
    reference text NOT NULL,
    -- The request's own key, as plain data. It tells who wrote the row; it guards nothing.
    idempotency_key text NOT NULL
);
CREATE INDEX transfer_by_sender ON transfer (from_account, id);
CREATE INDEX transfer_by_receiver ON transfer (to_account, id);

-- Balances follow the ledger. Rows in id order, so that two transfers that cross never wait for each other in a ring.
CREATE FUNCTION move_money() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    party record;
BEGIN
    FOR party IN
        SELECT * FROM (VALUES (NEW.from_account, -NEW.amount), (NEW.to_account, NEW.amount)) AS p (id, change)
        ORDER BY id
    LOOP
        UPDATE account SET balance = balance + party.change WHERE id = party.id;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER move_money AFTER INSERT ON transfer FOR EACH ROW EXECUTE FUNCTION move_money();

-- Nothing else writes a balance, and a transfer once made is never changed.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = TG_ARGV[0];
END
$$;
CREATE TRIGGER keep_balance BEFORE UPDATE ON account FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION refuse_change('a balance is written by a transfer alone');
CREATE TRIGGER keep_transfer BEFORE UPDATE ON transfer FOR EACH ROW
    EXECUTE FUNCTION refuse_change('a transfer is never changed');
CREATE TRIGGER keep_transfer_row BEFORE DELETE ON transfer FOR EACH ROW
    EXECUTE FUNCTION refuse_change('a transfer is never deleted');

-- The guard: a transfer is refused unless its transaction admitted a token for the sender's account.
SELECT fence.declare('paydb.account', 'entity');
SELECT fence.protect('transfer', 'paydb.account', 'from_account');
