//! paydb: a small, honest payments service guarded by fencing tokens, and its workers.
