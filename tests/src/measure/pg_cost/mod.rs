//! What the guards of PostgreSQL cost: statements, round trips, WAL and throughput, beside other ways to the same end.

mod added;
pub(super) mod bed;
pub(super) mod estimate;
mod forms;
mod relay;
mod throughput;

use std::time::{SystemTime, UNIX_EPOCH};

use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Services, ServicesConfig};

use super::{Failure, Figure};
use bed::Bed;
use forms::Form;
use throughput::Rounds;

/// Pairs of each comparison.
const ROUNDS: u32 = 30;

pub(crate) fn pg_cost() -> Result<Figure, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let rounds = pairs(ROUNDS)?;
    let only = argument("--only");
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let parts = ["added", "durable", "not durable", "1 ms away"];
    if !parts.into_iter().any(wanted) {
        return Err(format!("--only is one of {parts:?}").into());
    }
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    println!("seed {seed}");
    let services = Services::start(ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: false,
        etcd: Vec::new(),
    })
    .await?;
    let mut tally = Tally::default();
    let mut version = String::new();

    if wanted("added") {
        let bed = Bed::start(&services, &["full_page_writes=off", "fsync=off"]).await?;
        on_the_wire(&bed, &mut tally).await?;
        in_the_wal(&bed, &mut tally).await?;
        version = bed.postgres.version().to_owned();
    }

    for (what, fsync) in [("durable", "fsync=on"), ("not durable", "fsync=off")] {
        if !wanted(what) {
            continue;
        }
        let bed = Bed::start(&services, &[fsync, "synchronous_commit=on"]).await?;
        let measured = Rounds::run(&bed, rounds, seed, false).await?;
        let peer = measured.best_peer();
        let bars = [
            (Form::Column, Form::One, 0.95),
            (Form::Mark, Form::Transaction, 0.75),
            (Form::Enforced, Form::Transaction, 0.60),
            (Form::Column, peer, 1.5),
            (Form::Enforced, peer, 1.0),
        ];
        tally.add(measured.report(what, &bars)?);
        version = bed.postgres.version().to_owned();
    }

    if wanted("1 ms away") {
        let bed = Bed::start(&services, &["fsync=off"]).await?;
        let far = Rounds::run(&bed, rounds, seed, true).await?;
        let peer = far.best_peer();
        tally.add(far.report(
            "1 ms away",
            &[(Form::Mark, peer, 2.0), (Form::Enforced, peer, 2.0)],
        )?);
        version = bed.postgres.version().to_owned();
    }

    Ok(Figure {
        line: format!(
            "{} of {} bars reached, {rounds} pairs each, PostgreSQL {version}{}",
            tally.reached,
            tally.bars,
            only.as_deref()
                .map_or(String::new(), |only| format!(", of one part alone: {only}"))
        ),
        reached: tally.reached == tally.bars && rounds >= ROUNDS && only.is_none(),
    })
}

/// The number after `--pairs`, or this one: fewer are for trying the measurement out, and reach nothing.
pub(super) fn pairs(usual: u32) -> Result<u32, Failure> {
    match argument("--pairs") {
        Some(pairs) => Ok(pairs
            .parse()
            .map_err(|_| format!("--pairs {pairs} is no number"))?),
        None => Ok(usual),
    }
}

/// What stands behind an option.
fn argument(option: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != option).nth(1)
}

/// Bars, and those that are reached.
#[derive(Default)]
struct Tally {
    bars: usize,
    reached: usize,
}

impl Tally {
    fn add(&mut self, (bars, reached): (usize, usize)) {
        self.bars += bars;
        self.reached += reached;
    }

    fn exactly(&mut self, what: &str, found: f64, wanted: f64) {
        self.bar(what, found, found == wanted, &format!("exactly {wanted}"));
    }

    fn at_most(&mut self, what: &str, found: f64, most: f64) {
        self.bar(what, found, found <= most, &format!("at most {most}"));
    }

    fn bar(&mut self, what: &str, found: f64, reached: bool, bar: &str) {
        let answer = if reached { "reached" } else { "short" };
        println!("{what}: {found:.2}, bar {bar}: {answer}");
        self.add((1, usize::from(reached)));
    }
}

async fn on_the_wire(bed: &Bed, tally: &mut Tally) -> Result<(), Failure> {
    let mut seen = Vec::new();
    for form in Form::ALL {
        let (statements, flights) = added::on_the_wire(bed, form).await?;
        println!(
            "wire: {statements:.2} statements, {flights:.2} round trips  {}",
            form.name()
        );
        seen.push((form, statements, flights));
    }
    let of = |form: Form| {
        let found = seen.iter().find(|(seen, ..)| *seen == form);
        found.map_or((f64::NAN, f64::NAN), |(_, statements, flights)| {
            (*statements, *flights)
        })
    };
    for (form, base, statements) in [
        (Form::Column, Form::One, 0.0),
        (Form::Mark, Form::Transaction, 1.0),
        (Form::Enforced, Form::Transaction, 1.0),
    ] {
        let (found, base) = (of(form), of(base));
        tally.exactly(
            &format!("{}: statements added", form.name()),
            found.0 - base.0,
            statements,
        );
        tally.exactly(
            &format!("{}: round trips added", form.name()),
            found.1 - base.1,
            0.0,
        );
    }
    Ok(())
}

async fn in_the_wal(bed: &Bed, tally: &mut Tally) -> Result<(), Failure> {
    let weighed = added::in_the_wal(bed).await?;
    for write in &weighed {
        println!(
            "WAL: {:>7.2} bytes, {:.2} mark versions, {:.2} row versions, {:.2} of them HOT  {}",
            write.bytes, write.marks, write.rows, write.hot, write.name
        );
    }
    let of = |name: &str| {
        weighed
            .iter()
            .find(|write| write.name == name)
            .ok_or("a write was not weighed")
    };
    let bare = of("bare")?.bytes;
    tally.at_most(
        "column, token stays: WAL bytes added",
        of("column, token stays")?.bytes - bare,
        0.0,
    );
    tally.at_most(
        "column, token moves: WAL bytes added",
        of("column, token moves")?.bytes - bare,
        8.0,
    );
    tally.at_most("column, refused: WAL bytes", of("column, refused")?.bytes, 0.0);
    for name in [
        "mark, token stays",
        "mark enforced, token stays",
        "mark, token moves",
    ] {
        tally.exactly(&format!("{name}: mark versions"), of(name)?.marks, 1.0);
        tally.exactly(&format!("{name}: HOT versions"), of(name)?.hot, 2.0);
    }
    Ok(())
}
