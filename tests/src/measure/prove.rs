//! The main job, with the guard and without it.

use std::time::Duration;

use super::run::{evidence, finish, is_control, scenarios};
use super::{Failure, Figure};

/// How long the whole proof may take once built.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn prove() -> Result<Figure, Failure> {
    let out = tempfile::tempdir()?;
    let folder = out.path().join("evidence");
    let run = finish(&["--out", &folder.display().to_string()])?;
    print!("{}", run.text());
    let evidence = evidence(&folder)?;
    let scenarios = scenarios(&evidence)?;
    let proven = scenarios.iter().filter(|one| one["verdict"] == "proven").count();
    let controls = scenarios.iter().filter(|one| is_control(one)).count();
    let paired = scenarios.len() - controls;
    let corrupting = scenarios
        .iter()
        .filter(|one| !one["defeated"]["violated"].is_null())
        .count();
    for left in &run.left {
        println!("left behind: {left}");
    }
    Ok(Figure {
        line: format!(
            "exit {:?}, {proven} of {paired} scenarios proven, {corrupting} twins corrupt, {controls} controls held, {:.1} s of \
             {} s, {} left behind",
            run.exit,
            run.took.as_secs_f64(),
            LIMIT.as_secs(),
            run.left.len()
        ),
        reached: run.exit == Some(0)
            && paired >= 10
            && controls >= 1
            && proven == paired
            && corrupting == paired
            && run.took < LIMIT
            && run.left.is_empty(),
    })
}

pub(crate) fn unfenced() -> Result<Figure, Failure> {
    let out = tempfile::tempdir()?;
    let folder = out.path().join("evidence");
    let run = finish(&["--danger-unfenced", "--out", &folder.display().to_string()])?;
    print!("{}", run.text());
    let evidence = evidence(&folder)?;
    let scenarios = scenarios(&evidence)?;
    let text = run.text();
    let in_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = scenarios
        .iter()
        .filter(|one| {
            let id = one["id"].as_str().unwrap_or("?");
            let corrupts = !one["defeated"]["violated"].is_null();
            let words = one["defeated"]["corruption"].as_str().unwrap_or_default();
            corrupts
                && text.lines().any(|line| line.contains(id))
                && !words.is_empty()
                && in_one_line.contains(&as_shown(words))
        })
        .count();
    Ok(Figure {
        line: format!(
            "exit {:?}, {named} of {} corruptions named, {} left behind",
            run.exit,
            scenarios.len(),
            run.left.len()
        ),
        reached: run.exit == Some(1) && named == scenarios.len() && named >= 10 && run.left.is_empty(),
    })
}

/// Words of the evidence as the table shows them: an id of 32 hexadecimal digits is cut at 8.
fn as_shown(words: &str) -> String {
    let cut = |word: &str| {
        let id = word.trim_end_matches([',', ')', ';', ':']);
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        match is_id {
            true => format!("{}{}", &id[..8], &word[32..]),
            false => word.to_owned(),
        }
    };
    words.split_whitespace().map(cut).collect::<Vec<_>>().join(" ")
}
