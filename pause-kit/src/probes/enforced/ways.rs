//! The statements that are tried, and the tables that they are tried on.

use crate::history::ProbeKind as Kind;

/// One statement in a transaction of its own.
pub(super) struct Way {
    /// The row's key, which also names the way.
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    /// What stands before it in the transaction.
    pub(super) before: Vec<Step>,
    pub(super) sql: &'static str,
}

pub(super) enum Step {
    Admit(&'static str),
    AdmitElsewhere(&'static str),
    Run(&'static str),
}

pub(super) const TABLES: &[&str] = &[
    "SELECT fence.declare('pause-kit.guarded'), fence.declare('pause-kit.elsewhere')",
    "CREATE SCHEMA pause_kit",
    "CREATE TABLE pause_kit.guarded (id integer, region text, account text, amount integer NOT NULL DEFAULT 0,
         PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
    "CREATE TABLE pause_kit.guarded_eu PARTITION OF pause_kit.guarded FOR VALUES IN ('eu')",
    "CREATE TABLE pause_kit.guarded_us PARTITION OF pause_kit.guarded FOR VALUES IN ('us')",
    "CREATE TABLE pause_kit.pairs (id integer PRIMARY KEY, bank text NOT NULL, account text NOT NULL, amount integer NOT NULL)",
    "INSERT INTO pause_kit.guarded VALUES (1, 'eu', 'update'), (2, 'eu', 'delete'), (3, 'eu', 'upsert'), (4, 'us', 'leaf'),
         (5, 'eu', 'wrong'), (6, 'eu', 'moved-away'), (7, 'eu', 'beside'), (8, 'eu', 'rolled-back'), (9, 'eu', 'savepoint'),
         (10, 'eu', 'inside'), (11, 'eu', 'released'), (12, 'eu', 'another-class'), (13, 'eu', 'next-transaction'),
         (14, 'eu', 'another-transaction'), (15, 'us', 'replica-update'), (16, 'us', 'replica-delete'), (17, 'eu', 'region'),
         (18, 'eu', 'LOUD'), (19, 'eu', 'loud'), (20, 'eu', 'same-statement')",
    "CREATE TABLE pause_kit.base (id integer, account text NOT NULL, amount integer NOT NULL)",
    "CREATE TABLE pause_kit.heir () INHERITS (pause_kit.base)",
    "INSERT INTO pause_kit.heir VALUES (1, 'heir', 0)",
    "INSERT INTO pause_kit.pairs VALUES (1, 'x', 'y/z', 0), (2, 'x/y', 'z', 0)",
    "SELECT fence.protect('pause_kit.guarded', 'pause-kit.guarded', 'account')",
    "SELECT fence.protect('pause_kit.pairs', 'pause-kit.guarded', 'bank', 'account')",
    "SELECT fence.protect('pause_kit.base', 'pause-kit.guarded', 'account')",
    // What comes after the table was guarded.
    "CREATE TABLE pause_kit.guarded_as PARTITION OF pause_kit.guarded FOR VALUES IN ('as')",
    "CREATE FUNCTION pause_kit.turn() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN NEW.account := 'turned'; RETURN NEW; END $$",
    "CREATE TRIGGER zzzz_turn BEFORE INSERT ON pause_kit.guarded FOR EACH ROW WHEN (NEW.amount = 99)
         EXECUTE FUNCTION pause_kit.turn()",
];

pub(super) fn ways() -> Vec<Way> {
    let forgotten = |key, sql| way(Kind::Forgotten, key, Vec::new(), sql);
    let wrong = |key, admitted, sql| way(Kind::WrongKey, key, vec![Step::Admit(admitted)], sql);
    let admitted = |key, before, sql| way(Kind::Admitted, key, before, sql);
    let update_savepoint = "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'savepoint'";
    vec![
        forgotten(
            "insert",
            "INSERT INTO pause_kit.guarded VALUES (101, 'eu', 'insert')",
        ),
        forgotten(
            "insert",
            "INSERT INTO pause_kit.guarded_us VALUES (101, 'us', 'insert')",
        ),
        forgotten(
            "insert",
            "INSERT INTO pause_kit.guarded VALUES (101, 'as', 'insert')",
        ),
        forgotten(
            "update",
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'update'",
        ),
        forgotten("delete", "DELETE FROM pause_kit.guarded WHERE account = 'delete'"),
        forgotten(
            "upsert",
            "INSERT INTO pause_kit.guarded VALUES (3, 'eu', 'upsert') ON CONFLICT (id, region) DO UPDATE SET amount = 1",
        ),
        forgotten(
            "leaf",
            "UPDATE pause_kit.guarded_us SET amount = 1 WHERE account = 'leaf'",
        ),
        forgotten("leaf", "DELETE FROM pause_kit.guarded_us WHERE account = 'leaf'"),
        forgotten(
            "region",
            "UPDATE pause_kit.guarded SET region = 'us' WHERE account = 'region'",
        ),
        forgotten(
            "heir",
            "UPDATE pause_kit.base SET amount = 1 WHERE account = 'heir'",
        ),
        forgotten("heir", "DELETE FROM pause_kit.heir WHERE account = 'heir'"),
        // Its snapshot is older than what its admission waited for.
        forgotten(
            "same-statement",
            "WITH a AS MATERIALIZED (SELECT fence.admit('pause-kit.guarded', 'same-statement', 20))
             UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'same-statement' AND EXISTS (SELECT FROM a)",
        ),
        // TRUNCATE names no key, so that no admission covers it.
        forgotten("truncate", "TRUNCATE pause_kit.guarded"),
        way(
            Kind::Forgotten,
            "truncate",
            vec![Step::Admit("leaf")],
            "TRUNCATE pause_kit.guarded_us",
        ),
        forgotten("x/y/z", "UPDATE pause_kit.pairs SET amount = 1 WHERE id = 2"),
        // The key of another row, of one of the two rows of a move, or of the row before a trigger turned it.
        wrong(
            "wrong",
            "beside",
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'wrong'",
        ),
        wrong(
            "wrong",
            "beside",
            "DELETE FROM pause_kit.guarded WHERE account = 'wrong'",
        ),
        wrong(
            "wrong",
            "beside",
            "INSERT INTO pause_kit.guarded VALUES (101, 'eu', 'wrong')",
        ),
        wrong(
            "LOUD",
            "loud",
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'LOUD'",
        ),
        wrong(
            "no-key",
            "beside",
            "INSERT INTO pause_kit.guarded VALUES (101, 'eu', NULL)",
        ),
        wrong(
            "moved-away",
            "beside",
            "UPDATE pause_kit.guarded SET account = 'beside' WHERE account = 'moved-away'",
        ),
        wrong(
            "moved-here",
            "beside",
            "UPDATE pause_kit.guarded SET account = 'moved-here' WHERE account = 'beside'",
        ),
        wrong(
            "moved-here",
            "beside",
            "UPDATE pause_kit.guarded SET account = 'moved-here', region = 'us' WHERE account = 'beside'",
        ),
        wrong(
            "turned",
            "beside",
            "INSERT INTO pause_kit.guarded VALUES (101, 'eu', 'beside', 99)",
        ),
        wrong(
            "x/y/z",
            "x\\/y/z",
            "UPDATE pause_kit.pairs SET amount = 1 WHERE id = 1",
        ),
        // An admission of this key that is none.
        way(
            Kind::Forgotten,
            "rolled-back",
            vec![
                Step::Run("SAVEPOINT s"),
                Step::Admit("rolled-back"),
                Step::Run("ROLLBACK TO s"),
            ],
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'rolled-back'",
        ),
        way(
            Kind::Forgotten,
            "another-class",
            vec![Step::AdmitElsewhere("another-class")],
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'another-class'",
        ),
        way(
            Kind::Forgotten,
            "next-transaction",
            vec![
                Step::Admit("next-transaction"),
                Step::Run("COMMIT"),
                Step::Run("BEGIN"),
            ],
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'next-transaction'",
        ),
        // The rightful holder's, wherever savepoints stand.
        admitted(
            "beside",
            vec![Step::Admit("beside")],
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'beside'",
        ),
        admitted(
            "insert",
            vec![Step::Admit("insert")],
            "INSERT INTO pause_kit.guarded VALUES (101, 'as', 'insert')",
        ),
        admitted(
            "delete",
            vec![Step::Admit("delete")],
            "DELETE FROM pause_kit.guarded WHERE account = 'delete'",
        ),
        admitted(
            "x\\/y/z",
            vec![Step::Admit("x\\/y/z")],
            "UPDATE pause_kit.pairs SET amount = 1 WHERE id = 2",
        ),
        admitted(
            "moved-away",
            vec![Step::Admit("moved-away"), Step::Admit("beside")],
            "UPDATE pause_kit.guarded SET account = 'beside', region = 'us' WHERE account = 'moved-away'",
        ),
        admitted(
            "savepoint",
            vec![Step::Admit("savepoint"), Step::Run("SAVEPOINT s")],
            update_savepoint,
        ),
        admitted(
            "savepoint",
            vec![
                Step::Run("SAVEPOINT s"),
                Step::Admit("savepoint"),
                Step::Run("RELEASE s"),
            ],
            update_savepoint,
        ),
        admitted(
            "savepoint",
            vec![
                Step::Run("SAVEPOINT s"),
                Step::Admit("savepoint"),
                Step::Run("SAVEPOINT t"),
                Step::Run("ROLLBACK TO t"),
            ],
            update_savepoint,
        ),
    ]
}

/// Tried in the replica role, in which triggers do not fire unless they are set to.
pub(super) fn as_replica() -> Vec<Way> {
    let forgotten = |key, sql| way(Kind::Forgotten, key, Vec::new(), sql);
    vec![
        forgotten(
            "replica-update",
            "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'replica-update'",
        ),
        forgotten(
            "replica-delete",
            "DELETE FROM pause_kit.guarded_us WHERE account = 'replica-delete'",
        ),
        forgotten(
            "replica-insert",
            "INSERT INTO pause_kit.guarded VALUES (101, 'as', 'replica-insert')",
        ),
        forgotten("replica-truncate", "TRUNCATE pause_kit.guarded_eu"),
    ]
}

pub(super) fn way(kind: Kind, key: &'static str, before: Vec<Step>, sql: &'static str) -> Way {
    Way {
        key,
        kind,
        before,
        sql,
    }
}
