//! The gate of a release, on a project of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use fence_tests::release::faults;

use crate::prove::binary;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let author = ["-c", "user.name=n", "-c", "user.email=e@example.invalid"];
    let mut git = Command::new("git");
    let output = git
        .current_dir(folder)
        .args(author)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The repository's files that a proof is made of, with one scenario and one fenced class, as a commit.
fn project(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for path in ["fence-pg/sql", "reference-resource/defeat"] {
        fs::create_dir_all(folder.join(path)).unwrap();
        for file in fs::read_dir(root.join(path)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), folder.join(path).join(file.file_name())).unwrap();
        }
    }
    let config = fs::read_to_string(root.join("fence.toml")).unwrap();
    let (before, rest) = config.split_once("[classes.\"paydb.settlement\"]").unwrap();
    let (_, target) = rest.split_once("[targets.paydb]").unwrap();
    let list = before
        .lines()
        .find(|line| line.starts_with("scenarios = "))
        .unwrap();
    let before = before.replace(list, "scenarios = [\"S02\"]");
    fs::write(
        folder.join("fence.toml"),
        format!("{before}[targets.paydb]{target}"),
    )
    .unwrap();
    fs::write(folder.join(".gitignore"), "fence-evidence/\n").unwrap();
    git(folder, &["init", "--quiet"]);
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message", "m"]);
}

#[test]
fn a_commit_is_released_with_a_proof_of_itself_on_the_newest_servers_and_not_else() {
    for needed in ["paydb", "paydb-worker"] {
        binary(needed);
    }
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    project(folder);
    let fence = binary("fence");
    let bundle = folder.join("fence-evidence");
    let faults = || faults(folder, &bundle, &fence).unwrap();
    let missing = faults();
    assert!(
        missing.len() == 1 && missing[0].starts_with("there is no evidence in "),
        "{missing:?}"
    );

    let prove = Command::new(&fence)
        .args(["prove", "--seed", "7"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(prove.status.success(), "{prove:?}");
    let evidence = bundle.join("evidence.json");
    let sound = fs::read_to_string(&evidence).unwrap();
    let servers = |etcd: &str, postgres: &str| {
        let mut evidence: serde_json::Value = serde_json::from_str(&sound).unwrap();
        evidence["versions"]["etcd"] = etcd.into();
        evidence["versions"]["postgres"] = postgres.into();
        evidence
    };
    // The page shows the versions; so it is drawn anew wherever they are written anew.
    let write = |text: serde_json::Value| {
        fs::write(&evidence, serde_json::to_vec_pretty(&text).unwrap()).unwrap();
        let page = bundle.join("timeline.html");
        fs::remove_file(&page).unwrap();
        let draw = Command::new(&fence)
            .args(["timeline", "fence-evidence"])
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(draw.status.success() && page.is_file(), "{draw:?}");
    };
    write(servers("3.6.9", "18.1"));
    assert_eq!(faults(), Vec::<String>::new());

    write(servers("3.4.42", "15.9"));
    let old = faults();
    assert_eq!(old.len(), 2, "{old:?}");
    assert!(
        old[0].contains("etcd 3.4.42") && old[1].contains("PostgreSQL 15.9"),
        "{old:?}"
    );

    // Another commit, though nothing in it that was proven is another.
    write(servers("3.6.9", "18.1"));
    git(folder, &["commit", "--quiet", "--allow-empty", "--message", "n"]);
    let other = faults();
    assert_eq!(other.len(), 1, "{other:?}");
    assert!(
        other[0].ends_with(&format!("this is {}", git(folder, &["rev-parse", "HEAD"]))),
        "{other:?}"
    );
    git(folder, &["reset", "--quiet", "--hard", "HEAD~1"]);
    assert_eq!(faults(), Vec::<String>::new());

    // What was proven was changed.
    fs::write(folder.join("fence-pg/sql/9000_more.sql"), "SELECT 1;\n").unwrap();
    let changed = faults();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(changed[0].contains("not just those of commit"), "{changed:?}");
    assert!(changed[1].starts_with("fence register check"), "{changed:?}");
    fs::remove_file(folder.join("fence-pg/sql/9000_more.sql")).unwrap();

    // So was what was shown.
    let history = bundle.join("S02.on.jsonl");
    let text = fs::read_to_string(&history).unwrap();
    fs::write(&history, text.replacen("\"status\":412", "\"status\":201", 1)).unwrap();
    let tampered = faults();
    assert!(
        tampered.iter().any(|fault| fault.starts_with("fence verify ")),
        "{tampered:?}"
    );
}
