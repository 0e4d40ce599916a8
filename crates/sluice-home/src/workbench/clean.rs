//! What is stored of a step, without the secrets in it. Whatever a step says comes through here before anybody keeps it: what
//! its process gave, what its agent says meanwhile, what a worker elsewhere reports, how it goes on.
//!
//! What people say is theirs, and stays.

use serde_json::Value;
use sluice_core::recipe::Data;
use sluice_core::run::{Ask, ByHand, Input, Outcome, Report};
use sluice_worker::redact::Redactor;

use super::{Workbench, inherited};

/// Takes out what the processes here know as secrets, and what looks like one.
pub(crate) struct Clean(Redactor);

impl Workbench {
    /// What is stored of a step goes through this.
    pub(crate) fn clean(&self) -> Clean {
        // What is inherited now is known too; what was before is, for those who have it still.
        inherited(self);
        let known = self.surroundings.secrets();
        Clean(Redactor::of(known.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
    }
}

impl Clean {
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
            said @ (Input::Lost { .. }
            | Input::Timer(_)
            | Input::Answer { .. }
            | Input::Retry { .. }
            | Input::Cancel { .. }) => said,
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
