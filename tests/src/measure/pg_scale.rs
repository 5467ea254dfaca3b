//! A guarded write where there are a million keys, and what guarding a table of a million rows does to it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Services, ServicesConfig};
use tokio::sync::watch;
use tokio_postgres::Client;

use super::pg_cost::bed::{Bed, Length, TOKEN};
use super::pg_cost::estimate::Estimate;
use super::pg_cost::pairs;
use super::{Failure, Figure};

const FEW: i64 = 1_000;
const MANY: i64 = 1_000_000;
/// Pairs of few against many.
const PAIRS: u32 = 30;
const CLIENTS: u16 = 8;
/// How much more a write may cost where there are many keys.
const MOST: f64 = 1.3;
/// How long anybody may have to wait for the table.
const LONGEST: Duration = Duration::from_secs(1);

/// More bytes than the writer beside a step writes, and far fewer than a million rows.
const LITTLE_WAL: i64 = 16 << 20;

pub(crate) fn pg_scale() -> Result<Figure, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let pairs = pairs(PAIRS)?;
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    println!("seed {seed}");
    let services = Services::start(ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: false,
        etcd: Vec::new(),
    })
    .await?;
    let bed = Bed::start(&services, &["fsync=off", "shared_buffers=1GB"]).await?;
    fill(&bed).await?;
    let (ratio, bare) = many_against_few(&bed, pairs, seed).await?;
    println!("many / few, guarded: {ratio}, bar {MOST}");
    println!("many / few, bare: {bare}, no bar");
    let steps = guarding(&bed).await?;
    let mut held = true;
    let mut longest = Duration::ZERO;
    for step in &steps {
        println!("{step}");
        held &= step.kept && step.longest <= LONGEST;
        longest = longest.max(step.longest);
    }
    Ok(Figure {
        line: format!(
            "a write with {MANY} keys takes {ratio} times as long as with {FEW}; {} steps on a table of {MANY} rows, \
             the longest wait beside them {longest:?}, {} rewritten",
            steps.len(),
            steps.iter().filter(|step| !step.kept).count()
        ),
        reached: ratio.most() <= MOST && ratio.is_narrow() && held && pairs >= PAIRS,
    })
}

/// Two tables with their marks, and a third one that is not guarded yet.
async fn fill(bed: &Bed) -> Result<(), Failure> {
    let owner = bed.client().await?;
    for (name, rows) in [("few", FEW), ("many", MANY), ("later", MANY)] {
        let sql = format!(
            "SELECT fence.declare('bank.{name}', 'entity');
             CREATE TABLE {name} (id bigint PRIMARY KEY, balance bigint NOT NULL DEFAULT 0,
                                  fence_token bigint NOT NULL DEFAULT 0) WITH (fillfactor = 70);
             INSERT INTO {name} SELECT n FROM generate_series(1, {rows}) n;
             INSERT INTO fence.high_water (class, key, token, grant_id)
             SELECT 'bank.{name}', n::text, {TOKEN}, 'g' FROM generate_series(1, {rows}) n;
             SELECT fence.admit('bank.{name}', '1', {TOKEN}, 'g');"
        );
        owner.batch_execute(&sql).await?;
    }
    owner
        .batch_execute(
            "SELECT fence.protect('few', 'bank.few', 'id'); SELECT fence.protect('many', 'bank.many', 'id')",
        )
        .await?;
    owner.batch_execute("VACUUM ANALYZE").await?;
    bed.superuser().await?.batch_execute("CHECKPOINT").await?;
    Ok(())
}

/// How many times as long a write takes where there are many keys: guarded, and bare.
async fn many_against_few(bed: &Bed, pairs: u32, seed: u64) -> Result<(Estimate, Estimate), Failure> {
    let guarded = |table: &str, rows: i64| {
        format!(
            "\\set id random(1, {rows})\n\\startpipeline\nBEGIN;\n\
             SELECT fence.admit('bank.{table}', (:id)::bigint::text, {TOKEN}, 'g');\n\
             UPDATE {table} SET balance = balance + 1 WHERE id = :id;\nCOMMIT;\n\\endpipeline\n"
        )
    };
    // Not guarded: the third table, all of it or its first rows.
    let bare = |rows: i64| {
        format!("\\set id random(1, {rows})\nUPDATE later SET balance = balance + 1 WHERE id = :id;\n")
    };
    let scripts = [guarded("few", FEW), guarded("many", MANY), bare(FEW), bare(MANY)];
    let mut rates = [const { Vec::new() }; 4];
    for pair in 0..pairs {
        let mut order = [0, 1, 2, 3];
        if pair % 2 == 1 {
            order.reverse();
        }
        for leg in order {
            let rate = bed
                .pgbench(bed.postgres.port(), &scripts[leg], CLIENTS, Length::Seconds(1))
                .await?;
            rates[leg].push(rate);
        }
        bed.client().await?.batch_execute("VACUUM few").await?;
    }
    let [few, many, bare_few, bare_many]: [Vec<f64>; 4] = rates;
    let longer = |few: &[f64], many: &[f64]| {
        let ratios: Vec<f64> = few.iter().zip(many).map(|(few, many)| few / many).collect();
        Estimate::of(&ratios, seed)
    };
    Ok((longer(&few, &many), longer(&bare_few, &bare_many)))
}

/// One step of guarding a table, and what it did to it.
struct Step {
    name: &'static str,
    took: Duration,
    longest: Duration,
    wal: i64,
    /// The table's file is the same, and as long as before, and hardly any WAL was written.
    kept: bool,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept = if self.kept {
            "rewrites nothing"
        } else {
            "rewrites the table"
        };
        write!(
            f,
            "{}: {:?}, a writer and a reader beside it waited {:?} at most, {} bytes of WAL, {kept}",
            self.name, self.took, self.longest, self.wal
        )
    }
}

async fn guarding(bed: &Bed) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    for (name, sql, outcome) in [
        (
            "observe",
            "SELECT fence.protect('later', 'bank.later', 'id', mode => 'observe')",
            None,
        ),
        ("enforce", "SELECT fence.enforce('bank.later')", None),
        (
            "protect again",
            "SELECT fence.protect('later', 'bank.later', 'id')",
            None,
        ),
        ("unprotect", "SELECT fence.unprotect('later')", None),
        (
            "protect",
            "SELECT fence.protect('later', 'bank.later', 'id')",
            None,
        ),
        ("unprotect again", "SELECT fence.unprotect('later')", None),
        (
            "protect_column",
            "SELECT fence.protect_column('later', 'bank.later', 'id', 'fence_token')",
            None,
        ),
        ("unprotect the column", "SELECT fence.unprotect('later')", None),
        (
            "protect, with a long transaction in the way",
            "SELECT fence.protect('later', 'bank.later', 'id')",
            Some("55P03"),
        ),
    ] {
        let in_the_way = bed.client().await?;
        if outcome.is_some() {
            in_the_way
                .batch_execute("BEGIN; UPDATE later SET balance = balance WHERE id = 1")
                .await?;
        }
        steps.push(step(bed, name, sql, outcome).await?);
    }
    Ok(steps)
}

async fn step(bed: &Bed, name: &'static str, sql: &str, outcome: Option<&str>) -> Result<Step, Failure> {
    let owner = bed.client().await?;
    let before = shape(&owner).await?;
    let (stop, stopped) = watch::channel(false);
    // One who writes as a guarded writer does, and one who only reads.
    let writer = format!(
        "BEGIN; SELECT fence.admit('bank.later', '7', {TOKEN}, 'g');
         UPDATE later SET balance = balance + 1 WHERE id = 7; COMMIT"
    );
    let writer = tokio::spawn(probe(bed.client().await?, writer, stopped.clone()));
    let reader = "SELECT FROM later WHERE id = 8".to_owned();
    let reader = tokio::spawn(probe(bed.client().await?, reader, stopped));
    let began = Instant::now();
    let result = owner.batch_execute(sql).await;
    let took = began.elapsed();
    stop.send(true)?;
    let longest = writer.await??.max(reader.await??);
    let code = result.as_ref().err().and_then(|error| error.code());
    if code.map(|code| code.code()) != outcome {
        return Err(format!("{name}: {result:?}").into());
    }
    let after = shape(&owner).await?;
    Ok(Step {
        name,
        took,
        longest,
        wal: after.wal - before.wal,
        kept: (after.file, after.bytes) == (before.file, before.bytes) && after.wal - before.wal < LITTLE_WAL,
    })
}

/// Runs a statement again and again until it is told to stop, and returns the longest that it took.
async fn probe(client: Client, sql: String, stopped: watch::Receiver<bool>) -> Result<Duration, Failure> {
    let mut longest = Duration::ZERO;
    loop {
        let last = *stopped.borrow();
        let began = Instant::now();
        client.batch_execute(&sql).await?;
        longest = longest.max(began.elapsed());
        if last {
            return Ok(longest);
        }
    }
}

/// Which file the table is in, how long it is without what the probes wrote, and where the WAL is.
struct Shape {
    file: i64,
    bytes: i64,
    wal: i64,
}

async fn shape(client: &Client) -> Result<Shape, Failure> {
    let sql = "SELECT pg_relation_filenode('later')::bigint, pg_relation_size('later'),
                      (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let row = client.query_one(sql, &[]).await?;
    Ok(Shape {
        file: row.get(0),
        bytes: row.get(1),
        wal: row.get(2),
    })
}
