//! The file's model, and how it is found and read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fence_core::{ClassName, Days, Enforcement, Purpose, TierName, Ttl};
use pause_kit::target::{ClassProof, Guard, Place, Target};
use serde::Deserialize;
use toml::{Table, Value};

use super::check::{self, Fault, Step};
use super::lines::{ConfigError, Lines, text_of};
use super::tiers::Tier;

/// The file's name.
pub(crate) const NAME: &str = "fence.toml";

/// A `fence.toml`, parsed and checked. Its paths are absolute.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The folder of the file, filled in after parsing.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
    /// The file and its text, to find lines in; filled in after parsing.
    #[serde(skip)]
    source: (PathBuf, String),
    /// The tiers.
    pub(crate) tiers: BTreeMap<TierName, Tier>,
    /// The classes.
    pub(crate) classes: BTreeMap<ClassName, Class>,
    /// What is proven, by name.
    #[serde(default)]
    pub(crate) targets: BTreeMap<String, Target>,
}

/// A class of locks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Class {
    /// What a double holder does.
    pub(crate) purpose: Purpose,
    /// What refuses a stale holder.
    pub(crate) enforcement: Enforcement,
    /// The tier that grants it.
    pub(crate) tier: TierName,
    /// How long a grant lives without renewal.
    #[serde(default)]
    pub(crate) ttl: Ttl,
    /// The guard's form; a fenced class has one.
    pub(crate) guard: Option<Guard>,
    /// How old the proof of a fenced class may be, in days from 1 to 365; 30 where nothing is said.
    pub(crate) proof_max_age_days: Option<u32>,
    /// How it is proven.
    pub(crate) proof: Option<ClassProof>,
}

impl Class {
    /// How old the class's proof may be.
    pub(crate) fn proof_max_age(&self) -> Days {
        Days::new(self.proof_max_age_days.unwrap_or(30))
    }
}

impl Manifest {
    /// Reads the file named, or the first `fence.toml` from the current directory upwards.
    pub(crate) fn load(named: Option<&Path>) -> Result<Manifest, ConfigError> {
        Manifest::read(named, check::all)
    }

    /// The same for a command that takes locks and proves nothing: it needs none of the files that a proof does.
    pub(crate) fn of_locks(named: Option<&Path>) -> Result<Manifest, ConfigError> {
        Manifest::read(named, check::declared)
    }

    fn read(
        named: Option<&Path>,
        check: fn(&Manifest) -> Result<(), Fault>,
    ) -> Result<Manifest, ConfigError> {
        let file = match named {
            Some(file) => file.to_owned(),
            None => find()?,
        };
        let text = text_of(&file)?;
        let lines = Lines::new(&file, &text);
        let mut manifest: Manifest = toml::from_str(&text).map_err(|error| lines.parse_error(&error))?;
        let folder = std::path::absolute(&file).map_err(|source| ConfigError::Read {
            file: file.clone(),
            source,
        })?;
        manifest.folder = folder.parent().expect("a file stands in a folder").to_owned();
        manifest.anchor();
        check(&manifest).map_err(|fault| lines.fault(fault))?;
        manifest.source = (file.clone(), text.clone());
        Ok(manifest)
    }

    /// The value at the end of this way as it was written.
    pub(crate) fn written(&self, way: &[&str]) -> Option<Value> {
        let (_, text) = &self.source;
        let table = text.parse::<Table>().ok()?;
        let whole = Value::Table(table);
        way.iter().try_fold(&whole, |here, key| here.get(*key)).cloned()
    }

    /// The file itself, and the line on which the value at the end of this way stands, or the nearest thing around it.
    pub(crate) fn place(&self, way: &[Step]) -> (&Path, usize) {
        let (file, text) = &self.source;
        (file, Lines::new(file, text).line_of(way))
    }

    /// A fault that only the run could find, on its line.
    pub(crate) fn fault_at(&self, place: &Place, message: impl ToString) -> ConfigError {
        let steps: Vec<Step> = place.steps().iter().map(Step::from).collect();
        self.fault(&steps, message)
    }

    /// A fault at the end of this way.
    pub(crate) fn fault(&self, way: &[Step], message: impl ToString) -> ConfigError {
        let (file, line) = self.place(way);
        ConfigError::Line {
            file: file.to_owned(),
            line,
            message: message.to_string(),
        }
    }

    fn anchor(&mut self) {
        for tier in self.tiers.values_mut() {
            tier.anchor(&self.folder);
        }
        for target in self.targets.values_mut() {
            target.guard_sql = self.folder.join(&target.guard_sql);
            target.defeat_sql = target.defeat_sql.as_ref().map(|file| self.folder.join(file));
            target.folder.clone_from(&self.folder);
        }
    }
}

fn find() -> Result<PathBuf, ConfigError> {
    let from = std::env::current_dir().map_err(|source| ConfigError::Read {
        file: NAME.into(),
        source,
    })?;
    from.ancestors()
        .map(|folder| folder.join(NAME))
        // Whatever has the name is meant: what cannot be read is said, and not passed over for a file further up.
        .find(|file| file.symlink_metadata().is_ok())
        .ok_or(ConfigError::NotFound { from })
}
