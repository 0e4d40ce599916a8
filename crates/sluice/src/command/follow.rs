//! A run that is followed: a line for each step, with its state and how long it took. On a terminal the lines of steps
//! under way move; elsewhere there is a line for each change.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::run::{ask, word};
use crate::output::{CliOutput, harmless, say};
use crate::table;

/// What an event told.
pub(crate) enum DisplayOutcome {
    /// All there is to say, or nothing new.
    Shown,
    /// That one has to look.
    More,
}

/// How a run is shown while it goes on.
pub(crate) struct RunDisplay {
    output: CliOutput,
    /// The lines that move, on a terminal.
    lines: Option<MultiProgress>,
    bars: BTreeMap<String, ProgressBar>,
    /// Where each step stands among all.
    places: BTreeMap<String, usize>,
    /// What was last said about each step.
    told: BTreeMap<String, String>,
}

impl RunDisplay {
    pub(crate) fn new(output: CliOutput) -> Self {
        let moves = output == CliOutput::People && std::io::stderr().is_terminal();
        let lines = moves.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        RunDisplay { output, lines, bars: BTreeMap::new(), places: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// Shows where the run is now.
    pub(crate) fn show(&mut self, run: &Value) {
        for (place, step) in run["steps"].as_array().into_iter().flatten().enumerate() {
            self.places.insert(word(step, "id"), place);
            self.note(step);
        }
    }

    /// Tells where a step is, if that is new.
    fn note(&mut self, step: &Value) {
        if self.output == CliOutput::Json {
            return;
        }
        let (id, status) = (word(step, "id"), word(step, "status"));
        let now = format!("{status} {} {}", word(step, "attempt"), word(step, "round"));
        let before = self.told.insert(id.clone(), now.clone());
        if before.as_ref() != Some(&now) && status != "waiting" && status != "ready" {
            self.tell(&id, &status, step);
        }
    }

    /// Hears of an event. The beginning and the end of a step say all there is to say, and are put into what is known of
    /// the run; after anything else one has to look. To look each time would cost a long run its length at every step.
    pub(crate) fn hear(&mut self, run: &mut Value, line: &str) -> DisplayOutcome {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return DisplayOutcome::More };
        let number = event["id"].as_str().and_then(|id| id.rsplit_once(':')?.1.parse::<u64>().ok());
        if number.is_some_and(|number| run["version"].as_u64().is_some_and(|known| number <= known)) {
            return DisplayOutcome::Shown; // it was seen when one looked
        }
        // With an open question, the end of another step may be what makes the run wait for its answer.
        if !run["question"].is_null() {
            return DisplayOutcome::More;
        }
        let kind = event["type"].as_str().unwrap_or_default();
        let says_nothing = ["step.ready", "effect.settled", "step.part.started", "step.part.ended"];
        if says_nothing.iter().any(|end| kind.ends_with(end)) {
            return DisplayOutcome::Shown;
        }
        let (data, time) = (&event["data"], &event["time"]);
        let is_start = ["step.started", "step_started"].iter().any(|end| kind.ends_with(end));
        let is_end = ["step.completed", "step_completed"].iter().any(|end| kind.ends_with(end));
        let place = data["step_id"].as_str().and_then(|id| self.places.get(id).copied());
        let step = place.and_then(|place| run["steps"].get_mut(place));
        let Some(step) = step.filter(|step| step["id"] == data["step_id"]) else { return DisplayOutcome::More };
        if is_start {
            step["status"] = "running".into();
            step["attempt"] = data["attempt"].clone();
            step["started_at"] = time.clone();
        } else if is_end && data["status"] == "completed" {
            step["status"] = "completed".into();
            step["result"] = data["result"].clone();
            step["finished_at"] = time.clone();
        } else {
            return DisplayOutcome::More;
        }
        let step = step.clone();
        self.note(&step);
        DisplayOutcome::Shown
    }

    fn tell(&mut self, id: &str, status: &str, step: &Value) {
        let line = harmless(&describe(id, status, step));
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
        if self.output == CliOutput::Json {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(number: u64, kind: &str, data: &Value) -> String {
        json!({ "id": format!("run/a:{number}"), "type": kind, "time": "2026-11-15T12:00:00.000Z", "data": data })
            .to_string()
    }

    fn run(question: &Value) -> Value {
        json!({
            "version": 4, "question": question,
            "steps": [{ "id": "one", "status": "completed", "attempt": 1 }, { "id": "two", "status": "ready" }],
        })
    }

    /// What is left to look at of these events, and where the steps are then.
    fn heard(question: &Value, events: &[(u64, &str, Value)]) -> (Vec<u64>, Vec<String>) {
        let (mut follow, mut run) = (RunDisplay::new(CliOutput::Json), run(question));
        follow.show(&run);
        let mut hear =
            |it: &&(u64, &str, Value)| matches!(follow.hear(&mut run, &event(it.0, it.1, &it.2)), DisplayOutcome::More);
        let more = events.iter().filter(&mut hear).map(|(number, ..)| *number).collect();
        (more, run["steps"].as_array().into_iter().flatten().map(|step| word(step, "status")).collect())
    }

    #[test]
    fn the_beginning_and_the_end_of_a_step_say_all_and_the_rest_is_looked_at() {
        let (started, completed) =
            (json!({ "step_id": "two", "attempt": 1 }), json!({ "step_id": "two", "status": "completed" }));
        let of_one = json!({ "step_id": "one", "attempt": 1 });
        let none = json!({});
        let events = [
            (4, "step.started", of_one),
            (5, "workflow.step.started", started.clone()),
            (6, "step.ready", none.clone()),
        ];
        assert_eq!(heard(&Value::Null, &events), (vec![], vec!["completed".into(), "running".into()]));
        let events = [(5, "process.step_started", started.clone()), (6, "process.step_completed", completed.clone())];
        assert_eq!(heard(&Value::Null, &events), (vec![], vec!["completed".into(), "completed".into()]));
        let failed = json!({ "step_id": "two", "status": "failed" });
        let events =
            [(5, "step.failed", failed.clone()), (6, "process.step_completed", failed), (7, "run.completed", none)];
        assert_eq!(heard(&Value::Null, &events).0, [5, 6, 7]);
        // The run may wait for the answer from here on.
        assert_eq!(heard(&json!({ "id": "q" }), &[(5, "step.completed", completed)]).0, [5]);
    }
}
