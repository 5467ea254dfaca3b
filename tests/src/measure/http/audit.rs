//! What a storm left in the database, against what clients were told.

use std::collections::BTreeMap;

use super::super::Failure;
use super::bed::Bed;
use super::storm::{BALANCE, Told};

/// What the database shows that it must not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Written under a token below one that was acknowledged before.
    pub(super) late: usize,
    /// Acknowledged, and not there.
    pub(super) lost: usize,
    pub(super) twice: usize,
    pub(super) out_of_order: usize,
    pub(super) balances: i64,
}

pub(super) async fn audit(bed: &Bed, told: &Told) -> Result<Found, Failure> {
    let sql = bed.sql().await?;
    let rows = sql
        .query(
            "SELECT from_account, idempotency_key FROM transfer ORDER BY id",
            &[],
        )
        .await?;
    let mut effects: BTreeMap<String, usize> = BTreeMap::new();
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    let mut found = Found::default();
    for row in rows {
        let (account, key): (String, String) = (row.get(0), row.get(1));
        let place = account.trim_start_matches("acct-").parse::<u64>()? - 1;
        *effects.entry(format!("{place}/{key}")).or_default() += 1;
        // The key names the grant: in the order in which rows were made, an account's grants never go back.
        let grant = key
            .trim_start_matches('g')
            .split(':')
            .next()
            .and_then(|number| number.parse::<u64>().ok());
        if let Some(grant) = grant {
            let before = newest.entry(account).or_default();
            found.out_of_order += usize::from(grant < *before);
            *before = grant;
        }
    }
    found.late = told
        .stale_keys
        .iter()
        .filter(|key| effects.contains_key(*key))
        .count();
    found.lost = told
        .acknowledged
        .iter()
        .filter(|key| !effects.contains_key(*key))
        .count();
    found.twice = effects.values().filter(|count| **count > 1).count();
    let off = "SELECT count(*) FROM account a WHERE balance <> $1::bigint
        + (SELECT coalesce(sum(amount), 0) FROM transfer WHERE to_account = a.id)
        - (SELECT coalesce(sum(amount), 0) FROM transfer WHERE from_account = a.id)";
    found.balances = sql.query_one(off, &[&BALANCE]).await?.get(0);
    Ok(found)
}
