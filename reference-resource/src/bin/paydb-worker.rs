//! Does one of paydb's jobs under a lock.

use std::process::ExitCode;

use clap::Parser;
use reference_resource::worker::{self, WorkerOptions};

#[tokio::main]
async fn main() -> ExitCode {
    match worker::run(&WorkerOptions::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paydb-worker: {}", reference_resource::with_causes(&error));
            error.exit_code()
        }
    }
}
