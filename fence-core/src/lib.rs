//! Fencing tokens, claims, admission and deadline arithmetic, without I/O.
