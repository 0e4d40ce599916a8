//! The stored form of what happens to a run. Version 1.

use serde::{Deserialize, Serialize};
use sluice_core::machine::Moment;
use sluice_core::recipe::StepId;
use sluice_core::run::{RunConclusion, RunEvent};

use super::data::{
    StoredAnswerer, StoredFailure, StoredOutcome, StoredQuestion, StoredReport, StoredRunStart, StoredSkip, from_json,
    part, to_json,
};
use super::{UnreadableData, bytes};

pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
enum StoredRunEvent {
    Started {
        given: StoredRunStart,
        at: i64,
    },
    StepReady {
        step: u32,
    },
    StepStarted {
        step: u32,
        attempt: u32,
        at: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        items: Option<Vec<serde_json::Value>>,
    },
    PartStarted {
        step: u32,
        part: String,
    },
    PartEnded {
        step: u32,
        part: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<StoredOutcome>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    PartLost {
        step: u32,
        part: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<i64>,
    },
    AttemptFailed {
        step: u32,
        outcome: StoredOutcome,
    },
    StepCompleted {
        step: u32,
        outcome: StoredOutcome,
        at: i64,
    },
    StepFailed {
        step: u32,
        failure: StoredFailure,
        at: i64,
    },
    StepRetried {
        step: u32,
        failure: StoredFailure,
        until: i64,
    },
    StepSkipped {
        step: u32,
        reason: StoredSkip,
        at: i64,
    },
    StepHeld {
        step: u32,
        question: StoredQuestion,
    },
    Answered {
        step: u32,
        question: u32,
        option: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        by: StoredAnswerer,
    },
    Asked {
        step: u32,
        part: String,
        question: StoredQuestion,
    },
    Withdrawn {
        step: u32,
        question: u32,
    },
    Blocked {
        step: u32,
        reason: String,
    },
    Said {
        step: u32,
        part: String,
        report: StoredReport,
    },
    StepStopping {
        step: u32,
        failure: StoredFailure,
    },
    LoopedBack {
        from: u32,
        to: u32,
    },
    Reopened {
        step: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance: Option<String>,
    },
    Ending {
        end: StoredEnd,
        at: i64,
    },
    StepCancelled {
        step: u32,
        at: i64,
    },
    Ended {
        end: StoredEnd,
        at: i64,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredEnd {
    Completed { summary: String },
    Failed { error: String },
    Cancelled { reason: String },
}

impl From<&RunConclusion> for StoredEnd {
    fn from(it: &RunConclusion) -> Self {
        match it {
            RunConclusion::Completed { summary } => StoredEnd::Completed { summary: summary.clone() },
            RunConclusion::Failed { error } => StoredEnd::Failed { error: error.clone() },
            RunConclusion::Cancelled { reason } => StoredEnd::Cancelled { reason: reason.clone() },
        }
    }
}

impl From<StoredEnd> for RunConclusion {
    fn from(it: StoredEnd) -> Self {
        match it {
            StoredEnd::Completed { summary } => RunConclusion::Completed { summary },
            StoredEnd::Failed { error } => RunConclusion::Failed { error },
            StoredEnd::Cancelled { reason } => RunConclusion::Cancelled { reason },
        }
    }
}

pub fn write(event: &RunEvent) -> Vec<u8> {
    let stored = match event {
        RunEvent::Started { given, at } => StoredRunEvent::Started { given: given.as_ref().into(), at: at.0 },
        RunEvent::StepReady(step) => StoredRunEvent::StepReady { step: step.0 },
        RunEvent::StepStarted { step, attempt, at, items } => StoredRunEvent::StepStarted {
            step: step.0,
            attempt: *attempt,
            at: at.0,
            items: items.as_ref().map(|items| items.iter().map(to_json).collect()),
        },
        RunEvent::PartStarted { step, part } => StoredRunEvent::PartStarted { step: step.0, part: part.to_string() },
        RunEvent::PartEnded { step, part, result } => StoredRunEvent::PartEnded {
            step: step.0,
            part: part.to_string(),
            outcome: result.as_ref().ok().map(StoredOutcome::from),
            error: result.as_ref().err().cloned(),
        },
        RunEvent::PartLost { step, part, until } => {
            StoredRunEvent::PartLost { step: step.0, part: part.to_string(), until: until.map(|at| at.0) }
        }
        RunEvent::AttemptFailed { step, outcome } => {
            StoredRunEvent::AttemptFailed { step: step.0, outcome: outcome.into() }
        }
        RunEvent::StepCompleted { step, outcome, at } => {
            StoredRunEvent::StepCompleted { step: step.0, outcome: outcome.into(), at: at.0 }
        }
        RunEvent::StepFailed { step, failure, at } => {
            StoredRunEvent::StepFailed { step: step.0, failure: failure.into(), at: at.0 }
        }
        RunEvent::StepRetried { step, failure, until } => {
            StoredRunEvent::StepRetried { step: step.0, failure: failure.into(), until: until.0 }
        }
        RunEvent::StepSkipped { step, reason, at } => {
            StoredRunEvent::StepSkipped { step: step.0, reason: (*reason).into(), at: at.0 }
        }
        RunEvent::StepHeld { step, question } => StoredRunEvent::StepHeld { step: step.0, question: question.into() },
        RunEvent::Answered { step, question, option, message, by } => StoredRunEvent::Answered {
            step: step.0,
            question: *question,
            option: option.clone(),
            message: message.clone(),
            by: (*by).into(),
        },
        RunEvent::Asked { step, part, question } => {
            StoredRunEvent::Asked { step: step.0, part: part.to_string(), question: question.into() }
        }
        RunEvent::Withdrawn { step, question } => StoredRunEvent::Withdrawn { step: step.0, question: *question },
        RunEvent::Blocked { step, reason } => StoredRunEvent::Blocked { step: step.0, reason: reason.clone() },
        RunEvent::Said { step, part, report } => {
            StoredRunEvent::Said { step: step.0, part: part.to_string(), report: report.into() }
        }
        RunEvent::StepStopping { step, failure } => {
            StoredRunEvent::StepStopping { step: step.0, failure: failure.into() }
        }
        RunEvent::LoopedBack { from, to } => StoredRunEvent::LoopedBack { from: from.0, to: to.0 },
        RunEvent::Reopened { step, guidance } => StoredRunEvent::Reopened { step: step.0, guidance: guidance.clone() },
        RunEvent::Ending { end, at } => StoredRunEvent::Ending { end: end.into(), at: at.0 },
        RunEvent::StepCancelled { step, at } => StoredRunEvent::StepCancelled { step: step.0, at: at.0 },
        RunEvent::Ended { end, at } => StoredRunEvent::Ended { end: end.into(), at: at.0 },
    };
    bytes(&stored)
}

pub fn read(version: u16, bytes: &[u8]) -> Result<RunEvent, UnreadableData> {
    if version != VERSION {
        return Err(UnreadableData(format!("an event of version {version}; this program knows up to {VERSION}")));
    }
    Ok(match serde_json::from_slice(bytes)? {
        StoredRunEvent::Started { given, at } => {
            RunEvent::Started { given: Box::new(given.try_into()?), at: Moment(at) }
        }
        StoredRunEvent::StepReady { step } => RunEvent::StepReady(StepId(step)),
        StoredRunEvent::StepStarted { step, attempt, at, items } => RunEvent::StepStarted {
            step: StepId(step),
            attempt,
            at: Moment(at),
            items: items.map(|items| items.into_iter().map(from_json).collect()),
        },
        StoredRunEvent::PartStarted { step, part: text } => {
            RunEvent::PartStarted { step: StepId(step), part: part(&text)? }
        }
        StoredRunEvent::PartEnded { step, part: text, outcome, error } => RunEvent::PartEnded {
            step: StepId(step),
            part: part(&text)?,
            result: outcome.map(Into::into).ok_or_else(|| error.unwrap_or_default()),
        },
        StoredRunEvent::PartLost { step, part: text, until } => {
            RunEvent::PartLost { step: StepId(step), part: part(&text)?, until: until.map(Moment) }
        }
        StoredRunEvent::AttemptFailed { step, outcome } => {
            RunEvent::AttemptFailed { step: StepId(step), outcome: outcome.into() }
        }
        StoredRunEvent::StepCompleted { step, outcome, at } => {
            RunEvent::StepCompleted { step: StepId(step), outcome: outcome.into(), at: Moment(at) }
        }
        StoredRunEvent::StepFailed { step, failure, at } => {
            RunEvent::StepFailed { step: StepId(step), failure: failure.try_into()?, at: Moment(at) }
        }
        StoredRunEvent::StepRetried { step, failure, until } => {
            RunEvent::StepRetried { step: StepId(step), failure: failure.try_into()?, until: Moment(until) }
        }
        StoredRunEvent::StepSkipped { step, reason, at } => {
            RunEvent::StepSkipped { step: StepId(step), reason: reason.into(), at: Moment(at) }
        }
        StoredRunEvent::StepHeld { step, question } => {
            RunEvent::StepHeld { step: StepId(step), question: question.into() }
        }
        StoredRunEvent::Answered { step, question, option, message, by } => {
            RunEvent::Answered { step: StepId(step), question, option, message, by: by.into() }
        }
        StoredRunEvent::Asked { step, part: text, question } => {
            RunEvent::Asked { step: StepId(step), part: part(&text)?, question: question.into() }
        }
        StoredRunEvent::Withdrawn { step, question } => RunEvent::Withdrawn { step: StepId(step), question },
        StoredRunEvent::Blocked { step, reason } => RunEvent::Blocked { step: StepId(step), reason },
        StoredRunEvent::Said { step, part: text, report } => {
            RunEvent::Said { step: StepId(step), part: part(&text)?, report: report.try_into()? }
        }
        StoredRunEvent::StepStopping { step, failure } => {
            RunEvent::StepStopping { step: StepId(step), failure: failure.try_into()? }
        }
        StoredRunEvent::LoopedBack { from, to } => RunEvent::LoopedBack { from: StepId(from), to: StepId(to) },
        StoredRunEvent::Reopened { step, guidance } => RunEvent::Reopened { step: StepId(step), guidance },
        StoredRunEvent::Ending { end, at } => RunEvent::Ending { end: end.into(), at: Moment(at) },
        StoredRunEvent::StepCancelled { step, at } => RunEvent::StepCancelled { step: StepId(step), at: Moment(at) },
        StoredRunEvent::Ended { end, at } => RunEvent::Ended { end: end.into(), at: Moment(at) },
    })
}
