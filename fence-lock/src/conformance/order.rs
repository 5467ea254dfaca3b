//! The order of tokens, judged by the suite itself: it must not believe the store under test.

use fence_core::Token;

use super::case::Failure;

/// The tokens of one key, in the order in which they were granted.
#[derive(Debug, Default)]
pub(super) struct Rising {
    last: Option<i64>,
}

impl Rising {
    /// The next grant of the key.
    pub(super) fn granted(&mut self, token: Token) -> Result<(), Failure> {
        let number = token.as_i64();
        if let Some(last) = self.last.replace(number)
            && number <= last
        {
            return Err(Failure::Broken {
                what: format!("{number} was granted after {last}"),
            });
        }
        Ok(())
    }
}
