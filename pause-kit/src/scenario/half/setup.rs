//! Setting a half up.

use std::path::Path as FilePath;
use std::sync::OnceLock;
use std::time::Duration;

use fence_core::Key;
use tokio_postgres::NoTls;

use super::gateway::Gateway;
use super::own_store::OwnStore;
use super::steps::{Steps, filled};
use super::{Assignment, Ground, Half, ttl};
use crate::commit_order::CommitOrder;
use crate::history::{Half as HalfKind, Recorder};
use crate::path::{Path, PathOptions};
use crate::run::RunError;
use crate::scenario::ScenarioId;
use crate::scenario::clock::RunClock;
use crate::scenario::grants::Grants;
use crate::services::{DatabaseUrl, Postgres};
use crate::sql_files;
use crate::target::{Guard, LedgerWrites, Place, Values};

impl<'a> Half<'a> {
    /// Sets a half up: nothing of it is shared with another half but the servers.
    pub(crate) async fn open(ground: Ground<'a>, task: Assignment<'a>) -> Result<Half<'a>, RunError> {
        let services = ground.services;
        let half = match task.kind {
            HalfKind::Guarded => "on",
            HalfKind::Defeated => "defeated",
        };
        let name = format!(
            "{}_{}_{half}",
            task.class.name.as_str().replace(['.', '-'], "_"),
            task.slot.scenario
        )
        .to_lowercase();
        let folder = services.folder().join(&name);
        std::fs::create_dir(&folder).map_err(RunError::lost("the half's folder could not be made"))?;
        let postgres = ground.postgres;
        let database = postgres
            .create_database(&name, &format!("{name}_owner"))
            .await
            .map_err(RunError::lost("the half's database could not be made"))?;
        let sql = connect(&database).await?;
        let upstream = ([127, 0, 0, 1], postgres.port()).into();
        let database_path = Path::open(upstream, PathOptions::plain())
            .await
            .map_err(RunError::lost("no path to the database"))?;

        let keys = keys(&task)?;
        let mut values = Values::default()
            .with("fence", ground.fence.display().to_string())
            .with("bin", folder_of(ground.fence))
            .with("prefix", name.clone())
            .with("ttl", ttl(&task).to_string())
            .with("amount", task.slot.amount.to_string())
            .with("key", keys[0].as_str())
            .with("other", keys[1].as_str())
            .with("bystander", keys[2].as_str())
            .with(
                "database_url",
                database.through(database_path.address().port()).as_str(),
            );
        for etcd in services.etcds() {
            values = values.with(format!("etcd.{}", etcd.name()), etcd.endpoint());
        }
        let tier = &task.class.tier;
        let own_store = match task.slot.scenario.has_its_own_store() {
            true => Some(OwnStore::start(services, tier.as_str()).await?),
            false => None,
        };
        if let Some(own) = &own_store {
            values = values.with(format!("etcd.{tier}"), own.endpoint_on_path());
        }

        let target = &task.class.target;
        for file in sql_files::read(&target.guard_sql)? {
            file.apply(&sql).await?;
        }
        let setup = Steps {
            ground,
            values: &values,
            sql: &sql,
            who: &name,
            target,
        };
        let at = Place::target(&task.class.proof.target);
        setup.take(&target.setup, &at.key("setup"), None).await?;
        let defeats = task.kind == HalfKind::Defeated && task.slot.scenario.defeats_the_guard();
        if let (true, Some(file)) = (defeats, &target.defeat_sql) {
            sql_files::one(file)?.apply(&sql).await?;
            if task.class.guard == Guard::Mark {
                admits_everything(&sql, task.class.name.as_str(), at.key("defeat_sql")).await?;
            }
        }
        let mut replicas = Vec::new();
        if let Some(resource) = &target.resource {
            for number in 0..replicas_of(task.slot.scenario) {
                replicas.push(setup.replica(resource, &at.key("resource"), number).await?);
            }
        }
        let gateway = match task.class.proof.front {
            Some(_) => Gateway::before(&mut replicas, services, ground.transport).await?,
            None => None,
        };
        let at = Place::proof(task.class.name.as_str());
        setup
            .take(&task.class.proof.prepare, &at.key("prepare"), replicas.first())
            .await?;
        columns(&sql, &task.class.proof.writes, at.key("writes")).await?;
        if let Some(query) = &task.class.proof.read.sql {
            let failed = RunError::sql(at.key("read").key("sql"), "the query fails".to_owned());
            sql.prepare(&filled(query, &values)?).await.map_err(failed)?;
        }

        let etcd = own_store.as_ref().map(|own| &own.etcd);
        let endpoint = etcd.or(services.etcd(tier.as_str())).map(|etcd| etcd.endpoint());
        let endpoint = endpoint.ok_or_else(|| RunError::NoStore { tier: tier.clone() })?;
        let store = ground
            .stores
            .open(tier, &endpoint, &name)
            .await
            .map_err(RunError::lost("the lock store could not be opened"))?;
        let grants = Grants::watch(store.as_ref())
            .await
            .map_err(|error| RunError::Declared {
                at: Place::target(&task.class.proof.target).key("setup"),
                why: format!(
                    "the lock store of tier {tier} is not ready once the set-up is done ({}); a step makes its epoch record, \
                     {{ command = [\"{{fence}}\", \"epoch\", \"init\", \"--etcd\", \"{{etcd.{tier}}}\", \"--prefix\", \
                     \"{{prefix}}\", \"--tier\", \"{tier}\"] }}",
                    crate::run::chain(&error)
                ),
            })?;
        let commits = CommitOrder::start(&superuser(postgres)?, database.database())
            .await
            .map_err(RunError::lost("the order of commits could not be followed"))?;
        let opening = match &task.class.proof.balances {
            Some(query) => {
                let failed = RunError::sql(at.key("balances"), "the query fails".to_owned());
                let query = filled(query, &values)?;
                sql.prepare(&query).await.map_err(failed)?;
                balances(&sql, &query).await?
            }
            None => Vec::new(),
        };
        let half = Half {
            ground,
            task,
            name,
            keys,
            values,
            folder,
            clock: RunClock::read(),
            recorder: Recorder::start(),
            store,
            own_store,
            grants,
            database,
            sql,
            database_path,
            replicas,
            gateway,
            again: OnceLock::new(),
            worker: OnceLock::new(),
            commits,
            opening,
            holders: Default::default(),
            stops: Default::default(),
            revoked: Default::default(),
            swept: Default::default(),
        };
        half.is_declared().await?;
        Ok(half)
    }
}

fn superuser(postgres: &Postgres) -> Result<tokio_postgres::Config, RunError> {
    let url = postgres.superuser_url();
    url.as_str()
        .parse()
        .map_err(RunError::lost("the services' own URL"))
}

/// Looks whether the guard is defeated: an older token of another grant must be admitted after a newer one. Rolled back, so
/// that nothing of it stays.
async fn admits_everything(sql: &tokio_postgres::Client, class: &str, at: Place) -> Result<(), RunError> {
    let look = format!(
        "BEGIN; SELECT fence.admit('{class}', 'pause-kit', 2, 'two'); SELECT fence.admit('{class}', 'pause-kit', 1, 'one')"
    );
    let admitted = sql.batch_execute(&look).await;
    let ended = sql.batch_execute("ROLLBACK").await;
    let failed = RunError::sql(at, "fence.admit still refuses once it was applied".to_owned());
    admitted.map_err(failed)?;
    ended.map_err(RunError::lost(
        "a transaction of the kit's own could not be ended",
    ))
}

/// What each account holds.
pub(crate) async fn balances(
    sql: &tokio_postgres::Client,
    query: &str,
) -> Result<Vec<(String, i64)>, RunError> {
    let rows = sql
        .query(query, &[])
        .await
        .map_err(RunError::lost("the balances could not be read"))?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(RunError::lost("balances is a query for a text and a bigint"))
}

/// Looks whether the table and columns of the writes are there, before anything rests on them.
async fn columns(sql: &tokio_postgres::Client, writes: &LedgerWrites, at: Place) -> Result<(), RunError> {
    let table = &writes.table;
    let look = async |query: String| sql.prepare(&query).await;
    let failed = RunError::sql(at.key("table"), format!("table = \"{table}\" cannot be read"));
    look(format!("SELECT FROM {table}")).await.map_err(failed)?;
    let moves = writes.moves.iter();
    let moves = moves.flat_map(|moves| {
        [
            ("from", &moves.from),
            ("to", &moves.to),
            ("amount", &moves.amount),
        ]
    });
    let named = [
        Some(("key", &writes.key)),
        Some(("id", &writes.id)),
        writes.token.as_ref().map(|column| ("token", column)),
        writes.job.as_ref().map(|column| ("job", column)),
    ];
    let named = named
        .into_iter()
        .flatten()
        .map(|(name, column)| (at.key(name), name, column));
    let moves = moves.map(|(name, column)| (at.key("moves").key(name), name, column));
    for (at, name, column) in named.chain(moves) {
        let failed = RunError::sql(at, format!("{name} = \"{column}\" is no column of {table}"));
        look(format!("SELECT {column} FROM {table}"))
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// S05, S24, S25 and S28 need a second process of the resource, because their first one stands still; S35 is about two.
fn replicas_of(scenario: ScenarioId) -> usize {
    match scenario {
        ScenarioId::S05 | ScenarioId::S24 | ScenarioId::S25 | ScenarioId::S28 | ScenarioId::S35 => 2,
        _ => 1,
    }
}

/// A connection to a database of the run. It ends when the client is dropped. No statement on it waits for ever, whatever a
/// guard under test does.
pub(crate) async fn connect(url: &DatabaseUrl) -> Result<tokio_postgres::Client, RunError> {
    let connecting = tokio::time::timeout(
        Duration::from_secs(10),
        tokio_postgres::connect(url.as_str(), NoTls),
    );
    let (client, connection) = connecting
        .await
        .map_err(RunError::lost("PostgreSQL does not answer"))?
        .map_err(RunError::lost("PostgreSQL cannot be reached"))?;
    tokio::spawn(async move {
        // Its error is the client's next error.
        let _ = connection.await;
    });
    Ok(client)
}

fn keys(task: &Assignment<'_>) -> Result<[Key; 3], RunError> {
    let key = |number: u32| {
        let values = Values::default().with("n", number.to_string());
        let text = filled(&task.class.proof.keys, &values)?;
        Key::text(text).map_err(RunError::lost("keys makes no key"))
    };
    let [first, second, third] = task.slot.numbers;
    Ok([key(first)?, key(second)?, key(third)?])
}

fn folder_of(executable: &FilePath) -> String {
    executable
        .parent()
        .unwrap_or(FilePath::new("."))
        .display()
        .to_string()
}
