//! One half of a scenario: a database, a lock store's prefix, a resource and paths of its own.

mod finish;
mod fits;
mod gateway;
mod own_store;
mod setup;
mod steps;

pub(crate) use finish::Finished;
pub(crate) use setup::connect;
pub(crate) use steps::{filled, said, spec};

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fence_core::{GrantId, Key, Ttl};
use tokio_postgres::Client;

use gateway::Gateway;
use own_store::OwnStore;

use super::clock::RunClock;
use super::grants::Grants;
use super::holder::{Holder, Part};
use super::later::Worker;
use super::trouble::Trouble;
use crate::commit_order::CommitOrder;
use crate::evidence::StopEvidence;
use crate::history::{Half as HalfKind, Recorder};
use crate::path::Path;
use crate::plan::ClassPlan;
use crate::schedule::Slot;
use crate::services::{Child, DatabaseUrl, Postgres, Services};
use crate::store::{Store, Stores};
use crate::target::{Place, Resource, Transport, Values};

/// How long the kit waits for anything that should come at once, on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// What is allowed on top of the guard's own bound, for the machine.
pub(crate) const SLACK: Duration = Duration::from_secs(1);

/// The time to live where a lease is ended by revoke: so long that nothing else can have ended it.
pub(crate) const LONG_TTL: Duration = Duration::from_secs(60);

/// What a half stands on, and shares with others.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) services: &'a Services,
    /// The server that the half's database is on.
    pub(crate) postgres: &'a Postgres,
    pub(crate) stores: &'a dyn Stores,
    pub(crate) fence: &'a std::path::Path,
    pub(crate) transport: Transport,
}

/// What one half is to do.
#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    pub(crate) class: &'a ClassPlan,
    pub(crate) slot: &'a Slot,
    pub(crate) kind: HalfKind,
    pub(crate) seed: u64,
}

/// A half that is set up.
pub(crate) struct Half<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) task: Assignment<'a>,
    /// A name that no other half of the run has; for files, roles and databases.
    pub(crate) name: String,
    /// The contested key, the other end, and one that nobody contests.
    pub(crate) keys: [Key; 3],
    pub(crate) values: Values,
    pub(crate) folder: PathBuf,
    pub(crate) clock: RunClock,
    pub(crate) recorder: Recorder,
    pub(crate) store: Box<dyn Store>,
    own_store: Option<OwnStore>,
    pub(crate) grants: Grants,
    pub(crate) database: DatabaseUrl,
    /// The kit's own connection to the half's database, as its owner, beside the path.
    pub(crate) sql: Client,
    /// Between the resource and PostgreSQL.
    pub(crate) database_path: Path,
    /// The processes of the resource, in the order of their numbers.
    replicas: Vec<Replica>,
    /// The proxy before them, where requests go through one.
    gateway: Option<Gateway>,
    /// What the first one was started again as.
    again: OnceLock<Replica>,
    /// The worker of the resource, once it was started.
    pub(super) worker: OnceLock<Worker>,
    pub(crate) commits: CommitOrder,
    pub(crate) opening: Vec<(String, i64)>,
    pub(crate) holders: Mutex<Vec<Arc<Holder>>>,
    pub(crate) stops: Mutex<Vec<StopEvidence>>,
    /// The grants whose leases the kit has ended.
    pub(crate) revoked: Mutex<Vec<GrantId>>,
    /// How many bytes the late write has, once each was swept.
    pub(crate) swept: AtomicU64,
}

/// A process of the resource.
pub(crate) struct Replica {
    pub(crate) child: Child,
    /// Where clients reach it: its own address, or the proxy's before it.
    pub(crate) address: std::net::SocketAddr,
}

impl Half<'_> {
    /// The time to live that holders of this half ask for.
    pub(crate) fn ttl(&self) -> Ttl {
        ttl(&self.task)
    }

    /// Whether this is the half that goes without something.
    pub(crate) fn is_twin(&self) -> bool {
        self.task.kind == HalfKind::Defeated
    }

    /// Where PostgreSQL listens.
    pub(crate) fn postgres(&self) -> std::net::SocketAddr {
        ([127, 0, 0, 1], self.ground.postgres.port()).into()
    }

    /// The lock store of a half that has one for itself.
    pub(crate) fn own_store(&self) -> &OwnStore {
        let own = self.own_store.as_ref();
        own.expect("a scenario that stops or ends its lock store has one of its own")
    }

    /// A process of the resource; the first one as it was started last.
    pub(crate) fn replica(&self, number: usize) -> &Replica {
        let again = self.again.get().filter(|_| number == 0);
        again.unwrap_or(&self.replicas[number])
    }

    /// The last process of the resource.
    pub(crate) fn last_replica(&self) -> &Replica {
        self.replica(self.replicas.len().saturating_sub(1))
    }

    /// Starts the worker of the resource, which reaches the database through this port.
    pub(crate) async fn spawn_worker(&self, port: u16) -> Result<Child, Trouble> {
        let resource = self.resource();
        let worker = resource
            .worker
            .as_ref()
            .expect("a scenario with a worker was checked for one");
        let database_url = self.database.through(port);
        let values = self.values.clone().with("database_url", database_url.as_str());
        let name = format!("{}-worker", self.name);
        let spec = spec(&name, worker, &values, &self.task.class.target);
        let spec = spec.map_err(Trouble::lost("a worker's command"))?;
        let child = self.ground.services.spawn(spec).await;
        child.map_err(Trouble::lost("the resource's worker could not be started"))
    }

    fn resource(&self) -> &Resource {
        let resource = self.task.class.target.resource.as_ref();
        resource.expect("a class with a front has a resource")
    }

    /// Starts the first process of the resource again, which has been killed.
    pub(crate) async fn start_again(&self) -> Result<(), Trouble> {
        let target = &self.task.class.target;
        let resource = self.resource();
        let setup = steps::Steps {
            ground: self.ground,
            values: &self.values,
            sql: &self.sql,
            who: &format!("{}-again", self.name),
            target,
        };
        let at = Place::target(&self.task.class.proof.target).key("resource");
        let mut replica = setup.replica(resource, &at, 0).await.map_err(Trouble::Declared)?;
        if let Some(gateway) = &self.gateway {
            gateway.leads_to(0, &mut replica);
        }
        let fresh = self.again.set(replica).is_ok();
        debug_assert!(fresh, "a scenario starts it again once");
        Ok(())
    }

    /// The stops so far.
    pub(crate) fn stops(&self) -> std::sync::MutexGuard<'_, Vec<StopEvidence>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The grants whose leases the kit has ended so far.
    pub(crate) fn revoked(&self) -> std::sync::MutexGuard<'_, Vec<GrantId>> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The holders so far, in the order in which they started.
    pub(crate) fn holders(&self) -> Vec<Arc<Holder>> {
        self.holders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Starts a holder on the contested key.
    pub(crate) async fn holder(&self, part: Part) -> Result<Arc<Holder>, Trouble> {
        let holder = Arc::new(Holder::start(self, part).await?);
        self.holders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&holder));
        self.freshen()?;
        Ok(holder)
    }

    /// Waits as long as the schedule says before stop number `number`.
    pub(crate) async fn delay(&self, number: usize) {
        tokio::time::sleep(self.task.slot.delays[number]).await;
    }
}

fn ttl(task: &Assignment<'_>) -> Ttl {
    match task.slot.scenario {
        scenario if scenario.needs_real_ttl() => task.class.ttl,
        _ => Ttl::new(LONG_TTL).expect("between 2 s and 1 h"),
    }
}
