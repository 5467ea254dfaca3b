//! The tower layer that requires a fencing token and hands the claim to the handler.
