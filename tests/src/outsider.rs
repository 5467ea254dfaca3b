//! Porcupine, from its Go module: a judge by other people, under `tests/porcupine`, which shares no code with the kit.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pause_kit::history::History;
use pause_kit::judge::judge_order_of_all;
use pause_kit::linear::Answer;
use tempfile::TempDir;

/// Why it could not be asked.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The program, built.
pub struct Outsider {
    /// Gone with it.
    _folder: TempDir,
    program: PathBuf,
}

/// What it says of the operations on one key of a history.
#[derive(Clone, Debug)]
pub struct Told {
    /// The file's bare name.
    pub file: String,
    /// The class, then the key. Empty for a log of etcd.
    pub key: [String; 2],
    /// `explained`, `unexplained` or `unknown`.
    pub answer: String,
    /// How long it took.
    pub took: Duration,
}

/// How often the kit and the outsider say the same.
#[derive(Clone, Debug)]
pub struct Compared {
    /// How many histories are judged alike.
    pub same: usize,
    /// How many of these no order explains.
    pub unexplained: usize,
    /// How many histories there are.
    pub all: usize,
    /// What each says where they differ.
    pub differing: Vec<String>,
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (same, all, unexplained) = (self.same, self.all, self.unexplained);
        write!(
            f,
            "{same} of {all} histories alike, {unexplained} of them unexplained"
        )?;
        self.differing.iter().try_for_each(|one| write!(f, "; {one}"))
    }
}

impl Outsider {
    /// Builds the program with the module's own checksums.
    ///
    /// # Errors
    ///
    /// When there is no Go, or the module cannot be had. The text says what to do.
    pub fn build() -> Result<Outsider, Failure> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("porcupine-outsider");
        let mut build = Command::new("go");
        build
            .args(["build", "-mod=readonly", "-o"])
            .arg(&program)
            .arg(".");
        let built = build.current_dir(source()).output();
        let built =
            built.map_err(|error| format!("go was not started: {error}; install Go 1.25 or newer"))?;
        if !built.status.success() {
            let why = String::from_utf8_lossy(&built.stderr).into_owned();
            return Err(format!("tests/porcupine is not built: {why}").into());
        }
        Ok(Outsider {
            _folder: folder,
            program,
        })
    }

    /// Judges every key of these histories.
    ///
    /// # Errors
    ///
    /// When a file is not whole, or nothing that it understands.
    pub fn histories(&self, files: &[PathBuf]) -> Result<Vec<Told>, Failure> {
        let lines = self.run("histories", files)?;
        lines.iter().map(|line| told(line)).collect()
    }

    /// Judges Jepsen's logs of etcd.
    ///
    /// # Errors
    ///
    /// When one cannot be read.
    pub fn etcd(&self, files: &[PathBuf]) -> Result<Vec<Told>, Failure> {
        let lines = self.run("etcd", files)?;
        lines.iter().map(|line| told(line)).collect()
    }

    /// Judges every history of a folder of evidence, as the kit does.
    ///
    /// # Errors
    ///
    /// When one cannot be read, by either.
    pub fn compare(&self, folder: &Path) -> Result<Compared, Failure> {
        let items = fs::read_dir(folder)?;
        let files: Result<Vec<PathBuf>, _> = items.map(|item| item.map(|item| item.path())).collect();
        let mut files = files?;
        files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
        files.sort();
        let mut theirs: BTreeMap<String, Answer> = BTreeMap::new();
        for told in self.histories(&files)? {
            let worst = theirs.entry(told.file).or_insert(Answer::Explained);
            match told.answer.as_str() {
                "unexplained" => *worst = Answer::Unexplained,
                "unknown" if *worst == Answer::Explained => *worst = Answer::Unknown,
                _ => {}
            }
        }
        let mut compared = Compared {
            same: 0,
            unexplained: 0,
            all: files.len(),
            differing: Vec::new(),
        };
        for file in &files {
            let history = History::read(BufReader::new(File::open(file)?))?;
            let ours = judge_order_of_all(&history).0;
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let told = theirs.get(&name).copied().unwrap_or(Answer::Explained);
            if ours == told {
                compared.same += 1;
                compared.unexplained += usize::from(ours == Answer::Unexplained);
            } else {
                let words = format!("{name}: {}, Porcupine: {}", word(ours), word(told));
                compared.differing.push(words);
            }
        }
        Ok(compared)
    }

    fn run(&self, mode: &str, files: &[PathBuf]) -> Result<Vec<String>, Failure> {
        let output = Command::new(&self.program).arg(mode).args(files).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// The outsider's word for an answer.
pub fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Explained => "explained",
        Answer::Unexplained => "unexplained",
        Answer::Unknown => "unknown",
    }
}

/// The module's folder in Go's own cache, with the files that its tests read.
///
/// # Errors
///
/// When the module cannot be had.
pub fn module() -> Result<PathBuf, Failure> {
    let mut list = Command::new("go");
    list.args(["mod", "download", "-json", "github.com/anishathalye/porcupine"]);
    let output = list.current_dir(source()).output()?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let folder = found["Dir"].as_str();
    folder
        .map(PathBuf::from)
        .ok_or_else(|| format!("the module is not there: {}", found["Error"]).into())
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("porcupine")
}

fn told(line: &str) -> Result<Told, Failure> {
    let parts: Vec<&str> = line.split('\t').collect();
    let (file, key, answer, seconds) = match parts[..] {
        [file, class, key, answer, seconds, _] => (file, [class, key], answer, seconds),
        [file, answer, seconds] => (file, ["", ""], answer, seconds),
        _ => return Err(format!("not understood: {line}").into()),
    };
    Ok(Told {
        file: file.to_owned(),
        key: key.map(str::to_owned),
        answer: answer.to_owned(),
        took: Duration::from_secs_f64(seconds.parse()?),
    })
}
