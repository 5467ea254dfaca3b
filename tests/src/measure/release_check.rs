//! The gate of a release.

use std::path::PathBuf;

use super::run::root;
use super::{Failure, Figure};
use crate::release::faults;

pub(crate) fn release_check() -> Result<Figure, Failure> {
    let bundle = std::env::args_os().nth(2);
    let bundle = bundle.map_or_else(|| root().join("fence-evidence"), PathBuf::from);
    let fence = std::env::current_exe()?.with_file_name("fence");
    let faults = faults(&root(), &std::path::absolute(bundle)?, &fence)?;
    for fault in &faults {
        println!("{fault}");
    }
    Ok(Figure {
        line: match faults.len() {
            0 => "this commit may be released".to_owned(),
            count => format!("not to be released, for {count} reasons"),
        },
        reached: faults.is_empty(),
    })
}
