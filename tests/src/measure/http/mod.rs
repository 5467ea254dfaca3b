//! The HTTP guard: in the kit's scenarios, against malformed requests, against its own document, under a storm, and what it
//! costs.

mod audit;
mod bed;
mod corpus;
mod cost;
mod fuzz;
mod openapi;
mod raw;
mod scenarios;
mod storm;

pub(super) use corpus::corpus;
pub(super) use cost::cost;
pub(super) use openapi::openapi;
pub(super) use scenarios::scenarios;
pub(super) use storm::storm;

/// Whether `--trial` was given: the same on a small scale, whose figure is never a bar's.
fn is_trial() -> bool {
    std::env::args().any(|argument| argument == "--trial")
}

/// The number after `--seed`, or one of this moment.
fn seed() -> Result<u64, super::Failure> {
    let mut arguments = std::env::args()
        .skip_while(|argument| argument != "--seed")
        .skip(1);
    match arguments.next() {
        Some(seed) => Ok(seed.parse().map_err(|_| format!("--seed {seed} is no number"))?),
        None => Ok(std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)?
            .as_secs()),
    }
}
