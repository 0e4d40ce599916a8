//! A run that is followed: a line for each step, with its state and how long it took. On a terminal the lines of steps
//! under way move; elsewhere there is a line for each change.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::run::{ask, word};
use crate::output::{Output, say};
use crate::table;

/// How a run is shown while it goes on.
pub(crate) struct Follow {
    output: Output,
    /// The lines that move, on a terminal.
    lines: Option<MultiProgress>,
    bars: BTreeMap<String, ProgressBar>,
    /// What was last said about each step.
    told: BTreeMap<String, String>,
}

impl Follow {
    pub(crate) fn new(output: Output) -> Self {
        let moves = output == Output::People && std::io::stderr().is_terminal();
        let lines = moves.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        Follow { output, lines, bars: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// Shows where the run is now.
    pub(crate) fn show(&mut self, run: &Value) {
        if self.output == Output::Json {
            return;
        }
        for step in run["steps"].as_array().into_iter().flatten() {
            let (id, status) = (word(step, "id"), word(step, "status"));
            let now = format!("{status} {} {}", word(step, "attempt"), word(step, "round"));
            let before = self.told.insert(id.clone(), now.clone());
            if before.as_ref() != Some(&now) && status != "waiting" && status != "ready" {
                self.tell(&id, &status, step);
            }
        }
    }

    fn tell(&mut self, id: &str, status: &str, step: &Value) {
        let line = describe(id, status, step);
        let Some(lines) = &self.lines else { return say(&line) };
        if let Some(bar) = self.bars.remove(id) {
            bar.finish_and_clear();
        }
        if status == "running" {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let bar = lines.add(ProgressBar::new_spinner().with_message(line));
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(120));
            self.bars.insert(id.to_owned(), bar);
        } else {
            let _ = lines.println(line);
        }
    }

    /// Says how it ended, or what it waits for.
    pub(crate) fn end(&mut self, run: &Value) {
        for bar in std::mem::take(&mut self.bars).into_values() {
            bar.finish_and_clear();
        }
        if self.output == Output::Json {
            return;
        }
        let error = run["error"].as_str().map(|error| format!(": {}", table::line(error, 500))).unwrap_or_default();
        say(&format!("{} {} {}{error}", word(run, "recipe"), word(run, "id"), word(run, "status")));
        if !run["question"].is_null() {
            ask(&run["question"]);
        }
    }
}

/// A step on a line.
fn describe(id: &str, status: &str, step: &Value) -> String {
    let mark = match status {
        "completed" => "✓",
        "failed" | "cancelled" => "✗",
        "held" => "?",
        "skipped" => "-",
        _ => "▶",
    };
    let about = match step["error"].as_str().filter(|_| status != "completed") {
        Some(error) => table::line(error, 100),
        None => table::line(&word(step, "result"), 40),
    };
    let took = took(step).filter(|_| status != "running").unwrap_or_default();
    format!("{mark} {id:<20} {status:<10} {took:>8}  {about}").trim_end().to_owned()
}

/// How long a step took, from its times.
fn took(step: &Value) -> Option<String> {
    let at = |key: &str| step[key].as_str()?.parse::<jiff::Timestamp>().ok();
    let took = at("finished_at")?.as_millisecond() - at("started_at")?.as_millisecond();
    Some(match took {
        ..1000 => format!("{took} ms"),
        1000..60_000 => format!("{:.1} s", took as f64 / 1000.0),
        _ => format!("{} m {} s", took / 60_000, took / 1000 % 60),
    })
}
