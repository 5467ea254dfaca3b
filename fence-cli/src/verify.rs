//! `fence verify`: judges recorded evidence, or any history, again, and needs nothing but the files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use pause_kit::evidence::{Evidence, Verdict};
use pause_kit::history::{History, ReadError};
use pause_kit::judge::{self, judge};
use pause_kit::review::{Bundle, ClassReview, Doubt, DoubtKind, OpenError};
use pause_kit::schedule::Schedule;
use pause_kit::timeline::{Drawing, FILE};
use serde_json::{Value, json};

use crate::exit::{self, Ending, Failure};
use crate::say;

/// At the end of `fence verify --help`.
const HELP: &str = "\
A folder: every history is read whole, its SHA-256 compared, and judged; the verdicts, the schedule and the page must be what
they make. A file: one history of JSON lines, a kit's or anybody's. Nothing is signed: this finds what was changed afterwards,
not what never happened.

0 when all agrees and was proven or held, 1 when something was violated or does not agree, 2 when there is nothing to judge, 3
when it shows nothing either way.";

/// What to judge again.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct VerifyArguments {
    /// A folder of evidence, or a file that holds one history
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

/// Judges.
pub(crate) fn run(arguments: &VerifyArguments) -> Result<Ending, Failure> {
    let verified = match arguments.path.is_dir() {
        true => folder(&arguments.path).map_err(|error| Failure::usage(Nothing::of_folder(error))),
        false => history(&arguments.path).map_err(Failure::usage),
    };
    let verified = match verified {
        Ok(verified) => verified,
        Err(failure) => {
            if arguments.json {
                say::show(&format!("{:#}\n", failure.json()));
            }
            return Err(failure);
        }
    };
    match arguments.json {
        true => say::answer(&format!("{:#}\n", verified.json()))?,
        false => say::answer(&verified.text())?,
    }
    Ok(verified.ending)
}

/// What came out.
struct Verified {
    /// Whether it was a folder of evidence.
    of_folder: bool,
    /// A line for each scenario, or for the history.
    lines: Vec<Line>,
    /// What does not agree, each with its place.
    doubts: Vec<String>,
    ending: Ending,
}

struct Line {
    name: String,
    class: String,
    verdict: String,
    /// What broke or is doubtful, in words.
    details: Vec<String>,
}

impl Verified {
    fn text(&self) -> String {
        let width = |of: fn(&Line) -> &String| self.lines.iter().map(|line| of(line).len()).max();
        let (name, class) = (width(|line| &line.name), width(|line| &line.class));
        let (name, class) = (name.unwrap_or(0), class.unwrap_or(0));
        let mut text = String::new();
        let mut push = |line: String| text.push_str(&format!("{}\n", say::plain(line.trim_end())));
        for line in &self.lines {
            push(format!(
                "{:<name$}  {:<class$}  {}",
                line.name, line.class, line.verdict
            ));
            line.details
                .iter()
                .for_each(|detail| push(format!("    {detail}")));
        }
        self.doubts
            .iter()
            .for_each(|doubt| push(format!("does not agree: {doubt}")));
        match (self.of_folder, self.doubts.len()) {
            (false, _) => {}
            (true, 0) => push("everything agrees with the histories, judged again".to_owned()),
            (true, count) => push(format!(
                "{count} do not agree: believe nothing of this, and run it again"
            )),
        }
        text
    }

    fn json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            json!({ "name": line.name, "class": line.class, "verdict": line.verdict, "details": line.details })
        });
        json!({ "judged": lines.collect::<Vec<_>>(), "doubts": self.doubts })
    }
}

fn folder(folder: &Path) -> Result<Verified, OpenError> {
    let bundle = Bundle::open(folder)?;
    let evidence = bundle.evidence();
    let listed = evidence.classes.iter().map(|class| &class.name);
    let of_scenarios = evidence.scenarios.iter().map(|scenario| &scenario.class);
    let classes: BTreeSet<_> = listed.chain(of_scenarios).collect();
    let mut verified = Verified {
        of_folder: true,
        lines: Vec::new(),
        doubts: Vec::new(),
        ending: Ending::Done,
    };
    let mut worst = None;
    for class in classes {
        let Some(ClassReview { scenarios, doubts }) = bundle.judge_again(class) else {
            continue;
        };
        for (id, verdict) in &scenarios {
            let of_it = || doubts.iter().filter(|doubt| doubt.scenario == Some(*id));
            // One half that was run alone is whole, and shows nothing.
            let alone = verdict.is_none() && of_it().all(is_of_a_missing_half);
            let shown = if alone {
                Some(Verdict::Inconclusive)
            } else {
                *verdict
            };
            worst = worst.max(shown);
            verified.lines.push(Line {
                name: id.to_string(),
                class: class.to_string(),
                verdict: shown.map_or("not borne out".to_owned(), |verdict| verdict.to_string()),
                details: of_it().map(|doubt| exit::chain(&doubt.kind)).collect(),
            });
        }
        let differing = doubts.iter().filter(|doubt| !is_of_a_missing_half(doubt));
        verified.doubts.extend(differing.map(in_words));
    }
    verified.doubts.extend(around(&bundle, folder));
    verified.ending = match (verified.doubts.is_empty(), worst) {
        (false, _) => Ending::Found,
        (true, Some(Verdict::Violated)) => Ending::Violated,
        (true, Some(Verdict::Proven | Verdict::Held)) => Ending::Done,
        (true, Some(Verdict::Inconclusive) | None) => Ending::Inconclusive,
    };
    Ok(verified)
}

fn is_of_a_missing_half(doubt: &Doubt) -> bool {
    matches!(doubt.kind, DoubtKind::HalfMissing { .. })
}

/// What does not agree with the histories beside the verdicts: the schedule, the page, and files that nothing lists.
fn around(bundle: &Bundle, folder: &Path) -> Vec<String> {
    let evidence = bundle.evidence();
    let mut found = Vec::new();
    let drawn = schedule(evidence);
    if drawn != evidence.schedule {
        let line = bundle.line_of("schedule");
        let (seed, said) = (evidence.seed, &evidence.schedule);
        let words = format!("the schedule is said to be {said}; seed {seed} draws {drawn}");
        found.push(at(&bundle.file(), line, &words));
    }
    let page = folder.join(FILE);
    if let (Ok(written), Ok(drawing)) = (fs::read(&page), Drawing::of_bundle(bundle))
        && written != drawing.page().as_bytes()
    {
        found.push(at(
            &page,
            None,
            "the page is not what this version draws of the histories",
        ));
    }
    let listed: BTreeSet<&str> = evidence.histories().into_iter().collect();
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let known = listed.contains(name.as_str()) || name == FILE || name == "evidence.json";
        if !known {
            found.push(at(&file.path(), None, "nothing lists this file"));
        }
    }
    found
}

fn schedule(evidence: &Evidence) -> String {
    let scenarios = evidence.scenarios.iter();
    let scenarios: Vec<_> = scenarios.map(|one| (one.class.clone(), one.id)).collect();
    Schedule::draw(evidence.seed, &scenarios).digest()
}

fn in_words(doubt: &Doubt) -> String {
    let scenario = doubt.scenario.map(|id| format!("{id}: ")).unwrap_or_default();
    at(
        &doubt.file,
        doubt.line,
        &format!("{scenario}{}", exit::chain(&doubt.kind)),
    )
}

fn at(file: &Path, line: Option<usize>, words: &str) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}: {words}", file.display())
}

fn history(path: &Path) -> Result<Verified, Nothing> {
    let file = File::open(path).map_err(|source| Nothing::Open(path.to_owned(), source))?;
    let history = read(BufReader::new(file), path)?;
    let judgement = judge(&history);
    let run = history.run();
    let mut details: Vec<String> = judgement.outcome().into_iter().collect();
    details.extend(
        judgement
            .violations
            .iter()
            .map(|violation| match violation.lines[..] {
                [] => violation.to_string(),
                _ => format!("{violation}, lines {:?}", violation.lines),
            }),
    );
    details.extend(judgement.corruption);
    let half = match run.half {
        pause_kit::history::Half::Guarded => "guarded",
        pause_kit::history::Half::Defeated => "defeated",
    };
    Ok(Verified {
        of_folder: false,
        ending: match judgement.verdict {
            judge::Verdict::Held => Ending::Done,
            judge::Verdict::Violated(_) => Ending::Violated,
            judge::Verdict::Void(_) | judge::Verdict::Inconclusive(_) => Ending::Inconclusive,
        },
        lines: vec![Line {
            name: format!("{} {half}", run.scenario),
            class: run.class.clone(),
            verdict: judgement.verdict.to_string(),
            details,
        }],
        doubts: Vec::new(),
    })
}

fn read(input: impl BufRead, path: &Path) -> Result<History, Nothing> {
    History::read(input).map_err(|source| Nothing::History {
        place: at(path, Some(source.line()), "it is no whole history"),
        source,
    })
}

/// There is nothing that could be judged. Name a folder that `fence prove` wrote, or a whole history.
#[derive(Debug, thiserror::Error)]
enum Nothing {
    #[error("cannot read {}", .0.display())]
    Open(PathBuf, #[source] std::io::Error),
    #[error("{place}")]
    History { place: String, source: ReadError },
    #[error("{place}")]
    Folder { place: String, source: OpenError },
}

impl Nothing {
    fn of_folder(source: OpenError) -> Nothing {
        let (file, line) = source.place();
        Nothing::Folder {
            place: at(file, line, "there is no evidence to judge"),
            source,
        }
    }
}
