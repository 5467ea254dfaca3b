//! Where fencing tokens come from: leases and grants from etcd or PostgreSQL behind one seam.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use fence_core::{ClassName, Key, TierName, Ttl};
//! use fence_lock::{EtcdStore, Session};
//!
//! let store = EtcdStore::connect(&["http://127.0.0.1:2379"], "fence", TierName::new("entity")?).await?;
//! let session = Session::open(store, Ttl::default()).await?;
//! let hold = session.acquire(&ClassName::new("paydb.account")?, &Key::text("acct-1")?).await?;
//!
//! // Work starts when the claim is read from the hold. It says no once a keepalive has failed.
//! let claim = hold.claim()?;
//! // … raise the mark on the resource with `claim`, read, write with `claim` …
//! hold.release().await?;
//! session.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Session`] is one process's lease in the store with one keepalive, however many holds attach to it. A [`Hold`] is a
//! live grant: its token can be read while the last answered keepalive is young enough, and not after. [`EtcdStore`] is
//! the store on etcd; its [key layout and its transactions](EtcdStore#key-layout) are documented, so that a client in any
//! language can mint the same tokens. `PostgresStore` (feature `postgres`, on by default) is the store on PostgreSQL, in tables
//! and functions that a person can read. [`LockStore`] and [`SessionRegistry`] are the seam for other stores; what they must
//! do is a suite, in the module `conformance` behind the feature of that name, which both stores here pass.
//!
//! # What this crate does not do
//!
//! It cannot stop a holder from writing. A process that was paused after it read its token goes on with it, and between
//! that read and the first byte on the wire lies a gap that no holder can close: the guarded resource must refuse the stale
//! token in the same atomic step as the write (`fence-pg`, `fence-http`). [`Hold::phase`] is advice, never permission.
//!
//! It does not notice every loss of a store's history: what it looks at is [listed](EtcdStore#lost-history), and a data
//! directory that was put back is seen only by who remembers more than the directory does, a process that lives or a
//! [`Witness`]. After any restore an operator must advance the epoch. It does not notice a task that hangs in a
//! process that still renews, unless holds are given a [longest length](SessionConfig::longest_hold), nor a hold whose key an
//! operator deleted.
//! Linux only: deadlines count suspended time on `CLOCK_BOOTTIME`.
//!
//! A change to etcd that fails is not tried again behind the caller's back, since it may have landed: the first one after
//! etcd restarted may be such a one. The next one goes to the next of its members.

mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod etcd;
mod hold;
mod hold_all;
mod keys;
mod lineage;
mod look;
mod loss;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod session;
mod store;
mod tls;
mod witness;

pub use clock::{BootClock, Clock};
pub use error::{AcquireError, OpenError, RenewError, SealReason, StoreError};
pub use etcd::{
    Advance, AdvanceError, Advanced, AttendError, Attended, AuditEvent, ConnectError, EpochRecord,
    EpochStatus, EtcdOptions, EtcdStore, GrantEvent, GrantWatch, Holder, InitError, MemberVersion, Revoked,
    VersionWarning, WatchError,
};
pub use hold::{Hold, NotHeld};
pub use hold_all::HoldAll;
pub use keys::{Keys, NoKeys};
pub use look::{HeldBy, LockState, Waiting};
pub use loss::Loss;
pub use memory::{StoreMemory, StoreMemoryError};
#[cfg(feature = "postgres")]
pub use postgres::{INSTALL, PostgresConnectError, PostgresStore, SqlFile};
pub use session::{Session, SessionConfig};
pub use store::{
    Attempt, FRESH_FOR, Lease, LockStore, Minted, Release, Renewals, SessionId, SessionIdError,
    SessionRegistry,
};
pub use tls::Tls;
pub use witness::{Claim, Witness, WitnessError};
