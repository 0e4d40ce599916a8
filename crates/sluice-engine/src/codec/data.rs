//! Values, outcomes and what a run is given: the parts that events, states and effects share.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_core::machine::Moment;
use sluice_core::recipe::{Data, FailureKind, StepId};
use sluice_core::run::{
    AgentUsage, Answerer, AttemptPart, AttemptReport, QuestionKind, RunKind, RunMode, RunOrigin, RunParameters,
    RunQuestion, SkipReason, StepFailure, StepOutcome,
};

use super::UnreadableData;
use super::task_data::{StoredWorkState, is_never, twins};

/// A table with this one key is a number that JSON would round or not take: `1.50`, `1e400`, thirty digits.
const NUMBER: &str = "$number";
/// A table with this one key is the table in it, whose one key would be taken for one of these two.
const TABLE: &str = "$table";

/// A value in the form in which it is stored: JSON, from which the same value comes back letter by letter.
pub fn to_json(data: &Data) -> Value {
    match data {
        Data::Null => Value::Null,
        Data::Bool(value) => Value::Bool(*value),
        Data::Number(number) => match serde_json::from_str(number) {
            Ok(Value::Number(read)) if read.to_string() == *number => Value::Number(read),
            _ => wrapped(NUMBER, Value::String(number.clone())),
        },
        Data::Text(text) => Value::String(text.clone()),
        Data::List(items) => Value::Array(items.iter().map(to_json).collect()),
        Data::Table(entries) => {
            let table = Value::Object(entries.iter().map(|(key, value)| (key.clone(), to_json(value))).collect());
            match entries.as_slice() {
                [(key, _)] if key == NUMBER || key == TABLE => wrapped(TABLE, table),
                _ => table,
            }
        }
    }
}

fn wrapped(key: &str, value: Value) -> Value {
    Value::Object(std::iter::once((key.to_owned(), value)).collect())
}

pub fn from_json(json: Value) -> Data {
    match json {
        Value::Null => Data::Null,
        Value::Bool(value) => Data::Bool(value),
        Value::Number(number) => Data::Number(number.to_string()),
        Value::String(text) => Data::Text(text),
        Value::Array(items) => Data::List(items.into_iter().map(from_json).collect()),
        Value::Object(entries) if entries.len() == 1 => {
            match entries.into_iter().next() {
                Some((key, Value::String(number))) if key == NUMBER => Data::Number(number),
                Some((key, Value::Object(entries))) if key == TABLE => table(entries),
                // It has one key, and that is another.
                entry => table(entry.into_iter().collect()),
            }
        }
        Value::Object(entries) => table(entries),
    }
}

fn table(entries: serde_json::Map<String, Value>) -> Data {
    Data::Table(entries.into_iter().map(|(key, value)| (key, from_json(value))).collect())
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredOutcome {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    output: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Box<StoredUsage>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredUsage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cached: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
}

impl From<AgentUsage> for StoredUsage {
    fn from(it: AgentUsage) -> Self {
        StoredUsage { input: it.input, cached: it.cached, output: it.output, total: it.total, cost: it.cost }
    }
}

impl From<StoredUsage> for AgentUsage {
    fn from(it: StoredUsage) -> Self {
        AgentUsage { input: it.input, cached: it.cached, output: it.output, total: it.total, cost: it.cost }
    }
}

impl From<&StepOutcome> for StoredOutcome {
    fn from(it: &StepOutcome) -> Self {
        StoredOutcome {
            summary: it.summary.clone(),
            result: it.result.clone(),
            output: to_json(&it.output),
            exit_code: it.exit_code,
            stderr: it.stderr.clone(),
            commit: it.commit.clone(),
            usage: it.usage.as_deref().map(|usage| Box::new(StoredUsage::from(*usage))),
        }
    }
}

impl From<StoredOutcome> for StepOutcome {
    fn from(it: StoredOutcome) -> Self {
        StepOutcome {
            summary: it.summary,
            result: it.result,
            output: from_json(it.output),
            exit_code: it.exit_code,
            stderr: it.stderr,
            commit: it.commit,
            usage: it.usage.map(|usage| Box::new(AgentUsage::from(*usage))),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredFailure {
    Attempt { kind: String, error: String },
    Upstream { step: u32 },
    Undefined { name: String },
    LoopExhausted,
    Aborted,
}

impl From<&StepFailure> for StoredFailure {
    fn from(it: &StepFailure) -> Self {
        match it {
            StepFailure::Attempt { kind, error } => {
                StoredFailure::Attempt { kind: kind.word().into(), error: error.clone() }
            }
            StepFailure::Upstream(step) => StoredFailure::Upstream { step: step.0 },
            StepFailure::Undefined(name) => StoredFailure::Undefined { name: name.clone() },
            StepFailure::LoopExhausted => StoredFailure::LoopExhausted,
            StepFailure::Aborted => StoredFailure::Aborted,
        }
    }
}

impl TryFrom<StoredFailure> for StepFailure {
    type Error = UnreadableData;

    fn try_from(it: StoredFailure) -> Result<Self, UnreadableData> {
        Ok(match it {
            StoredFailure::Attempt { kind, error } => StepFailure::Attempt { kind: failure_kind(&kind)?, error },
            StoredFailure::Upstream { step } => StepFailure::Upstream(StepId(step)),
            StoredFailure::Undefined { name } => StepFailure::Undefined(name),
            StoredFailure::LoopExhausted => StepFailure::LoopExhausted,
            StoredFailure::Aborted => StepFailure::Aborted,
        })
    }
}

fn failure_kind(word: &str) -> Result<FailureKind, UnreadableData> {
    let found = FailureKind::ALL.into_iter().find(|kind| kind.word() == word);
    found.ok_or_else(|| UnreadableData(format!("no failure is called `{word}`")))
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredReport {
    Completed { outcome: StoredOutcome },
    Failed { kind: String, error: String, outcome: StoredOutcome },
}

impl From<&AttemptReport> for StoredReport {
    fn from(it: &AttemptReport) -> Self {
        match it {
            AttemptReport::Completed(outcome) => StoredReport::Completed { outcome: outcome.into() },
            AttemptReport::Failed { kind, error, outcome } => {
                StoredReport::Failed { kind: kind.word().into(), error: error.clone(), outcome: outcome.into() }
            }
        }
    }
}

impl TryFrom<StoredReport> for AttemptReport {
    type Error = UnreadableData;

    fn try_from(it: StoredReport) -> Result<Self, UnreadableData> {
        Ok(match it {
            StoredReport::Completed { outcome } => AttemptReport::Completed(outcome.into()),
            StoredReport::Failed { kind, error, outcome } => {
                AttemptReport::Failed { kind: failure_kind(&kind)?, error, outcome: outcome.into() }
            }
        })
    }
}

pub(super) fn part(text: &str) -> Result<AttemptPart, UnreadableData> {
    AttemptPart::parse(text).ok_or_else(|| UnreadableData(format!("no part is called `{text}`")))
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredQuestion {
    id: u32,
    kind: StoredQuestionKind,
    reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<i64>,
    #[serde(default, skip_serializing_if = "is_never")]
    since: i64,
}

twins! {
    StoredQuestionKind of QuestionKind {
        Gate, MaxIterations, PartialFailure, LoopExhausted, Clarification, Undecided
    }
    StoredAnswerer of Answerer { Person, Deadline }
    StoredSkip of SkipReason { Condition, Join, Person }
}

impl From<&RunQuestion> for StoredQuestion {
    fn from(it: &RunQuestion) -> Self {
        StoredQuestion {
            id: it.id,
            kind: it.kind.into(),
            reason: it.reason.clone(),
            choices: it.choices.clone(),
            default: it.default.clone(),
            deadline: it.deadline.map(|at| at.0),
            since: it.since.0,
        }
    }
}

impl From<StoredQuestion> for RunQuestion {
    fn from(it: StoredQuestion) -> Self {
        RunQuestion {
            id: it.id,
            kind: it.kind.into(),
            reason: it.reason,
            choices: it.choices,
            default: it.default,
            deadline: it.deadline.map(Moment),
            since: Moment(it.since),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRunStart {
    id: String,
    by_hand: bool,
    inputs: serde_json::Map<String, Value>,
    prompt: String,
    workspace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    scratch: String,
    work_order: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    root: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    base: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    harness: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cause: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    task: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    definition: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<StoredWorkState>,
}

impl From<&RunParameters> for StoredRunStart {
    fn from(it: &RunParameters) -> Self {
        StoredRunStart {
            id: it.id.to_string(),
            by_hand: it.mode == RunMode::ByHand,
            inputs: it.inputs.iter().map(|(key, value)| (key.clone(), to_json(value))).collect(),
            prompt: it.prompt.clone(),
            workspace: it.workspace.clone(),
            scratch: it.scratch.clone(),
            work_order: it.work_order.clone(),
            kind: (it.origin.kind != RunKind::default()).then(|| it.origin.kind.word().to_owned()),
            root: it.origin.root.clone(),
            base: it.origin.base.clone(),
            harness: it.origin.harness.clone(),
            cause: it.origin.cause.clone(),
            task: it.origin.task.as_ref().map(ToString::to_string).unwrap_or_default(),
            definition: it.origin.definition.clone(),
            began: it.origin.began.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<StoredRunStart> for RunParameters {
    type Error = UnreadableData;

    fn try_from(it: StoredRunStart) -> Result<Self, UnreadableData> {
        let task = Some(it.task).filter(|task| !task.is_empty());
        Ok(RunParameters {
            id: it.id.parse()?,
            mode: if it.by_hand { RunMode::ByHand } else { RunMode::Engine },
            inputs: it.inputs.into_iter().map(|(key, value)| (key, from_json(value))).collect(),
            prompt: it.prompt,
            workspace: it.workspace,
            scratch: it.scratch,
            work_order: it.work_order,
            origin: RunOrigin {
                kind: RunKind::ALL.into_iter().find(|kind| Some(kind.word()) == it.kind.as_deref()).unwrap_or_default(),
                root: it.root,
                base: it.base,
                harness: it.harness,
                cause: it.cause,
                task: task.map(|task| task.parse()).transpose()?,
                definition: it.definition,
                began: it.began.map(Into::into),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(data: &Data) -> Data {
        let stored = serde_json::to_vec(&to_json(data)).unwrap();
        from_json(serde_json::from_slice(&stored).unwrap())
    }

    #[test]
    fn every_value_comes_back_letter_by_letter() {
        let numbers = [
            "7",
            "1.5",
            "1.50",
            "1e400",
            "1E5",
            "-0",
            "0.1",
            "1_000",
            "inf",
            "18446744073709551616",
            "123456789012345678901234567890",
            "0.1000000000000000055511151231257827",
        ];
        let mut values: Vec<Data> = numbers.into_iter().map(|number| Data::Number(number.into())).collect();
        values.extend([Data::Null, Data::Bool(true), Data::Text("$number".into()), Data::Table(Vec::new())]);
        // Each value in a list, and under every key alone and beside another; then all of that once more.
        for _ in 0..2 {
            let keys = ["a", NUMBER, TABLE];
            let alone = |value: &Data| keys.map(|key| Data::Table(vec![(key.into(), value.clone())]));
            let beside =
                |value: &Data| keys.map(|key| Data::Table(vec![(key.into(), value.clone()), ("z".into(), Data::Null)]));
            let nested: Vec<Data> =
                values.iter().flat_map(|value| alone(value).into_iter().chain(beside(value))).collect();
            values.push(Data::List(values.clone()));
            values.extend(nested);
        }
        for value in values {
            assert_eq!(again(&value), value);
        }
    }

    #[test]
    fn what_json_takes_is_plain() {
        assert_eq!(to_json(&Data::Number("1.5".into())).to_string(), "1.5");
        assert_eq!(to_json(&Data::Number("1.50".into())).to_string(), r#"{"$number":"1.50"}"#);
        let odd = Data::Table(vec![(NUMBER.into(), Data::Text("7".into()))]);
        assert_eq!(to_json(&odd).to_string(), r#"{"$table":{"$number":"7"}}"#);
    }
}
