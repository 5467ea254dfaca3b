//! The payments service.

use std::process::ExitCode;

use clap::Parser;
use reference_resource::paydb::{self, Options};

#[tokio::main]
async fn main() -> ExitCode {
    match paydb::run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paydb: {}", reference_resource::with_causes(&error));
            error.exit_code()
        }
    }
}
