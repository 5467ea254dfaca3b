//! Several keys in one admission.

use tokio_postgres::Client;

use super::asked::{Ask, reply, run};
use super::mark::OPEN;
use super::races::waiting;
use crate::history::ProbeKind as Kind;
use crate::run::RunError;
use crate::scenario::Half;

/// All or none, and each as it would be alone; and two batches that have the same keys in opposite orders.
pub(super) async fn ask(half: &Half<'_>, own: &[Client; 3]) -> Result<(), RunError> {
    let [one, two, holder] = own;
    let on = |kind, key, token| Ask::new(kind, OPEN, key, token);
    for key in ["many-a", "many-b"] {
        on(Kind::Prepare, key, 20).put(half, one).await?;
    }
    let stale = on(Kind::StaleBatch, "many-b", 19).meets(20);
    stale
        .with(half, one, &batch(&[("many-a", "21"), ("many-b", "19")]))
        .await?;
    let none = on(Kind::MissingToken, "many-b", 21).without_token();
    none.with(half, one, &batch(&[("many-a", "21"), ("many-b", "NULL")]))
        .await?;
    // The other key was not admitted either.
    on(Kind::EqualAgain, "many-a", 20).put(half, one).await?;
    on(Kind::Larger, "many-b", 22)
        .with(half, one, &batch(&[("many-b", "22"), ("many-a", "22")]))
        .await?;
    for key in ["many-a", "many-b"] {
        on(Kind::Smaller, key, 21).meets(22).put(half, one).await?;
    }
    crossed(half, one, two, holder).await
}

/// Each of two batches is held up behind its first key, as long as it takes the other to come as far.
async fn crossed(half: &Half<'_>, one: &Client, two: &Client, holder: &Client) -> Result<(), RunError> {
    run(holder, "BEGIN").await?;
    for key in ["cross-x", "cross-y"] {
        Ask::new(Kind::Prepare, OPEN, key, 20).put(half, holder).await?;
    }
    let first = batch(&[("cross-a", "21"), ("cross-x", "21"), ("cross-c", "21")]);
    let second = batch(&[("cross-c", "21"), ("cross-y", "21"), ("cross-a", "21")]);
    let (first, second, freed) = tokio::join!(reply(one, &first), reply(two, &second), async {
        waiting(half, 2).await?;
        run(holder, "COMMIT").await
    });
    freed?;
    Ask::new(Kind::Crossed, OPEN, "cross-a", 21).record(half, first?);
    Ask::new(Kind::Crossed, OPEN, "cross-c", 21).record(half, second?);
    Ok(())
}

/// One admission of these keys with these tokens, in this order.
fn batch(claims: &[(&str, &str)]) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let classes = list(claims.iter().map(|_| format!("'{OPEN}'")).collect());
    let keys = list(claims.iter().map(|(key, _)| format!("'{key}'")).collect());
    let tokens = list(claims.iter().map(|(_, token)| (*token).to_owned()).collect());
    format!("SELECT fence.admit_many(ARRAY[{classes}], ARRAY[{keys}], ARRAY[{tokens}]::bigint[])")
}
