//! Rules about files and words.

use std::path::Path;

use crate::source::{files, read, root};

/// Above this a file has more than one job. Tests and SQL are read differently and are not counted.
const LINES: usize = 400;

#[test]
fn no_source_file_grows_past_its_one_job() {
    let long: Vec<String> = files()
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "rs"))
        .filter(|file| {
            file.components()
                .nth(1)
                .is_some_and(|folder| folder.as_os_str() == "src")
        })
        .map(|file| {
            (
                file,
                read(file)
                    .split("#[cfg(test)]\nmod tests")
                    .next()
                    .unwrap_or_default()
                    .lines()
                    .count(),
            )
        })
        .filter(|(_, lines)| *lines > LINES)
        .map(|(file, lines)| format!("{} has {lines} lines", file.display()))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn the_documents_links_lead_somewhere() {
    let mut links = 0;
    for file in files()
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "md"))
    {
        let text = read(file);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("http") || target.starts_with('#') || target.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let path = target.split('#').next().unwrap_or_default();
            let found = root().join(file).parent().unwrap().join(path).exists();
            assert!(
                found,
                "{} links to {target}, which does not exist",
                file.display()
            );
        }
    }
    assert!(links > 0, "no document links to anything");
}

#[test]
fn the_project_names_no_machine_and_no_registry() {
    let words = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("crates", ".io"),
        concat!("proxy.", "golang"),
        concat!("pypi", ".org"),
        concat!("static.", "crates"),
    ];
    for file in files() {
        if file == Path::new("Cargo.lock") || file.starts_with("target") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else {
            continue;
        };
        for word in words {
            assert!(!text.contains(word), "{} says {word}", file.display());
        }
    }
}

#[test]
fn no_lint_is_silenced_without_a_reason() {
    for (file, code) in crate::source::sources() {
        assert!(
            !code.contains("#[allow("),
            "{}: use #[expect(lint, reason = \"…\")]",
            file.display()
        );
        for expect in code.split("#[expect(").skip(1) {
            let attribute = expect.split(")]").next().unwrap_or_default();
            assert!(
                attribute.contains("reason ="),
                "{}: #[expect({attribute})] gives no reason",
                file.display()
            );
        }
    }
}

#[test]
fn nothing_that_git_is_told_to_ignore_is_tracked() {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--ignored", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the repository's files");
    assert!(output.status.success(), "git ls-files failed");
    let tracked = String::from_utf8(output.stdout).unwrap();
    assert_eq!(tracked, "", ".gitignore names these, and yet they are tracked");
}

#[test]
fn no_unfinished_work_is_left_without_an_owner() {
    for (file, code) in crate::source::sources() {
        for word in ["todo!(", "unimplemented!(", "#[ignore"] {
            assert!(!code.contains(word), "{} has {word}", file.display());
        }
    }
}
