//! What an operator does: install the store, begin its first epoch, look who holds.

use std::time::{Duration, UNIX_EPOCH};

use fence_core::{ClassName, Epoch, GrantId, Key, TierName, Token};

use super::call::{Row, one};
use super::{PostgresStore, sql};
use crate::error::StoreError;
use crate::etcd::{EpochRecord, Holder, InitError};
use crate::look::{HeldBy, LockState, Waiting};
use crate::store::SessionId;

/// One file of `fence-lock/sql/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlFile {
    /// The file's name, its place in the order.
    pub name: &'static str,
    /// What it holds: one transaction that may be applied again.
    pub sql: &'static str,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(SqlFile { name: $name, sql: include_str!(concat!("../../sql/", $name)) }),+]
    };
}

/// Every file of `fence-lock/sql/`, in name order.
pub const INSTALL: &[SqlFile] = files![
    "0001_tables.sql",
    "0002_session.sql",
    "0003_epoch.sql",
    "0004_acquire.sql",
    "0005_release.sql",
    "0006_look.sql",
];

impl PostgresStore {
    /// Installs the store's schema, tables and functions, as the role that will own them; it needs no superuser. Applying
    /// them again changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server refuses, for example because the role may not create a schema.
    pub async fn install(&self) -> Result<(), StoreError> {
        let client = self.inner.pool.connector().connect().await?;
        for file in INSTALL {
            let applied = client.batch_execute(file.sql).await;
            applied.map_err(|error| super::call::sort(&self.inner.pool.endpoints(), error))?;
        }
        Ok(())
    }

    /// Begins the first epoch of a store that was just installed. It is done once, by an operator. The epoch must be above
    /// every epoch that any store of this system ever granted in.
    ///
    /// # Errors
    ///
    /// [`InitError::Exists`] when there is an epoch already: of any number of concurrent calls, one begins it.
    pub async fn init(&self, epoch: Epoch, reason: &str) -> Result<EpochRecord, InitError> {
        let characters = reason.chars().count();
        if !(1..=1000).contains(&characters) {
            return Err(InitError::Reason { characters });
        }
        let begin = sql::init(&self.inner.tier, epoch.as_u16(), reason);
        let begun = one(self.inner.pool.ask(&begin).await?)?.truth(0)?;
        let found = record(&one(self.inner.pool.ask(sql::EPOCH).await?)?)?;
        if begun {
            Ok(found)
        } else {
            Err(InitError::Exists { found })
        }
    }

    /// The epoch in force, if one was begun.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the database does not answer or the store is not installed in it.
    pub async fn epoch(&self) -> Result<Option<EpochRecord>, StoreError> {
        let rows = self.inner.pool.ask(sql::EPOCH).await?;
        rows.first().map(record).transpose()
    }

    /// Who holds the lock `class` / `key` now, if anybody does.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the database does not answer.
    pub async fn holder(&self, class: &ClassName, key: &Key) -> Result<Option<Holder>, StoreError> {
        let rows = self.inner.pool.ask(&sql::holder(class, key)).await?;
        let holder = |row: &Row| {
            Ok(Holder {
                grant_id: row.read(0, GrantId::new)?,
                session: row.read(1, SessionId::new)?,
            })
        };
        rows.first().map(holder).transpose()
    }

    /// How many attempts wait for the lock `class` / `key` now.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the database does not answer.
    pub async fn waiters(&self, class: &ClassName, key: &Key) -> Result<usize, StoreError> {
        let row = one(self.inner.pool.ask(&sql::waiters(class, key)).await?)?;
        usize::try_from(row.number(0)?).map_err(|_| row.unreadable(0))
    }
}

impl PostgresStore {
    /// Every lock that is held or waited for, in the order of class and key.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the database does not answer or the store is not installed in it.
    pub async fn locks(&self) -> Result<Vec<LockState>, StoreError> {
        let mut locks: Vec<LockState> = Vec::new();
        for row in self.inner.pool.ask(sql::LOCKS).await? {
            let (class, key) = (row.read(0, ClassName::new)?, row.read(1, Key::text)?);
            if locks
                .last()
                .is_none_or(|last| (&last.class, &last.key) != (&class, &key))
            {
                locks.push(LockState {
                    class,
                    key,
                    held: None,
                    waiting: Vec::new(),
                });
            }
            let lock = locks.last_mut().expect("one was just put there");
            let (grant_id, session) = (row.read(2, GrantId::new)?, row.read(3, SessionId::new)?);
            let since = u64::try_from(row.number(5)?).map_err(|_| row.unreadable(5))?;
            let since = Some(UNIX_EPOCH + Duration::from_millis(since));
            match row.text(4) {
                Some(_) => {
                    let token = Token::new(row.number(4)?).map_err(|_| row.unreadable(4))?;
                    lock.held = Some(HeldBy {
                        token,
                        grant_id,
                        session,
                        since,
                    });
                }
                None => lock.waiting.push(Waiting {
                    grant_id,
                    session,
                    since,
                }),
            }
        }
        Ok(locks)
    }
}

fn record(row: &Row) -> Result<EpochRecord, StoreError> {
    let number = u16::try_from(row.number(0)?).unwrap_or(0);
    let text = |column| row.read(column, Ok::<_, StoreError>);
    Ok(EpochRecord {
        epoch: Epoch::new(number).map_err(|_| row.unreadable(0))?,
        cluster_id: text(1)?,
        tier: row.read(2, TierName::new)?,
        reason: text(3)?,
        classes_placed: false,
    })
}
