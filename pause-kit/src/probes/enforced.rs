//! Writes on a guarded table of the kit's own, straight to the database: with their admission, and without it in every way in
//! which a statement can do without.

use tokio_postgres::Client;

use super::asked::{Ask, open, reply, run};
use crate::history::{Presented, Probe, ProbeKind as Kind};
use crate::run::RunError;
use crate::scenario::{Half, connect};

/// The class of the kit's own guarded tables.
const CLASS: &str = "pause-kit.guarded";
/// Another class, in which the same keys are admitted.
const ELSEWHERE: &str = "pause-kit.elsewhere";
/// The newest holder's token of every key. Whoever presents none is late.
const NEWER: i64 = 20;

/// One statement in a transaction of its own.
struct Way {
    /// The row's key, which also names the way.
    key: &'static str,
    kind: Kind,
    /// What stands before it in the transaction.
    before: Vec<Step>,
    sql: &'static str,
}

enum Step {
    Admit(&'static str),
    AdmitElsewhere(&'static str),
    Run(&'static str),
}

/// Makes the tables and tries everything on them.
pub(super) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    for sql in TABLES {
        run(&half.sql, sql).await?;
    }
    let writer = open(half).await?;
    let ways = ways();
    for way in &ways {
        // A row of each key, from before the table was guarded, and a mark.
        admit(half, &writer, way.key).await?;
    }
    admit(half, &writer, "beside").await?;
    admit(half, &writer, "x\\/y/z").await?;
    for way in &ways {
        way.put(half, &writer).await?;
    }
    let other = open(half).await?;
    another_transactions(half, &writer, &other).await?;
    let postgres = half
        .ground
        .services
        .postgres()
        .expect("every half has a database");
    let applier = connect(&postgres.superuser_url_of(half.database.database())).await?;
    run(&applier, "SET session_replication_role = replica").await?;
    for way in as_replica() {
        way.put(half, &applier).await?;
    }
    Ok(())
}

const TABLES: &[&str] = &[
    "SELECT fence.declare('pause-kit.guarded'), fence.declare('pause-kit.elsewhere')",
    "CREATE SCHEMA pause_kit",
    "CREATE TABLE pause_kit.guarded (id integer, region text, account text NOT NULL, amount integer NOT NULL DEFAULT 0,
         PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
    "CREATE TABLE pause_kit.guarded_eu PARTITION OF pause_kit.guarded FOR VALUES IN ('eu')",
    "CREATE TABLE pause_kit.guarded_us PARTITION OF pause_kit.guarded FOR VALUES IN ('us')",
    "CREATE TABLE pause_kit.pairs (id integer PRIMARY KEY, bank text NOT NULL, account text NOT NULL, amount integer NOT NULL)",
    "INSERT INTO pause_kit.guarded VALUES (1, 'eu', 'update'), (2, 'eu', 'delete'), (3, 'eu', 'upsert'), (4, 'us', 'leaf'),
         (5, 'eu', 'wrong'), (6, 'eu', 'moved-away'), (7, 'eu', 'beside'), (8, 'eu', 'rolled-back'), (9, 'eu', 'savepoint'),
         (10, 'eu', 'inside'), (11, 'eu', 'released'), (12, 'eu', 'another-class'), (13, 'eu', 'next-transaction'),
         (14, 'eu', 'another-transaction'), (15, 'us', 'replica-update'), (16, 'us', 'replica-delete'), (17, 'eu', 'region')",
    "INSERT INTO pause_kit.pairs VALUES (1, 'x', 'y/z', 0), (2, 'x/y', 'z', 0)",
    "SELECT fence.protect('pause_kit.guarded', 'pause-kit.guarded', 'account')",
    "SELECT fence.protect('pause_kit.pairs', 'pause-kit.guarded', 'bank', 'account')",
    // What comes after the table was guarded.
    "CREATE TABLE pause_kit.guarded_as PARTITION OF pause_kit.guarded FOR VALUES IN ('as')",
    "CREATE FUNCTION pause_kit.turn() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN NEW.account := 'turned'; RETURN NEW; END $$",
    "CREATE TRIGGER zzzz_turn BEFORE INSERT ON pause_kit.guarded FOR EACH ROW WHEN (NEW.amount = 99)
         EXECUTE FUNCTION pause_kit.turn()",
];

fn ways() -> Vec<Way> {
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
fn as_replica() -> Vec<Way> {
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

/// An admission that another transaction holds, not yet committed, is that one's.
async fn another_transactions(half: &Half<'_>, writer: &Client, other: &Client) -> Result<(), RunError> {
    run(other, "BEGIN").await?;
    admit(half, other, "another-transaction").await?;
    way(
        Kind::Forgotten,
        "another-transaction",
        Vec::new(),
        "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'another-transaction'",
    )
    .put(half, writer)
    .await?;
    run(other, "ROLLBACK").await
}

fn way(kind: Kind, key: &'static str, before: Vec<Step>, sql: &'static str) -> Way {
    Way {
        key,
        kind,
        before,
        sql,
    }
}

async fn admit(half: &Half<'_>, sql: &Client, key: &str) -> Result<(), RunError> {
    Ask::new(Kind::Prepare, CLASS, key, NEWER).put(half, sql).await
}

impl Way {
    /// Tries it, records the answer, and rolls back whatever was let through.
    async fn put(&self, half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
        run(sql, "BEGIN").await?;
        for step in &self.before {
            match step {
                Step::Admit(key) => admit(half, sql, key).await?,
                Step::AdmitElsewhere(key) => {
                    Ask::new(Kind::Prepare, ELSEWHERE, key, NEWER)
                        .put(half, sql)
                        .await?;
                }
                // After an admission that was refused there is nothing to go on with.
                Step::Run(statement) => {
                    reply(sql, statement).await?;
                }
            }
        }
        let reply = reply(sql, self.sql).await?;
        run(sql, "ROLLBACK").await?;
        let admitted = self.kind == Kind::Admitted;
        half.recorder.record(
            half.recorder.now(),
            Probe {
                probe: self.kind,
                class: CLASS.to_owned(),
                key: self.key.to_owned(),
                presented: Presented {
                    token: admitted.then(|| NEWER.to_string()),
                    grant: None,
                },
                seen: None,
                id: None,
                reply,
                sqlstate: None,
                detail: None,
            },
        );
        Ok(())
    }
}
