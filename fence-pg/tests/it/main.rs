//! The guards, against a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod column;
mod column_table;
mod cut;
mod decisions;
mod doctor;
mod enforce;
mod evict;
mod field_actions;
mod field_batch;
mod field_evidence;
mod field_jobs;
mod field_pooler;
mod field_rows;
mod field_tokens;
mod history;
mod install;
mod isolation;
mod key;
mod mark;
mod observe;
mod operate;
mod outcome;
mod owners;
mod protect;
mod race;
mod register;
mod restored;
mod roles;
mod standby;
mod stop;
mod support;
mod waiting;
mod ways;
mod words;
