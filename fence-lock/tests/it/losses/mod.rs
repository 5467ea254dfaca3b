//! What a store's losses do, and what its healthy troubles do not: each case on clusters of one member and of three, with
//! and without a witness. Each prints its row.

mod cluster;

use std::time::Duration;

use fence_core::{Epoch, Token, Ttl};
use fence_lock::{
    AcquireError, Advance, AttendError, ConnectError, EtcdStore, OpenError, Session, StoreError, Witness as _,
};

use crate::support::{class, key, tier};
use crate::witness::Notebook;
use cluster::{Cluster, Restore};

const PREFIX: &str = "losses";

/// What becomes of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Grants go on, and their tokens.
    Continues,
    /// No grant.
    Sealed,
    /// Grants go on, and a token comes a second time or falls.
    Unseen,
}

/// What happens to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Restored(Restore),
    Emptied,
    PutBack,
    ForcedFromLagging,
    LeaderKilled,
    LeaderStopped,
    CutOff,
    Behind,
    Restarted,
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Case::Restored(Restore::SameFlags) => "snapshot restored, same flags",
            Case::Restored(Restore::OtherToken) => "snapshot restored, other flags",
            Case::Restored(Restore::BumpRevision) => "snapshot restored, --bump-revision",
            Case::Emptied => "directory emptied",
            Case::PutBack => "data directory put back",
            Case::ForcedFromLagging => "force-new-cluster from a lagging member",
            Case::LeaderKilled => "leader killed",
            Case::LeaderStopped => "leader stopped and resumed",
            Case::CutOff => "minority cut off",
            Case::Behind => "member behind",
            Case::Restarted => "ordinary restarts",
        }
    }

    /// What is to be seen by a process that begins after it.
    fn expected(self, witness: bool) -> Fate {
        match self {
            Case::Restored(_) | Case::Emptied => Fate::Sealed,
            Case::PutBack | Case::ForcedFromLagging if witness => Fate::Sealed,
            Case::PutBack | Case::ForcedFromLagging => Fate::Unseen,
            _ => Fate::Continues,
        }
    }
}

/// A cluster with a store in it, and every token that was granted.
struct World {
    cluster: Cluster,
    tokens: Vec<Token>,
    witness: Option<Notebook>,
}

impl World {
    async fn start(members: usize, with_witness: bool) -> World {
        let cluster = Cluster::start(members).await;
        let world = World {
            cluster,
            tokens: Vec::new(),
            witness: with_witness.then(Notebook::default),
        };
        let store = world.store().await;
        store.init(Epoch::FIRST, "a test").await.unwrap();
        if let Some(witness) = &world.witness {
            let _ = witness.register(&tier(), Epoch::FIRST).await.unwrap();
        }
        world
    }

    async fn store(&self) -> EtcdStore {
        self.store_on(&self.cluster.endpoints()).await
    }

    async fn store_on(&self, endpoints: &[String]) -> EtcdStore {
        for _ in 0..100 {
            match EtcdStore::connect(endpoints, PREFIX, tier()).await {
                Ok(store) => return store,
                // A member is down, or there is no leader yet.
                Err(ConnectError::Store(StoreError::Unreachable { .. } | StoreError::TimedOut { .. })) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("no store at {endpoints:?}");
    }

    /// Grants of one key, by a process that begins now.
    async fn grant(&mut self, how_many: usize) {
        let store = self.store().await;
        self.grant_to(&store, how_many).await;
    }

    async fn grant_to(&mut self, store: &EtcdStore, how_many: usize) {
        let session = session(store).await;
        for _ in 0..how_many {
            let token = granted(&session).await.unwrap();
            self.take(token);
        }
        // Where it cannot be ended now it lapses.
        let _ = session.close().await;
    }

    /// Takes down a token that must be above all others.
    fn take(&mut self, token: Token) {
        assert!(self.is_above(token), "{token} after {:?}", self.tokens.last());
        self.tokens.push(token);
    }

    fn is_above(&self, token: Token) -> bool {
        self.tokens.iter().all(|other| other.as_i64() < token.as_i64())
    }

    async fn attend(&self) {
        if let Some(witness) = &self.witness {
            for _ in 0..100 {
                match self.store().await.attend(witness).await {
                    Ok(_) => return,
                    Err(AttendError::Store(AcquireError::Store(StoreError::Unreachable { .. }))) => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            panic!("the store does not answer");
        }
    }

    /// What a process meets that begins now, after the witness was attended to.
    async fn look(&mut self, endpoints: &[String]) -> Fate {
        let store = self.store_on(endpoints).await;
        if let Some(witness) = &self.witness {
            match store.attend(witness).await {
                Ok(_)
                | Err(AttendError::Store(AcquireError::NotInitialised { .. } | AcquireError::Sealed(_))) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        let session = session(&self.store_on(endpoints).await).await;
        match granted(&session).await {
            Ok(token) if self.is_above(token) => {
                self.tokens.push(token);
                Fate::Continues
            }
            Ok(_) => Fate::Unseen,
            Err(AcquireError::NotInitialised { .. } | AcquireError::Sealed(_)) => Fate::Sealed,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// A session, as soon as a member that lives is asked.
async fn session(store: &EtcdStore) -> Session {
    for _ in 0..100 {
        match Session::open(store.clone(), Ttl::from_secs(20).unwrap()).await {
            Ok(session) => return session,
            Err(OpenError::Store(StoreError::Unreachable { .. } | StoreError::TimedOut { .. })) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the store opens no session");
}

async fn granted(session: &Session) -> Result<Token, AcquireError> {
    for _ in 0..100 {
        match session.acquire(&class(), &key("acct-1")).await {
            Ok(hold) => {
                let token = hold.token().unwrap();
                // The session goes on trying where a leader changes.
                let _ = hold.release().await;
                return Ok(token);
            }
            Err(AcquireError::Store(StoreError::Unreachable { .. } | StoreError::TimedOut { .. })) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(error),
        }
    }
    panic!("the store does not answer");
}

/// Plays a case, and prints its row.
async fn play(case: Case, members: usize) {
    let mut version = String::new();
    let mut got = Vec::new();
    for witness in [false, true] {
        let mut world = World::start(members, witness).await;
        version = world.cluster.version().to_owned();
        world.grant(10).await;
        let survivor = world.store().await;
        let expected = case.expected(witness);
        let fate = happen(case, &mut world, &survivor).await;
        println!(
            "losses: etcd {version} | {members} | {} | {} | expected {expected:?} | got {fate:?}",
            case.name(),
            if witness { "with a witness" } else { "without" },
        );
        assert_eq!(fate, expected, "{}", case.name());
        got.push(fate);

        // Whoever lived through it sees it, witness or not.
        let lived = match expected {
            Fate::Continues => granted(&session(&survivor).await)
                .await
                .map(|token| world.take(token)),
            _ => granted(&session(&survivor).await).await.map(|_| ()),
        };
        assert_eq!(
            lived.is_ok(),
            expected == Fate::Continues,
            "{}: {lived:?}",
            case.name()
        );

        // After an advance tokens are above all that were ever granted.
        let store = world.store().await;
        let advance = Advance::new("a test").at_least(Epoch::new(2).unwrap());
        let advanced = match &world.witness {
            Some(witness) => store.advance(&advance, &[witness]).await,
            None => store.advance(&advance, &[]).await,
        };
        assert_eq!(advanced.unwrap().record.epoch, Epoch::new(2).unwrap());
        world.grant(2).await;
        world.attend().await;
        let token = granted(&session(&survivor).await).await.unwrap();
        world.take(token);
    }
    assert_eq!(got.len(), 2, "{version}");
}

/// Lets it happen: what a process meets that begins then.
async fn happen(case: Case, world: &mut World, survivor: &EtcdStore) -> Fate {
    let all = world.cluster.all();
    match case {
        Case::Restored(how) => {
            let snapshot = world.cluster.snapshot().await;
            world.grant(10).await;
            world.attend().await;
            world.cluster.kill(&all).await;
            world.cluster.restore(snapshot.path(), how).await;
            world.cluster.start_all().await;
        }
        Case::Emptied => {
            world.attend().await;
            world.cluster.kill(&all).await;
            world.cluster.empty();
            world.cluster.start_all().await;
        }
        Case::PutBack => {
            world.attend().await;
            world.cluster.kill(&all).await;
            let copies = world.cluster.copies();
            world.cluster.start_all().await;
            world.grant_to(survivor, 10).await;
            world.attend().await;
            world.cluster.kill(&all).await;
            world.cluster.put_back(&copies);
            world.cluster.start_all().await;
        }
        Case::ForcedFromLagging => return forced(world, survivor).await,
        Case::LeaderKilled => {
            let leader = world.cluster.leader().await;
            world.cluster.kill(&[leader]).await;
            if world.cluster.members.len() > 1 {
                world.grant(5).await;
            }
            world.cluster.start_members(&[leader], &[]).await;
        }
        Case::LeaderStopped => {
            let leader = world.cluster.leader().await;
            let stopped = world.cluster.members[leader]
                .process
                .as_ref()
                .unwrap()
                .stop()
                .await;
            let stopped = stopped.unwrap();
            if world.cluster.members.len() > 1 {
                let others: Vec<usize> = all.iter().copied().filter(|other| *other != leader).collect();
                for other in &others {
                    world.cluster.answered(*other).await;
                }
                let endpoints: Vec<String> = others
                    .iter()
                    .map(|other| world.cluster.endpoints()[*other].clone())
                    .collect();
                assert_eq!(world.look(&endpoints).await, Fate::Continues);
            }
            drop(stopped);
            // It may not know yet that it leads no more: that is when it is asked.
            let endpoint = world.cluster.endpoints()[leader].clone();
            return world.look(&[endpoint]).await;
        }
        Case::CutOff => {
            // The one that runs on is without the two others.
            let cut_off = (world.cluster.leader().await + 1) % 3;
            let others: Vec<usize> = all.into_iter().filter(|other| *other != cut_off).collect();
            let mut stopped = Vec::new();
            for other in others {
                let process = world.cluster.members[other].process.as_ref().unwrap();
                stopped.push(process.stop().await.unwrap());
            }
            let endpoint = world.cluster.endpoints()[cut_off].clone();
            let alone: Result<_, ConnectError> = EtcdStore::connect(&[&endpoint], PREFIX, tier()).await;
            assert!(alone.is_err(), "nothing is granted by a minority");
            drop(stopped);
            world.cluster.answered(cut_off).await;
            return world.look(&[endpoint]).await;
        }
        Case::Behind => {
            let behind = (world.cluster.leader().await + 1) % 3;
            world.cluster.kill(&[behind]).await;
            // More than a member keeps for those that are behind.
            world.grant(120).await;
            world.cluster.start_members(&[behind], &[]).await;
            let endpoint = world.cluster.endpoints()[behind].clone();
            return world.look(&[endpoint]).await;
        }
        Case::Restarted => {
            for number in 0..restarts() {
                let member = number % all.len();
                world.cluster.kill(&[member]).await;
                world.cluster.start_members(&[member], &[]).await;
                let endpoint = world.cluster.endpoints()[member].clone();
                let fate = world.look(&[endpoint]).await;
                assert_eq!(fate, Fate::Continues, "restart {number}");
            }
        }
    }
    let endpoints = world.cluster.endpoints();
    world.look(&endpoints).await
}

/// A member that lags is made a cluster of its own.
async fn forced(world: &mut World, survivor: &EtcdStore) -> Fate {
    let lagging = match world.cluster.members.len() {
        1 => {
            // One member lags behind nobody but itself: an old copy of it.
            world.attend().await;
            world.cluster.kill(&[0]).await;
            let copies = world.cluster.copies();
            world.cluster.start_all().await;
            world.grant_to(survivor, 10).await;
            world.attend().await;
            world.cluster.kill(&[0]).await;
            world.cluster.put_back(&copies);
            0
        }
        _ => {
            let lagging = (world.cluster.leader().await + 1) % 3;
            world.attend().await;
            world.cluster.kill(&[lagging]).await;
            world.grant_to(survivor, 10).await;
            world.attend().await;
            let others: Vec<usize> = world
                .cluster
                .all()
                .into_iter()
                .filter(|other| *other != lagging)
                .collect();
            world.cluster.kill(&others).await;
            lagging
        }
    };
    world
        .cluster
        .start_members(&[lagging], &["--force-new-cluster"])
        .await;
    world.cluster.keep_only(lagging);
    let endpoints = world.cluster.endpoints();
    world.look(&endpoints).await
}

/// How many ordinary restarts are played: 6, or as many as `FENCE_RESTARTS` says.
fn restarts() -> usize {
    std::env::var("FENCE_RESTARTS").map_or(6, |text| text.parse().unwrap())
}

macro_rules! cases {
    ($(fn $test:ident() = $case:expr, $members:literal;)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            play($case, $members).await;
        })+
    };
}

cases! {
    fn one_member_restored_with_the_same_flags_is_sealed() = Case::Restored(Restore::SameFlags), 1;
    fn three_members_restored_with_the_same_flags_are_sealed() = Case::Restored(Restore::SameFlags), 3;
    fn one_member_restored_with_other_flags_is_sealed() = Case::Restored(Restore::OtherToken), 1;
    fn three_members_restored_with_other_flags_are_sealed() = Case::Restored(Restore::OtherToken), 3;
    fn one_member_that_was_emptied_grants_nothing() = Case::Emptied, 1;
    fn three_members_that_were_emptied_grant_nothing() = Case::Emptied, 3;
    fn one_member_put_back_is_seen_by_a_witness_alone() = Case::PutBack, 1;
    fn three_members_put_back_are_seen_by_a_witness_alone() = Case::PutBack, 3;
    fn one_member_forced_from_an_old_copy_is_seen_by_a_witness_alone() = Case::ForcedFromLagging, 1;
    fn three_members_forced_from_one_that_lags_are_seen_by_a_witness_alone() = Case::ForcedFromLagging, 3;
    fn one_member_that_was_killed_goes_on() = Case::LeaderKilled, 1;
    fn three_members_whose_leader_was_killed_go_on() = Case::LeaderKilled, 3;
    fn one_member_that_was_stopped_goes_on() = Case::LeaderStopped, 1;
    fn three_members_whose_leader_was_stopped_go_on() = Case::LeaderStopped, 3;
    fn three_members_of_which_one_was_cut_off_go_on() = Case::CutOff, 3;
    fn three_members_of_which_one_was_behind_go_on() = Case::Behind, 3;
    fn one_member_restarted_again_and_again_goes_on() = Case::Restarted, 1;
    fn three_members_restarted_in_turn_go_on() = Case::Restarted, 3;
}

/// Servers from 3.6 on restore with a raised revision; the tool of an older one refuses the flag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_with_a_raised_revision_is_sealed() {
    let version = crate::support::etcd_version().await;
    let case = Case::Restored(Restore::BumpRevision);
    if version.starts_with("3.4.") {
        let refused = cluster::refuses_to_raise_the_revision().await;
        println!("losses: etcd {version} | - | {} | {refused}", case.name());
        return;
    }
    for members in [1, 3] {
        play(case, members).await;
    }
}
