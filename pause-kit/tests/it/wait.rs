//! A bound on everything that a test awaits.

use std::future::Future;
use std::time::Duration;

/// The outcome of what must come soon.
///
/// # Panics
///
/// When it has not come after ten seconds.
pub(crate) async fn soon<T>(awaited: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), awaited)
        .await
        .expect("what was awaited came within 10 s")
}
