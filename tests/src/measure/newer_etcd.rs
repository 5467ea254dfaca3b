//! A newer etcd than the machine's, built from its own module.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::run::root;

/// An etcd 3.6: the one that `FENCE_ETCD36` names, with its tool `etcdutl` in the same folder, or one that is built from its
/// own module, with it.
pub(crate) fn etcd_36() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("FENCE_ETCD36") {
        return Ok(PathBuf::from(named));
    }
    let folder = root().join("target/servers/etcd-3.6");
    build("./etcdutl", &folder.join("etcdutl"))?;
    let program = folder.join("etcd");
    build(".", &program).map(|()| program)
}

fn build(package: &str, program: &PathBuf) -> Result<(), String> {
    let built = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-o"])
        .arg(program)
        .arg(package)
        .current_dir(root().join("tests/etcd-embed"))
        .stdin(Stdio::null())
        .output();
    match built {
        Ok(built) if built.status.success() => Ok(()),
        Ok(built) => Err(format!(
            "etcd was not built: {}",
            String::from_utf8_lossy(&built.stderr).trim()
        )),
        Err(error) => Err(format!("etcd is built with Go, and go was not started: {error}")),
    }
}
