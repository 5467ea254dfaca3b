//! The repository's files, as its rules see them.

use std::path::{Path, PathBuf};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// Every file that git tracks or would track, relative to the root.
pub(crate) fn files() -> Vec<PathBuf> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the repository's files");
    assert!(
        output.status.success(),
        "git ls-files failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let files: Vec<PathBuf> = text
        .lines()
        .map(PathBuf::from)
        .filter(|file| root().join(file).is_file())
        .collect();
    assert!(files.len() > 20, "git lists only {} files", files.len());
    files
}

/// The Rust files of the crates' `src` folders, with their text, comments left out.
pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|end| end == "rs"))
        .filter(|file| {
            file.components()
                .nth(1)
                .is_some_and(|folder| folder.as_os_str() == "src")
        })
        .map(|file| {
            let text = read(&file);
            let code: Vec<&str> = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect();
            (file, code.join("\n"))
        })
        .collect()
}

/// A file's text, by its path from the root.
pub(crate) fn read(file: &Path) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
