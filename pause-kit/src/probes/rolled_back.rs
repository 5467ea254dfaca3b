//! An admission that is rolled back.

use super::asked::{Ask, open, run};
use crate::history::ProbeKind;
use crate::run::RunError;
use crate::scenario::{Granted, Half};

/// Admits a live grant on the contested key in a transaction of the kit's own, and rolls it back: to the resource nothing has
/// happened.
pub(crate) async fn roll_back(half: &Half<'_>, granted: &Granted) -> Result<(), RunError> {
    let sql = open(half).await?;
    let (class, key) = (&half.task.class.name, &half.keys[0]);
    run(&sql, "BEGIN").await?;
    Ask::new(
        ProbeKind::RolledBack,
        class.as_str(),
        key.as_str(),
        granted.token.as_i64(),
    )
    .by(&granted.grant)
    .put(half, &sql)
    .await?;
    run(&sql, "ROLLBACK").await
}
