//! The risk register: correctness classes that nothing enforces, each owned and due for review.

use std::fmt;

use super::day::{Day, Days};
use crate::name::ClassName;

/// A correctness class that is only advisory, and who answers for that until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk(RiskParts);

/// What a [`Risk`] is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskParts {
    /// The class.
    pub class: ClassName,
    /// Who answers for it.
    pub owner: String,
    /// Why it is not fenced.
    pub reason: String,
    /// What a double holder can damage, and how far.
    pub blast_radius: String,
    /// What makes that rarer, or is done about it afterwards.
    pub mitigation: String,
    /// The day on which the owner accepted it.
    pub accepted_on: Day,
    /// The day by which it is looked at again; on that day it is still accepted.
    pub review_by: Day,
}

impl Risk {
    /// The longest time between acceptance and review.
    pub const LONGEST: Days = Days::new(180);
    /// The most characters in each text.
    pub const MOST_CHARACTERS: usize = 500;

    /// A risk whose texts say something, to be reviewed after it was accepted and within [`Risk::LONGEST`].
    ///
    /// # Errors
    ///
    /// [`RiskError`], the first fault in the order of the fields.
    pub fn new(parts: RiskParts) -> Result<Risk, RiskError> {
        for (field, text) in parts.texts() {
            if !text.chars().any(char::is_alphanumeric) {
                return Err(RiskError::SaysNothing { field });
            }
            let characters = text.chars().count();
            if characters > Risk::MOST_CHARACTERS {
                return Err(RiskError::TooLong { field, characters });
            }
            if text.trim() != text || text.chars().any(breaks_line) {
                return Err(RiskError::NotOneLine { field });
            }
            if let Some(character) = text.chars().find(|character| turns_text(*character)) {
                return Err(RiskError::TurnsText { field, character });
            }
        }
        match parts.review_by.days_after(parts.accepted_on) {
            None => Err(RiskError::ReviewBeforeAcceptance),
            Some(days) if days > Risk::LONGEST => Err(RiskError::ReviewTooLate { days }),
            Some(_) => Ok(Risk(parts)),
        }
    }

    /// The class.
    pub fn class(&self) -> &ClassName {
        &self.0.class
    }

    /// All that was written down.
    pub fn parts(&self) -> &RiskParts {
        &self.0
    }
}

fn breaks_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

fn turns_text(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl RiskParts {
    fn texts(&self) -> [(RiskField, &str); 4] {
        [
            (RiskField::Owner, &self.owner),
            (RiskField::Reason, &self.reason),
            (RiskField::BlastRadius, &self.blast_radius),
            (RiskField::Mitigation, &self.mitigation),
        ]
    }
}

/// A text of a [`Risk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RiskField {
    /// Who answers for it.
    Owner,
    /// Why it is not fenced.
    Reason,
    /// What can be damaged.
    BlastRadius,
    /// What is done about it.
    Mitigation,
}

impl fmt::Display for RiskField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RiskField::Owner => "owner",
            RiskField::Reason => "reason",
            RiskField::BlastRadius => "blast_radius",
            RiskField::Mitigation => "mitigation",
        })
    }
}

/// What is no risk that anybody accepted. Correct the entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RiskError {
    /// The text holds no letter and no digit. Write what the field asks for.
    #[error("{field} says nothing; write it in words")]
    SaysNothing {
        /// The field.
        field: RiskField,
    },
    /// The text is too long for a table. Shorten it, and name the document that has the rest.
    #[error("{field} has {characters} characters; at most {}", Risk::MOST_CHARACTERS)]
    TooLong {
        /// The field.
        field: RiskField,
        /// How many it has.
        characters: usize,
    },
    /// The text begins or ends with a space, or holds a line break or another control character. Write it on one line.
    #[error("{field} is one line, without spaces around it")]
    NotOneLine {
        /// The field.
        field: RiskField,
    },
    /// The text holds a character that sets the direction of what follows, so that it reads as something else than it says.
    /// Leave it out.
    #[error("{field} holds U+{:04X}, which turns the order of what is read; leave it out", u32::from(*character))]
    TurnsText {
        /// The field.
        field: RiskField,
        /// The character.
        character: char,
    },
    /// The review lies before the acceptance. Correct either day.
    #[error("review_by lies before accepted_on")]
    ReviewBeforeAcceptance,
    /// The review is too far away. Bring it forward.
    #[error("review_by lies {days} after accepted_on; at most {}", Risk::LONGEST)]
    ReviewTooLate {
        /// How far.
        days: Days,
    },
}

/// Every risk that was accepted, at most one for each class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RiskRegister(Vec<Risk>);

impl RiskRegister {
    /// A register of these risks, in their order.
    ///
    /// # Errors
    ///
    /// [`DuplicateRisk`] when two are of one class.
    pub fn new(risks: Vec<Risk>) -> Result<RiskRegister, DuplicateRisk> {
        for (second, risk) in risks.iter().enumerate() {
            let same = |other: &Risk| other.class() == risk.class();
            if let Some(first) = risks[..second].iter().position(same) {
                let class = risk.class().clone();
                return Err(DuplicateRisk { class, first, second });
            }
        }
        Ok(RiskRegister(risks))
    }

    /// The risks.
    pub fn risks(&self) -> &[Risk] {
        &self.0
    }

    /// The risk of this class.
    pub fn of(&self, class: &ClassName) -> Option<&Risk> {
        self.0.iter().find(|risk| risk.class() == class)
    }

    /// The risks to be reviewed by `today` plus `within`, the most urgent first; those that are overdue come with them.
    pub fn due(&self, today: Day, within: Days) -> Vec<&Risk> {
        let last = today.plus(within);
        let mut due: Vec<&Risk> = self.0.iter().filter(|risk| risk.0.review_by <= last).collect();
        due.sort_by_key(|risk| risk.0.review_by);
        due
    }
}

/// A class stands on the register twice, so that nobody knows which entry counts. Keep one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class} is on the register twice")]
pub struct DuplicateRisk {
    /// The class.
    pub class: ClassName,
    /// The place of its first entry, from 0.
    pub first: usize,
    /// The place of its second, from 0.
    pub second: usize,
}
