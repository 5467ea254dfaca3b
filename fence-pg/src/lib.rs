//! PostgreSQL guards that refuse stale fencing tokens: plain SQL for every language, sqlx and tokio-postgres on top.
//!
//! A lock service cannot stop a process from writing: a holder that was paused for longer than its lease wakes up and still
//! writes. Here the database refuses it, in the same atomic step as the write. In SQL, with nothing but `psql`:
//!
//! ```sql
//! SELECT fence.declare('paydb.account', 'entity');
//! SELECT fence.register_epoch('entity', 1);
//! SELECT fence.protect('transfer', 'paydb.account', 'from_account');
//!
//! BEGIN;                                                              -- the new holder, token 281474976710690
//! SELECT fence.admit('paydb.account', 'acct-1', 281474976710690, 'b2f1');
//! INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5);   -- admitted
//! COMMIT;
//!
//! BEGIN;                                                              -- the old one, late, token 281474976710689
//! SELECT fence.admit('paydb.account', 'acct-1', 281474976710689, 'a0c9');
//! -- ERROR ZF001: stale token …  DETAIL: presented 281474976710689, seen 281474976710690
//! ```
//!
//! In Rust, with sqlx, and a claim that another program's lock gave (fence-lock's grants make theirs themselves):
//!
//! ```no_run
//! use fence_core::{Claim, ClassName, Effect, GrantId, Key, Token};
//!
//! # async fn pay(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let newer = Claim {
//!     class: ClassName::new("shop.order")?,
//!     key: Key::integer(42), // of the row that is written: its guarded column is an integer
//!     token: Token::new(281_474_976_710_690)?,
//!     grant_id: Some(GrantId::new("b2f1")?),
//! };
//! let mut guarded = fence_pg::sqlx::begin(&pool, &newer).await?; // admitted
//! sqlx::query("UPDATE shop_order SET state = 'paid' WHERE id = 42")
//!     .execute(guarded.connection())
//!     .await?;
//! let receipt = guarded.commit(Effect::Applied).await?;
//!
//! let older = Claim {
//!     token: Token::new(281_474_976_710_689)?,
//!     grant_id: Some(GrantId::new("a0c9")?),
//!     ..newer
//! };
//! let refused = fence_pg::sqlx::begin(&pool, &older).await.unwrap_err();
//! assert_eq!(refused.to_string(), "stale token: presented 281474976710689, seen 281474976710690");
//! # drop(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! The same as a whole program, which guards the table first, is `examples/guard_a_table.rs`.
//!
//! It works with sqlx 0.9 (feature `sqlx`) and tokio-postgres 0.7 (feature `tokio-postgres`), both on by default: their
//! pools, connections and clients stand in its signatures, so a program has these versions of them too.
//!
//! - The **mark guard** keeps a mark a key in `fence.high_water`, outliving the rows, and covers inserts, deletes and any
//!   number of tables. `fence.protect` makes the database refuse every write that did not admit its row's key in its own
//!   transaction, from any language or from psql.
//! - The **column guard** keeps the mark in the guarded row. One statement, no extra round trip, and the limits that
//!   [`ColumnGuard`] lists.
//!
//! Both stand in [`sqlx`] and in [`tokio_postgres`], by the same names and with the same outcomes; one suite runs on both.
//!
//! The SQL stands in `fence-pg/sql/`, for `psql -f` in name order, or for `install`; a database owner without superuser
//! rights can run all of it, on PostgreSQL 14 or newer. `DROP SCHEMA fence CASCADE` removes it. PUBLIC may use none of it; a
//! role that only writes is given what it needs by `SELECT fence.grant_application('app')`.
//!
//! # Fence, then read
//!
//! Until the new holder's first *committed* contact, accepting the old one is right: the database cannot know yet. So a new
//! holder calls `fence.raise_mark`, and commits, right after its grant and before the first read that a write will depend on.
//! Without that, the new holder reads, the old one writes rightly, the new one writes from its old read, and an acknowledged
//! write is lost with every token in order. An admission that is rolled back is no contact: a business refusal commits it.
//!
//! # What a transaction is given
//!
//! Admission waits 2 s at most for all its keys together, then answers `55P03` ([`GuardError::Blocked`]) and names who is in
//! the way. For the rest of the transaction it sets, unless stricter already, `idle_in_transaction_session_timeout` to 5 s:
//! **a transaction that stands idle for longer ends with its connection.** An acknowledged commit is on disk, also where
//! `synchronous_commit` is off. Admission and write are two statements, or one volatile function; in one statement, such as
//! a CTE, the write would keep a snapshot from before the wait: `fence.protect` refuses that. Every key is one advisory lock
//! of the transaction, so one that admits thousands of keys may need a larger `max_locks_per_transaction`.
//!
//! # What this crate does not do
//!
//! It works against a holder that is late, paused, restarted, retried, replayed by the network, or written by someone who
//! forgot the token. It does not authenticate: an application role that forges tokens is not stopped, only kept from
//! lowering a mark, and may brick a key within the registered ranges. It does not stop a superuser or the tables' owner,
//! who may drop a trigger. It does not see two writes of one grant that arrive out of order, a holder cloned with its
//! memory, or a database restored to before its newest mark: after any restore, advance the epoch before writers come back.
//! A partition that is added later is guarded against row writes at once, against its own TRUNCATE from the next
//! `fence.protect` on.

#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod bounds;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod column;
#[cfg(feature = "sqlx")]
mod completed;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod error;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod isolation;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod ledger;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod mark;
mod migrate;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod outcome;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
mod refused;
#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(feature = "sqlx")]
mod text;
#[cfg(feature = "tokio-postgres")]
pub mod tokio_postgres;

#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use bounds::{BOUNDS_SQL, Bounds, BoundsError};
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use column::{ColumnGuard, IdentifierError};
#[cfg(feature = "sqlx")]
pub use completed::{COMPLETED_TABLE_SQL, IdempotentRequest, IdempotentRequestError, StoredAnswer};
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use error::GuardError;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use isolation::Isolation;
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use ledger::InstallError;
pub use migrate::{GuardSha256, MIGRATIONS, Migration, guard_sha256};
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use outcome::{BatchError, Resolved, RowOutcome, Written};
#[cfg(any(feature = "sqlx", feature = "tokio-postgres"))]
pub use refused::{Refused, StaleKey};
