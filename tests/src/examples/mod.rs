//! The examples in other languages, each copied to a folder of its own, as a stranger's project would stand there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Why something could not be tried.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An example.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Its folder under `examples`.
    pub name: &'static str,
    /// The class that it proves.
    pub class: &'static str,
    /// The file with its one line of fencing.
    pub code: &'static str,
    /// What ends that line.
    pub mark: &'static str,
    /// What must be there before it can run, and what to do where it is not.
    needs: &'static [(&'static str, &'static str)],
}

/// Every example.
pub const EXAMPLES: [Example; 2] = [
    Example {
        name: "python-http",
        class: "stock.item",
        code: "stock.py",
        mark: "# the fence",
        needs: &[
            (
                "/usr/bin/python3 -c 'import psycopg'",
                "apt-get install python3-psycopg",
            ),
            ("command -v curl", "apt-get install curl"),
        ],
    },
    Example {
        name: "node-postgres",
        class: "library.document",
        code: "publish.js",
        mark: "// the fence",
        needs: &[
            ("command -v node", "apt-get install nodejs npm"),
            (
                "test -d examples/node-postgres/node_modules/pg",
                "npm ci, in examples/node-postgres",
            ),
        ],
    },
];

/// A copy of an example, with the guard's SQL where its `fence.toml` looks for it.
pub struct Copy {
    example: Example,
    folder: TempDir,
}

/// What `fence prove` made of it.
#[derive(Debug)]
pub struct Proved {
    /// Its exit code.
    pub code: Option<i32>,
    /// All that it printed.
    pub text: String,
    /// `evidence.json`, where it wrote one; else null.
    pub evidence: Value,
}

impl Example {
    /// Copies it.
    ///
    /// # Errors
    ///
    /// When something that it needs is missing, with what to do; or when a file cannot be copied.
    pub fn copy(self) -> Result<Copy, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (look, fix) in self.needs {
            let found = Command::new("sh")
                .args(["-c", look])
                .current_dir(&root)
                .output()?;
            if !found.status.success() {
                return Err(format!(
                    "examples/{} needs what `{look}` looks for: {fix}; ./dev test does",
                    self.name
                )
                .into());
            }
        }
        let folder = tempfile::tempdir()?;
        let example = Path::new("examples").join(self.name);
        for part in [example.as_path(), Path::new("fence-pg/sql")] {
            copy_tree(&root.join(part), &folder.path().join(part))?;
        }
        Ok(Copy {
            example: self,
            folder,
        })
    }
}

impl Copy {
    /// The folder of its `fence.toml`.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("examples").join(self.example.name)
    }

    /// Takes its one line of fencing out.
    ///
    /// # Errors
    ///
    /// When there is not exactly one such line.
    pub fn without_fence(self) -> Result<Copy, Failure> {
        let file = self.path().join(self.example.code);
        let text = fs::read_to_string(&file)?;
        let (fence, rest): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.ends_with(self.example.mark));
        if fence.len() != 1 {
            return Err(format!("{} has {} lines of fencing", file.display(), fence.len()).into());
        }
        fs::write(&file, rest.join("\n") + "\n")?;
        Ok(self)
    }

    /// Replaces a text of one of its files, which must hold it once.
    ///
    /// # Errors
    ///
    /// When the file does not hold it once.
    pub fn with(self, file: &str, sound: &str, fault: &str) -> Result<Copy, Failure> {
        let path = self.path().join(file);
        let text = fs::read_to_string(&path)?;
        let times = text.matches(sound).count();
        if times != 1 {
            return Err(format!("{file} holds {sound:?} {times} times").into());
        }
        fs::write(&path, text.replace(sound, fault))?;
        Ok(self)
    }

    /// Runs `fence prove` in it, as its owner would.
    ///
    /// # Errors
    ///
    /// When it cannot be run. What it finds is no error.
    pub fn prove(&self, fence: &Path, arguments: &[&str]) -> Result<Proved, Failure> {
        let out = self.folder.path().join("evidence");
        let mut prove = Command::new(fence);
        prove.arg("prove").args(arguments).arg("--out").arg(&out);
        let output = prove.current_dir(self.path()).output()?;
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let evidence = fs::read(out.join("evidence.json")).unwrap_or_default();
        Ok(Proved {
            code: output.status.code(),
            text: format!("{}{}", shown(&output.stdout), shown(&output.stderr)),
            evidence: serde_json::from_slice(&evidence).unwrap_or_default(),
        })
    }
}

impl Proved {
    /// Whether every scenario with a twin was proven, the late write refused as stale, and corrupt without the guard; and
    /// every control held.
    pub fn is_proven(&self) -> bool {
        let refused = |outcome: &str| outcome.split("; ").all(|one| one == "REF");
        let proven = |scenario: &Value| match is_control(scenario) {
            true => scenario["verdict"] == "held",
            false => {
                let broken = scenario["defeated"]["violated"].as_array();
                scenario["verdict"] == "proven"
                    && scenario["on"]["outcome"].as_str().is_some_and(refused)
                    && broken.is_some_and(|broken| !broken.is_empty())
            }
        };
        self.code == Some(0) && self.scenarios().all(proven) && self.has_twins()
    }

    /// Whether every scenario with a twin was violated, by a late write that was accepted.
    pub fn is_violated(&self) -> bool {
        let violated = |scenario: &Value| {
            let broken = scenario["on"]["violated"].as_array().into_iter().flatten();
            let mut late = broken.filter_map(|one| one["why"].as_str());
            scenario["verdict"] == "violated"
                && late.any(|why| why.contains("-write-") && why.contains("was accepted although it"))
        };
        let mut twins = self.scenarios().filter(|scenario| !is_control(scenario));
        self.code == Some(1) && twins.all(violated) && self.has_twins()
    }

    fn has_twins(&self) -> bool {
        self.scenarios().any(|scenario| !is_control(scenario))
    }

    fn scenarios(&self) -> impl Iterator<Item = &Value> {
        self.evidence["scenarios"].as_array().into_iter().flatten()
    }
}

/// Whether it has no half without the guard.
fn is_control(scenario: &Value) -> bool {
    scenario["defeated"].is_null()
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), Failure> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for item in fs::read_dir(from)? {
            let item = item?;
            copy_tree(&item.path(), &to.join(item.file_name()))?;
        }
    } else {
        fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}
