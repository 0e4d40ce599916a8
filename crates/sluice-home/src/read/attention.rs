//! What waits for a person, in words: of a task or a run as the read model has it. Nothing here looks at a file or decides
//! anything.

use sluice_api::attention::{Attention, AttentionCause, AttentionKind, AttentionNote, AttentionSource};
use sluice_core::attention::{AttentionChannel, AttentionReason};
use sluice_core::task::state::RaisedAttention;

use crate::read::tasks::TaskSnapshot;
use crate::settings::clock::written;

/// Why a task needs a person, where the task itself is shown.
pub(crate) fn note(seen: &TaskSnapshot) -> Option<AttentionNote> {
    let raised = seen.state.raised(&seen.lifecycle)?;
    Some(AttentionNote {
        id: id(seen, &raised),
        reason: cause(raised.why.reason()),
        text: raised.why.to_string(),
        since: written(raised.since.0),
        choices: choices(seen),
        said_by: source(raised.why.said_by()),
    })
}

/// Why a task needs a person, for a list of everything that does.
pub(crate) fn of_task(seen: &TaskSnapshot) -> Option<Attention> {
    let AttentionNote { id, reason, text, since, choices, said_by } = note(seen)?;
    Some(Attention {
        id,
        kind: AttentionKind::Task,
        reason,
        task: Some(seen.id.clone()),
        run: None,
        step: None,
        recipe: None,
        project: Some(seen.state.about.project.clone()),
        title: seen.state.about.branch.clone(),
        text,
        since,
        options: choices,
        default: None,
        deadline: None,
        evidence: Vec::new(),
        exit_code: None,
        printed: None,
        said_by,
    })
}

fn id(seen: &TaskSnapshot, raised: &RaisedAttention) -> String {
    format!("{}/{}", seen.id, raised.number)
}

fn choices(seen: &TaskSnapshot) -> Vec<String> {
    let choices = seen.state.choices(&seen.lifecycle);
    choices.into_iter().map(|choice| choice.word(&seen.lifecycle).to_owned()).collect()
}

pub(crate) fn cause(reason: AttentionReason) -> AttentionCause {
    match reason {
        AttentionReason::Question => AttentionCause::Question,
        AttentionReason::Gate => AttentionCause::Gate,
        AttentionReason::Conflict => AttentionCause::Conflict,
        AttentionReason::LoopExhausted => AttentionCause::LoopExhausted,
        AttentionReason::Timeout => AttentionCause::Timeout,
        AttentionReason::HookFailed => AttentionCause::HookFailed,
        AttentionReason::Review => AttentionCause::Review,
        AttentionReason::Clarification => AttentionCause::Clarification,
        AttentionReason::Stuck => AttentionCause::Stuck,
        AttentionReason::Crashed => AttentionCause::Crashed,
        AttentionReason::CannotStart => AttentionCause::CannotStart,
        AttentionReason::Dialog => AttentionCause::Dialog,
        AttentionReason::Quiet => AttentionCause::Quiet,
        AttentionReason::PoolFull => AttentionCause::PoolFull,
        AttentionReason::WorkAtRisk => AttentionCause::WorkAtRisk,
        AttentionReason::Store => AttentionCause::Store,
        AttentionReason::Worker => AttentionCause::Worker,
    }
}

pub(crate) fn source(channel: AttentionChannel) -> AttentionSource {
    match channel {
        AttentionChannel::Protocol => AttentionSource::Protocol,
        AttentionChannel::Hook => AttentionSource::Hook,
        AttentionChannel::Exit => AttentionSource::Exit,
        AttentionChannel::Screen => AttentionSource::Screen,
        AttentionChannel::Engine => AttentionSource::Engine,
    }
}
