//! The registers: in order after a proof, and every fault named by its class.

use super::run::root;
use super::{Failure, Figure};
use crate::registers::{Project, TODAY, faults};

pub(crate) fn register() -> Result<Figure, Failure> {
    let project = Project::proven(&root().join("target/release/fence"))?;
    let clean = project.check(TODAY)?;
    if clean.code != Some(0) {
        println!("{}", clean.text);
        return Err(format!("a good bundle: exit {:?}, not 0", clean.code).into());
    }
    let (mut named, mut all) = (0, 0);
    for fault in faults(&project)? {
        all += 1;
        let checked = fault.in_copy_of(&project)?.check(fault.today)?;
        let found = checked.code == Some(1) && checked.classes == fault.classes;
        named += u64::from(found);
        let classes = Vec::from_iter(fault.classes).join(", ");
        println!(
            "{} {}: {classes}",
            if found { "named " } else { "MISSED" },
            fault.name
        );
        if !found {
            println!("exit {:?}\n{}", checked.code, checked.text);
        }
    }
    Ok(Figure {
        line: format!("{named} of {all} faults named"),
        reached: named == all && all >= 40,
    })
}
