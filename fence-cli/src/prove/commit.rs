//! Which commit of the project was proven.

use std::path::Path;
use std::process::{Command, Stdio};

/// The commit that is checked out in this folder, in hexadecimal, with `-dirty` behind it where anything differs from it that
/// the repository does not ignore. Nothing where there is no repository, or no git.
pub(super) fn of(folder: &Path) -> Option<String> {
    let head = git(folder, &["rev-parse", "--verify", "HEAD"])?;
    let changes = git(folder, &["status", "--porcelain"])?;
    let dirty = if changes.is_empty() { "" } else { "-dirty" };
    Some(format!("{}{dirty}", head.trim()))
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let git = git.arg("-C").arg(folder).args(arguments).stdin(Stdio::null());
    let output = git.output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_its_commit_dirty_when_it_differs_and_of_none_before_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let run = |arguments: &[&str]| git(folder, arguments).unwrap();
        assert_eq!(of(folder), None);
        run(&["init", "--quiet"]);
        assert_eq!(of(folder), None);
        std::fs::write(folder.join("a"), "1").unwrap();
        std::fs::write(folder.join(".gitignore"), "b\n").unwrap();
        run(&["add", "."]);
        let author = ["-c", "user.name=n", "-c", "user.email=e@example.invalid"];
        run(&[&author[..], &["commit", "--quiet", "--message", "m"]].concat());
        let clean = of(folder).unwrap();
        assert!(
            clean.len() == 40 && clean.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{clean}"
        );
        std::fs::write(folder.join("b"), "ignored").unwrap();
        assert_eq!(of(folder), Some(clean.clone()));
        std::fs::write(folder.join("c"), "new").unwrap();
        assert_eq!(of(folder), Some(format!("{clean}-dirty")));
    }
}
