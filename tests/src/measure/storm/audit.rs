//! What was committed, in the order of its commits, as PostgreSQL's log has it.

use std::collections::HashMap;

use pause_kit::commit_order::{Change, CommitOrder, Operation};

use super::super::Failure;
use super::store::Resource;

/// A committed write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) resource: Resource,
    pub(crate) entry: String,
    /// The token that the row bears.
    pub(crate) token: u64,
    /// The sum after it.
    pub(crate) total: i64,
}

/// Reads the log on and on, and keeps the writes.
pub(crate) struct Audit {
    log: CommitOrder,
    committed: Vec<Committed>,
    /// The last sum of an account, and the commit that it stands in.
    sums: HashMap<String, (u64, i64)>,
    /// The last entry of each batch.
    entries: HashMap<String, String>,
}

impl Audit {
    pub(crate) fn new(log: CommitOrder) -> Self {
        Audit {
            log,
            committed: Vec::new(),
            sums: HashMap::new(),
            entries: HashMap::new(),
        }
    }

    /// Reads what has been committed by now.
    pub(crate) async fn read(&mut self) -> Result<(), Failure> {
        for change in self.log.read().await? {
            self.take(&change)?;
        }
        Ok(())
    }

    pub(crate) fn committed(self) -> Vec<Committed> {
        self.committed
    }

    fn take(&mut self, change: &Change) -> Result<(), Failure> {
        match (change.relation.as_str(), change.operation) {
            ("public.balance", Operation::Update) => {
                let sum = (change.commit, column(change, "total")?.parse()?);
                self.sums.insert(column(change, "account")?.to_owned(), sum);
            }
            ("public.entry", Operation::Insert) => {
                let account = column(change, "account")?;
                let total = match self.sums.get(account) {
                    Some((commit, total)) if *commit == change.commit => *total,
                    _ => return Err(format!("{account} got an entry without its sum").into()),
                };
                self.committed.push(Committed {
                    resource: Resource(account.trim_start_matches("acct-").parse()?),
                    entry: column(change, "id")?.to_owned(),
                    token: column(change, "token")?.parse()?,
                    total,
                });
            }
            ("public.batch", Operation::Update) => {
                let (id, entry) = (column(change, "id")?, column(change, "entry")?);
                // A claim, before what is written from it, leaves the entry as it was.
                if self.entries.get(id).is_none_or(|last| last != entry) && !entry.is_empty() {
                    self.entries.insert(id.to_owned(), entry.to_owned());
                    self.committed.push(Committed {
                        resource: Resource(Resource::ALL / 2 + id.parse::<usize>()?),
                        entry: entry.to_owned(),
                        token: column(change, "fence_token")?.parse()?,
                        total: column(change, "total")?.parse()?,
                    });
                }
            }
            (relation, operation) if relation.starts_with("public.") => {
                return Err(format!("{operation:?} of {relation}, which nobody was to do").into());
            }
            _ => {}
        }
        Ok(())
    }
}

fn column<'c>(change: &'c Change, name: &str) -> Result<&'c str, Failure> {
    let value = change.columns.get(name).and_then(Option::as_deref);
    value.ok_or_else(|| format!("{} has no {name} in the log", change.relation).into())
}
