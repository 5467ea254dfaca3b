//! What `fence.doctor` calls the states that leave a way open.

/// The role that tries owns the guarded table, or may become its owner.
pub(super) const OWNER: &str = "application-owner";
/// A guard's trigger is switched off.
pub(super) const TRIGGER_OFF: &str = "trigger-off";
/// A guard's trigger fires less than ALWAYS.
pub(super) const TRIGGER_NOT_ALWAYS: &str = "trigger-not-always";
/// A guarded table has lost its guard's trigger.
pub(super) const TRIGGER_MISSING: &str = "trigger-missing";
/// A partition that TRUNCATE may empty.
pub(super) const PARTITION: &str = "truncate-unguarded";
/// A table that was a partition of a guarded one.
pub(super) const FORMER_PARTITION: &str = "partition-former";
/// A child of a guarded table that is not guarded.
pub(super) const CHILD: &str = "child-unguarded";
/// The role that tries may create triggers on the guarded table.
pub(super) const TRIGGER_GRANT: &str = "trigger-granted";
/// The role that tries may truncate the guarded table.
pub(super) const TRUNCATE_GRANT: &str = "truncate-granted";
/// The role that tries can be in the replica role.
pub(super) const REPLICA_ROLE: &str = "replica-role";
/// A subscription feeds a guarded table.
pub(super) const SUBSCRIPTION: &str = "subscription";
