//! Setting a half up.

use std::path::Path as FilePath;
use std::time::Duration;

use fence_core::Key;
use tokio_postgres::NoTls;

use super::{Assignment, Ground, Half, Replica, SOON, ttl};
use crate::commit_order::CommitOrder;
use crate::history::{Half as HalfKind, Recorder};
use crate::path::{Path, PathOptions};
use crate::run::RunError;
use crate::scenario::ScenarioId;
use crate::scenario::clock::RunClock;
use crate::scenario::front;
use crate::scenario::grants::Grants;
use crate::services::{DatabaseUrl, Postgres, ProcessSpec};
use crate::sql_files;
use crate::target::{Step, Template, Values};

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
        let postgres = services.postgres().expect("every run asks for PostgreSQL");
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

        let target = &task.class.target;
        for file in sql_files::read(&target.guard_sql)? {
            file.apply(&sql).await?;
        }
        let setup = Setup {
            ground,
            values: &values,
            sql: &sql,
            who: &name,
        };
        setup.steps(&target.setup, None).await?;
        if task.kind == HalfKind::Defeated {
            sql_files::one(&target.defeat_sql)?.apply(&sql).await?;
        }
        let mut replicas = Vec::new();
        for number in 0..replicas_of(task.slot.scenario) {
            replicas.push(
                setup
                    .replica(&target.resource.command, &target.resource.ready, number)
                    .await?,
            );
        }
        setup.steps(&task.class.proof.prepare, Some(&replicas[0])).await?;

        let tier = &task.class.tier;
        let endpoint = services.etcd(tier.as_str()).map(|etcd| etcd.endpoint());
        let endpoint = endpoint.ok_or_else(|| RunError::NoStore { tier: tier.clone() })?;
        let store = ground
            .stores
            .open(tier, &endpoint, &name)
            .await
            .map_err(RunError::lost("the lock store could not be opened"))?;
        let grants = Grants::watch(store.as_ref())
            .await
            .map_err(RunError::lost("the lock store's grants could not be watched"))?;
        let commits = CommitOrder::start(&superuser(postgres)?, database.database())
            .await
            .map_err(RunError::lost("the order of commits could not be followed"))?;
        let opening = match &task.class.proof.balances {
            Some(query) => balances(&sql, &filled(query, &values)?).await?,
            None => Vec::new(),
        };
        Ok(Half {
            ground,
            task,
            name,
            keys,
            values,
            folder,
            clock: RunClock::read(),
            recorder: Recorder::start(),
            store,
            grants,
            database,
            sql,
            database_path,
            replicas,
            commits,
            opening,
            holders: Default::default(),
            stops: Default::default(),
        })
    }
}

fn superuser(postgres: &Postgres) -> Result<tokio_postgres::Config, RunError> {
    let url = postgres.superuser_url();
    url.as_str()
        .parse()
        .map_err(RunError::lost("the services' own URL"))
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

/// S05 needs a second process of the resource, because its first one stands still.
fn replicas_of(scenario: ScenarioId) -> usize {
    match scenario {
        ScenarioId::S05 => 2,
        _ => 1,
    }
}

struct Setup<'a> {
    ground: Ground<'a>,
    values: &'a Values,
    sql: &'a tokio_postgres::Client,
    who: &'a str,
}

impl Setup<'_> {
    async fn steps(&self, steps: &[Step], replica: Option<&Replica>) -> Result<(), RunError> {
        let values = match replica {
            Some(replica) => self.values.clone().with("resource", replica.address.to_string()),
            None => self.values.clone(),
        };
        for step in steps {
            if let Some(command) = &step.command {
                self.command(command, &values).await?;
            } else if let Some(sql) = &step.sql {
                let text = filled(sql, &values)?;
                self.sql
                    .batch_execute(&text)
                    .await
                    .map_err(|source| RunError::Step {
                        step: text,
                        why: said(&source),
                    })?;
            } else if let (Some(request), Some(replica)) = (&step.request, replica) {
                front::prepare(replica.address, request, &values).await?;
            }
        }
        Ok(())
    }

    async fn command(&self, command: &[Template], values: &Values) -> Result<(), RunError> {
        let spec = spec(&format!("{}-setup", self.who), command, values)?;
        let step = std::iter::once(spec.program.display().to_string())
            .chain(spec.args.iter().cloned())
            .collect::<Vec<_>>()
            .join(" ");
        let child = self.ground.services.spawn(spec).await.map_err(RunError::Spawn)?;
        let ended = tokio::time::timeout(SOON, child.exited()).await;
        match ended {
            Ok(Ok(ended)) if ended.success() => Ok(()),
            Ok(Ok(ended)) => Err(RunError::Command {
                step,
                why: format!("ended with {ended}: {}", child.tail()),
            }),
            Ok(Err(error)) => Err(RunError::lost("the reaper is gone")(error)),
            Err(_) => Err(RunError::Command {
                step,
                why: format!("did not end within {} s", SOON.as_secs()),
            }),
        }
    }

    async fn replica(&self, command: &[Template], ready: &str, number: usize) -> Result<Replica, RunError> {
        let spec = spec(
            &format!("{}-resource-{}", self.who, number + 1),
            command,
            self.values,
        )?;
        let child = self.ground.services.spawn(spec).await.map_err(RunError::Spawn)?;
        let rest = child.wait_line(ready, SOON).await.map_err(RunError::NotReady)?;
        let address = rest
            .trim()
            .trim_start_matches("http://")
            .parse()
            .map_err(|_| RunError::Step {
                step: format!("ready = {ready:?}"),
                why: format!("the line goes on with {rest:?}, not with an address such as 127.0.0.1:8080"),
            })?;
        Ok(Replica { child, address })
    }
}

/// The process that a command describes.
pub(crate) fn spec(name: &str, command: &[Template], values: &Values) -> Result<ProcessSpec, RunError> {
    let words: Vec<String> = command
        .iter()
        .map(|word| filled(word, values))
        .collect::<Result<_, _>>()?;
    let (program, args) = words
        .split_first()
        .expect("a command that was checked has a program");
    Ok(ProcessSpec::new(name, program).args(args))
}

/// A text with its placeholders filled in.
pub(crate) fn filled(template: &Template, values: &Values) -> Result<String, RunError> {
    template.fill(values).map_err(RunError::Value)
}

/// What the server said about an error, or the error itself where it said nothing.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
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
