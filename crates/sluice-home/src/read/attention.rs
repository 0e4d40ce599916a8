//! What waits for a person, in words: of a task or a run as the read model has it. Nothing here looks at a file or decides
//! anything.

use sluice_api::attention::{Attention, AttentionCause, AttentionKind, AttentionNote, AttentionSource};
use sluice_api::shown::{Question, QuestionCause};
use sluice_core::attention::{AttentionChannel, AttentionReason};
use sluice_core::recipe::StepId;
use sluice_core::run::RunQuestion;
use sluice_core::task::choices::answers;
use sluice_core::task::state::RaisedAttention;

use crate::read::runs::RunSnapshot;
use crate::read::tasks::TaskSnapshot;
use crate::read::view_run;
use crate::settings::clock::written;

/// Lines of what an agent or a command printed that are shown beside what waits.
const LAST_LINES: usize = 20;

/// Why a task needs a person, where the task itself is shown.
pub(crate) fn note(seen: &TaskSnapshot) -> Option<AttentionNote> {
    let raised = seen.state.raised(&seen.lifecycle)?;
    Some(AttentionNote {
        id: id(seen, &raised),
        reason: cause(raised.why.reason()),
        text: raised.to_string(),
        since: written(raised.since.0),
        choices: choices(seen),
        said_by: source(raised.why.said_by()),
    })
}

/// What else a task needs a person for, behind what is in front.
pub(crate) fn also(seen: &TaskSnapshot) -> Option<AttentionCause> {
    Some(cause(seen.state.raised(&seen.lifecycle)?.behind?.why.reason()))
}

/// Why a task needs a person, for a list of everything that does.
pub(crate) fn of_task(seen: &TaskSnapshot) -> Option<Attention> {
    let AttentionNote { id, reason, text, since, choices, said_by } = note(seen)?;
    Some(Attention {
        kind: AttentionKind::Task,
        task: Some(seen.id.to_string()),
        project: Some(seen.state.about.project.clone()),
        title: seen.state.about.branch.clone(),
        options: choices,
        said_by,
        ..about_home(id, reason, text, since)
    })
}

/// A question of a run.
pub(crate) fn question(seen: &RunSnapshot, step: StepId, asked: &RunQuestion) -> Attention {
    let Question { id, kind, run, recipe, step, reason, exit_code, printed, options, default, deadline } =
        view_run::question(seen, step, asked);
    let since = if asked.since.0 == 0 { seen.card.updated } else { asked.since.0 };
    Attention {
        kind: kind_of(kind),
        run: Some(run),
        step: Some(step),
        title: recipe.clone(),
        recipe: Some(recipe),
        options,
        default,
        deadline,
        evidence: last_lines(printed.as_deref().unwrap_or_default()),
        exit_code,
        printed,
        ..about_home(id, cause(asked.attention()), reason, written(since))
    }
}

/// What else a run waits for.
pub(crate) fn about_run(seen: &RunSnapshot, step: Option<String>, note: AttentionNote) -> Attention {
    let AttentionNote { id, reason, text, since, choices, said_by } = note;
    let recipe = seen.plan.recipe.name.to_string();
    Attention {
        kind: AttentionKind::Wait,
        run: Some(seen.id.to_string()),
        step,
        title: recipe.clone(),
        recipe: Some(recipe),
        options: choices,
        said_by,
        ..about_home(id, reason, text, since)
    }
}

/// What the home itself needs a person for, as the engine says it.
pub(crate) fn about_home(id: String, reason: AttentionCause, text: String, since: String) -> Attention {
    Attention {
        title: id.clone(),
        id,
        kind: AttentionKind::Home,
        reason,
        task: None,
        run: None,
        step: None,
        recipe: None,
        project: None,
        text,
        since,
        options: Vec::new(),
        default: None,
        deadline: None,
        evidence: Vec::new(),
        exit_code: None,
        printed: None,
        said_by: AttentionSource::Engine,
    }
}

/// A note of the engine that has no number and nothing to answer.
pub(crate) fn note_of(reason: AttentionCause, text: String, since: String) -> AttentionNote {
    let (id, choices) = (String::new(), Vec::new());
    AttentionNote { id, reason, text, since, choices, said_by: AttentionSource::Engine }
}

/// The end of what an agent or a command printed.
pub(crate) fn last_lines(printed: &str) -> Vec<String> {
    let lines: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

fn kind_of(cause: QuestionCause) -> AttentionKind {
    match cause {
        QuestionCause::Gate => AttentionKind::Gate,
        QuestionCause::MaxIterations => AttentionKind::MaxIterations,
        QuestionCause::PartialFailure => AttentionKind::PartialFailure,
        QuestionCause::LoopExhausted => AttentionKind::LoopExhausted,
        QuestionCause::Clarification => AttentionKind::Clarification,
        QuestionCause::Undecided => AttentionKind::Undecided,
    }
}

fn id(seen: &TaskSnapshot, raised: &RaisedAttention) -> String {
    format!("{}/{}", seen.id, raised.number)
}

fn choices(seen: &TaskSnapshot) -> Vec<String> {
    let choices = answers(&seen.lifecycle, &seen.state);
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

#[cfg(test)]
mod tests {
    use sluice_api::attention::AgentDialogKind;
    use sluice_core::attention::DialogKind;

    use super::*;

    /// The wire knows no core, so each word stands twice: here it is seen that both mean the same.
    #[test]
    fn the_wire_has_the_words_of_the_core() {
        for reason in AttentionReason::ALL {
            assert_eq!(cause(reason).word(), reason.word());
        }
        for channel in AttentionChannel::ALL {
            assert_eq!(source(channel).word(), channel.word());
        }
        let words = |all: &[AttentionCause]| all.iter().map(|it| it.word()).collect::<Vec<_>>();
        assert_eq!(words(AttentionCause::ALL), AttentionReason::ALL.map(AttentionReason::word));
        let words = |all: &[AttentionSource]| all.iter().map(|it| it.word()).collect::<Vec<_>>();
        assert_eq!(words(AttentionSource::ALL), AttentionChannel::ALL.map(AttentionChannel::word));
        let words = |all: &[AgentDialogKind]| all.iter().map(|it| it.word()).collect::<Vec<_>>();
        assert_eq!(words(AgentDialogKind::ALL), DialogKind::ALL.map(DialogKind::word));
    }
}
