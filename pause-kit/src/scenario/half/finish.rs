//! Reading everything back, and making the history of it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::commit_order::{Change as Row, Operation};
use crate::evidence::StopEvidence;
use crate::history::{Bounds, Change, Clock, Commit, Final, History, Mark, Move, Run, TokenNumber};
use crate::run::RunError;
use crate::scenario::Times;
use crate::scenario::exchanges::ids;
use crate::scenario::front;
use crate::scenario::later::Worker;
use crate::scenario::observe::grant_of;
use crate::scenario::trouble::Trouble;
use crate::services::Child;
use crate::target::{Guard, Place, RequestForm};

use super::setup::balances;
use super::steps::filled;
use super::{Half, SLACK};

/// A half that is over.
pub(crate) struct Finished {
    pub(crate) history: History,
    pub(crate) stops: Vec<StopEvidence>,
    /// Why it is over before its end.
    pub(crate) trouble: Option<Trouble>,
}

impl Half<'_> {
    /// Ends every holder, so that nothing is under way when all is read back.
    pub(crate) async fn end_holders(&self) -> Result<(), RunError> {
        for holder in self.holders() {
            holder
                .end()
                .await
                .map_err(RunError::lost("a holder could not be ended"))?;
        }
        Ok(())
    }

    /// Reads all back and writes the history.
    pub(crate) async fn finish(mut self, trouble: Option<Trouble>) -> Result<Finished, RunError> {
        self.observe();
        let last = self.read_back().await?;
        self.recorder.record(self.recorder.now(), last);
        for row in self
            .commits
            .read()
            .await
            .map_err(RunError::lost("the order of commits"))?
        {
            let (order, xid) = (row.order, row.xid.into());
            if let Some(change) = self.change(row) {
                self.recorder
                    .record(self.recorder.now(), Commit { order, xid, change });
            }
        }
        // What is over must not go on using the machine while others are under way.
        let replicas = self
            .replicas
            .iter()
            .chain(self.again.get())
            .map(|replica| &replica.child);
        for child in replicas.chain(self.worker.get().map(Worker::child)) {
            let ended = Child::kill(child).await;
            ended.map_err(RunError::lost("the resource could not be ended"))?;
        }
        if let Some(gateway) = &self.gateway {
            gateway.end().await?;
        }
        let stops = std::mem::take(&mut *self.stops());
        let run = self.header();
        Ok(Finished {
            history: self.recorder.into_history(run),
            stops,
            trouble,
        })
    }

    /// The ids of the writes on the contested key, straight from a replica or the database.
    pub(crate) async fn shown(&self, replica: usize) -> Result<Vec<String>, Trouble> {
        let proof = &self.task.class.proof;
        if let (Some(path), Some(member)) = (&proof.read.path, &proof.read.id) {
            let form = RequestForm {
                method: "GET".to_owned(),
                path: path.clone(),
                headers: BTreeMap::new(),
                body: None,
            };
            let answered = front::send(self.door(replica), &form, &self.values, None)
                .await
                .map_err(Trouble::step("a read of the kit's own failed"))?
                .map_err(Trouble::step("a read of the kit's own failed"))?;
            let read = Place::proof(self.task.class.name.as_str()).key("read");
            let body = String::from_utf8_lossy(&answered.body);
            return ids(&answered.body, member).ok_or_else(|| match answered.status {
                // It was answered as a request that is right, or refused as one that is wrong.
                200..500 => Trouble::Declared(RunError::Declared {
                    at: read.key(if answered.status < 300 { "id" } else { "path" }),
                    why: format!(
                        "GET {path} was answered {}, which is no JSON array of objects with a text \"{member}\": {body}",
                        answered.status
                    ),
                }),
                status => Trouble::Step {
                    what: format!("a read of the kit's own was answered {status}"),
                    source: body.into(),
                },
            });
        }
        let query = proof
            .read
            .sql
            .as_ref()
            .expect("a read that was checked has path and id, or sql");
        let query = filled(query, &self.values).map_err(Trouble::lost("a text of the target"))?;
        let rows = self
            .sql
            .query(&query, &[])
            .await
            .map_err(Trouble::step("a read of the kit's own failed"))?;
        rows.iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()
            .map_err(Trouble::lost("read is a query for text"))
    }

    async fn read_back(&self) -> Result<Final, RunError> {
        let class = &self.task.class;
        let writes = &class.proof.writes;
        let failed = RunError::lost("nothing could be read back");
        let query = format!(
            "SELECT {id}::text FROM {table} WHERE {id} IS NOT NULL",
            id = writes.id,
            table = writes.table
        );
        let rows = self.sql.query(&query, &[]).await.map_err(failed)?;
        let ids = rows.iter().map(|row| row.get(0)).collect();
        let query = match (&class.guard, &writes.token) {
            (Guard::Column, Some(token)) => format!(
                "SELECT {}::text, {token}::bigint FROM {} WHERE {} IS NOT NULL",
                writes.key, writes.table, writes.id
            ),
            _ => format!(
                "SELECT key, token FROM fence.high_water WHERE class = '{}'",
                class.name
            ),
        };
        let rows = self
            .sql
            .query(&query, &[])
            .await
            .map_err(RunError::lost("no marks could be read back"))?;
        let marks = rows
            .iter()
            .map(|row| Mark {
                class: class.name.to_string(),
                key: row.get(0),
                token: TokenNumber::new(row.get(1)),
            })
            .collect();
        let balances = match &class.proof.balances {
            Some(query) => balances(&self.sql, &filled(query, &self.values)?)
                .await?
                .into_iter()
                .collect(),
            None => BTreeMap::new(),
        };
        Ok(Final { ids, balances, marks })
    }

    /// What one row of the log means; nothing for rows that are neither marks of the class nor its writes.
    fn change(&self, row: Row) -> Option<Change> {
        if !matches!(row.operation, Operation::Insert | Operation::Update) {
            return None;
        }
        let class = self.task.class.name.to_string();
        let writes = &self.task.class.proof.writes;
        let text = |name: &str| row.columns.get(name).cloned().flatten();
        let token = |name: &str| text(name)?.parse().ok().map(TokenNumber::new);
        if row.relation == "fence.high_water" && text("class")? == class {
            return Some(Change::Admission {
                class,
                key: text("key")?,
                token: token("token")?,
                grant: text("grant_id"),
            });
        }
        if row.relation != writes.table {
            return None;
        }
        let id = text(&writes.id)?;
        let moves = writes.moves.as_ref().and_then(|columns| {
            let amount: i64 = text(&columns.amount)?.parse().ok()?;
            Some(vec![
                Move {
                    account: text(&columns.from)?,
                    amount: -amount,
                },
                Move {
                    account: text(&columns.to)?,
                    amount,
                },
            ])
        });
        Some(Change::Write {
            class,
            key: text(&writes.key)?,
            grant: Some(grant_of(&id).to_owned()),
            token: writes.token.as_deref().and_then(token),
            job: writes.job.as_deref().and_then(text),
            moves: moves.unwrap_or_default(),
            id,
        })
    }

    fn header(&self) -> Run {
        let class = self.task.class;
        let first = self.holders().first().and_then(|first| first.grant().cloned());
        let scenario = self.task.slot.scenario;
        let times = Times {
            ttl_ns: u64::try_from(self.ttl().as_duration().as_nanos()).expect("an hour at most"),
            idle_ns: class.proof.idle_ms * 1_000_000,
            bytes: self.swept.load(Ordering::Relaxed),
        };
        Run {
            schema: Run::SCHEMA,
            scenario: scenario.to_string(),
            class: class.name.to_string(),
            key: self.keys[0].to_string(),
            half: self.task.kind,
            seed: self.task.seed.to_string(),
            clock: Clock::Monotonic,
            guard: class.guard.into(),
            exercise: scenario.exercise(times),
            bounds: Bounds {
                deadline_ns: class.proof.deadline_ms * 1_000_000,
                slack_ns: u64::try_from(SLACK.as_nanos()).expect("a second"),
            },
            stale_grant: first
                .filter(|_| !scenario.is_control())
                .map(|first| first.grant.to_string()),
            attempts: scenario.attempts(times),
            deed: class.proof.deed.clone(),
            opening: self.opening.iter().cloned().collect(),
        }
    }
}
