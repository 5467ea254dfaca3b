//! The example for GitHub Actions, linted.

use std::path::{Path, PathBuf};
use std::process::Command;

const EXAMPLE: &str = "examples/github-actions/prove.yml";

/// What the linter says of a file, and whether it found nothing.
fn linted(linter: &Path, file: &Path) -> (bool, String) {
    let output = Command::new(linter).arg("-no-color").arg(file).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.success(), said)
}

#[test]
fn a_linter_in_go_finds_nothing_in_the_example_and_something_in_a_broken_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let linter: PathBuf = folder.path().join("actionlint");
    let mut build = Command::new("go");
    build.args(["build", "-mod=readonly", "-o"]).arg(&linter).arg(".");
    let built = build.current_dir(root.join("tests/actionlint")).output();
    let built = built.unwrap_or_else(|error| {
        panic!(
            "go was not started: {error}; install Go 1.24 or newer, or leave this out: --skip a_linter_in_go"
        )
    });
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );

    let (clean, said) = linted(&linter, &root.join(EXAMPLE));
    assert!(clean, "{said}");
    let text = std::fs::read_to_string(root.join(EXAMPLE)).unwrap();
    for (was, fault) in [
        ("runs-on:", "run-on:"),
        ("if: always()", "if: alway()"),
        ("uses: actions/checkout@v4", "uses: actions/checkout"),
    ] {
        let broken = folder.path().join("broken.yml");
        std::fs::write(&broken, text.replacen(was, fault, 1)).unwrap();
        let (clean, said) = linted(&linter, &broken);
        assert!(!clean && said.contains("broken.yml:"), "{fault}: {said}");
    }
}
