//! Lists the files of `sql/`, so that a file put there is part of the guard.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("sql");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().into_string();
        let name = name.map_err(|name| io::Error::other(format!("sql/{}: not UTF-8", name.display())))?;
        if name.ends_with(".sql") {
            names.push(name);
        }
    }
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        let path = folder.join(&name);
        println!("cargo::rerun-if-changed={}", path.display());
        let line = writeln!(
            list,
            "    Migration {{ name: {name:?}, sql: include_str!({path:?}) }},"
        );
        line.map_err(io::Error::other)?;
    }
    list.push(']');
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("migrations.rs"), list)
}
