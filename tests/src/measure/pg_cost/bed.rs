//! A server with settings of its own, with the guard and the tables in it, and pgbench against it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use pause_kit::services::{DatabaseUrl, Postgres, Services, locate};
use tokio_postgres::{Client, NoTls};

use crate::measure::Failure;
use crate::measure::run::root;

/// Accounts, and marks: enough that two clients hardly ever meet.
pub(crate) const ACCOUNTS: i64 = 10_000;
/// The token that every mark and every token column has, and that every writer presents.
pub(crate) const TOKEN: i64 = (1 << 48) + 1000;

/// The same table, three times: bare, guarded by the mark, and guarded by its own column.
const TABLES: &str = "
    SELECT fence.declare('bank.account', 'entity');
    SELECT fence.register_epoch('entity', 1);
    CREATE TABLE account (
        id bigint PRIMARY KEY,
        version bigint NOT NULL DEFAULT 0,
        balance bigint NOT NULL DEFAULT 0,
        fence_token bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 70);
    CREATE TABLE enforced (LIKE account INCLUDING ALL) WITH (fillfactor = 70);
    CREATE TABLE by_column (LIKE account INCLUDING ALL) WITH (fillfactor = 70);
    SELECT fence.declare('bank.column', 'entity');";

/// One server of a measurement.
pub(crate) struct Bed {
    pub(crate) postgres: Postgres,
    pub(crate) url: DatabaseUrl,
    programs: PathBuf,
    scripts: tempfile::TempDir,
}

impl Bed {
    /// A server with these settings, and in it the guard and filled tables.
    pub(crate) async fn start(services: &Services, settings: &[&str]) -> Result<Bed, Failure> {
        let programs = locate::postgres()?;
        let mut all = vec!["wal_level=replica", "shared_buffers=256MB", "max_wal_size=8GB"];
        // Nothing that comes by itself falls into one run and not into the next.
        all.extend(["checkpoint_timeout=1h", "autovacuum=off"]);
        all.extend(settings);
        let postgres = services.start_postgres_with(&programs, &all).await?;
        let url = postgres.create_database("bank", "bank").await?;
        let bed = Bed {
            postgres,
            url,
            programs,
            scripts: tempfile::tempdir()?,
        };
        let owner = bed.client().await?;
        install(&owner).await?;
        owner.batch_execute(TABLES).await?;
        let fill = format!(
            "INSERT INTO account (id, fence_token) SELECT n, {TOKEN} FROM generate_series(1, {ACCOUNTS}) n;
             INSERT INTO enforced SELECT * FROM account;
             INSERT INTO by_column SELECT * FROM account;
             INSERT INTO fence.high_water (class, key, token, grant_id)
             SELECT 'bank.account', n::text, {TOKEN}, 'g' FROM generate_series(1, {ACCOUNTS}) n;
             SELECT fence.admit('bank.account', '1', {TOKEN}, 'g');
             SELECT fence.protect('enforced', 'bank.account', 'id');
             SELECT fence.protect_column('by_column', 'bank.column', 'id', 'fence_token');"
        );
        owner.batch_execute(&fill).await?;
        owner.batch_execute("VACUUM ANALYZE").await?;
        bed.superuser().await?.batch_execute("CHECKPOINT").await?;
        Ok(bed)
    }

    /// A connection as the owner of everything, who is no superuser.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        connect(&self.url).await
    }

    /// Cleans every table that is written, with these options.
    pub(crate) async fn vacuum(&self, options: &str) -> Result<(), Failure> {
        let owner = self.client().await?;
        for table in ["account", "enforced", "by_column", "fence.high_water"] {
            owner.batch_execute(&format!("VACUUM {options} {table}")).await?;
        }
        Ok(())
    }

    /// A connection as the superuser.
    pub(crate) async fn superuser(&self) -> Result<Client, Failure> {
        connect(&self.postgres.superuser_url_of("bank")).await
    }

    /// Runs pgbench with a script over this port, and returns the transactions per second that it says, without connecting.
    pub(crate) async fn pgbench(
        &self,
        port: u16,
        script: &str,
        clients: u16,
        length: Length,
    ) -> Result<f64, Failure> {
        let name = format!("{:016x}.sql", fxhash(script));
        let file = self.scripts.path().join(name);
        if !file.exists() {
            std::fs::write(&file, script)?;
        }
        let jobs = clients.min(2).to_string();
        let mut command = tokio::process::Command::new(self.programs.join("pgbench"));
        command
            .args([
                "--no-vacuum",
                "--protocol=prepared",
                "--client",
                &clients.to_string(),
            ])
            .args(["--jobs", &jobs]);
        match length {
            Length::Seconds(seconds) => command.args(["--time", &seconds.to_string()]),
            Length::Transactions(count) => command.args(["--transactions", &count.to_string()]),
        };
        let output = command
            .arg("--file")
            .arg(&file)
            .arg(self.url.through(port).as_str())
            .stdin(Stdio::null())
            .output()
            .await?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("pgbench ended with {}: {}", output.status, complaint.trim()).into());
        }
        let tps = said.lines().find_map(|line| line.strip_prefix("tps = "));
        let number = tps.and_then(|rest| rest.split_ascii_whitespace().next());
        // It prints no rate where not one transaction ended.
        let number =
            number.ok_or_else(|| format!("pgbench counted nothing: {} {}", said.trim(), complaint.trim()))?;
        Ok(number.parse()?)
    }
}

/// How long pgbench runs.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    Seconds(u32),
    /// By each client.
    Transactions(u32),
}

pub(crate) async fn connect(url: &DatabaseUrl) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await?;
    // It ends with the client, and the client's own calls return its errors.
    tokio::spawn(connection);
    Ok(client)
}

/// Applies the guard's own SQL.
pub(crate) async fn install(owner: &Client) -> Result<(), Failure> {
    let mut files = Vec::new();
    for file in std::fs::read_dir(root().join(Path::new("fence-pg/sql")))? {
        files.push(file?.path());
    }
    files.sort();
    for file in files {
        owner.batch_execute(&std::fs::read_to_string(&file)?).await?;
    }
    Ok(())
}

/// A name for a script's file.
fn fxhash(text: &str) -> u64 {
    text.bytes().fold(0, |hash: u64, byte| {
        (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x517c_c1b7_2722_0a95)
    })
}
