//! What a worker is about to send, on disk, so that a crash does not lose it.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fence_core::{Claim, ClassName, GrantId, Key, Token};
use serde::{Deserialize, Serialize};

use super::exit::WorkerError;
use super::options::AccountJob;

/// A transfer with all that is needed to present it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    class: ClassName,
    key: Key,
    token: Token,
    grant: Option<GrantId>,
    pub(super) idempotency_key: String,
    pub(super) to: String,
    pub(super) amount: i64,
    pub(super) reference: String,
}

impl Entry {
    /// One part of the job, counted from 1.
    pub(super) fn new(job: &AccountJob, claim: &Claim, part: u32) -> Entry {
        // All ids of a job, and all references, are of one length.
        let width = job.writes.to_string().len();
        let grant = claim.grant_id.as_ref().map_or("", |id| id.as_str());
        Entry {
            class: claim.class.clone(),
            key: claim.key.clone(),
            token: claim.token,
            grant: claim.grant_id.clone(),
            idempotency_key: format!("{grant}:{part:0width$}"),
            to: job.to.clone(),
            amount: job.amount,
            reference: match job.writes {
                1 => job.reference.clone(),
                _ => format!("{} part {part:0width$}", job.reference),
            },
        }
    }

    /// The claim under which it is presented.
    pub(super) fn claim(&self) -> Claim {
        Claim {
            class: self.class.clone(),
            key: self.key.clone(),
            token: self.token,
            grant_id: self.grant.clone(),
        }
    }
}

/// A file that holds one entry or is not there.
pub(super) struct Journal<'a> {
    file: &'a Path,
}

impl<'a> Journal<'a> {
    pub(super) fn new(file: &'a Path) -> Journal<'a> {
        Journal { file }
    }

    /// The entry that an earlier process has left.
    pub(super) fn read(&self) -> Result<Option<Entry>, WorkerError> {
        match std::fs::read(self.file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| WorkerError::unreachable("the journal", error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(WorkerError::unreachable("the journal", error)),
        }
    }

    /// Puts an entry there: whole and durable when this returns.
    pub(super) fn write(&self, entry: &Entry) -> Result<(), WorkerError> {
        let write = || -> io::Result<()> {
            let beside = self.beside();
            let mut file = File::create(&beside)?;
            file.write_all(&serde_json::to_vec(entry)?)?;
            file.sync_all()?;
            std::fs::rename(&beside, self.file)?;
            self.folder()?.sync_all()
        };
        write().map_err(|error| WorkerError::unreachable("the journal", error))
    }

    /// Takes the entry away, durably.
    pub(super) fn remove(&self) -> Result<(), WorkerError> {
        let remove = || -> io::Result<()> {
            std::fs::remove_file(self.file)?;
            self.folder()?.sync_all()
        };
        remove().map_err(|error| WorkerError::unreachable("the journal", error))
    }

    fn beside(&self) -> PathBuf {
        let mut name = self.file.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        self.file.with_file_name(name)
    }

    fn folder(&self) -> io::Result<File> {
        let folder = self.file.parent().filter(|folder| *folder != Path::new(""));
        File::open(folder.unwrap_or(Path::new(".")))
    }
}
