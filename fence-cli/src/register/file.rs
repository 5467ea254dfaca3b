//! `risk-register.toml`, which stands beside `fence.toml`.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use fence_core::{ClassName, Day, Risk, RiskError, RiskField, RiskParts, RiskRegister};
use jiff::civil::Date;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use toml::{Spanned, Value};

use super::calendar;
use crate::config::{ConfigError, Lines, text_of};

/// The file's name.
const NAME: &str = "risk-register.toml";

/// The risks that were accepted, and where they stand. Nothing, where there is no such file.
pub(super) struct RegisterFile {
    /// The file.
    pub(super) path: PathBuf,
    /// What it holds.
    pub(super) register: RiskRegister,
    /// The lines of each risk, in the register's order.
    lines: Vec<RiskLines>,
}

/// Where the parts of a risk stand, from 1.
#[derive(Clone, Copy)]
pub(super) struct RiskLines {
    pub(super) class: usize,
    pub(super) accepted_on: usize,
    pub(super) review_by: usize,
}

impl RegisterFile {
    /// Reads the register in this folder.
    pub(super) fn load(folder: &Path) -> Result<RegisterFile, ConfigError> {
        let path = folder.join(NAME);
        let text = match text_of(&path) {
            Err(ConfigError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                String::new()
            }
            text => text?,
        };
        let lines = Lines::new(&path, &text);
        let file: File = toml::from_str(&text).map_err(|error| lines.parse_error(&error))?;
        let mut risks = Vec::new();
        let mut places = Vec::new();
        for entry in &file.risk {
            let line = |span: Range<usize>| lines.line(&span);
            places.push(RiskLines {
                class: line(entry.class.span()),
                accepted_on: line(entry.accepted_on.span()),
                review_by: line(entry.review_by.span()),
            });
            let risk = Risk::new(entry.parts());
            risks.push(risk.map_err(|error| lines.at(entry.span_of(&error), error.to_string()))?);
        }
        let register = RiskRegister::new(risks).map_err(|twice| {
            let first = places[twice.first].class;
            let message = format!("{twice}: first on line {first}; keep one");
            lines.at(file.risk[twice.second].class.span(), message)
        })?;
        Ok(RegisterFile {
            path: path.clone(),
            register,
            lines: places,
        })
    }

    /// Where the parts of this class's risk stand.
    pub(super) fn lines_of(&self, class: &ClassName) -> Option<RiskLines> {
        let risks = self.register.risks().iter();
        let mut found = risks.zip(&self.lines).filter(|(risk, _)| risk.class() == class);
        found.next().map(|(_, lines)| *lines)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, deserialize_with = "entries")]
    risk: Vec<Entry>,
}

/// A list; anything else is told how a list is written.
fn entries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Entry>, D::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<Entry>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list whose entries begin with [[risk]]")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Entry>, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = list.next_element()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    deserializer.deserialize_seq(Entries)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    class: Spanned<ClassName>,
    owner: Spanned<String>,
    reason: Spanned<String>,
    blast_radius: Spanned<String>,
    mitigation: Spanned<String>,
    accepted_on: Spanned<CivilDay>,
    review_by: Spanned<CivilDay>,
}

impl Entry {
    fn parts(&self) -> RiskParts {
        RiskParts {
            class: self.class.get_ref().clone(),
            owner: self.owner.get_ref().clone(),
            reason: self.reason.get_ref().clone(),
            blast_radius: self.blast_radius.get_ref().clone(),
            mitigation: self.mitigation.get_ref().clone(),
            accepted_on: self.accepted_on.get_ref().0,
            review_by: self.review_by.get_ref().0,
        }
    }

    fn span_of(&self, error: &RiskError) -> Range<usize> {
        match error {
            RiskError::SaysNothing { field }
            | RiskError::TooLong { field, .. }
            | RiskError::NotOneLine { field }
            | RiskError::TurnsText { field, .. } => match field {
                RiskField::Owner => self.owner.span(),
                RiskField::Reason => self.reason.span(),
                RiskField::BlastRadius => self.blast_radius.span(),
                RiskField::Mitigation => self.mitigation.span(),
            },
            RiskError::ReviewBeforeAcceptance | RiskError::ReviewTooLate { .. } => self.review_by.span(),
        }
    }
}

/// A day, written as TOML's own date.
struct CivilDay(Day);

impl<'de> Deserialize<'de> for CivilDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CivilDay, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let date = match &value {
            Value::Datetime(instant) if instant.time.is_none() && instant.offset.is_none() => instant.date,
            _ => None,
        };
        let date = date.and_then(|date| {
            let small = |number: u8| i8::try_from(number).ok();
            Date::new(
                i16::try_from(date.year).ok()?,
                small(date.month)?,
                small(date.day)?,
            )
            .ok()
        });
        let form = "a day is a date without quotes and without a time, such as 2026-11-29";
        let date = date.ok_or_else(|| D::Error::custom(format!("{form}; got {value}")))?;
        Ok(CivilDay(calendar::of(date)))
    }
}
