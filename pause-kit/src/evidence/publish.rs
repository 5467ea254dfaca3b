//! A folder that is replaced whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};

use super::{Evidence, SCHEMA};
use crate::timeline;

const MAIN: &str = "evidence.json";
/// The picture of it, which is drawn again from the rest.
const PICTURE: &str = timeline::FILE;

/// Where a folder of evidence stands, or will stand.
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
}

impl Place {
    /// Looks whether `folder` can be replaced: its parent exists, and it is absent, empty, or holds an `evidence.json` that
    /// can be read, the histories that this names, `timeline.html`, and nothing else. Nothing is written.
    ///
    /// # Errors
    ///
    /// [`PublishError`] when something else stands there, or its parent cannot be written to.
    pub fn check(folder: &Path) -> Result<Place, PublishError> {
        let at = |source| PublishError::Io {
            path: folder.to_owned(),
            source,
        };
        let folder = std::path::absolute(folder).map_err(at)?;
        let foreign = |entry: &str| PublishError::NotEvidence {
            path: folder.clone(),
            entry: entry.to_owned(),
        };
        match std::fs::symlink_metadata(&folder) {
            Ok(found) if found.is_dir() => {
                if let Some(entry) = foreign_entry(&folder).map_err(at)? {
                    return Err(foreign(&entry));
                }
            }
            Ok(_) => return Err(PublishError::NotFolder { path: folder }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(error)),
        }
        let parent = folder.parent().filter(|_| folder.file_name().is_some());
        let parent = parent.ok_or_else(|| PublishError::NotFolder { path: folder.clone() })?;
        access(parent, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| at(error.into()))?;
        Ok(Place { folder })
    }

    /// Begins a new folder beside the place.
    ///
    /// # Errors
    ///
    /// [`PublishError`] as for [`check`](Place::check): the place may have changed since.
    pub fn prepare(&self) -> Result<Publication, PublishError> {
        let Place { folder } = Place::check(&self.folder)?;
        let parent = folder.parent().expect("a place that was checked has a parent");
        let name = folder.file_name().expect("a place that was checked has a name");
        let staging = tempfile::Builder::new()
            .prefix(&format!("{}.", name.to_string_lossy()))
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(parent)
            .map_err(|source| PublishError::Io {
                path: parent.to_owned(),
                source,
            })?;
        Ok(Publication {
            place: folder,
            staging,
        })
    }
}

/// A new folder of evidence, written beside the place where it will stand, and put there in one step.
///
/// Until [`commit`](Publication::commit) the old folder stands as it was; dropped before, nothing is left of the new one.
#[derive(Debug)]
pub struct Publication {
    place: PathBuf,
    staging: tempfile::TempDir,
}

impl Publication {
    /// Writes one file of the new folder.
    ///
    /// # Errors
    ///
    /// [`PublishError::Io`] when it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), PublishError> {
        let path = self.staging.path().join(name);
        let written = std::fs::File::create(&path).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        written.map_err(|source| PublishError::Io { path, source })
    }

    /// Writes `evidence.json`, then puts the new folder in its place in one step. The old one is removed after that.
    ///
    /// # Errors
    ///
    /// [`PublishError`] when something cannot be written or renamed, or something else than evidence has come to stand in
    /// the place; what stood there then stands as it was.
    pub fn commit(self, evidence: &Evidence) -> Result<PathBuf, PublishError> {
        self.write(MAIN, &evidence.to_text())?;
        Place::check(&self.place)?;
        let new = self.staging.path();
        put_in_place(new, &self.place).map_err(|source| PublishError::Io {
            path: self.place.clone(),
            source,
        })?;
        Ok(self.place)
    }
}

/// The first entry, by name, that is neither `evidence.json`, of this form or an older one, nor a history that it names, nor
/// their picture. An `evidence.json` that cannot be read is foreign itself, once nothing else is: it tells of nobody else's
/// work.
fn foreign_entry(folder: &Path) -> io::Result<Option<String>> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    if entries.is_empty() {
        return Ok(None);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let text = match std::fs::read(folder.join(MAIN)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
        Err(_) => Vec::new(),
    };
    let evidence: Option<Evidence> = serde_json::from_slice(&text)
        .ok()
        .filter(|evidence: &Evidence| evidence.schema <= SCHEMA);
    let own = evidence.as_ref().map(Evidence::histories).unwrap_or_default();
    for entry in &entries {
        let name = entry.file_name();
        let is_picture = name == PICTURE && timeline::is_page(&entry.path())?;
        let is_own = name == MAIN || is_picture || own.iter().any(|history| name == *history);
        if !is_own || !entry.file_type()?.is_file() {
            return Ok(Some(name.to_string_lossy().into_owned()));
        }
    }
    Ok(evidence.is_none().then(|| MAIN.to_owned()))
}

/// After this, `new` holds what stood in `place`, or nothing.
fn put_in_place(new: &Path, place: &Path) -> io::Result<()> {
    match renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::NOENT) => std::fs::rename(new, place),
        // A file system that cannot exchange: the old folder goes aside first. A crash between the two leaves no folder
        // in the place, and the old one, whole, beside it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let aside = new.with_extension("old");
            std::fs::rename(place, &aside)?;
            std::fs::rename(new, place).inspect_err(|_| {
                // Best effort: the error itself is what the caller must see.
                let _ = std::fs::rename(&aside, place);
            })?;
            std::fs::remove_dir_all(aside)
        }
        Err(error) => Err(error.into()),
    }
}

/// The evidence could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The place holds something that no run wrote, and is left alone. Name another folder, or empty this one.
    #[error(
        "{} holds \"{entry}\", which is not a run's evidence, and is left alone; name another folder with --out, or empty this one",
        path.display()
    )]
    NotEvidence {
        /// The place.
        path: PathBuf,
        /// The first entry that is not ours.
        entry: String,
    },
    /// The place is no folder, or cannot be one. Name a folder.
    #[error(
        "{} is no folder that could be replaced, and is left alone; name one with --out that is new, empty or holds evidence",
        path.display()
    )]
    NotFolder {
        /// The place.
        path: PathBuf,
    },
    /// A file or folder could not be read or written. Make the path writable, or name another folder.
    #[error("cannot write {}", path.display())]
    Io {
        /// What was to be written.
        path: PathBuf,
        /// Why it could not.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{Mode, OFlags, open};

    use super::super::{DefeatedHalf, GuardDigest, HistoryFile, ScenarioEvidence, Verdict};
    use super::*;
    use crate::scenario::ScenarioId;

    /// Evidence that names one history, `SEED.jsonl`.
    fn evidence(seed: u64) -> Evidence {
        let defeated = DefeatedHalf {
            violated: None,
            corruption: None,
            history: HistoryFile {
                history: format!("{seed}.jsonl"),
                sha256: String::new(),
            },
        };
        Evidence {
            schema: SCHEMA,
            seed,
            schedule: String::new(),
            started: String::new(),
            again: None,
            versions: BTreeMap::new(),
            transport: Default::default(),
            guard: GuardDigest {
                sha256: String::new(),
            },
            classes: Vec::new(),
            scenarios: vec![ScenarioEvidence {
                id: ScenarioId::S02,
                class: "app.thing".parse().unwrap(),
                verdict: Verdict::Inconclusive,
                why: None,
                on: None,
                defeated: Some(defeated),
                stops: Vec::new(),
            }],
        }
    }

    fn publish(place: &Path, seed: u64) {
        let publication = Place::check(place).unwrap().prepare().unwrap();
        publication.write(&format!("{seed}.jsonl"), b"{}\n").unwrap();
        publication.commit(&evidence(seed)).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn new_evidence_takes_the_place_of_the_old_with_nothing_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("evidence");
        publish(&place, 1);
        publish(&place, 2);
        assert_eq!(names(&place), ["2.jsonl", "evidence.json"]);
        assert_eq!(names(folder.path()), ["evidence"]);
    }

    #[test]
    fn a_publication_that_is_given_up_leaves_the_old_evidence_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("evidence");
        publish(&place, 1);
        let publication = Place::check(&place).unwrap().prepare().unwrap();
        publication.write("2.jsonl", b"{}\n").unwrap();
        drop(publication);
        assert_eq!(names(&place), ["1.jsonl", "evidence.json"]);
        assert_eq!(names(folder.path()), ["evidence"]);
    }

    #[test]
    fn a_reader_never_sees_a_folder_that_is_missing_or_half_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("evidence");
        publish(&place, 1);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut looks = 0_u32;
                while !done.load(Ordering::Relaxed) {
                    // One descriptor of the folder shows one version of it, whatever happens to its name.
                    let seen = open(&place, OFlags::DIRECTORY, Mode::empty());
                    assert!(seen.is_ok(), "the folder was missing for a moment");
                    looks += 1;
                }
                looks
            });
            // Set also when a publication fails, or the reader would look for ever.
            let setter = SetOnDrop(&done);
            for seed in 2..60 {
                publish(&place, seed);
            }
            drop(setter);
            assert!(reader.join().unwrap() > 0);
        });
    }

    struct SetOnDrop<'a>(&'a AtomicBool);

    impl Drop for SetOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        let error = Place::check(folder.path()).unwrap_err();
        assert!(matches!(error, PublishError::NotEvidence { .. }), "{error}");
        let file = folder.path().join("thesis.txt");
        let error = Place::check(&file).unwrap_err();
        assert!(matches!(error, PublishError::NotFolder { .. }), "{error}");
        assert_eq!(names(folder.path()), ["thesis.txt"]);
    }

    /// What the check says is foreign in the folder.
    fn foreign(place: &Path) -> String {
        match Place::check(place).unwrap_err() {
            PublishError::NotEvidence { entry, .. } => entry,
            error => panic!("{error}"),
        }
    }

    #[test]
    fn a_folder_is_replaced_only_when_its_evidence_accounts_for_every_entry() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("evidence");
        publish(&place, 1);
        for added in ["thesis.txt", "2.jsonl", ".notes"] {
            std::fs::write(place.join(added), "precious").unwrap();
            assert_eq!(foreign(&place), added);
            std::fs::remove_file(place.join(added)).unwrap();
        }
        std::fs::remove_file(place.join("1.jsonl")).unwrap();
        assert!(
            Place::check(&place).is_ok(),
            "a history that is missing is no loss"
        );
        let picture = place.join(timeline::FILE);
        std::fs::write(&picture, "a page of someone else's").unwrap();
        assert_eq!(foreign(&place), timeline::FILE);
        let page = timeline::Drawing::new(evidence(1), BTreeMap::new()).page();
        std::fs::write(&picture, page).unwrap();
        assert!(Place::check(&place).is_ok(), "our own picture is no loss");
        std::fs::create_dir(place.join("1.jsonl")).unwrap();
        assert_eq!(foreign(&place), "1.jsonl", "a folder by a history's name");
    }

    #[test]
    fn a_file_by_the_name_of_evidence_does_not_make_a_folder_ours() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        for text in [
            "",
            "{}",
            "[1]",
            &serde_json::to_string(&evidence(1))
                .unwrap()
                .replace("\"schema\":2", "\"schema\":9"),
        ] {
            write("evidence.json", text);
            assert_eq!(foreign(folder.path()), "evidence.json", "{text}");
        }
        write("thesis.txt", "precious");
        assert_eq!(foreign(folder.path()), "thesis.txt");
    }

    #[test]
    fn what_comes_to_stand_in_the_place_during_a_publication_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("evidence");
        let publication = Place::check(&place).unwrap().prepare().unwrap();
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("thesis.txt"), "precious").unwrap();
        let error = publication.commit(&evidence(1)).unwrap_err();
        assert!(matches!(error, PublishError::NotEvidence { .. }), "{error}");
        assert_eq!(names(&place), ["thesis.txt"]);
        assert_eq!(names(folder.path()), ["evidence"]);
    }
}
