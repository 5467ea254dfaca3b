//! Every exit code of the command, in one place.

use std::error::Error;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::config::ConfigError;
use crate::say;

/// The table at the end of `fence --help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0      proven; or the command did what it was asked
  1      violated: a stale write was let in; with --danger-unfenced: every twin corrupts; or a register is not in order,
         doctor found something, a key is still held, or a lock store is sealed
  2      wrong arguments or a wrong file; nothing was shown
  3      inconclusive: void, blind or unknown; nothing was shown either way
  4      a service could not be found, reached or started, or was too busy: nothing was changed
  128+n  ended by signal n: 130 for SIGINT, 143 for SIGTERM
`fence hold` has codes of its own, beside those of what it runs: see `fence hold --help`";

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// 0: proven, or done.
    Done,
    /// 1: an invariant was broken.
    Violated,
    /// 1: a register is not in order.
    OutOfOrder,
    /// 1: something was found that is not as it should be.
    Found,
    /// 3: nothing was shown either way.
    Inconclusive,
    /// 128 + n: a signal ended it.
    Signal(u8),
    /// What `fence hold` ran ended with this code.
    Command(u8),
    /// 123: a lock was lost before what ran under it had ended.
    Lost,
    /// 124: a lock was not granted in time.
    NotGranted,
}

impl Ending {
    fn code(self) -> u8 {
        match self {
            Ending::Done => 0,
            Ending::Violated | Ending::OutOfOrder | Ending::Found => 1,
            Ending::Inconclusive => 3,
            Ending::Signal(number) => number.saturating_add(128),
            Ending::Command(code) => code,
            Ending::Lost => 123,
            Ending::NotGranted => 124,
        }
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 2: the arguments or a file are wrong. The error names the wrong word and the right form.
    Usage(Box<dyn Error>),
    /// 4: a service could not be found, reached or started.
    Service(Box<dyn Error>),
}

impl Failure {
    /// A fault in arguments or files.
    pub(crate) fn usage(error: impl Into<Box<dyn Error>>) -> Failure {
        Failure::Usage(error.into())
    }

    /// A service at fault.
    pub(crate) fn service(error: impl Into<Box<dyn Error>>) -> Failure {
        Failure::Service(error.into())
    }

    /// What a program that asked for JSON is told: the exit code, the words, and the place where there is one.
    pub(crate) fn json(&self) -> Value {
        let (Failure::Usage(error) | Failure::Service(error)) = self;
        let place = error.downcast_ref::<ConfigError>().map(ConfigError::place);
        json!({ "error": {
            "code": self.code(),
            "message": chain(error.as_ref()),
            "file": place.map(|(file, _)| file),
            "line": place.and_then(|(_, line)| line),
        } })
    }

    /// What went wrong, with the whole chain of its sources.
    pub(crate) fn words(&self) -> String {
        let (Failure::Usage(error) | Failure::Service(error)) = self;
        chain(error.as_ref())
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Service(_) => 4,
        }
    }
}

/// Says on standard error what failed, with the whole chain of its sources, and gives the exit code.
pub(crate) fn report(result: Result<Ending, Failure>) -> ExitCode {
    match result {
        Ok(ending) => ExitCode::from(ending.code()),
        Err(failure) => {
            let (Failure::Usage(error) | Failure::Service(error)) = &failure;
            say::remark(&format!("error: {}", chain(error.as_ref())));
            ExitCode::from(failure.code())
        }
    }
}

/// The same for `fence hold`, whose own failures have one code, since every other may be its command's.
pub(crate) fn report_hold(result: Result<Ending, Failure>) -> ExitCode {
    let failed = result.is_err();
    let code = report(result);
    if failed { ExitCode::from(HOLD_FAILED) } else { code }
}

/// What `fence hold` ends with when it has run nothing.
pub(crate) const HOLD_FAILED: u8 = 125;

/// An error and its sources in one line, outermost first.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let words = source.to_string();
        // Some libraries say their source's words themselves.
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_that_the_help_lists() {
        assert_eq!(Ending::Done.code(), 0);
        assert_eq!(Ending::Violated.code(), 1);
        assert_eq!(Ending::OutOfOrder.code(), 1);
        assert_eq!(Failure::usage("x").code(), 2);
        assert_eq!(Ending::Inconclusive.code(), 3);
        assert_eq!(Failure::service("x").code(), 4);
        assert_eq!(Ending::Signal(2).code(), 130);
        assert_eq!(Ending::Signal(15).code(), 143);
        assert_eq!(Ending::Command(7).code(), 7);
        assert_eq!(Ending::Lost.code(), 123);
        assert_eq!(Ending::NotGranted.code(), 124);
    }
}
