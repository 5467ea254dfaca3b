//! The process that owns what the pause kit starts.

use std::process::ExitCode;

fn main() -> ExitCode {
    pause_kit::reaper::main()
}
