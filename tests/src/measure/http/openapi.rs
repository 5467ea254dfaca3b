//! paydb against its own document, by Schemathesis.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::super::run::{folder, root};
use super::super::{Failure, Figure};
use super::bed::{Bed, header};
use super::is_trial;

/// The release that is fetched, with Python's own tools, into `target/`.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// At least so many operations in a hundred must have been answered with 2xx.
const SHARE: usize = 60;

pub(in super::super) fn openapi() -> Result<Figure, Failure> {
    let Some(schemathesis) = provide()? else {
        return Ok(Figure {
            line: format!(
                "not run: {SCHEMATHESIS} could not be installed into target/; it needs python3 with venv and pip"
            ),
            reached: false,
        });
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (bed, replica) = runtime.block_on(Bed::new(2, 1_000_000))?;
    let folder = folder()?;
    let har = folder.path().join("answers.har");
    let base = format!("http://{}", replica.address);
    let examples = if is_trial() { "5" } else { "100" };
    let status = Command::new(schemathesis)
        .args(["run", &format!("{base}/openapi.json"), "--url", &base])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance"])
        .args(["--header", &format!("Fencing-Token: {}", header(34))])
        .args(["--max-examples", examples, "--seed", "1", "--continue-on-failure", "--no-color"])
        .args(["--report", "har", "--report-har-path", &har.display().to_string()])
        .current_dir(folder.path())
        .status()?;
    runtime.block_on(async {
        replica.child.terminate().await?;
        drop(bed);
        Ok::<_, Failure>(())
    })?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(
        root().join("reference-resource/openapi.json"),
    )?)?;
    let seen = Seen::read(&har, &document)?;
    let all = seen.operations.len();
    let reached = seen.operations.values().filter(|good| **good).count();
    for (operation, _) in seen.operations.iter().filter(|(_, good)| !**good) {
        println!("never 2xx: {operation}");
    }
    Ok(Figure {
        line: format!(
            "{} requests, {} answered 5xx, {} answered as the document does not say, {reached} of {all} operations reached 2xx; \
             Schemathesis {}",
            seen.requests,
            seen.server_errors,
            seen.undocumented,
            if status.success() {
                "found nothing"
            } else {
                "found failures"
            },
        ),
        reached: status.success()
            && seen.requests > 0
            && seen.server_errors + seen.undocumented == 0
            && reached * 100 >= all * SHARE,
    })
}

/// The program, in a virtual environment of its own.
fn provide() -> Result<Option<PathBuf>, Failure> {
    let folder = root().join("target/schemathesis");
    let program = folder.join("bin/schemathesis");
    if program.exists() {
        return Ok(Some(program));
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status();
    if !made.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let installed = Command::new(folder.join("bin/python"))
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            SCHEMATHESIS,
        ])
        .status()?;
    Ok((installed.success() && program.exists()).then_some(program))
}

/// What was answered.
struct Seen {
    requests: usize,
    server_errors: usize,
    undocumented: usize,
    /// Each operation of the document, and whether it was ever answered with 2xx.
    operations: BTreeMap<String, bool>,
}

impl Seen {
    fn read(har: &Path, document: &Value) -> Result<Seen, Failure> {
        let har: Value = serde_json::from_str(&std::fs::read_to_string(har)?)?;
        let paths = document["paths"].as_object().ok_or("a document without paths")?;
        let mut seen = Seen {
            requests: 0,
            server_errors: 0,
            undocumented: 0,
            operations: BTreeMap::new(),
        };
        for (path, item) in paths {
            for method in item.as_object().into_iter().flat_map(|item| item.keys()) {
                if method != "parameters" {
                    seen.operations
                        .insert(format!("{} {path}", method.to_uppercase()), false);
                }
            }
        }
        for entry in har["log"]["entries"]
            .as_array()
            .ok_or("a report without entries")?
        {
            let method = entry["request"]["method"].as_str().unwrap_or_default();
            let url = entry["request"]["url"].as_str().unwrap_or_default();
            let status = entry["response"]["status"].as_u64().unwrap_or_default();
            seen.requests += 1;
            seen.server_errors += usize::from(status >= 500);
            let path = url.splitn(4, '/').nth(3).unwrap_or_default();
            let path = format!("/{}", path.split(['?', '#']).next().unwrap_or_default());
            let Some(pattern) = paths.keys().find(|pattern| matches(pattern, &path)) else {
                continue;
            };
            let operation = format!("{method} {pattern}");
            if let Some(good) = seen.operations.get_mut(&operation) {
                *good |= (200..300).contains(&status);
                let responses = &document["paths"][pattern][method.to_lowercase()]["responses"];
                seen.undocumented += usize::from(responses.get(status.to_string()).is_none());
            }
        }
        Ok(seen)
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    let both = |(pattern, path): (&&str, &&str)| pattern.starts_with('{') || pattern == path;
    pattern.len() == path.len() && pattern.iter().zip(&path).all(both)
}
