//! The stored form of what happens to a run. Version 1.

use serde::{Deserialize, Serialize};
use sluice_core::machine::Moment;
use sluice_core::recipe::StepId;
use sluice_core::run::{End, Event};

use super::data::{
    StoredAnswerer, StoredFailure, StoredGiven, StoredOutcome, StoredQuestion, StoredReport, StoredSkip, from_json,
    part, to_json,
};
use super::{Unreadable, bytes};

/// The version that is written.
pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Stored {
    Started {
        given: StoredGiven,
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
#[serde(tag = "how", rename_all = "snake_case")]
pub(super) enum StoredEnd {
    Completed { summary: String },
    Failed { error: String },
    Cancelled { reason: String },
}

impl From<&End> for StoredEnd {
    fn from(it: &End) -> Self {
        match it {
            End::Completed { summary } => StoredEnd::Completed { summary: summary.clone() },
            End::Failed { error } => StoredEnd::Failed { error: error.clone() },
            End::Cancelled { reason } => StoredEnd::Cancelled { reason: reason.clone() },
        }
    }
}

impl From<StoredEnd> for End {
    fn from(it: StoredEnd) -> Self {
        match it {
            StoredEnd::Completed { summary } => End::Completed { summary },
            StoredEnd::Failed { error } => End::Failed { error },
            StoredEnd::Cancelled { reason } => End::Cancelled { reason },
        }
    }
}

/// The bytes of an event.
pub fn write(event: &Event) -> Vec<u8> {
    let stored = match event {
        Event::Started { given, at } => Stored::Started { given: given.as_ref().into(), at: at.0 },
        Event::StepReady(step) => Stored::StepReady { step: step.0 },
        Event::StepStarted { step, attempt, at, items } => Stored::StepStarted {
            step: step.0,
            attempt: *attempt,
            at: at.0,
            items: items.as_ref().map(|items| items.iter().map(to_json).collect()),
        },
        Event::PartStarted { step, part } => Stored::PartStarted { step: step.0, part: part.to_string() },
        Event::PartEnded { step, part, result } => Stored::PartEnded {
            step: step.0,
            part: part.to_string(),
            outcome: result.as_ref().ok().map(StoredOutcome::from),
            error: result.as_ref().err().cloned(),
        },
        Event::PartLost { step, part, until } => {
            Stored::PartLost { step: step.0, part: part.to_string(), until: until.map(|at| at.0) }
        }
        Event::AttemptFailed { step, outcome } => Stored::AttemptFailed { step: step.0, outcome: outcome.into() },
        Event::StepCompleted { step, outcome, at } => {
            Stored::StepCompleted { step: step.0, outcome: outcome.into(), at: at.0 }
        }
        Event::StepFailed { step, failure, at } => {
            Stored::StepFailed { step: step.0, failure: failure.into(), at: at.0 }
        }
        Event::StepRetried { step, failure, until } => {
            Stored::StepRetried { step: step.0, failure: failure.into(), until: until.0 }
        }
        Event::StepSkipped { step, reason, at } => {
            Stored::StepSkipped { step: step.0, reason: (*reason).into(), at: at.0 }
        }
        Event::StepHeld { step, question } => Stored::StepHeld { step: step.0, question: question.into() },
        Event::Answered { step, question, option, message, by } => Stored::Answered {
            step: step.0,
            question: *question,
            option: option.clone(),
            message: message.clone(),
            by: (*by).into(),
        },
        Event::Asked { step, part, question } => {
            Stored::Asked { step: step.0, part: part.to_string(), question: question.into() }
        }
        Event::Withdrawn { step, question } => Stored::Withdrawn { step: step.0, question: *question },
        Event::Blocked { step, reason } => Stored::Blocked { step: step.0, reason: reason.clone() },
        Event::Said { step, part, report } => {
            Stored::Said { step: step.0, part: part.to_string(), report: report.into() }
        }
        Event::StepStopping { step, failure } => Stored::StepStopping { step: step.0, failure: failure.into() },
        Event::LoopedBack { from, to } => Stored::LoopedBack { from: from.0, to: to.0 },
        Event::Reopened { step, guidance } => Stored::Reopened { step: step.0, guidance: guidance.clone() },
        Event::Ending { end, at } => Stored::Ending { end: end.into(), at: at.0 },
        Event::StepCancelled { step, at } => Stored::StepCancelled { step: step.0, at: at.0 },
        Event::Ended { end, at } => Stored::Ended { end: end.into(), at: at.0 },
    };
    bytes(&stored)
}

/// The event in `bytes`.
pub fn read(version: u16, bytes: &[u8]) -> Result<Event, Unreadable> {
    if version != VERSION {
        return Err(Unreadable(format!("an event of version {version}; this program knows up to {VERSION}")));
    }
    Ok(match serde_json::from_slice(bytes)? {
        Stored::Started { given, at } => Event::Started { given: Box::new(given.into()), at: Moment(at) },
        Stored::StepReady { step } => Event::StepReady(StepId(step)),
        Stored::StepStarted { step, attempt, at, items } => Event::StepStarted {
            step: StepId(step),
            attempt,
            at: Moment(at),
            items: items.map(|items| items.into_iter().map(from_json).collect()),
        },
        Stored::PartStarted { step, part: text } => Event::PartStarted { step: StepId(step), part: part(&text)? },
        Stored::PartEnded { step, part: text, outcome, error } => Event::PartEnded {
            step: StepId(step),
            part: part(&text)?,
            result: outcome.map(Into::into).ok_or_else(|| error.unwrap_or_default()),
        },
        Stored::PartLost { step, part: text, until } => {
            Event::PartLost { step: StepId(step), part: part(&text)?, until: until.map(Moment) }
        }
        Stored::AttemptFailed { step, outcome } => Event::AttemptFailed { step: StepId(step), outcome: outcome.into() },
        Stored::StepCompleted { step, outcome, at } => {
            Event::StepCompleted { step: StepId(step), outcome: outcome.into(), at: Moment(at) }
        }
        Stored::StepFailed { step, failure, at } => {
            Event::StepFailed { step: StepId(step), failure: failure.try_into()?, at: Moment(at) }
        }
        Stored::StepRetried { step, failure, until } => {
            Event::StepRetried { step: StepId(step), failure: failure.try_into()?, until: Moment(until) }
        }
        Stored::StepSkipped { step, reason, at } => {
            Event::StepSkipped { step: StepId(step), reason: reason.into(), at: Moment(at) }
        }
        Stored::StepHeld { step, question } => Event::StepHeld { step: StepId(step), question: question.into() },
        Stored::Answered { step, question, option, message, by } => {
            Event::Answered { step: StepId(step), question, option, message, by: by.into() }
        }
        Stored::Asked { step, part: text, question } => {
            Event::Asked { step: StepId(step), part: part(&text)?, question: question.into() }
        }
        Stored::Withdrawn { step, question } => Event::Withdrawn { step: StepId(step), question },
        Stored::Blocked { step, reason } => Event::Blocked { step: StepId(step), reason },
        Stored::Said { step, part: text, report } => {
            Event::Said { step: StepId(step), part: part(&text)?, report: report.try_into()? }
        }
        Stored::StepStopping { step, failure } => {
            Event::StepStopping { step: StepId(step), failure: failure.try_into()? }
        }
        Stored::LoopedBack { from, to } => Event::LoopedBack { from: StepId(from), to: StepId(to) },
        Stored::Reopened { step, guidance } => Event::Reopened { step: StepId(step), guidance },
        Stored::Ending { end, at } => Event::Ending { end: end.into(), at: Moment(at) },
        Stored::StepCancelled { step, at } => Event::StepCancelled { step: StepId(step), at: Moment(at) },
        Stored::Ended { end, at } => Event::Ended { end: end.into(), at: Moment(at) },
    })
}

/// The name of an event in the log that people read.
pub fn kind(event: &Event) -> &'static str {
    match event {
        Event::Started { .. } => "run.started",
        Event::StepReady(_) => "step.ready",
        Event::StepStarted { .. } => "step.started",
        Event::PartStarted { .. } => "step.part.started",
        Event::PartEnded { .. } => "step.part.ended",
        Event::PartLost { .. } => "step.part.lost",
        Event::AttemptFailed { .. } => "step.attempt.failed",
        Event::StepCompleted { .. } => "step.completed",
        Event::StepFailed { .. } => "step.failed",
        Event::StepRetried { .. } => "step.retried",
        Event::StepSkipped { .. } => "step.skipped",
        Event::StepHeld { .. } => "run.intervention.required",
        Event::Answered { .. } => "run.answered",
        Event::Asked { .. } => "step.asked",
        Event::Withdrawn { .. } => "run.question.withdrawn",
        Event::Blocked { .. } => "run.blocked",
        Event::Said { .. } => "step.said",
        Event::StepStopping { .. } => "step.stopping",
        Event::LoopedBack { .. } => "run.looped",
        Event::Reopened { .. } => "run.reopened",
        Event::Ending { .. } => "run.ending",
        Event::StepCancelled { .. } => "step.cancelled",
        Event::Ended { end: End::Completed { .. }, .. } => "run.completed",
        Event::Ended { end: End::Failed { .. }, .. } => "run.failed",
        Event::Ended { end: End::Cancelled { .. }, .. } => "run.cancelled",
    }
}
