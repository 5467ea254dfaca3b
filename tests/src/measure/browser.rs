//! A headless Chromium, spoken to by its own protocol over a pair of pipes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Failure;

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One browser with one page. Dropping it closes its pipe, at which it ends.
pub(crate) struct Browser {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<Value>,
    session: Option<String>,
    number: u64,
    /// What the page asked for or complained of, since it was last looked at.
    events: VecDeque<Value>,
    _profile: TempDir,
}

/// Where Chromium stands, if anywhere in PATH.
pub(crate) fn find() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

impl Browser {
    /// Starts it with an empty profile.
    pub(crate) fn start(program: &std::path::Path) -> Result<Browser, Failure> {
        let profile = tempfile::Builder::new().prefix("fence-measure-").tempdir()?;
        // It reads orders from descriptor 3 and answers on 4; the shell puts them there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let orders = child.stdin.take();
        let output = child.stdout.take().ok_or("no pipe to the browser")?;
        let (send, answers) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let parsed = serde_json::from_slice(&message);
                message.clear();
                if parsed.is_ok_and(|parsed| send.send(parsed).is_err()) {
                    break;
                }
            }
        });
        let mut browser = Browser {
            child,
            orders,
            answers,
            session: None,
            number: 0,
            events: VecDeque::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach)?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for part in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{part}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Gives an order and waits for its answer; events that come before it are kept.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.number += 1;
        let mut order = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            order["sessionId"] = json!(session);
        }
        let mut text = serde_json::to_vec(&order)?;
        text.push(0);
        let orders = self.orders.as_mut().ok_or("the browser is closed")?;
        orders.write_all(&text)?;
        orders.flush()?;
        loop {
            let answer = self.next(method)?;
            if answer["id"] != json!(self.number) {
                self.events.push_back(answer);
            } else if answer["error"].is_object() {
                return Err(format!("{method}: {}", answer["error"]).into());
            } else {
                return Ok(answer["result"].clone());
            }
        }
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, file: &std::path::Path) -> Result<String, Failure> {
        let url = format!("file://{}", file.display());
        self.events.clear();
        let went = self.call("Page.navigate", json!({"url": url}))?;
        if let Some(error) = went["errorText"].as_str() {
            return Err(format!("{url}: {error}").into());
        }
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let event = self.next("Page.navigate")?;
            self.events.push_back(event);
        }
        Ok(url)
    }

    /// The value of an expression, inside the page.
    pub(crate) fn value(&mut self, expression: &str) -> Result<Value, Failure> {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked)?;
        if answer["exceptionDetails"].is_object() {
            return Err(format!("in the page: {}", answer["exceptionDetails"]).into());
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Everything that the page asked for beside `own`, and whatever stands on its console.
    pub(crate) fn noise(&mut self, own: &str) -> Vec<String> {
        let noise = self.events.drain(..).filter_map(|event| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Network.requestWillBeSent" if params["request"]["url"] == own => None,
                "Network.requestWillBeSent" => Some(format!("request for {}", params["request"]["url"])),
                "Log.entryAdded" => Some(format!("console: {}", params["entry"]["text"])),
                "Runtime.consoleAPICalled" => Some(format!("console: {}", params["args"])),
                "Runtime.exceptionThrown" => Some(format!("exception: {}", params["exceptionDetails"])),
                _ => None,
            }
        });
        noise.collect()
    }

    fn next(&self, what: &str) -> Result<Value, Failure> {
        let answer = self.answers.recv_timeout(PATIENCE);
        answer.map_err(|error| format!("the browser does not answer {what}: {error}").into())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may be gone already: then there is nobody to tell.
        let _ = self.call("Browser.close", json!({}));
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}
