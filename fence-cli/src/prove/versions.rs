//! Versions of etcd that a proof should not be run on.

use fence_lock::VersionWarning;

/// What is known about an etcd of this version, if anything.
pub(super) fn warning(version: &str) -> Option<String> {
    VersionWarning::of(version).map(|warning| format!("etcd {version} {warning}"))
}
