//! The stored form of where a run is: a small header, what it was given, a row for each step and for each item.
//! Version 1.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::machine::Moment;
use sluice_core::recipe::StepId;
use sluice_core::run::state::{AgentQuestion, AttemptProgress, ItemState, ItemStatus, QuestionAnswer, RunTurn};
use sluice_core::run::{RunParameters, RunPlan, RunState, StepState, StepStatus};
use sluice_store::RowKey;

use super::data::{
    StoredAnswerer, StoredFailure, StoredOutcome, StoredQuestion, StoredReport, StoredRunStart, StoredSkip, from_json,
    part, to_json,
};
use super::run_event::StoredEnd;
use super::{UnreadableData, bytes, known};

pub const VERSION: u16 = 1;

pub const GIVEN: RowKey = RowKey(0, 0);

pub fn step_key(step: StepId) -> RowKey {
    RowKey(step.0 + 1, 0)
}

pub fn item_key(step: StepId, item: u32) -> RowKey {
    RowKey(step.0 + 1, item + 1)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRunHeader {
    version: u16,
    /// The digest of the definition.
    definition: String,
    started: i64,
    questions: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<StoredEnd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ending: Option<StoredEnd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<String>,
}

pub fn write_header(state: &RunState, definition: &str) -> Vec<u8> {
    bytes(&StoredRunHeader {
        version: VERSION,
        definition: definition.to_owned(),
        started: state.started.0,
        questions: state.questions,
        end: state.end.as_ref().map(Into::into),
        ending: state.ending.as_ref().map(Into::into),
        work: state.work.clone(),
    })
}

pub fn definition_of(header: &[u8]) -> Result<String, UnreadableData> {
    known("a run", header, VERSION)?;
    Ok(serde_json::from_slice::<StoredRunHeader>(header)?.definition)
}

/// The bytes of what the run was given.
pub fn write_given(given: &RunParameters) -> Vec<u8> {
    bytes(&StoredRunStart::from(given))
}

pub fn read(plan: &RunPlan, header: &[u8], rows: &[(RowKey, Vec<u8>)]) -> Result<RunState, UnreadableData> {
    known("a run", header, VERSION)?;
    let header: StoredRunHeader = serde_json::from_slice(header)?;
    let mut given: Option<RunParameters> = None;
    let mut steps = vec![StepState::default(); plan.recipe.steps.len()];
    let mut items = BTreeMap::new();
    for (RowKey(major, minor), row) in rows {
        match (major.checked_sub(1), minor.checked_sub(1)) {
            (None, _) => given = Some(serde_json::from_slice::<StoredRunStart>(row)?.try_into()?),
            (Some(step), None) => {
                let state = serde_json::from_slice::<StoredStep>(row)?.try_into()?;
                let place =
                    steps.get_mut(step as usize).ok_or_else(|| UnreadableData(format!("there is no step {step}")))?;
                *place = state;
            }
            (Some(step), Some(item)) => {
                items.insert((StepId(step), item), serde_json::from_slice::<StoredItem>(row)?.into());
            }
        }
    }
    let given = given.ok_or_else(|| UnreadableData("a run without what it was given".into()))?;
    let end = header.end.map(Into::into);
    let mut state = RunState::restore(plan, given, Moment(header.started), end, steps, items, header.questions);
    state.ending = header.ending.map(Into::into);
    state.work = header.work;
    Ok(state)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredStep {
    status: StoredStepStatus,
    #[serde(default, skip_serializing_if = "is_zero")]
    round: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    attempts: u32,
    /// Not there: as `attempts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    failures: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    losses: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    turns: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    granted: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest: Option<StoredOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<StoredOutcome>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    guidance: Vec<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    asks: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<StoredPartQuestion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    said: Vec<StoredPartReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPartQuestion {
    part: String,
    question: StoredQuestion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<StoredAnswer>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAnswer {
    option: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    by: StoredAnswerer,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPartReport {
    part: String,
    report: StoredReport,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
enum StoredStepStatus {
    Waiting,
    Ready,
    Running { progress: StoredStepProgress },
    Stopping { progress: StoredStepProgress, failure: StoredFailure },
    Retrying { failure: StoredFailure, until: i64, progress: Option<StoredStepProgress> },
    Held { question: StoredQuestion, progress: Option<StoredStepProgress> },
    Completed,
    Failed { failure: StoredFailure },
    Skipped { reason: StoredSkip },
    Cancelled,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
enum StoredStepProgress {
    Single,
    Turns { turn: u32, limit: u32, said: Vec<StoredRunTurn> },
    Items { total: u32, next: u32, running: u32, failed: u32 },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRunTurn {
    work: StoredOutcome,
    verdict: Option<StoredOutcome>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredItem {
    value: serde_json::Value,
    status: StoredItemStatus,
    #[serde(default, skip_serializing_if = "is_zero")]
    attempt: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    losses: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
enum StoredItemStatus {
    Waiting,
    Running,
    Completed { outcome: StoredOutcome },
    Failed { error: String },
}

pub fn write_step(state: &StepState) -> Vec<u8> {
    bytes(&StoredStep {
        status: (&state.status).into(),
        round: state.round,
        attempts: state.attempts,
        since: Some(state.since).filter(|since| *since != state.attempts),
        failures: state.failures,
        losses: state.losses,
        turns: state.turns,
        granted: state.granted,
        latest: state.latest.as_ref().map(Into::into),
        left: state.left.as_ref().map(Into::into),
        guidance: state.guidance.clone(),
        asks: state.asks,
        asked: state.asked.iter().map(Into::into).collect(),
        said: state
            .said
            .iter()
            .map(|(part, report)| StoredPartReport { part: part.to_string(), report: report.into() })
            .collect(),
        began: state.began.map(|at| at.0),
        ended: state.ended.map(|at| at.0),
    })
}

impl TryFrom<StoredStep> for StepState {
    type Error = UnreadableData;

    fn try_from(it: StoredStep) -> Result<Self, UnreadableData> {
        Ok(StepState {
            status: it.status.try_into()?,
            round: it.round,
            attempts: it.attempts,
            since: it.since.unwrap_or(it.attempts),
            failures: it.failures,
            losses: it.losses,
            turns: it.turns,
            granted: it.granted,
            latest: it.latest.map(Into::into),
            left: it.left.map(Into::into),
            guidance: it.guidance,
            asks: it.asks,
            asked: it.asked.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            said: it
                .said
                .into_iter()
                .map(|said| Ok((part(&said.part)?, said.report.try_into()?)))
                .collect::<Result<_, UnreadableData>>()?,
            began: it.began.map(Moment),
            ended: it.ended.map(Moment),
        })
    }
}

impl From<&AgentQuestion> for StoredPartQuestion {
    fn from(it: &AgentQuestion) -> Self {
        let answer = |answer: &QuestionAnswer| StoredAnswer {
            option: answer.option.clone(),
            message: answer.message.clone(),
            by: answer.by.into(),
        };
        StoredPartQuestion {
            part: it.part.to_string(),
            question: (&it.question).into(),
            answer: it.answer.as_ref().map(answer),
        }
    }
}

impl TryFrom<StoredPartQuestion> for AgentQuestion {
    type Error = UnreadableData;

    fn try_from(it: StoredPartQuestion) -> Result<Self, UnreadableData> {
        let answer = |it: StoredAnswer| QuestionAnswer { option: it.option, message: it.message, by: it.by.into() };
        Ok(AgentQuestion { part: part(&it.part)?, question: it.question.into(), answer: it.answer.map(answer) })
    }
}

impl From<&StepStatus> for StoredStepStatus {
    fn from(it: &StepStatus) -> Self {
        match it {
            StepStatus::Waiting => StoredStepStatus::Waiting,
            StepStatus::Ready => StoredStepStatus::Ready,
            StepStatus::Running(progress) => StoredStepStatus::Running { progress: progress.into() },
            StepStatus::Stopping(progress, failure) => {
                StoredStepStatus::Stopping { progress: progress.into(), failure: failure.into() }
            }
            StepStatus::Retrying { failure, until, progress } => StoredStepStatus::Retrying {
                failure: failure.into(),
                until: until.0,
                progress: progress.as_ref().map(Into::into),
            },
            StepStatus::Held { question, progress } => {
                StoredStepStatus::Held { question: question.into(), progress: progress.as_ref().map(Into::into) }
            }
            StepStatus::Completed => StoredStepStatus::Completed,
            StepStatus::Failed(failure) => StoredStepStatus::Failed { failure: failure.into() },
            StepStatus::Skipped(reason) => StoredStepStatus::Skipped { reason: (*reason).into() },
            StepStatus::Cancelled => StoredStepStatus::Cancelled,
        }
    }
}

impl TryFrom<StoredStepStatus> for StepStatus {
    type Error = UnreadableData;

    fn try_from(it: StoredStepStatus) -> Result<Self, UnreadableData> {
        Ok(match it {
            StoredStepStatus::Waiting => StepStatus::Waiting,
            StoredStepStatus::Ready => StepStatus::Ready,
            StoredStepStatus::Running { progress } => StepStatus::Running(progress.into()),
            StoredStepStatus::Stopping { progress, failure } => {
                StepStatus::Stopping(progress.into(), failure.try_into()?)
            }
            StoredStepStatus::Retrying { failure, until, progress } => StepStatus::Retrying {
                failure: failure.try_into()?,
                until: Moment(until),
                progress: progress.map(Into::into),
            },
            StoredStepStatus::Held { question, progress } => {
                StepStatus::Held { question: question.into(), progress: progress.map(Into::into) }
            }
            StoredStepStatus::Completed => StepStatus::Completed,
            StoredStepStatus::Failed { failure } => StepStatus::Failed(failure.try_into()?),
            StoredStepStatus::Skipped { reason } => StepStatus::Skipped(reason.into()),
            StoredStepStatus::Cancelled => StepStatus::Cancelled,
        })
    }
}

impl From<&AttemptProgress> for StoredStepProgress {
    fn from(it: &AttemptProgress) -> Self {
        match it {
            AttemptProgress::Single => StoredStepProgress::Single,
            AttemptProgress::Turns { turn, limit, said } => {
                let stored = |turn: &RunTurn| StoredRunTurn {
                    work: (&turn.work).into(),
                    verdict: turn.verdict.as_ref().map(Into::into),
                };
                StoredStepProgress::Turns { turn: *turn, limit: *limit, said: said.iter().map(stored).collect() }
            }
            AttemptProgress::Items { total, next, running, failed } => {
                StoredStepProgress::Items { total: *total, next: *next, running: *running, failed: *failed }
            }
        }
    }
}

impl From<StoredStepProgress> for AttemptProgress {
    fn from(it: StoredStepProgress) -> Self {
        match it {
            StoredStepProgress::Single => AttemptProgress::Single,
            StoredStepProgress::Turns { turn, limit, said } => {
                let read =
                    |turn: StoredRunTurn| RunTurn { work: turn.work.into(), verdict: turn.verdict.map(Into::into) };
                AttemptProgress::Turns { turn, limit, said: said.into_iter().map(read).collect() }
            }
            StoredStepProgress::Items { total, next, running, failed } => {
                AttemptProgress::Items { total, next, running, failed }
            }
        }
    }
}

pub fn write_item(state: &ItemState) -> Vec<u8> {
    bytes(&StoredItem {
        value: to_json(&state.value),
        status: match &state.status {
            ItemStatus::Waiting => StoredItemStatus::Waiting,
            ItemStatus::Running => StoredItemStatus::Running,
            ItemStatus::Completed(outcome) => StoredItemStatus::Completed { outcome: outcome.into() },
            ItemStatus::Failed(error) => StoredItemStatus::Failed { error: error.clone() },
        },
        attempt: state.attempt,
        losses: state.losses,
        due: state.due.map(|at| at.0),
    })
}

impl From<StoredItem> for ItemState {
    fn from(it: StoredItem) -> Self {
        let status = match it.status {
            StoredItemStatus::Waiting => ItemStatus::Waiting,
            StoredItemStatus::Running => ItemStatus::Running,
            StoredItemStatus::Completed { outcome } => ItemStatus::Completed(outcome.into()),
            StoredItemStatus::Failed { error } => ItemStatus::Failed(error),
        };
        let (attempt, losses, due) = (it.attempt, it.losses, it.due.map(Moment));
        ItemState { value: from_json(it.value), status, attempt, losses, due }
    }
}
