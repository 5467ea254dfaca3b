//! ARCHITECTURE.md's arrows and invariants against the code.

use std::collections::BTreeSet;
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::source::{read, root, sources};

/// An arrow between two packages: who depends, on whom, and whether only in its tests.
type Arrow = (String, String, bool);

#[test]
fn the_arrows_in_architecture_md_are_the_packages_dependencies() {
    let drawn = drawn(&read(Path::new("ARCHITECTURE.md")));
    let built = built();
    let missing: Vec<&Arrow> = built.difference(&drawn).collect();
    let invented: Vec<&Arrow> = drawn.difference(&built).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not draw {missing:?}");
    assert!(
        invented.is_empty(),
        "ARCHITECTURE.md draws what is not built: {invented:?}"
    );
}

/// Arrows stand as `a -> b, c` and, for tests, `a -> d (tests)` in the code block after the heading "Arrows".
fn drawn(text: &str) -> BTreeSet<Arrow> {
    let block = text
        .split("## Arrows")
        .nth(1)
        .and_then(|rest| rest.split("```").nth(1))
        .expect("a block of arrows");
    let mut arrows = BTreeSet::new();
    for line in block.lines().filter(|line| line.contains("->")) {
        let (from, to) = line.split_once("->").unwrap();
        for to in to.split(',').map(str::trim).filter(|to| !to.is_empty()) {
            let tests = to.ends_with("(tests)");
            let to = to.trim_end_matches("(tests)").trim();
            assert!(
                arrows.insert((from.trim().into(), to.into(), tests)),
                "drawn twice: {line}"
            );
        }
    }
    arrows
}

fn built() -> BTreeSet<Arrow> {
    let metadata = metadata();
    let members: BTreeSet<String> = metadata
        .workspace_packages()
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let mut arrows = BTreeSet::new();
    for package in metadata.workspace_packages() {
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| members.contains(&dependency.name))
            // A package's tests turn its own features on by depending on it.
            .filter(|dependency| dependency.name != package.name.as_str())
        {
            let tests = dependency.kind == DependencyKind::Development;
            arrows.insert((package.name.to_string(), dependency.name.clone(), tests));
        }
    }
    assert!(
        arrows.len() >= 10,
        "the workspace has only {} arrows",
        arrows.len()
    );
    arrows
}

fn metadata() -> cargo_metadata::Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap()
}

#[test]
fn etcd_client_is_a_dependency_of_fence_lock_alone() {
    let users: Vec<String> = metadata()
        .workspace_packages()
        .iter()
        .filter(|package| {
            package
                .dependencies
                .iter()
                .any(|dependency| dependency.name == "etcd-client")
        })
        .map(|package| package.name.to_string())
        .collect();
    assert_eq!(users, ["fence-lock"]);
}

#[test]
fn one_file_sends_signals() {
    let senders: Vec<String> = sources()
        .iter()
        .filter(|(_, code)| sends_signals(code))
        .map(|(file, _)| file.display().to_string())
        .collect();
    // The check that interrupts the command does what a person at a terminal does; it is no part of the product.
    assert_eq!(
        senders,
        ["pause-kit/src/signal.rs", "tests/src/measure/interrupt.rs"]
    );
}

/// Whether code sends a signal, by the system's calls or through the handle of a child that it started itself. (The kit's
/// own handles have a `kill` too; theirs asks the reaper.)
fn sends_signals(code: &str) -> bool {
    let calls = [
        "kill_process(",
        "kill_process_group(",
        "kill_current_process_group(",
        "pidfd_send_signal(",
        "process::kill",
        "signal::kill",
    ];
    let programs = ["\"kill\"", "\"pkill\"", "\"killall\""];
    let handles = [".kill()", ".start_kill()", "kill_on_drop("];
    let any = |patterns: &[&str]| patterns.iter().any(|pattern| code.contains(pattern));
    any(&calls) || any(&programs) || (code.contains("Command::new(") && any(&handles))
}

#[test]
fn what_sends_signals_is_recognised() {
    assert!(sends_signals(
        "rustix::process::kill_process(pid, Signal::STOP)?;"
    ));
    assert!(sends_signals(
        "let mut child = Command::new(program).spawn()?; child.kill()?;"
    ));
    assert!(sends_signals("run(\"pkill\", &[name])"));
    assert!(!sends_signals("self.holder.child.kill().await?;"));
    assert!(!sends_signals("let killed = history.killed();"));
}

#[test]
fn one_file_compares_tokens_besides_the_judge() {
    let comparers: Vec<String> = sources()
        .iter()
        .filter(|(file, _)| !file.starts_with("pause-kit/src/judge"))
        .filter(|(_, code)| !comparisons(code).is_empty())
        .map(|(file, code)| format!("{}: {:?}", file.display(), comparisons(code)))
        .collect();
    let others: Vec<&String> = comparers
        .iter()
        .filter(|line| !line.starts_with("fence-core/src/admission.rs"))
        .filter(|line| !line.starts_with("fence-lock/src/conformance/order.rs"))
        .collect();
    assert!(others.is_empty(), "tokens are compared in {others:#?}");
    assert!(
        comparers
            .iter()
            .any(|line| line.starts_with("fence-core/src/admission.rs")),
        "fence-core/src/admission.rs compares tokens"
    );
    let token = read(Path::new("fence-core/src/token.rs"));
    assert!(
        !token.contains("PartialOrd"),
        "Token has an order, so anyone may compare two"
    );
}

/// The statements that compare the number of a token, or two tokens, whichever way the lines were broken.
fn comparisons(code: &str) -> Vec<String> {
    let word = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .next_back()
            .unwrap_or("")
            .to_string()
    };
    let is_token =
        |name: &str| name == "token" || name.ends_with("_token") || name == "presented" || name == "mark";
    code.split([';', '{', '}'])
        .map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|statement| {
            let numbers = statement.contains("as_i64()")
                && [
                    " < ",
                    " > ",
                    " <= ",
                    " >= ",
                    " == ",
                    " != ",
                    ".cmp(",
                    ".max(",
                    ".min(",
                    ".contains(",
                ]
                .iter()
                .any(|operator| statement.contains(operator));
            let names = [" < ", " > ", " <= ", " >= "].iter().any(|operator| {
                statement.split_once(operator).is_some_and(|(left, right)| {
                    let right: String = right
                        .chars()
                        .take_while(|c| c.is_alphanumeric() || "._*&".contains(*c))
                        .collect();
                    is_token(&word(left)) || is_token(&word(right.trim_end_matches('.')))
                })
            });
            numbers || names
        })
        .collect()
}

#[test]
fn a_comparison_of_tokens_is_recognised_however_it_is_written() {
    for code in [
        "if claim.token.as_i64() < mark.token.as_i64() {}",
        "if presented\n    .as_i64()\n    .cmp(&seen) == Less {}",
        "let fresh = old_token <= new;",
        "let newest = a.max(b.as_i64());",
        "if n > claim.token {}",
    ] {
        assert!(!comparisons(code).is_empty(), "{code}");
    }
    for code in [
        "let n = token.as_i64();",
        "params(&[&token.as_i64()])",
        "fn at(token: Token) -> Option<u64> {",
    ] {
        assert!(comparisons(code).is_empty(), "{code}: {:?}", comparisons(code));
    }
}

#[test]
fn every_invariant_names_the_lint_or_test_that_guards_it() {
    let text = read(Path::new("ARCHITECTURE.md"));
    let paragraphs: Vec<&str> = text
        .split("\n\n")
        .filter(|part| part.starts_with("**Invariant**"))
        .collect();
    assert!(
        paragraphs.len() >= 8,
        "only {} invariants are written down",
        paragraphs.len()
    );
    for paragraph in paragraphs {
        assert_guarded(paragraph);
    }
}

/// Fails unless the text ends with the names of lints, tests or files, and each of them exists.
pub(crate) fn assert_guarded(text: &str) {
    let code: String = crate::source::files()
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "rs" || end == "toml"))
        .map(|file| read(file))
        .collect();
    let guard = text
        .rsplit_once("Guarded by")
        .unwrap_or_else(|| panic!("no guard is named: {text}"))
        .1;
    let names: Vec<&str> = guard.split('`').skip(1).step_by(2).collect();
    assert!(!names.is_empty(), "no guard is named: {text}");
    for name in names {
        let known = code.contains(&format!("fn {name}("))
            || code.contains(&format!("{name} = "))
            || root().join(name).exists();
        assert!(known, "`{name}` guards something and does not exist: {text}");
    }
}
