//! A run that is followed: a line for each step, with its state and how long it took. On a terminal the lines of steps
//! under way move; elsewhere there is a line for each change.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Deserialize;
use sluice_api::event::{EventShown, StepCompleted, StepStarted, StepSubject};
use sluice_api::shown::{Run, RunStep, RunStepStatus};
use sluice_core::event_name::{EventName, PROCESS_STEP_COMPLETED, PROCESS_STEP_STARTED};

use super::run::ask;
use crate::output::{CliOutput, harmless, say};
use crate::table;

pub(crate) enum DisplayOutcome {
    /// All there is to say, or nothing new.
    Shown,
    /// That one has to look.
    More,
}

pub(crate) struct RunDisplay {
    output: CliOutput,
    /// The lines that move, on a terminal.
    lines: Option<MultiProgress>,
    bars: BTreeMap<String, ProgressBar>,
    places: BTreeMap<String, usize>,
    told: BTreeMap<String, (RunStepStatus, u32, u32)>,
}

impl RunDisplay {
    pub(crate) fn new(output: CliOutput) -> Self {
        let moves = output == CliOutput::People && std::io::stderr().is_terminal();
        let lines = moves.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        RunDisplay { output, lines, bars: BTreeMap::new(), places: BTreeMap::new(), told: BTreeMap::new() }
    }

    pub(crate) fn show(&mut self, run: &Run) {
        for (place, step) in run.steps.iter().enumerate() {
            self.places.insert(step.id.clone(), place);
            self.note(step);
        }
    }

    /// Tells where a step is, if that is new.
    fn note(&mut self, step: &RunStep) {
        if self.output == CliOutput::Json {
            return;
        }
        let now = (step.status, step.attempt, step.round);
        let before = self.told.insert(step.id.clone(), now);
        if before != Some(now) && !matches!(step.status, RunStepStatus::Waiting | RunStepStatus::Ready) {
            self.tell(step);
        }
    }

    /// Hears of an event. The beginning and the end of a step say all there is to say, and are put into what is known of
    /// the run; after anything else one has to look. To look each time would cost a long run its length at every step.
    pub(crate) fn hear(&mut self, run: &mut Run, line: &str) -> DisplayOutcome {
        let Ok(event) = serde_json::from_str::<EventShown>(line) else { return DisplayOutcome::More };
        let number = event.id.rsplit_once(':').and_then(|(_, number)| number.parse::<u64>().ok());
        if number.is_some_and(|number| number <= run.version) {
            return DisplayOutcome::Shown; // it was seen when one looked
        }
        // With an open question, the end of another step may be what makes the run wait for its answer.
        if run.question.is_some() {
            return DisplayOutcome::More;
        }
        if NEWS_OF_NOTHING.iter().any(|name| is_named(&event.kind, *name)) {
            return DisplayOutcome::Shown;
        }
        let Ok(StepSubject { step_id, .. }) = StepSubject::deserialize(&event.data) else {
            return DisplayOutcome::More;
        };
        let step = self.places.get(&step_id).and_then(|place| run.steps.get_mut(*place));
        let Some(step) = step.filter(|step| step.id == step_id) else { return DisplayOutcome::More };
        if event.kind == PROCESS_STEP_STARTED || is_named(&event.kind, EventName::StepStarted) {
            let Ok(started) = StepStarted::deserialize(&event.data) else { return DisplayOutcome::More };
            (step.status, step.attempt) = (RunStepStatus::Running, started.attempt);
            step.started_at = Some(event.time);
        } else if event.kind == PROCESS_STEP_COMPLETED || is_named(&event.kind, EventName::StepCompleted) {
            // What was failed or skipped is said by the same event of a process, with less in it.
            let Ok(completed) = StepCompleted::deserialize(&event.data) else { return DisplayOutcome::More };
            (step.status, step.result) = (RunStepStatus::Completed, completed.result);
            step.finished_at = Some(event.time);
        } else {
            return DisplayOutcome::More;
        }
        let step = step.clone();
        self.note(&step);
        DisplayOutcome::Shown
    }

    fn tell(&mut self, step: &RunStep) {
        let line = harmless(&describe(step));
        let Some(lines) = &self.lines else { return say(&line) };
        if let Some(bar) = self.bars.remove(&step.id) {
            bar.finish_and_clear();
        }
        if step.status == RunStepStatus::Running {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let bar = lines.add(ProgressBar::new_spinner().with_message(line));
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(120));
            self.bars.insert(step.id.clone(), bar);
        } else {
            let _ = lines.println(line);
        }
    }

    /// Says how it ended, or what it waits for.
    pub(crate) fn end(&mut self, run: &Run) {
        for bar in std::mem::take(&mut self.bars).into_values() {
            bar.finish_and_clear();
        }
        if self.output == CliOutput::Json {
            return;
        }
        let error = run.error.as_deref().map(|error| format!(": {}", table::line(error, 500))).unwrap_or_default();
        say(&format!("{} {} {}{error}", run.recipe, run.id, run.status));
        run.question.iter().for_each(ask);
    }
}

/// Events after which nothing has to be shown.
const NEWS_OF_NOTHING: [EventName; 4] =
    [EventName::StepReady, EventName::EffectSettled, EventName::StepPartStarted, EventName::StepPartEnded];

/// Whether an event has this name, under whatever the run was started as: `workflow.step.started`.
fn is_named(kind: &str, name: EventName) -> bool {
    kind.strip_suffix(name.word()).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

fn describe(step: &RunStep) -> String {
    let mark = match step.status {
        RunStepStatus::Completed => "✓",
        RunStepStatus::Failed | RunStepStatus::Cancelled => "✗",
        RunStepStatus::Held | RunStepStatus::Blocked => "?",
        RunStepStatus::Skipped => "-",
        RunStepStatus::Waiting | RunStepStatus::Pending | RunStepStatus::Ready | RunStepStatus::Running => "▶",
    };
    let about = match step.error.as_deref().filter(|_| step.status != RunStepStatus::Completed) {
        Some(error) => table::line(error, 100),
        None => table::line(step.result.as_deref().unwrap_or_default(), 40),
    };
    let took = took(step).filter(|_| step.status != RunStepStatus::Running).unwrap_or_default();
    format!("{mark} {:<20} {:<10} {took:>8}  {about}", step.id, step.status).trim_end().to_owned()
}

fn took(step: &RunStep) -> Option<String> {
    let at = |time: &Option<String>| time.as_ref()?.parse::<jiff::Timestamp>().ok();
    let took = at(&step.finished_at)?.as_millisecond() - at(&step.started_at)?.as_millisecond();
    Some(match took {
        ..1000 => format!("{took} ms"),
        1000..60_000 => format!("{:.1} s", took as f64 / 1000.0),
        _ => format!("{} m {} s", took / 60_000, took / 1000 % 60),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sluice_api::shown::{Question, RunForm, RunStatus};

    use super::*;

    fn event(number: u64, kind: &str, data: &Value) -> String {
        json!({
            "seq": number, "id": format!("run/a:{number}"), "type": kind, "time": "2026-11-15T12:00:00.000Z",
            "actor": "engine", "correlation_id": "a", "caused_by": null, "data": data,
        })
        .to_string()
    }

    fn step(id: &str, status: RunStepStatus) -> RunStep {
        let step = json!({
            "id": id, "type": "script", "role": "any", "needs": [], "status": status, "attempt": 1, "round": 0,
            "output": null,
        });
        serde_json::from_value(step).expect("a step")
    }

    fn run(question: Option<Question>) -> Run {
        Run {
            id: "a".into(),
            version: 4,
            recipe: "two-steps".into(),
            kind: RunForm::Run,
            status: RunStatus::Running,
            current_step: None,
            workspace: None,
            branch: None,
            kept: Vec::new(),
            prompt: String::new(),
            work_order: None,
            task: None,
            cause: None,
            definition: None,
            variables: serde_json::Map::new(),
            steps: vec![step("one", RunStepStatus::Completed), step("two", RunStepStatus::Ready)],
            question,
            error: None,
            attention: None,
            next_turn_at: None,
            created_at: String::new(),
            updated_at: String::new(),
        }
    }

    /// What is left to look at of these events, and where the steps are then.
    fn heard(question: Option<Question>, events: &[(u64, &str, Value)]) -> (Vec<u64>, Vec<RunStepStatus>) {
        let (mut follow, mut run) = (RunDisplay::new(CliOutput::Json), run(question));
        follow.show(&run);
        let mut hear =
            |it: &&(u64, &str, Value)| matches!(follow.hear(&mut run, &event(it.0, it.1, &it.2)), DisplayOutcome::More);
        let more = events.iter().filter(&mut hear).map(|(number, ..)| *number).collect();
        (more, run.steps.iter().map(|step| step.status).collect())
    }

    #[test]
    fn the_beginning_and_the_end_of_a_step_say_all_and_the_rest_is_looked_at() {
        let started =
            |id: &str| json!({ "step_id": id, "step_name": id, "step_type": "script", "attempt": 1, "items": null });
        let (of_one, started) = (started("one"), started("two"));
        let completed = json!({
            "step_id": "two", "step_name": "two", "step_type": "script", "status": "completed", "output_summary": "",
            "summary": "", "result": null,
        });
        let none = json!({});
        let events = [
            (4, "step.started", of_one),
            (5, "workflow.step.started", started.clone()),
            (6, "step.ready", none.clone()),
        ];
        assert_eq!(heard(None, &events), (vec![], vec![RunStepStatus::Completed, RunStepStatus::Running]));
        let events = [(5, "process.step_started", started.clone()), (6, "process.step_completed", completed.clone())];
        assert_eq!(heard(None, &events), (vec![], vec![RunStepStatus::Completed, RunStepStatus::Completed]));
        let failed = json!({
            "step_id": "two", "step_name": "two", "step_type": "script", "status": "failed", "error": "no",
        });
        let events =
            [(5, "step.failed", failed.clone()), (6, "process.step_completed", failed), (7, "run.completed", none)];
        assert_eq!(heard(None, &events).0, [5, 6, 7]);
        // The run may wait for the answer from here on.
        let question = json!({
            "id": "a/1", "kind": "gate", "run": "a", "recipe": "two-steps", "step": "one", "reason": "?", "options": [],
        });
        let question = serde_json::from_value(question).expect("a question");
        assert_eq!(heard(Some(question), &[(5, "step.completed", completed)]).0, [5]);
    }
}
