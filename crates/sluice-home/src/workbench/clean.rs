//! What is stored of tasks and runs, without the secrets in it. Whatever is said about them comes through here before
//! anybody keeps it: what a step's process gave, what its agent says meanwhile, what a worker elsewhere reports, how it goes
//! on; and what people say of it, in a summary, an answer or a message.

use serde_json::Value;
use sluice_core::recipe::Data;
use sluice_core::run::{Ask, ByHand, Input, Outcome, Report};
use sluice_core::task::Input as TaskInput;
use sluice_core::task::input::Update;
use sluice_worker::redact::Redactor;

use super::Workbench;

/// Takes out what the processes here know as secrets, and what looks like one.
pub(crate) struct Clean(Redactor);

impl Workbench {
    /// What is stored goes through this.
    pub(crate) fn clean(&self) -> Clean {
        let known = self.surroundings.secrets();
        Clean(Redactor::of(known.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
    }
}

impl Clean {
    /// Knows no secret.
    #[cfg(test)]
    pub(crate) fn of_nothing() -> Clean {
        Clean(Redactor::of([]))
    }

    pub(crate) fn text(&self, text: &str) -> String {
        self.0.text(text)
    }

    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(table) => table.iter().map(|(key, value)| (self.text(key), self.value(value))).collect(),
        }
    }

    pub(crate) fn report(&self, report: Report) -> Report {
        match report {
            Report::Completed(outcome) => Report::Completed(self.outcome(outcome)),
            Report::Failed { kind, error, outcome } => {
                Report::Failed { kind, error: self.text(&error), outcome: self.outcome(outcome) }
            }
        }
    }

    /// What is said to a run.
    pub(crate) fn input(&self, input: Input) -> Input {
        match input {
            Input::By { asker, input } => Input::By { asker, input: Box::new(self.input(*input)) },
            Input::Ask { by, ask } => Input::Ask { by, ask: self.ask(ask) },
            Input::Said { by, report } => Input::Said { by, report: self.report(report) },
            Input::Ended { step, attempt, part, report } => {
                Input::Ended { step, attempt, part, report: self.report(report) }
            }
            Input::ByHand { step, what } => Input::ByHand { step, what: self.by_hand(what) },
            Input::Close { summary } => Input::Close { summary: self.text(&summary) },
            Input::Answer { question, option, message } => {
                Input::Answer { question, option, message: message.map(|it| self.text(&it)) }
            }
            Input::Retry { step, guidance } => Input::Retry { step, guidance: guidance.map(|it| self.text(&it)) },
            Input::Cancel { reason } => Input::Cancel { reason: self.text(&reason) },
            said @ (Input::Lost { .. } | Input::Timer(_)) => said,
        }
    }

    /// What is said to a task.
    pub(crate) fn task_input(&self, input: TaskInput) -> TaskInput {
        match input {
            TaskInput::Update { by, update: Update::Summary(summary) } => {
                TaskInput::Update { by, update: Update::Summary(self.text(&summary)) }
            }
            TaskInput::RequestChanges { by, message, evidence } => {
                TaskInput::RequestChanges { by, message: self.text(&message), evidence }
            }
            said @ (TaskInput::Spawn { .. }
            | TaskInput::Move { .. }
            | TaskInput::Verdict { .. }
            | TaskInput::Cancel { .. }
            | TaskInput::Merge { .. }
            | TaskInput::Merged { .. }
            | TaskInput::Respawn { .. }
            | TaskInput::Update { update: Update::Branch(_) | Update::PullRequest(_), .. }
            | TaskInput::ClearAttention { .. }
            | TaskInput::SessionExited { .. }
            | TaskInput::SessionAdopted { .. }
            | TaskInput::RunReopened { .. }
            | TaskInput::RunEnded { .. }
            | TaskInput::EffectDone { .. }) => said,
        }
    }

    pub(crate) fn ask(&self, ask: Ask) -> Ask {
        let Ask { text, options, default, wait } = ask;
        let options = options.iter().map(|option| self.text(option)).collect();
        Ask { text: self.text(&text), options, default: default.map(|it| self.text(&it)), wait }
    }

    fn by_hand(&self, what: ByHand) -> ByHand {
        match what {
            ByHand::Start => ByHand::Start,
            ByHand::Complete(outcome) => ByHand::Complete(self.outcome(outcome)),
            ByHand::Fail(error) => ByHand::Fail(self.text(&error)),
            ByHand::Skip => ByHand::Skip,
        }
    }

    fn outcome(&self, outcome: Outcome) -> Outcome {
        let Outcome { summary, result, output, exit_code, stderr, commit, usage } = outcome;
        Outcome {
            summary: self.text(&summary),
            result: result.map(|result| self.text(&result)),
            output: self.data(output),
            exit_code,
            stderr: stderr.map(|stderr| self.text(&stderr)),
            commit,
            usage,
        }
    }

    fn data(&self, data: Data) -> Data {
        match data {
            Data::Null | Data::Bool(_) | Data::Number(_) => data,
            Data::Text(text) => Data::Text(self.text(&text)),
            Data::List(items) => Data::List(items.into_iter().map(|item| self.data(item)).collect()),
            Data::Table(table) => {
                Data::Table(table.into_iter().map(|(key, value)| (self.text(&key), self.data(value))).collect())
            }
        }
    }
}
