//! When to look for something to tell a person, what the message says, and which hooks have told it already.
//!
//! It neither sends nor remembers what was sent: the notifier does ([`crate::watch::notify`]). What is lost here with the engine
//! leads to one look too many, or to a second word about the same thing.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use sluice_api::attention::{Attention, AttentionCause, AttentionKind};
use sluice_api::notice::AttentionMessage;
use sluice_core::event_name::EventName;
use sluice_store::LoggedEvent;

use crate::background::locked;
use crate::settings::clock::id_from;

/// A hook of a transition that was told so shortly before something needs a person was about that.
const SAME_MOMENT: i64 = 10_000;
/// So many tasks and runs are remembered whose hooks told something.
const MOST_HOOKS: usize = 1000;
/// Characters of what is the matter with one thing.
const LONGEST_TEXT: usize = 1000;
/// So many things are listed in a message about several.
const MOST_LISTED: usize = 20;

/// Whether there may be something new, and what is owed.
#[derive(Default)]
pub(crate) struct Notices(Arc<NoticesShared>);

#[derive(Default)]
pub(crate) struct NoticesShared {
    state: Mutex<NoticesState>,
    changed: Condvar,
}

#[derive(Default)]
struct NoticesState {
    is_stirred: bool,
    /// Something is to be told, and no channel has taken it yet.
    owes: bool,
    /// When a hook of a task or run told a person something, in milliseconds.
    hooks: BTreeMap<String, i64>,
}

impl NoticesShared {
    /// Waits until there may be something new, but not for longer than this.
    pub(crate) fn wait(&self, longest: Duration) {
        let waited = self.changed.wait_timeout_while(locked(&self.state), longest, |state| !state.is_stirred);
        let state = &mut waited.unwrap_or_else(PoisonError::into_inner).0;
        state.owes |= std::mem::take(&mut state.is_stirred);
    }
}

impl Notices {
    pub(crate) fn shared(&self) -> Arc<NoticesShared> {
        self.0.clone()
    }

    /// Something may need a person now.
    pub(crate) fn stir(&self) {
        locked(&self.0.state).is_stirred = true;
        self.0.changed.notify_all();
    }

    /// Takes note of events that may change what waits for a person.
    pub(crate) fn heard(&self, page: &[LoggedEvent]) {
        let needs = |logged: &LoggedEvent| {
            let name = EventName::read(&logged.event.kind);
            name.is_some_and(|name| {
                [EventName::AttentionSet, EventName::RunInterventionRequired, EventName::StepAsked].contains(&name)
            })
        };
        if page.iter().any(needs) {
            self.stir();
        }
    }

    /// Whether something is to be told that no channel has taken yet.
    pub(crate) fn owes(&self) -> bool {
        let state = locked(&self.0.state);
        state.owes || state.is_stirred
    }

    pub(crate) fn owe(&self, owes: bool) {
        locked(&self.0.state).owes = owes;
    }

    /// A hook of this task or run tells a person something through the command.
    pub(crate) fn hook_tells(&self, about: &str, now: i64) {
        let hooks = &mut locked(&self.0.state).hooks;
        if hooks.len() >= MOST_HOOKS {
            hooks.clear();
        }
        hooks.insert(about.to_owned(), now);
    }

    /// Forgets that a hook has told of this: the hook failed.
    pub(crate) fn hook_failed(&self, about: &str) {
        locked(&self.0.state).hooks.remove(about);
        self.stir();
    }

    /// Whether a hook has told a person of this through the command.
    pub(crate) fn is_told_by_hook(&self, attention: &Attention) -> bool {
        let is_of_state = match attention.kind {
            AttentionKind::Task => match attention.reason {
                AttentionCause::Review
                | AttentionCause::Clarification
                | AttentionCause::Stuck
                | AttentionCause::Question => true,
                AttentionCause::Gate
                | AttentionCause::Conflict
                | AttentionCause::LoopExhausted
                | AttentionCause::Timeout
                | AttentionCause::HookFailed
                | AttentionCause::Crashed
                | AttentionCause::CannotStart
                | AttentionCause::Dialog
                | AttentionCause::Quiet
                | AttentionCause::PoolFull
                | AttentionCause::WorkAtRisk
                | AttentionCause::Store
                | AttentionCause::Worker => false,
            },
            AttentionKind::Gate
            | AttentionKind::MaxIterations
            | AttentionKind::PartialFailure
            | AttentionKind::LoopExhausted
            | AttentionKind::Clarification
            | AttentionKind::Undecided => true,
            AttentionKind::Wait | AttentionKind::Home => false,
        };
        let Some(about) = attention.task.as_ref().or(attention.run.as_ref()).filter(|_| is_of_state) else {
            return false;
        };
        let since = attention.since.parse::<jiff::Timestamp>().map_or(i64::MAX, jiff::Timestamp::as_millisecond);
        locked(&self.0.state).hooks.get(about).is_some_and(|told| *told >= since.saturating_sub(SAME_MOMENT))
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.stir(); // the notifier finds that its home is gone
    }
}

/// The message about what waits: of one thing, or of several.
pub(crate) fn message(waiting: &[&Attention]) -> AttentionMessage {
    let mut things: Vec<AttentionMessage> = waiting.iter().map(|attention| single(attention)).collect();
    if things.len() == 1
        && let Some(one) = things.pop()
    {
        return one;
    }
    let ids: Vec<&str> = things.iter().map(|thing| thing.id.as_str()).collect();
    let line = |thing: &AttentionMessage| format!("{}: {}", thing.title, first_line(&thing.text));
    let mut lines: Vec<String> = things.iter().take(MOST_LISTED).map(line).collect();
    if things.len() > MOST_LISTED {
        lines.push(format!("and {} more", things.len() - MOST_LISTED));
    }
    AttentionMessage {
        id: format!("group-{}", id_from(&ids)),
        reason: None,
        title: format!("{} things need you", things.len()),
        text: lines.join("\n"),
        project: None,
        task: None,
        run: None,
        since: things.iter().map(|thing| thing.since.clone()).min().unwrap_or_default(),
        answer: Some("sluice inbox".to_owned()),
        things,
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn single(attention: &Attention) -> AttentionMessage {
    let project = attention.project.as_ref().map(|project| format!("{project}: ")).unwrap_or_default();
    AttentionMessage {
        id: attention.id.clone(),
        reason: Some(attention.reason),
        title: format!("{project}{} needs you ({})", attention.title, attention.reason),
        text: attention.text.chars().take(LONGEST_TEXT).collect(),
        project: attention.project.clone(),
        task: attention.task.clone(),
        run: attention.run.clone(),
        since: attention.since.clone(),
        answer: answer(attention),
        things: Vec::new(),
    }
}

/// The command that answers with the first option.
fn answer(attention: &Attention) -> Option<String> {
    let option = match attention.options.first().map(String::as_str) {
        Some(option @ "request-changes") => [option, "--message=TEXT"].join(" "),
        Some(option) => option.to_owned(),
        None if attention.kind == AttentionKind::Clarification => "TEXT".to_owned(),
        None => return None,
    };
    Some(format!("sluice answer {} {option}", attention.id))
}
