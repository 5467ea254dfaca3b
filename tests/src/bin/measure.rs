//! `./dev measure NAME`: one long check; its last line is its figure.

use std::process::ExitCode;

fn main() -> ExitCode {
    fence_tests::measure::main()
}
