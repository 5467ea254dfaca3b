//! Jepsen's logs of etcd, which Porcupine's repository carries: one register of a number, written, swapped and read.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pause_kit::history::At;
use pause_kit::linear::{Model, Operation, check};

use super::{Failure, Figure};
use crate::outsider::{self, Outsider, word};

/// How many logs its tests know the answers to.
const LOGS: usize = 102;

pub(super) fn alike(outsider: &Outsider) -> Result<Figure, Failure> {
    let files = logs()?;
    let theirs = outsider.etcd(&files)?;
    let (mut same, mut took, mut longest) = (0, Duration::ZERO, Duration::ZERO);
    for (file, told) in files.iter().zip(&theirs) {
        let operations = operations(file)?;
        let start = Instant::now();
        let answer = check(&Number, &operations);
        let this = start.elapsed();
        (took, longest) = (took + this, longest.max(this));
        if word(answer) == told.answer {
            same += 1;
        } else {
            println!("{}: {answer:?}, Porcupine: {}", told.file, told.answer);
        }
    }
    let theirs: Duration = theirs.iter().map(|told| told.took).sum();
    println!(
        "etcd's logs: {same} of {} alike; {:.1} ms, the longest {:.1} ms; Porcupine {:.1} ms",
        files.len(),
        took.as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
        theirs.as_secs_f64() * 1e3
    );
    Ok(Figure {
        line: format!("{same} of {} logs of etcd alike", files.len()),
        reached: same == files.len() && files.len() >= LOGS,
    })
}

fn logs() -> Result<Vec<PathBuf>, Failure> {
    let folder = outsider::module()?.join("test_data/jepsen");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|item| item.map(|item| item.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "log"));
    files.sort();
    Ok(files)
}

/// A register of a number that may be missing.
struct Number;

enum Op {
    Read(Option<i64>),
    Write(i64),
    /// From, to, and whether it was answered that it was done.
    Swap(i64, i64, Option<bool>),
}

impl Model for Number {
    type Op = Op;
    type State = Option<i64>;

    fn first(&self) -> Option<i64> {
        None
    }

    fn after(&self, state: Option<i64>, op: &Op) -> Option<Option<i64>> {
        match op {
            Op::Read(number) => (*number == state).then_some(state),
            Op::Write(number) => Some(Some(*number)),
            Op::Swap(from, to, done) => {
                let fits = state == Some(*from);
                let after = if fits { Some(*to) } else { state };
                done.is_none_or(|done| done == fits).then_some(after)
            }
        }
    }
}

/// The log's operations. The places of the lines stand for times; what got no answer may take effect at any time, or never.
fn operations(file: &Path) -> Result<Vec<Operation<Op>>, Failure> {
    let text = fs::read_to_string(file)?;
    let mut open: HashMap<&str, (u64, &str)> = HashMap::new();
    let mut operations = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        let Some((process, rest)) = line
            .split_once("jepsen.util - ")
            .and_then(|(_, rest)| rest.split_once('\t'))
        else {
            continue;
        };
        let Some((kind, asked)) = rest.split_once('\t') else {
            continue;
        };
        match kind {
            ":invoke" => {
                open.insert(process, (at, asked));
            }
            ":ok" | ":fail" => {
                let Some((began, request)) = open.remove(process) else {
                    continue;
                };
                // A read that timed out says nothing.
                if !asked.contains(":timed-out") {
                    let op = op(request, Some((kind == ":ok", asked)))?;
                    operations.push(operation(began, Some(at), op));
                }
            }
            _ => {}
        }
    }
    for (began, request) in open.into_values() {
        if !request.starts_with(":read") {
            operations.push(operation(began, None, op(request, None)?));
        }
    }
    Ok(operations)
}

fn operation(began: u64, ended: Option<u64>, op: Op) -> Operation<Op> {
    Operation {
        began: At::from_nanos(began),
        ended: ended.map(At::from_nanos),
        optional: ended.is_none(),
        op,
    }
}

fn op(request: &str, answer: Option<(bool, &str)>) -> Result<Op, Failure> {
    let numbers = |text: &str| -> Vec<i64> {
        let words = text.split(|letter: char| !letter.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    };
    match (request.split('\t').next(), &numbers(request)[..]) {
        (Some(":read"), _) => Ok(Op::Read(
            answer.and_then(|(_, told)| numbers(told).first().copied()),
        )),
        (Some(":write"), [number]) => Ok(Op::Write(*number)),
        (Some(":cas"), [from, to]) => Ok(Op::Swap(*from, *to, answer.map(|(done, _)| done))),
        _ => Err(format!("not understood: {request}").into()),
    }
}
