//! Whether what is declared fits the target, as far as only a run can tell: a mistake in the declaration is no verdict on a
//! guard.

use std::collections::BTreeSet;

use super::Half;
use crate::run::RunError;
use crate::scenario::exchanges::Kind;
use crate::scenario::observe::grant_of;
use crate::target::{Guard, Place};

/// A row of the writes' table.
struct Row {
    key: String,
    id: String,
}

impl Half<'_> {
    /// Looks, once everything is set up, whether the guard knows the class.
    pub(super) async fn is_declared(&self) -> Result<(), RunError> {
        let class = self.task.class;
        if class.guard != Guard::Mark {
            return Ok(());
        }
        let (name, tier) = (class.name.as_str(), class.tier.as_str());
        let failed = RunError::lost("the guard's own tables could not be read");
        let query = "SELECT tier FROM fence.class WHERE name = $1";
        let rows = self.sql.query(query, &[&name]).await.map_err(&failed)?;
        let declared: Option<Option<String>> = rows.first().map(|row| row.get(0));
        let why = match declared {
            Some(Some(found)) if found == tier => return Ok(()),
            Some(Some(found)) => {
                format!("class {name} is declared for tier {found} there, and for tier {tier} here")
            }
            Some(None) => format!("class {name} is declared without a tier, for another issuer's tokens"),
            None => format!("nothing declares class {name} to the guard"),
        };
        Err(RunError::Declared {
            at: self.target().key("setup"),
            why: format!(
                "{why}; a step is missing, {{ sql = \"SELECT fence.declare('{name}', '{tier}')\" }}"
            ),
        })
    }

    /// Looks, once a holder was granted, whether the guard takes the tokens of the store's epoch.
    pub(in crate::scenario) async fn is_registered(&self, token: i64) -> Result<(), RunError> {
        if self.task.class.guard != Guard::Mark {
            return Ok(());
        }
        let tier = self.task.class.tier.as_str();
        let query = "SELECT FROM fence.epoch_range WHERE tier = $1 AND $2 BETWEEN first AND ceiling";
        let rows = self.sql.query(query, &[&tier, &token]).await;
        if !rows
            .map_err(RunError::lost("the guard's ranges could not be read"))?
            .is_empty()
        {
            return Ok(());
        }
        let epoch = token >> 48;
        Err(RunError::Declared {
            at: self.target().key("setup"),
            why: format!(
                "the lock store grants tokens of epoch {epoch}, which the guard does not know; a step is missing, \
                 {{ sql = \"SELECT fence.register_epoch('{tier}', {epoch})\" }}"
            ),
        })
    }

    /// Looks, once the holders have ended, whether their writes can be found where they are said to be. `whole` is whether the
    /// scenario came to its end.
    pub(in crate::scenario) async fn shows_the_writes(&self, whole: bool) -> Result<(), RunError> {
        let (proof, key) = (&self.task.class.proof, self.keys[0].as_str());
        let writes = &proof.writes;
        let rows = self.rows().await?;
        let holders = self.holders();
        let grants: BTreeSet<String> = holders
            .iter()
            .filter_map(|holder| Some(holder.grant()?.grant.to_string()))
            .collect();
        let ours = |row: &&Row| grants.contains(grant_of(&row.id));
        let at = Place::proof(self.task.class.name.as_str());
        let declared = |at: Place, why: String| Err(RunError::Declared { at, why });
        let of_key: Vec<&Row> = rows.iter().filter(|row| row.key == key).collect();

        if let (Some(row), Some(front)) = (rows.iter().find(ours), &proof.front) {
            let requests: Vec<_> = holders.iter().flat_map(|holder| holder.requests()).collect();
            if !requests.iter().any(|seen| seen.kind == Kind::Write) {
                let why = format!(
                    "{} was written, and no holder's request was {} {}",
                    row.id, front.write.method, front.write.path
                );
                return declared(at.key("front").key("write").key("path"), why);
            }
        }
        if !whole {
            return Ok(());
        }
        if let (Some(front), false) = (&proof.front, self.is_twin()) {
            let requests: Vec<_> = holders.iter().flat_map(|holder| holder.requests()).collect();
            let has = |kind| requests.iter().any(|seen| seen.kind == kind);
            if has(Kind::Write) && !has(Kind::Raise) {
                let why = format!(
                    "holders wrote, and no request of theirs was {} {}; a holder raises the mark before it reads",
                    front.raise.method, front.raise.path
                );
                return declared(at.key("front").key("raise").key("path"), why);
            }
        }
        if let (Some(row), true) = (rows.iter().find(ours), of_key.is_empty()) {
            let why = format!(
                "key = \"{}\" is \"{}\" in the row with the id {}, whose lock's key is \"{key}\"",
                writes.key, row.key, row.id
            );
            return declared(at.key("writes").key("key"), why);
        }
        if let (Some(row), None) = (of_key.first(), rows.iter().find(ours)) {
            let why = format!(
                "id = \"{}\" is \"{}\" in a row that was written, which names no grant; write the holder's grant id there, with \
                 a number after it, such as {}:1",
                writes.id,
                row.id,
                grants.first().map_or("b2f1", String::as_str)
            );
            return declared(at.key("writes").key("id"), why);
        }
        let last = self.replicas.len().saturating_sub(1);
        // What could not be read is told by the scenario itself.
        let Ok(shown) = self.shown(last).await else {
            return Ok(());
        };
        if let (Some(row), false) = (of_key.first(), of_key.iter().any(|row| shown.contains(&row.id))) {
            let why = format!(
                "the read shows {} for \"{key}\", and the table holds {} there; let it show the {} of every write on {{key}}",
                match shown.first() {
                    Some(first) => format!("\"{first}\""),
                    None => "nothing".to_owned(),
                },
                row.id,
                writes.id
            );
            return declared(at.key("read"), why);
        }
        Ok(())
    }

    async fn rows(&self) -> Result<Vec<Row>, RunError> {
        let writes = &self.task.class.proof.writes;
        let query = format!(
            "SELECT {key}::text, {id}::text FROM {table} WHERE {key} IS NOT NULL AND {id} IS NOT NULL",
            key = writes.key,
            id = writes.id,
            table = writes.table
        );
        let rows = self.sql.query(&query, &[]).await;
        let rows = rows.map_err(RunError::lost("the writes could not be read"))?;
        Ok(rows
            .iter()
            .map(|row| Row {
                key: row.get(0),
                id: row.get(1),
            })
            .collect())
    }

    fn target(&self) -> Place {
        Place::target(&self.task.class.proof.target)
    }
}
