//! What `fence.doctor` calls the states that leave a way open.

/// The role that tries owns a guarded table, or may become its owner.
pub(super) const OWNER: &str = "application-role-owner";
/// A guard's trigger is switched off, or fires less than ALWAYS.
pub(super) const TRIGGER_OFF: &str = "trigger-not-always";
/// A table of a class has lost its trigger, or a class has no guarded table.
pub(super) const UNGUARDED: &str = "unguarded-class";
/// A partition that TRUNCATE may empty.
pub(super) const PARTITION: &str = "partition-without-truncate-guard";
/// A table that was a partition of a guarded one.
pub(super) const FORMER_PARTITION: &str = "former-partition";
/// A child of a guarded table that is not guarded.
pub(super) const CHILD: &str = "inheritance-child";
/// The role that tries may create triggers on a guarded table.
pub(super) const TRIGGER_GRANT: &str = "trigger-grant";
/// The role that tries can be in the replica role.
pub(super) const REPLICA_ROLE: &str = "replica-role";
/// A subscription feeds a guarded table.
pub(super) const SUBSCRIPTION: &str = "subscription";
