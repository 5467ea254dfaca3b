//! Replacing bytes on their way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::log::{Direction, Flow, Replaced};

/// A pattern and what takes its place, of the same length, in one direction of every connection.
#[derive(Debug, Clone)]
pub struct Replacement {
    direction: Direction,
    pattern: Vec<u8>,
    with: Vec<u8>,
    fired: Arc<AtomicU64>,
}

/// Why a replacement cannot be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReplacementError {
    /// The pattern is empty. Name the bytes to look for.
    #[error("the pattern to replace is empty")]
    Empty,
    /// The lengths differ, which would move every later byte and break the protocol's own lengths. Pad the replacement.
    #[error("the pattern has {pattern} bytes and its replacement {with}: they must be of equal length")]
    UnequalLength {
        /// The pattern's length in bytes.
        pattern: usize,
        /// The replacement's length in bytes.
        with: usize,
    },
}

impl Replacement {
    /// Replaces `pattern` by `with` in `direction`. What stands in the place of a pattern is not searched again; where
    /// several replacements match at one byte, the one that was added first wins.
    ///
    /// # Errors
    ///
    /// [`ReplacementError`] when the pattern is empty or the lengths differ.
    pub fn new(
        direction: Direction,
        pattern: impl Into<Vec<u8>>,
        with: impl Into<Vec<u8>>,
    ) -> Result<Self, ReplacementError> {
        let (pattern, with) = (pattern.into(), with.into());
        if pattern.is_empty() {
            return Err(ReplacementError::Empty);
        }
        if pattern.len() != with.len() {
            return Err(ReplacementError::UnequalLength {
                pattern: pattern.len(),
                with: with.len(),
            });
        }
        Ok(Self {
            direction,
            pattern,
            with,
            fired: Arc::new(AtomicU64::new(0)),
        })
    }

    pub(crate) fn handle(&self) -> ReplacementHandle {
        ReplacementHandle {
            fired: Arc::clone(&self.fired),
        }
    }

    /// The same rule, to be counted by itself.
    #[must_use]
    pub fn anew(&self) -> Replacement {
        Replacement {
            fired: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether this is the rule of that handle.
    pub(crate) fn is(&self, handle: &ReplacementHandle) -> bool {
        Arc::ptr_eq(&self.fired, &handle.fired)
    }

    fn fits(&self, bytes: &[u8]) -> Fit {
        if bytes.starts_with(&self.pattern) {
            Fit::Whole
        } else if self.pattern.starts_with(bytes) {
            Fit::Beginning
        } else {
            Fit::No
        }
    }
}

enum Fit {
    Whole,
    Beginning,
    No,
}

/// Tells how often a replacement has fired.
#[derive(Debug, Clone)]
pub struct ReplacementHandle {
    fired: Arc<AtomicU64>,
}

impl ReplacementHandle {
    /// How often the pattern was replaced so far, over all connections.
    #[must_use]
    pub fn fired(&self) -> u64 {
        self.fired.load(Ordering::Acquire)
    }
}

/// Applies the rules to the bytes from `decided` on and returns up to where the flow is now decided. Bytes that may be the
/// beginning of a pattern stay undecided, at most one pattern's length less one, unless this is the `last` look.
pub(crate) fn apply(
    rules: &[Replacement],
    direction: Direction,
    flow: &mut Flow,
    decided: usize,
    last: bool,
) -> usize {
    let rules: Vec<&Replacement> = rules.iter().filter(|rule| rule.direction == direction).collect();
    if rules.is_empty() {
        return flow.bytes.len();
    }
    let mut at = decided;
    'bytes: while at < flow.bytes.len() {
        let earlier =
            |replaced: &&Replaced| (replaced.offset..replaced.offset + replaced.length).contains(&at);
        if let Some(replaced) = flow.replaced.iter().find(earlier) {
            at = replaced.offset + replaced.length;
            continue;
        }
        for rule in &rules {
            match rule.fits(&flow.bytes[at..]) {
                Fit::Whole => {
                    let length = rule.with.len();
                    flow.bytes[at..at + length].copy_from_slice(&rule.with);
                    flow.replaced.push(Replaced {
                        offset: at,
                        length,
                        at: Instant::now(),
                    });
                    rule.fired.fetch_add(1, Ordering::AcqRel);
                    at += length;
                    continue 'bytes;
                }
                Fit::Beginning if !last => return at,
                Fit::Beginning | Fit::No => {}
            }
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_of_another_length_is_refused() {
        let refused = Replacement::new(Direction::ToResource, "2000", "0").unwrap_err();
        assert_eq!(refused, ReplacementError::UnequalLength { pattern: 4, with: 1 });
        assert_eq!(
            refused.to_string(),
            "the pattern has 4 bytes and its replacement 1: they must be of equal length"
        );
        assert_eq!(
            Replacement::new(Direction::ToHolder, "", "").unwrap_err(),
            ReplacementError::Empty
        );
    }

    #[test]
    fn a_beginning_that_turns_out_to_be_none_gives_way_to_a_match_inside_it() {
        let rules = [Replacement::new(Direction::ToResource, "aab", "xyz").unwrap()];
        let mut flow = Flow {
            bytes: b"aa".to_vec(),
            ..Flow::default()
        };
        assert_eq!(apply(&rules, Direction::ToResource, &mut flow, 0, false), 0);
        flow.bytes.extend_from_slice(b"ab");
        assert_eq!(apply(&rules, Direction::ToResource, &mut flow, 0, false), 4);
        assert_eq!(flow.bytes, b"axyz");
        assert_eq!(rules[0].handle().fired(), 1);
    }
}
