//! Whether this is still the store that somebody knows. Looked at, at the start, after every failed request, and whenever
//! an answer's revision is below one already seen.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use etcd_client::{Compare, CompareOp, GetOptions, ResponseHeader, Txn, TxnOp};
use tokio::time::Instant;

use super::EtcdStore;
use super::call::revision;
use super::layout::{decode, encode};
use super::present::{At, Present};
use super::seal::Found;
use crate::error::{AcquireError, SealReason, StoreError};
use crate::lineage::{Descent, Lineage};
use crate::loss::Loss;
use crate::memory::StoreMemory;

/// How long a link of the lineage stands at least before somebody writes the next.
const EVERY: Duration = Duration::from_secs(10);

/// So often a store that changes under the eyes of whoever judges it is judged anew.
const TRIES: usize = 4;

/// Whether the store has to be looked at before anything more is granted.
#[derive(Debug)]
pub(super) struct Doubt {
    raised: AtomicU64,
    settled: AtomicU64,
    tended: std::sync::Mutex<Instant>,
    /// One look at a time.
    turn: tokio::sync::Mutex<()>,
}

/// So often a member is asked again because another one answered.
const MEMBERS: usize = 8;

/// What a member's status says about its log.
#[derive(Clone, Copy, Debug)]
struct Log {
    member: u64,
    /// The applied index.
    applied: i64,
    /// How far the committed index is ahead of the revision: at least as far as the log is.
    most: i64,
}

impl Doubt {
    /// Before the first look there is nothing but doubt.
    pub(super) fn new() -> Doubt {
        Doubt {
            raised: AtomicU64::new(1),
            settled: AtomicU64::new(0),
            tended: std::sync::Mutex::new(Instant::now()),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) fn raise(&self) {
        self.raised.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn is_raised(&self) -> bool {
        self.settled.load(Ordering::SeqCst) < self.raised.load(Ordering::SeqCst)
    }
}

impl EtcdStore {
    /// Looks at the store if there is doubt, and seals it when it lost history. A doubt that is raised meanwhile stays.
    pub(super) async fn look_again(&self) -> Result<(), AcquireError> {
        let doubt = &self.inner.doubt;
        let _turn = doubt.turn.lock().await;
        if !doubt.is_raised() {
            return Ok(());
        }
        let raised = doubt.raised.load(Ordering::SeqCst);
        self.judge_now().await?;
        doubt.settled.fetch_max(raised, Ordering::SeqCst);
        Ok(())
    }

    /// Looks at the store in the background, and writes the next link of its lineage when nobody else did, every 10 s at
    /// most. Called with every answered keepalive.
    pub(super) fn tend(&self) {
        {
            let mut tended = self
                .inner
                .doubt
                .tended
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if tended.elapsed() < EVERY {
                return;
            }
            *tended = Instant::now();
        }
        let store = self.clone();
        tokio::spawn(async move {
            if store.renew_lineage().await.is_err() {
                store.inner.doubt.raise();
            }
        });
    }

    /// Looks at the store, and writes the next link unless somebody did since the last look.
    pub(super) async fn renew_lineage(&self) -> Result<StoreMemory, AcquireError> {
        let _turn = self.inner.doubt.turn.lock().await;
        let before = self.memory();
        let (present, slack) = self.judge_now().await?;
        let (Some(epoch), lineage) = (&present.epoch, present.link()) else {
            unreachable!("a store without a record is not sound");
        };
        let stood = before.is_some_and(|before| before.written_at == Present::moved(lineage));
        if stood || lineage.is_none() {
            let next = match lineage {
                Some(lineage) => lineage.value.next(slack),
                None => Lineage::begin(epoch.value.epoch, slack),
            };
            let (answer, wrote) = self.write_link(&present, &next).await?;
            if wrote {
                let at = answer.as_ref().map_or(0, ResponseHeader::revision);
                self.remember(&present, &At { value: next, at });
            }
        }
        // Without a link there is one of somebody else's by now, which the next look finds.
        self.memory().ok_or_else(|| self.restless())
    }

    /// What this process remembers.
    pub(super) fn memory(&self) -> Option<StoreMemory> {
        self.inner
            .memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Judges the store by what this process remembers, and remembers it anew.
    async fn judge_now(&self) -> Result<(Present, Option<i64>), AcquireError> {
        let log = self.log().await?;
        let present = self.judge(self.memory().as_ref(), log).await?;
        let slack = slack(log, &present);
        let seen = self.inner.seen.load(Ordering::SeqCst).min(present.revision());
        self.adopt(seen, present.raw.as_ref(), present.header.as_ref())?;
        if let Some(lineage) = present.link() {
            self.remember(&present, lineage);
        }
        Ok((present, slack))
    }

    /// Reads what the store says about itself, with a lower bound on how far its log is ahead of its revision.
    pub(super) async fn present_with_slack(&self) -> Result<(Present, Option<i64>), StoreError> {
        let mut asked = 0;
        loop {
            let log = self.log().await?;
            let present = self.present().await?;
            let slack = slack(log, &present);
            asked += 1;
            // Behind one address there may be several members, which answer in turn.
            if slack.is_some() || log.is_none() || asked == MEMBERS {
                return Ok((present, slack));
            }
        }
    }

    /// Judges the store by a memory of it. A store that lost history is sealed, and is an error from then on.
    pub(super) async fn judge_by(&self, memory: &StoreMemory) -> Result<Present, AcquireError> {
        let log = self.log().await?;
        self.judge(Some(memory), log).await
    }

    async fn judge(
        &self,
        memory: Option<&StoreMemory>,
        mut log: Option<Log>,
    ) -> Result<Present, AcquireError> {
        for _ in 0..TRIES {
            let present = self.present().await?;
            self.require_open(&present)?;
            require_same_cluster(memory, &present)?;
            let Some(found) = self.loss(memory, &present, log).await? else {
                return Ok(present);
            };
            if self.seal(&present, &found).await? {
                return Err(AcquireError::Sealed(SealReason::Lost { loss: found.loss }));
            }
            log = self.log().await?;
        }
        Err(self.restless())
    }

    /// Refuses a store that is not initialised, sealed, of another cluster or tier.
    fn require_open(&self, present: &Present) -> Result<(), AcquireError> {
        match (&present.epoch, &present.sealed) {
            (Some(epoch), _) => self.check_seal(&epoch.value, present.header.as_ref()),
            (None, Some(sealed)) => Err(AcquireError::Sealed(SealReason::Sealed {
                epoch: sealed.value.record.epoch,
                reason: sealed.value.why.clone(),
            })),
            (None, None) => Err(AcquireError::NotInitialised {
                tier: self.inner.tier.clone(),
            }),
        }
    }

    /// What shows that the store lost history, if anything does.
    async fn loss(
        &self,
        memory: Option<&StoreMemory>,
        present: &Present,
        log: Option<Log>,
    ) -> Result<Option<Found>, StoreError> {
        let in_lineage = |loss| Found {
            loss,
            in_lineage: true,
        };
        let in_log = |loss| Found {
            loss,
            in_lineage: false,
        };
        let Some(epoch) = &present.epoch else {
            return Ok(None);
        };
        let lineage = present.link().map(|lineage| &lineage.value);
        let descent = memory.map_or(Descent::Continues, |memory| memory.descent(&epoch.value, lineage));
        match (descent, memory) {
            (Descent::Lost(loss), _) => return Ok(Some(in_lineage(loss))),
            (Descent::Unseen, Some(memory)) => {
                if let Some(loss) = self.past(memory, present).await? {
                    return Ok(Some(in_lineage(loss)));
                }
            }
            _ => {}
        }
        let same_epoch = memory.filter(|memory| memory.record.epoch == epoch.value.epoch);
        let floor = [same_epoch.map(|memory| &memory.lineage), lineage]
            .into_iter()
            .flatten()
            .filter_map(|lineage| lineage.slack)
            .max();
        let seen = self
            .seen_in(epoch.value.epoch)
            .max(same_epoch.map_or(0, |memory| memory.revision));
        let falls = |log: Option<Log>| Some((log?.most, floor?)).filter(|(most, floor)| most < floor);
        if falls(log).is_none() && present.revision() >= seen {
            return Ok(None);
        }
        // A member that lags says the same. One that has just applied a write does not lag.
        let (found, log) = self.ask_through_the_log(present, lineage).await?;
        if found < seen {
            return Ok(Some(in_log(Loss::Revision { seen, found })));
        }
        Ok(falls(log).map(|(found, seen)| in_log(Loss::Slack { seen, found })))
    }

    /// Whether the link that was seen is in the store's past, as far as it is kept.
    async fn past(&self, memory: &StoreMemory, present: &Present) -> Result<Option<Loss>, StoreError> {
        let lost = Loss::Past {
            revision: memory.written_at,
        };
        // A later link at an earlier revision.
        if present.revision() < u64::try_from(memory.written_at).unwrap_or(0) {
            return Ok(Some(lost));
        }
        let then = GetOptions::new().with_revision(memory.written_at);
        match self.get_unchecked(self.inner.layout.lineage(), Some(then)).await {
            Ok(read) => {
                let link = |kv: &etcd_client::KeyValue| decode::<Lineage>(kv.key(), kv.value());
                let found = read.kvs().first().map(link).transpose()?;
                Ok(Some(lost).filter(|_| found.as_ref() != Some(&memory.lineage)))
            }
            // Compacted away.
            Err(StoreError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes through the store's log, and asks the member that answered. The revision that must not be below any seen
    /// before, and the member's log, unless another member answered in between.
    async fn ask_through_the_log(
        &self,
        present: &Present,
        lineage: Option<&Lineage>,
    ) -> Result<(u64, Option<Log>), StoreError> {
        let Some(epoch) = &present.epoch else {
            return Ok((present.revision(), None));
        };
        let next = match lineage {
            Some(lineage) => lineage.next(None),
            None => Lineage::begin(epoch.value.epoch, None),
        };
        let (answer, wrote) = self.write_link(present, &next).await?;
        let member = answer.as_ref().map_or(0, ResponseHeader::member_id);
        let mut log = None;
        for _ in 0..MEMBERS {
            log = self.log().await?;
            if log.is_none_or(|log| log.member == member) {
                break;
            }
        }
        let log = log.filter(|log| log.member == member);
        Ok((revision(answer.as_ref()).saturating_sub(u64::from(wrote)), log))
    }

    /// Writes a link after the one that was read. Whether it was written or not, the answer went through the log.
    async fn write_link(
        &self,
        present: &Present,
        next: &Lineage,
    ) -> Result<(Option<ResponseHeader>, bool), StoreError> {
        let layout = &self.inner.layout;
        let (epoch, lineage) = (
            Present::moved(present.epoch.as_ref()),
            Present::moved(present.lineage.as_ref()),
        );
        let write = Txn::new()
            .when([
                Compare::mod_revision(layout.epoch(), CompareOp::Equal, epoch),
                Compare::mod_revision(layout.lineage(), CompareOp::Equal, lineage),
            ])
            .and_then([TxnOp::put(layout.lineage(), encode(next), None)]);
        let answer = self.txn_unchecked(write).await?;
        Ok((answer.header().cloned(), answer.succeeded()))
    }

    /// The log of the member that answers; nothing from a learner, from one without a leader, or where the question is
    /// denied.
    async fn log(&self) -> Result<Option<Log>, StoreError> {
        let mut asked = 0;
        let status = loop {
            let mut client = self.client_in_turn().await?;
            asked += 1;
            match self.bounded(client.status()).await {
                Ok(status) => break status,
                Err(StoreError::Refused { .. }) => return Ok(None),
                // It may be asked again, of the next member.
                Err(StoreError::Unreachable { .. }) if asked < self.inner.members.count() => {}
                Err(error) => return Err(error),
            }
        };
        let member = status.header().map_or(0, ResponseHeader::member_id);
        if status.is_learner() || status.leader() == 0 {
            return Ok(None);
        }
        Ok(Some(Log {
            member,
            applied: signed(status.raft_applied_index()),
            most: signed(status.raft_index()) - signed(revision(status.header())),
        }))
    }

    fn remember(&self, present: &Present, lineage: &At<Lineage>) {
        let Some(epoch) = &present.epoch else { return };
        let mut memory = self.inner.memory.lock().unwrap_or_else(PoisonError::into_inner);
        *memory = Some(StoreMemory {
            record: epoch.value.clone(),
            lineage: lineage.value.clone(),
            written_at: lineage.at,
            revision: present.revision().max(u64::try_from(lineage.at).unwrap_or(0)),
        });
    }

    fn restless(&self) -> AcquireError {
        AcquireError::Store(StoreError::Busy {
            source: "its records changed while they were judged".into(),
        })
    }
}

/// Refuses another cluster that is in the epoch that was seen, or an earlier one: an address may lead to another cluster,
/// which need not have lost anything.
fn require_same_cluster(memory: Option<&StoreMemory>, present: &Present) -> Result<(), AcquireError> {
    let (Some(memory), Some(epoch)) = (memory, &present.epoch) else {
        return Ok(());
    };
    let (seen, found) = (&memory.record, &epoch.value);
    if found.epoch <= seen.epoch && found.cluster_id != seen.cluster_id {
        return Err(AcquireError::Sealed(SealReason::Stranger {
            epoch: seen.epoch,
            seen: seen.cluster_id.clone(),
            found: found.cluster_id.clone(),
        }));
    }
    Ok(())
}

/// How far the log is ahead of the revision at least: the applied index less the revision of a later read.
fn slack(log: Option<Log>, later: &Present) -> Option<i64> {
    let same = log.filter(|log| log.member == later.member())?;
    Some(same.applied - signed(later.revision()))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
