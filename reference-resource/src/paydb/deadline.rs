//! How long a request may take.

use std::time::Duration;

use super::answer::Problem;

/// How long a request waits for the database in one go. Lock waits are bounded below this; it is for a database that does
/// not answer at all.
const DEADLINE: Duration = Duration::from_secs(15);

/// Work that writes nothing unless a later COMMIT does: cut off, it has not happened.
pub(super) async fn in_time<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let outcome = tokio::time::timeout(DEADLINE, work).await;
    outcome.unwrap_or_else(|_| Err(fence_http::Problem::unavailable().into()))
}

/// A COMMIT, or a statement that commits by itself: cut off, it may have happened.
pub(super) async fn commit_in_time<T>(
    commit: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    let outcome = tokio::time::timeout(DEADLINE, commit).await;
    outcome.unwrap_or_else(|_| Err(fence_http::Problem::unknown_outcome().into()))
}
