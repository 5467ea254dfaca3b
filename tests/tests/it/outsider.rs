//! Porcupine beside the kit's own judge.

use std::path::Path;
use std::process::Command;

use fence_tests::outsider::Outsider;

use crate::prove::binary;

#[test]
fn an_outsider_in_go_says_the_same_of_histories_with_the_guard_and_without_it() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("evidence");
    let scenarios = ["S02", "S03", "S04", "S07", "S17"];
    let mut prove = Command::new(binary("fence"));
    prove.args(["prove", "--class", "paydb.account", "--seed", "11", "--out"]);
    prove
        .arg(&folder)
        .args(scenarios.iter().flat_map(|one| ["--scenario", one]));
    prove.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let proved = prove.output().unwrap();
    let text = String::from_utf8_lossy(&proved.stderr);
    assert_eq!(proved.status.code(), Some(0), "{text}");
    let compared = Outsider::build()
        .and_then(|outsider| outsider.compare(&folder))
        .unwrap_or_else(|error| panic!("{error}; or leave this out: --skip an_outsider_in_go"));
    assert_eq!(compared.same, compared.all, "{compared}");
    assert_eq!(compared.all, 2 * scenarios.len());
    assert!(compared.unexplained >= scenarios.len(), "{compared}");
}
