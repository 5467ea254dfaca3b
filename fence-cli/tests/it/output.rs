//! Output that nobody reads.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use super::command::project;

/// The device on which every write fails.
fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// Runs `fence` with these streams: its exit code and what it still could say on standard error.
fn run(arguments: &[&str], out: Stdio, err: Stdio) -> (i32, String) {
    let folder = project();
    let output = Command::new(env!("CARGO_BIN_EXE_fence"))
        .args(arguments)
        .current_dir(folder.path())
        .env("FENCE_PG_BIN", "/nonexistent")
        .env("FENCE_ETCD", "/nonexistent/etcd")
        .stdout(out)
        .stderr(err)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn an_answer_that_cannot_be_written_is_code_2_and_says_so() {
    for arguments in [
        vec!["token", "5"],
        vec!["register", "list"],
        vec!["register", "check"],
        vec!["register", "check", "--json"],
    ] {
        let (code, said) = run(&arguments, full(), Stdio::piped());
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(
            said.contains("cannot write to standard output: No space left on device"),
            "{arguments:?}: {said}"
        );
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_closed_pipe_is_an_answer_that_was_not_given() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (code, said) = run(&["token", "5"], writer.into(), Stdio::piped());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("Broken pipe"), "{said}");
}

#[test]
fn an_error_keeps_its_code_when_it_cannot_be_said() {
    assert_eq!(run(&["token", "5"], full(), full()).0, 2);
    assert_eq!(run(&["prove", "--config", "nowhere.toml"], full(), full()).0, 2);
    // The services are not found, after the first lines on how the run goes on.
    assert_eq!(run(&["prove"], full(), full()).0, 4);
}
