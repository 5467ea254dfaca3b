//! Pauses real processes past their lease, records what happened and judges it.
