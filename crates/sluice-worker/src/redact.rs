//! What is stored of tasks and runs, without the secrets in it. Whatever is said about them comes through here before
//! anybody keeps it: what a step's process gave, what its agent says meanwhile, what a worker elsewhere reports, how it goes
//! on; and what people say of it, in a summary, an answer or a message.

use serde_json::Value;
use sluice_core::attention::SessionSignal;
use sluice_core::recipe::Data;
use sluice_core::run::{AttemptReport, ManualStepInput, QuestionRequest, RunInput, StepOutcome};
use sluice_core::task::TaskInput;
use sluice_core::task::input::TaskUpdate;
use sluice_os::redact::Redactor;

/// Takes out what the processes here know as secrets, and what looks like one.
pub struct HomeRedactor(Redactor);

impl HomeRedactor {
    /// One that takes out these secrets, each with its variable.
    pub fn of(secrets: &[(String, String)]) -> HomeRedactor {
        HomeRedactor(Redactor::of(secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
    }

    #[cfg(test)]
    pub fn of_nothing() -> HomeRedactor {
        HomeRedactor(Redactor::of([]))
    }

    pub fn text(&self, text: &str) -> String {
        self.0.text(text)
    }

    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(table) => table.iter().map(|(key, value)| (self.text(key), self.value(value))).collect(),
        }
    }

    pub fn report(&self, report: AttemptReport) -> AttemptReport {
        match report {
            AttemptReport::Completed(outcome) => AttemptReport::Completed(self.outcome(outcome)),
            AttemptReport::Failed { kind, error, outcome } => {
                AttemptReport::Failed { kind, error: self.text(&error), outcome: self.outcome(outcome) }
            }
        }
    }

    pub fn input(&self, input: RunInput) -> RunInput {
        match input {
            RunInput::By { asker, input } => RunInput::By { asker, input: Box::new(self.input(*input)) },
            RunInput::Ask { by, ask } => RunInput::Ask { by, ask: self.ask(ask) },
            RunInput::Said { by, report } => RunInput::Said { by, report: self.report(report) },
            RunInput::Ended { step, attempt, part, report } => {
                RunInput::Ended { step, attempt, part, report: self.report(report) }
            }
            RunInput::ByHand { step, what } => RunInput::ByHand { step, what: self.by_hand(what) },
            RunInput::Close { summary } => RunInput::Close { summary: self.text(&summary) },
            RunInput::Answer { question, option, message } => {
                RunInput::Answer { question, option, message: message.map(|it| self.text(&it)) }
            }
            RunInput::Retry { step, guidance } => RunInput::Retry { step, guidance: guidance.map(|it| self.text(&it)) },
            RunInput::Cancel { reason } => RunInput::Cancel { reason: self.text(&reason) },
            said @ (RunInput::Lost { .. } | RunInput::Timer(_)) => said,
        }
    }

    pub fn task_input(&self, input: TaskInput) -> TaskInput {
        match input {
            TaskInput::Update { by, update: TaskUpdate::Summary(summary) } => {
                TaskInput::Update { by, update: TaskUpdate::Summary(self.text(&summary)) }
            }
            TaskInput::RequestChanges { by, message, evidence, room } => {
                TaskInput::RequestChanges { by, message: self.text(&message), evidence, room }
            }
            TaskInput::Move { by, to, evidence, room, feedback } => {
                TaskInput::Move { by, to, evidence, room, feedback: feedback.map(|it| self.text(&it)) }
            }
            TaskInput::Merged { by, commit, forced, push_failed, evidence, feedback } => {
                let feedback = feedback.map(|it| self.text(&it));
                TaskInput::Merged { by, commit, forced, push_failed, evidence, feedback }
            }
            TaskInput::Signal { session, signal: SessionSignal::Waits { what, text, by } } => {
                let signal = SessionSignal::Waits { what, text: self.text(&text), by };
                TaskInput::Signal { session, signal }
            }
            said @ (TaskInput::Spawn { .. }
            | TaskInput::Verdict { .. }
            | TaskInput::Cancel { .. }
            | TaskInput::Merge { .. }
            | TaskInput::Respawn { .. }
            | TaskInput::Update { update: TaskUpdate::Branch(_) | TaskUpdate::PullRequest(_), .. }
            | TaskInput::ClearAttention { .. }
            | TaskInput::Retry { .. }
            | TaskInput::Lend { .. }
            | TaskInput::TakeUp { .. }
            | TaskInput::SessionExited { .. }
            | TaskInput::SessionAdopted { .. }
            | TaskInput::Signal { signal: SessionSignal::Quiet { .. } | SessionSignal::Works { .. }, .. }
            | TaskInput::RunReopened { .. }
            | TaskInput::RunEnded { .. }
            | TaskInput::EffectDone { .. }) => said,
        }
    }

    pub fn ask(&self, ask: QuestionRequest) -> QuestionRequest {
        let QuestionRequest { text, options, default, wait } = ask;
        let options = options.iter().map(|option| self.text(option)).collect();
        QuestionRequest { text: self.text(&text), options, default: default.map(|it| self.text(&it)), wait }
    }

    fn by_hand(&self, what: ManualStepInput) -> ManualStepInput {
        match what {
            ManualStepInput::Start => ManualStepInput::Start,
            ManualStepInput::Complete(outcome) => ManualStepInput::Complete(self.outcome(outcome)),
            ManualStepInput::Fail(error) => ManualStepInput::Fail(self.text(&error)),
            ManualStepInput::Skip => ManualStepInput::Skip,
        }
    }

    fn outcome(&self, outcome: StepOutcome) -> StepOutcome {
        let StepOutcome { summary, result, output, exit_code, stderr, commit, usage } = outcome;
        StepOutcome {
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
