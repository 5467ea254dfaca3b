//! The page of a run in a browser: a proven and a violated one, wide and narrow, light, dark and on paper.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::browser::{self, Browser};
use super::mutants::copy_with;
use super::run::{finish, root};
use super::{Failure, Figure};

/// The guard that lets everything in.
const MUTANT: &str = "tests/mutants/001_no_predicate.sql";
const CHECKS: &str = include_str!("page_checks.js");
/// Moves through the page by keyboard alone: whether Tab reaches a step, its focus is seen, and the arrows go on from there.
const STEP_FOCUSED: &str = "document.activeElement.matches('.half ol summary')";
const FOCUS_SEEN: &str = "getComputedStyle(document.activeElement).outlineStyle !== 'none'";
const OPEN_ALL: &str = "document.querySelectorAll('details').forEach((one) => { one.open = true; })";

pub(crate) fn timeline() -> Result<Figure, Failure> {
    let Some(program) = browser::find() else {
        return Ok(Figure {
            line: "not run: there is no Chromium; install Debian's package chromium".to_owned(),
            reached: false,
        });
    };
    // Ignored by Git, and kept: the pictures are there to be looked at.
    let pictures = root().join("target/timeline");
    fs::create_dir_all(&pictures)?;
    let folder = tempfile::tempdir()?;
    let pages = [
        ("proven", proven(&folder.path().join("proven"))?),
        ("violated", violated(&folder.path().join("violated"))?),
    ];
    let mut browser = Browser::start(&program)?;
    let (mut clean, mut all) = (0, 0);
    for (name, page) in &pages {
        fs::copy(page, pictures.join(format!("{name}.html")))?;
        for view in View::all() {
            all += 1;
            let wrong = view.look(
                &mut browser,
                page,
                &pictures.join(format!("{name}-{}", view.name())),
            )?;
            clean += u32::from(wrong.is_empty());
            println!(
                "{name}, {}: {}",
                view.name(),
                if wrong.is_empty() { "clean" } else { "NOT CLEAN" }
            );
            for one in wrong {
                println!("  {one}");
            }
        }
    }
    println!("pictures in {}", pictures.display());
    Ok(Figure {
        line: format!("{clean} of {all} views clean"),
        reached: clean == all && all >= 10,
    })
}

fn proven(out: &Path) -> Result<PathBuf, Failure> {
    drawn(&["--seed", "7", "--out", &out.display().to_string()], out, 0)
}

fn violated(out: &Path) -> Result<PathBuf, Failure> {
    let copy = copy_with(&root().join(MUTANT))?;
    let config = copy.path().join("fence.toml").display().to_string();
    let out_name = out.display().to_string();
    drawn(&["--config", &config, "--seed", "7", "--out", &out_name], out, 1)
}

fn drawn(arguments: &[&str], out: &Path, code: i32) -> Result<PathBuf, Failure> {
    let run = finish(arguments)?;
    if run.exit != Some(code) {
        return Err(format!("exit {:?}, not {code}\n{}", run.exit, run.text()).into());
    }
    Ok(out.join("timeline.html"))
}

/// How a page is looked at.
#[derive(Clone, Copy)]
struct View {
    width: u32,
    scheme: &'static str,
    print: bool,
}

impl View {
    fn all() -> [View; 5] {
        let screen = |width, scheme| View {
            width,
            scheme,
            print: false,
        };
        // A sheet of A4, less its margins, in CSS pixels.
        let paper = View {
            width: 718,
            scheme: "light",
            print: true,
        };
        [
            screen(1280, "light"),
            screen(1280, "dark"),
            screen(400, "light"),
            screen(400, "dark"),
            paper,
        ]
    }

    fn name(self) -> String {
        match self.print {
            true => "print".to_owned(),
            false => format!("{}-{}", self.width, self.scheme),
        }
    }

    /// Opens the page, checks it as it opens and with everything in it open, and takes a picture of each.
    fn look(self, browser: &mut Browser, page: &Path, picture: &Path) -> Result<Vec<String>, Failure> {
        let size = json!({"width": self.width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", size)?;
        let media = json!({
            "media": if self.print { "print" } else { "screen" },
            "features": [{"name": "prefers-color-scheme", "value": self.scheme}],
        });
        browser.call("Emulation.setEmulatedMedia", media)?;
        let url = browser.open(page)?;
        let mut wrong = sentences(&browser.value(CHECKS)?);
        shoot(browser, self.width, &picture.with_extension("png"))?;
        if self.print {
            wrong.extend(hidden_on_paper(browser)?);
        } else {
            wrong.extend(by_keyboard(browser)?);
            browser.value(OPEN_ALL)?;
            let open = sentences(&browser.value(CHECKS)?);
            wrong.extend(open.into_iter().map(|one| format!("with everything open, {one}")));
            let name = format!(
                "{}-open.png",
                picture.file_name().unwrap_or_default().to_string_lossy()
            );
            shoot(browser, self.width, &picture.with_file_name(name))?;
        }
        wrong.extend(browser.noise(&url));
        Ok(wrong)
    }
}

/// On paper nothing can be opened any more: the lines of every step are there.
fn hidden_on_paper(browser: &mut Browser) -> Result<Option<String>, Failure> {
    let hidden = "[...document.querySelectorAll('.lines li')].filter((one) => one.getClientRects().length === 0 || \
                  !one.checkVisibility({ contentVisibilityAuto: true })).length";
    let hidden = browser.value(hidden)?;
    Ok((hidden != json!(0)).then(|| format!("{hidden} lines are not printed")))
}

fn by_keyboard(browser: &mut Browser) -> Result<Vec<String>, Failure> {
    let mut wrong = Vec::new();
    press(browser, "Tab", 9)?;
    if browser.value("document.activeElement.className")? != "skip" {
        wrong.push("the first Tab does not reach the link that skips".to_owned());
    }
    let mut steps = 0;
    while browser.value(STEP_FOCUSED)? != json!(true) {
        press(browser, "Tab", 9)?;
        if browser.value(FOCUS_SEEN)? != json!(true) {
            wrong.push(format!("focus is not seen after {steps} steps with Tab"));
        }
        steps += 1;
        if steps > 60 {
            wrong.push("Tab does not reach the steps".to_owned());
            return Ok(wrong);
        }
    }
    let now = "[...document.querySelectorAll('.half ol summary')].indexOf(document.activeElement)";
    let before = browser.value(now)?;
    press(browser, "ArrowDown", 40)?;
    press(browser, "ArrowDown", 40)?;
    press(browser, "ArrowUp", 38)?;
    if browser.value(now)?.as_u64() != before.as_u64().map(|place| place + 1) {
        wrong.push("the arrow keys do not go from step to step".to_owned());
    }
    press(browser, "Enter", 13)?;
    if browser.value("document.activeElement.parentElement.open")? != json!(true) {
        wrong.push("Enter does not open a step".to_owned());
    }
    Ok(wrong)
}

fn press(browser: &mut Browser, key: &str, code: u32) -> Result<(), Failure> {
    let text = if key == "Enter" { "\r" } else { "" };
    for kind in ["keyDown", "keyUp"] {
        let event =
            json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
        browser.call("Input.dispatchKeyEvent", event)?;
    }
    Ok(())
}

fn shoot(browser: &mut Browser, width: u32, file: &Path) -> Result<(), Failure> {
    let height = browser.value("document.documentElement.scrollHeight")?;
    // Beyond this a picture is no longer taken as a whole.
    let height = height.as_f64().unwrap_or(900.0).min(16_000.0);
    let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
    let shot = browser.call(
        "Page.captureScreenshot",
        json!({"captureBeyondViewport": true, "clip": clip}),
    )?;
    let data = shot["data"].as_str().ok_or("no picture")?;
    fs::write(file, STANDARD.decode(data)?)?;
    Ok(())
}

fn sentences(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|one| one.as_str().unwrap_or_default().to_owned())
        .collect()
}
