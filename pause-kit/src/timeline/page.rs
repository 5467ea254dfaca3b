//! The page around the scenarios.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::html::Html;
use super::own::{BEGIN, END};
use super::scenario::{Article, verdict};
use super::words::count;
use crate::evidence::{Evidence, ScenarioEvidence, Verdict};
use crate::history::History;

/// The name of the page beside `evidence.json`.
pub const FILE: &str = "timeline.html";

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A run, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(super) evidence: Evidence,
    pub(super) sha256: String,
    pub(super) histories: BTreeMap<String, History>,
}

impl Drawing {
    /// A run with its histories, by the names that the evidence gives them. One that is missing is said to be on the page.
    pub fn new(evidence: Evidence, histories: BTreeMap<String, History>) -> Drawing {
        let sha256 = hex::encode(Sha256::digest(evidence.to_text()));
        Drawing {
            evidence,
            sha256,
            histories,
        }
    }

    /// What was done in one scenario and what came out, in the sentences of the page.
    pub fn story(&self, scenario: &ScenarioEvidence) -> String {
        Article::of(scenario, &self.histories, 0).story()
    }

    /// The page, in UTF-8.
    pub fn page(&self) -> String {
        let mut scenarios: Vec<&ScenarioEvidence> = self.evidence.scenarios.iter().collect();
        // Failures first; then as in the evidence.
        scenarios.sort_by_key(|scenario| match scenario.verdict {
            Verdict::Violated => 0,
            Verdict::Inconclusive => 1,
            Verdict::Proven => 2,
            Verdict::Held => 3,
        });
        let articles: Vec<Article<'_>> = scenarios
            .iter()
            .enumerate()
            .map(|(index, scenario)| Article::of(scenario, &self.histories, index))
            .collect();
        let mut body = Html::default();
        self.header(&mut body, &articles);
        body.raw("<main id=\"scenarios\">\n");
        for article in &articles {
            article.draw(&mut body);
        }
        body.raw("</main>\n");
        self.footer(&mut body);
        self.around(body, articles.iter().flat_map(Article::spans).collect())
    }

    fn around(&self, body: Html, spans: BTreeSet<usize>) -> String {
        let mut style = Html::default();
        style.raw(STYLE);
        // How many rows of the axis each list of steps spans: the page may have no style attributes.
        for span in spans {
            style
                .raw("@media (min-width:70em){.n")
                .text(span)
                .raw("{grid-row-end:span ")
                .text(span)
                .raw("}}\n");
        }
        let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
        let mut page = Html::default();
        page.raw(BEGIN)
            .raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; base-uri &#39;none&#39;; ")
            .raw("form-action &#39;none&#39;; style-src &#39;sha256-")
            .text(hash(style.as_str()))
            .raw("&#39;; script-src &#39;sha256-")
            .text(hash(SCRIPT))
            .raw("&#39;\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
            .raw("<meta name=\"color-scheme\" content=\"light dark\">\n<title>What the late writes met</title>\n<style>");
        page.append(style)
            .raw("</style>\n</head>\n<body>\n")
            .append(body)
            .raw("<script>")
            .raw(SCRIPT)
            .raw(END);
        page.into_string()
    }

    fn header(&self, html: &mut Html, articles: &[Article<'_>]) {
        let unfenced = self.is_unfenced();
        html.raw("<a class=\"skip\" href=\"#scenarios\">Skip to the scenarios</a>\n<header class=\"top\">\n<div class=\"first\">\n");
        html.raw("<h1>What the late writes met</h1>\n<p class=\"lead\">A lock cannot stop a process that was paused and wakes up ");
        html.raw("late: it still believes that it holds the lock, and writes. So each scenario below makes a real holder late, lets a ");
        html.raw("successor take over, and then lets the late write go on");
        html.raw(match unfenced {
            true => ", here without the guard.</p>\n",
            false => ": once with the guard in place, and once without it.</p>\n",
        });
        let of = |verdict: Verdict| {
            articles
                .iter()
                .filter(|one| one.scenario.verdict == verdict)
                .count()
        };
        let all = articles.len();
        html.raw("<p class=\"sum\">");
        match unfenced {
            true => {
                html.element("<strong>", of(Verdict::Violated), "</strong>");
                html.raw(" of ").text(count(all, "scenario")).raw(
                    " went wrong without the guard. Nothing is proven by this: it is what the guard is for.",
                );
            }
            false => {
                let parts = [
                    (Verdict::Violated, "violated"),
                    (Verdict::Inconclusive, "inconclusive"),
                    (Verdict::Proven, "proven"),
                    (Verdict::Held, "held"),
                ];
                let parts = parts
                    .into_iter()
                    .filter(|(verdict, _)| of(*verdict) > 0 || *verdict == Verdict::Violated);
                for (index, (verdict, word)) in parts.enumerate() {
                    html.raw(if index == 0 { "" } else { ", " });
                    html.raw("<strong>")
                        .text(of(verdict))
                        .raw(" ")
                        .text(word)
                        .raw("</strong>");
                }
                html.raw(" of ").text(count(all, "scenario")).raw(".");
                if of(Verdict::Held) > 0 {
                    html.raw(" A control that is held shows that nobody is refused wrongly.");
                }
            }
        }
        html.raw("</p>\n<nav aria-label=\"Scenarios\"><ol class=\"glance\">\n");
        for article in articles {
            let (class, word) = verdict(article.scenario);
            html.raw("<li class=\"")
                .text(class)
                .raw("\"><a href=\"#")
                .text(article.anchor())
                .raw("\"><span class=\"verdict\">");
            html.text(word)
                .raw("</span> <b>")
                .text(article.scenario.id)
                .raw("</b> <span>");
            html.text(article.scenario.id.summary())
                .raw("</span> <small>")
                .text(&article.scenario.class)
                .raw("</small></a></li>\n");
        }
        html.raw("</ol></nav>\n</div>\n");
        legend(html);
        html.raw("</header>\n");
    }

    fn footer(&self, html: &mut Html) {
        let evidence = &self.evidence;
        html.raw("<footer>\n<h2>What this page is drawn from</h2>\n<p>This page is a picture, not evidence: whoever doubts it judges the ");
        html.raw("files again (<code>fence register check</code>) and draws them again (<code>fence timeline</code>). Their SHA-256:</p>\n<ul class=\"digests\">\n");
        let file = |html: &mut Html, name: &str, digest: &str| {
            html.raw("<li><b>")
                .text(name)
                .raw("</b> <code>")
                .text(digest)
                .raw("</code></li>\n");
        };
        file(html, "evidence.json", &self.sha256);
        for scenario in &evidence.scenarios {
            let on = scenario.on.as_ref().map(|half| &half.history);
            let defeated = scenario.defeated.as_ref().map(|half| &half.history);
            for half in on.into_iter().chain(defeated) {
                file(html, &half.history, &half.sha256);
            }
        }
        html.raw("</ul>\n<p>Run at ")
            .text(&evidence.started)
            .raw(" with seed ")
            .text(evidence.seed)
            .raw(" (schedule <code>");
        html.text(&evidence.schedule).raw("</code>)");
        for (name, version) in &evidence.versions {
            html.raw(", ").text(name).raw(" ").text(version);
        }
        html.raw(". The guard&#39;s SQL: <code>")
            .text(&evidence.guard.sha256)
            .raw("</code>.</p>\n");
        html.raw("<p>No page proves absence: it shows what was run, what was refused and why, and what the same run did without the guard.</p>\n</footer>\n");
    }

    fn is_unfenced(&self) -> bool {
        let scenarios = &self.evidence.scenarios;
        !scenarios.is_empty() && scenarios.iter().all(|scenario| scenario.on.is_none())
    }
}

fn legend(html: &mut Html) {
    html.raw("<section class=\"legend\" aria-labelledby=\"legend\">\n<h2 id=\"legend\">How to read it</h2>\n<dl>\n");
    let words = [
        (
            "Lock store",
            "grants a lock to one holder at a time, each grant with a larger token.",
        ),
        (
            "Lease",
            "the time for which a grant holds; when it ends, the lock goes to the next.",
        ),
        (
            "Token",
            "the number of a grant; larger means newer. Long ones are cut to their last digits.",
        ),
        (
            "Mark",
            "the largest token that the resource has accepted for a key. It only rises.",
        ),
        (
            "Guard",
            "compares each write\u{2019}s token with the mark, in the same step as the write, and refuses a smaller one.",
        ),
        ("H1, H2", "holders: H1 is made late, H2 is its successor."),
    ];
    for (word, meaning) in words {
        html.raw("<div><dt>")
            .text(word)
            .raw("</dt><dd>")
            .text(meaning)
            .raw("</dd></div>\n");
    }
    html.raw("</dl>\n<ul class=\"key\">\n");
    html.raw("<li><span class=\"sample runs\"></span> runs</li>\n<li><span class=\"sample stopped\"></span> stopped</li>\n");
    html.raw("<li><span class=\"sample holds\"></span> bytes held on the path</li>\n<li><span class=\"sample lease\">H1</span> lease of H1</li>\n");
    html.raw("<li><span class=\"sample mark m2\">679</span> the mark, wider at each rise</li>\n");
    html.raw("<li><span class=\"sample wall\"></span> refused</li>\n<li><span class=\"sample through\"></span> let in although late</li>\n</ul>\n");
    html.raw("<p>Time runs downwards. <strong>Each row is one step, so the distance between rows is not a length of time</strong>: a wait of ");
    html.raw("seconds would hide steps a millisecond apart. The real time since the run began stands at each step, and long waits are rows of ");
    html.raw("their own. The same step of both runs shares a row. Every step opens to the lines of the history that it is drawn from; ");
    html.raw("the arrow keys go from step to step.</p>\n</section>\n");
}
