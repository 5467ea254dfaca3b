//! The statements of the mark guard.

/// Admits one claim; parameters class, key, token, grant id.
pub(crate) const ADMIT: &str = "SELECT fence.admit($1, $2, $3, $4), pg_current_xact_id()::text";
/// The same for several claims; parameters are four arrays.
pub(crate) const ADMIT_MANY: &str = "SELECT fence.admit_many($1, $2, $3, $4), pg_current_xact_id()::text";
/// Raises the mark; parameters as [`ADMIT`].
pub(crate) const RAISE_MARK: &str = "SELECT fence.raise_mark($1, $2, $3, $4), pg_current_xact_id()::text";
/// Rolls back, and begins a transaction as the one before.
pub(crate) const BEGIN_ANEW: &str = "ROLLBACK AND CHAIN";
/// Which transaction a COMMIT would end now. Fails in a failed one.
pub(crate) const STILL_OPEN: &str = "SELECT pg_current_xact_id_if_assigned()::text";
/// Commits, after that look. In a failed transaction the first statement fails, and the second is not run.
pub(crate) const COMMIT: &str = "SELECT pg_current_xact_id_if_assigned()::text; COMMIT";
