//! What `./dev dist` makes: complete, the same twice, and able to run where there is nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use super::run::root;
use super::{Failure, Figure};

/// How large the executable may be: 64 MiB.
const LARGEST: u64 = 64 << 20;

pub(crate) fn dist() -> Result<Figure, Failure> {
    let archive = build()?;
    let first = sha256(&archive)?;
    let folder = PathBuf::from(archive.display().to_string().trim_end_matches(".tar.gz"));
    let fence = folder.join("fence");
    let sums = listed(&folder)?;
    let names: BTreeSet<String> = files(&folder)?;
    let size = fs::metadata(&fence)?.len();
    let legs: Vec<(&str, Result<bool, Failure>)> = vec![
        ("every file is there", Ok(names == wanted()?)),
        (
            "SHA256SUMS lists each file as it is",
            right(&folder, &sums, &names),
        ),
        ("the archive's own sum is right", archive_sum(&archive, &first)),
        ("the archive holds the same files", unpacked(&archive, &sums)),
        (
            "fence needs no interpreter and no library",
            Ok(!has_interpreter(&fs::read(&fence)?)?),
        ),
        ("fence names no folder of this machine", nameless(&fence)),
        ("fence is no larger than 64 MiB", Ok(size <= LARGEST)),
        ("fence runs in an empty root", in_an_empty_root(&fence)),
        ("fence finds a host by its name", finds_a_host(&fence)),
        ("fence proves a scenario", proves(&fence)),
        (
            "built again it is the same archive",
            build().and_then(|again| Ok(sha256(&again)? == first)),
        ),
    ];
    let all = legs.len();
    let mut held = 0;
    for (what, outcome) in legs {
        match outcome {
            Ok(true) => held += 1,
            Ok(false) => println!("NOT: {what}"),
            Err(error) => println!("NOT: {what}: {error}"),
        }
    }
    Ok(Figure {
        line: format!(
            "{held} of {all} hold, {} files, fence has {:.1} MiB",
            names.len(),
            size as f64 / f64::from(1 << 20)
        ),
        reached: held == all,
    })
}

/// Runs `./dev dist`, and gives the archive that it names last.
fn build() -> Result<PathBuf, Failure> {
    let output = Command::new(root().join("dev")).arg("dist").output()?;
    let said = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!(
            "./dev dist: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    let archive = said.lines().last().ok_or("./dev dist names no archive")?;
    Ok(root().join(archive))
}

/// The names that a person may count on.
fn wanted() -> Result<BTreeSet<String>, Failure> {
    let mut wanted: BTreeSet<String> = [
        "fence",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY.txt",
        "SHA256SUMS",
        "defeat/admit_everything.sql",
    ]
    .map(str::to_owned)
    .into();
    for item in fs::read_dir(root().join("fence-pg/sql"))? {
        wanted.insert(format!("sql/{}", item?.file_name().to_string_lossy()));
    }
    for page in ["minting.md", "reading-a-proof.md", "targets.md"] {
        wanted.insert(format!("docs/{page}"));
    }
    Ok(wanted)
}

fn files(folder: &Path) -> Result<BTreeSet<String>, Failure> {
    let mut found = BTreeSet::new();
    for item in fs::read_dir(folder)? {
        let item = item?;
        let name = item.file_name().to_string_lossy().into_owned();
        match item.path().is_dir() {
            true => found.extend(files(&item.path())?.iter().map(|inner| format!("{name}/{inner}"))),
            false => drop(found.insert(name)),
        }
    }
    Ok(found)
}

/// The lines of `SHA256SUMS`: sum and name.
fn listed(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text = fs::read_to_string(folder.join("SHA256SUMS"))?;
    let pair = |line: &str| {
        line.split_once("  ")
            .map(|(sum, name)| (sum.to_owned(), name.to_owned()))
    };
    text.lines()
        .map(|line| pair(line).ok_or_else(|| format!("no sum: {line}").into()))
        .collect()
}

fn right(folder: &Path, sums: &[(String, String)], names: &BTreeSet<String>) -> Result<bool, Failure> {
    for (sum, name) in sums {
        if sha256(&folder.join(name))? != *sum {
            return Err(format!("{name} has another sum").into());
        }
    }
    let mut summed: BTreeSet<String> = sums.iter().map(|(_, name)| name.clone()).collect();
    summed.insert("SHA256SUMS".to_owned());
    Ok(summed == *names)
}

fn archive_sum(archive: &Path, sum: &str) -> Result<bool, Failure> {
    let beside = archive.parent().ok_or("the archive stands in no folder")?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    Ok(listed(beside)? == [(sum.to_owned(), name.into_owned())])
}

fn unpacked(archive: &Path, sums: &[(String, String)]) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--strip-components=1", "--directory"])
        .arg(folder.path());
    let status = tar.arg("--file").arg(archive).status()?;
    Ok(status.success() && right(folder.path(), sums, &files(folder.path())?)?)
}

/// Whether an executable names a program that has to load it: the segment `PT_INTERP` of a 64-bit, little-endian ELF file.
fn has_interpreter(elf: &[u8]) -> Result<bool, Failure> {
    let number = |at: usize, length: usize| -> Result<usize, Failure> {
        let bytes = elf.get(at..at + length).ok_or("the ELF file is cut short")?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    if elf.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("no 64-bit ELF file".into());
    }
    let (table, entry, entries) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..entries {
        if number(table + index * entry, 4)? == 3 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nameless(fence: &Path) -> Result<bool, Failure> {
    let bytes = fs::read(fence)?;
    let here = root().canonicalize()?.display().to_string();
    let home = std::env::var("HOME").unwrap_or_default();
    let names = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    if names(&format!("{here}/")) {
        return Err(format!("it names {here}").into());
    }
    Ok(home.len() < 2 || !names(&format!("{home}/.cargo")))
}

/// Runs the executable with nothing around it but itself.
fn in_an_empty_root(fence: &Path) -> Result<bool, Failure> {
    let empty = tempfile::tempdir()?;
    fs::copy(fence, empty.path().join("fence"))?;
    let run = |arguments: &[&str]| -> Result<String, Failure> {
        let mut command = match rustix::process::geteuid().is_root() {
            true => Command::new("chroot"),
            false => {
                let mut unshare = Command::new("unshare");
                unshare.args(["--map-root-user", "chroot"]);
                unshare
            }
        };
        let output = command.arg(empty.path()).arg("/fence").args(arguments).output()?;
        if !output.status.success() {
            return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    let version = run(&["--version"])?;
    let token = run(&["token", "281474976710679"])?;
    Ok(version == format!("fence {}\n", env!("CARGO_PKG_VERSION")) && token.contains("revision  23"))
}

/// Nobody listens there, which it can only find out once it has the address.
fn finds_a_host(fence: &Path) -> Result<bool, Failure> {
    let port = pause_kit::services::free_port()?;
    let mut init = Command::new(fence);
    init.args(["epoch", "init", "--tier", "entity", "--etcd"]);
    let output = init.arg(format!("http://localhost:{port}")).output()?;
    Ok(output.status.code() == Some(4)
        && String::from_utf8_lossy(&output.stderr).contains("Connection refused"))
}

/// Proves paydb, whose executables this build has made, with the executable from the archive.
fn proves(fence: &Path) -> Result<bool, Failure> {
    let bin = tempfile::tempdir()?;
    fs::copy(fence, bin.path().join("fence"))?;
    for name in ["paydb", "paydb-worker"] {
        fs::copy(root().join("target/release").join(name), bin.path().join(name))?;
    }
    let mut prove = Command::new(bin.path().join("fence"));
    prove.args(["prove", "--scenario", "S02", "--scenario", "S26", "--seed", "7"]);
    let output = prove.current_dir(root()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        return Err(format!(
            "{}\n{said}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(true)
}

fn sha256(file: &Path) -> Result<String, Failure> {
    Ok(hex::encode(Sha256::digest(fs::read(file)?)))
}
