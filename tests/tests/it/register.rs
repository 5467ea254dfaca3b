//! `fence register check` on paydb: in order after a real proof, and each fault named by its class.

use std::thread;

use fence_tests::registers::{Fault, Project, TODAY, faults};

use crate::prove::binary;

#[test]
fn the_registers_are_in_order_after_a_proof_and_each_fault_is_named_by_its_class_alone() {
    for needed in ["paydb", "paydb-worker"] {
        binary(needed);
    }
    let project = Project::proven(&binary("fence")).unwrap();
    let clean = project.check(TODAY).unwrap();
    assert_eq!(clean.code, Some(0), "{}", clean.text);
    let faults = faults(&project).unwrap();
    assert!(faults.len() >= 40, "only {} faults can be made", faults.len());
    // Each is judged by a process of its own, two at a time.
    let missed: Vec<String> = thread::scope(|scope| {
        let judges = faults
            .chunks(faults.len().div_ceil(2))
            .map(|faults| scope.spawn(|| missed(&project, faults)));
        let judges: Vec<_> = judges.collect();
        judges
            .into_iter()
            .flat_map(|judge| judge.join().unwrap())
            .collect()
    });
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Those of the faults that are not found, or not by the names of their classes alone.
fn missed(project: &Project, faults: &[Fault]) -> Vec<String> {
    let mut missed = Vec::new();
    for fault in faults {
        let checked = fault.in_copy_of(project).unwrap().check(fault.today).unwrap();
        if checked.code != Some(1) || checked.classes != fault.classes {
            missed.push(format!(
                "{}: {:?}, exit {:?}\n{}",
                fault.name, fault.classes, checked.code, checked.text
            ));
        }
    }
    missed
}
