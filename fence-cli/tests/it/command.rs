//! Running the command, and folders to run it in.

use std::path::Path;
use std::process::Command;

/// What a run of the command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `fence` in a folder.
pub(crate) fn fence_in(folder: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_fence"))
        .args(arguments)
        .current_dir(folder)
        // What is tried here is decided before any service starts; should one be started by mistake, it is not found.
        .env("FENCE_PG_BIN", "/nonexistent")
        .env("FENCE_ETCD", "/nonexistent/etcd")
        .output()
        .unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `fence` where there is no `fence.toml`.
pub(crate) fn fence(arguments: &[&str]) -> Said {
    fence_in(tempfile::tempdir().unwrap().path(), arguments)
}

/// A folder with a sound `fence.toml` and the files that it names.
pub(crate) fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("guard")).unwrap();
    std::fs::write(folder.path().join("guard/0001.sql"), "SELECT 1;\n").unwrap();
    std::fs::write(folder.path().join("defeat.sql"), "SELECT 1;\n").unwrap();
    std::fs::write(folder.path().join("fence.toml"), SOUND).unwrap();
    folder
}

/// A sound `fence.toml`. Each thing that is tried with a fault stands on a line of its own.
pub(crate) const SOUND: &str = r#"[tiers.entity]
about = "many keys"

[classes."app.thing"]
purpose = "correctness"
enforcement = "fenced"
tier = "entity"
ttl = "2s"
guard = "mark"

[classes."app.thing".proof]
target = "app"
scenarios = ["S01", "S02"]
keys = "thing-{n}"
deed = "done"
deadline_ms = 2000
idle_ms = 5000
prepare = [
    { request = { method = "POST", path = "/things/{key}" } },
]

[classes."app.thing".proof.holder]
command = ["{bin}/fence", "{etcd.entity}", "{prefix}", "{resource}", "{key}"]
gates = ["before-send"]

[classes."app.thing".proof.front.write]
method = "POST"
path = "/things/{key}/writes"
headers = { Write-Id = "{id}" }

[classes."app.thing".proof.front.raise]
method = "POST"
path = "/things/{key}/fence"

[classes."app.thing".proof.read]
path = "/things/{key}/writes"
id = "id"

[classes."app.thing".proof.writes]
table = "public.write"
key = "thing"
id = "id"

[targets.app]
guard_sql = "guard"
defeat_sql = "defeat.sql"
setup = [
    { sql = "SELECT fence.register_epoch('entity', 1)" },
]

[targets.app.resource]
command = ["{bin}/fence", "{database_url}"]
ready = "listening on "
"#;
