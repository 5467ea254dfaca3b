//! The examples in other languages, from their own `fence.toml` to the verdict.

use fence_tests::examples::{EXAMPLES, Example};

use crate::prove::binary;

fn example(name: &str) -> Example {
    EXAMPLES.into_iter().find(|example| example.name == name).unwrap()
}

fn proven_and_violated_without_its_fence(name: &str, scenarios: &[&str]) {
    let arguments: Vec<&str> = scenarios
        .iter()
        .flat_map(|scenario| ["--scenario", scenario])
        .collect();
    let whole = example(name)
        .copy()
        .unwrap()
        .prove(&binary("fence"), &arguments)
        .unwrap();
    assert!(whole.is_proven(), "{}", whole.text);
    for scenario in whole.evidence["scenarios"].as_array().unwrap() {
        assert_eq!(scenario["on"]["refusal"]["sqlstate"], "ZF001", "{}", whole.text);
        assert!(
            scenario["defeated"]["corruption"]
                .as_str()
                .unwrap()
                .contains("late, by H1")
        );
    }
    let without = example(name).copy().unwrap().without_fence().unwrap();
    let without = without.prove(&binary("fence"), &arguments).unwrap();
    assert!(without.is_violated(), "{}", without.text);
    assert!(without.text.contains("H1-write-1 of H1"), "{}", without.text);
}

#[test]
fn a_service_in_python_with_holders_in_shell_is_proven_and_violated_without_its_one_line_of_fencing() {
    proven_and_violated_without_its_fence("python-http", &["S02", "S07"]);
}

#[test]
fn a_holder_in_javascript_straight_to_postgresql_is_proven_and_violated_without_its_one_line_of_fencing() {
    proven_and_violated_without_its_fence("node-postgres", &["S02"]);
}
