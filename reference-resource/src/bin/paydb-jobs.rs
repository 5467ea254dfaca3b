//! Makes the transfers that paydb has accepted to be made later.

use std::process::ExitCode;

use clap::Parser;
use reference_resource::paydb::{self, JobsOptions};

#[tokio::main]
async fn main() -> ExitCode {
    match paydb::work(JobsOptions::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paydb-jobs: {}", reference_resource::with_causes(&error));
            error.exit_code()
        }
    }
}
