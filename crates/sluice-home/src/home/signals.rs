//! What is heard of living agents becomes a signal of their task: what their hooks tell, what stands on their screens, and
//! that they are silent. How much of it is taken is bounded; what it means is decided by the task's machine.
//!
//! The channel `protocol` comes in here as well, once agents are driven by a protocol of their own (ACP): the owner of that
//! connection calls [`heard`], as the route for hooks does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sluice_api::problem::Problem;
use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::id::TaskId;
use sluice_core::task::TaskInput;
use sluice_core::task::session::SessionNumber;
use sluice_os::session::SessionId;

use crate::background::locked;
use crate::home::engine::ask;
use crate::home::{Home, session_id};

/// How long after the end of its turn an agent may take to end, or its task to move, before it is said to wait.
const GRACE: Duration = Duration::from_millis(500);
/// So often a grace begins again while hooks of the lifecycle are at work.
const MOST_LOOKS: u32 = 120;
/// Characters of a dialog's text that are kept.
const LONGEST_TEXT: usize = 500;
/// So many signals a session may send at once.
const MOST_SIGNALS: f64 = 60.0;
/// So many signals a second a session may go on with.
const SIGNALS_PER_SECOND: f64 = 5.0;
/// So many sessions are remembered; beyond, those are forgotten that have ended.
const MOST_SESSIONS: usize = 1000;

/// What the hook of an agent program tells.
pub(crate) enum HeardNews<'a> {
    Waits { what: DialogKind, text: &'a str },
    TurnEnded { text: &'a str },
    Works,
}

/// What is remembered of the sessions that were heard of.
#[derive(Default)]
pub(crate) struct SessionSignals(Mutex<BTreeMap<SessionId, SignalMemory>>);

struct SignalMemory {
    /// Signals that it may still send, and when that was counted.
    left: f64,
    counted: Instant,
    /// Grows with everything that is heard: what was to be said after a grace is then out of date.
    heard: u64,
    /// Something may be raised that is to be taken back when the agent works.
    is_raised: bool,
}

impl SessionSignals {
    /// Does something with what is remembered of a session.
    fn with<T>(&self, home: &Home, id: &SessionId, then: impl FnOnce(&mut SignalMemory) -> T) -> T {
        let mut all = locked(&self.0);
        if all.len() >= MOST_SESSIONS && !all.contains_key(id) {
            all.retain(|id, _| home.context.sessions.is_living(id));
        }
        let now = Instant::now();
        // What a session said before this engine began may still be raised.
        let new = || SignalMemory { left: MOST_SIGNALS, counted: now, heard: 0, is_raised: true };
        then(all.entry(id.clone()).or_insert_with(new))
    }
}

impl SignalMemory {
    /// Whether another signal may be taken.
    fn take(&mut self) -> bool {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.counted).as_secs_f64();
        self.left = (self.left + since * SIGNALS_PER_SECOND).min(MOST_SIGNALS);
        self.counted = now;
        let may = self.left >= 1.0;
        self.left -= if may { 1.0 } else { 0.0 };
        may
    }
}

/// A hook of a session's agent program tells something. Whether it was taken.
pub(crate) fn heard(
    home: &Arc<Home>,
    task: &TaskId,
    session: SessionNumber,
    news: &HeardNews<'_>,
) -> Result<bool, Problem> {
    let by = AttentionChannel::Hook;
    let id = session_id(task, session).map_err(Problem::fault)?;
    let taken = home.signals.with(home, &id, |memory| memory.take().then(|| (memory.heard += 1, memory.heard).1));
    let Some(mark) = taken else { return Ok(false) };
    match news {
        HeardNews::Waits { what, text } => {
            raise(home, &id, (task, session), SessionSignal::Waits { what: *what, text: plain(text), by })?;
        }
        HeardNews::Works => works(home, &id, (task, session), by),
        HeardNews::TurnEnded { text } => {
            let text = plain(text);
            // What stood open in the turn does not any more.
            works(home, &id, (task, session), by);
            turn_ended(home, id, (task, session), mark, text);
        }
    }
    Ok(true)
}

/// An agent waits, or is silent.
pub(crate) fn raise(
    home: &Home,
    id: &SessionId,
    (task, session): (&TaskId, SessionNumber),
    signal: SessionSignal,
) -> Result<(), Problem> {
    home.signals.with(home, id, |memory| memory.is_raised = true);
    ask(home, task, TaskInput::Signal { session, signal }).map(drop)
}

/// The same, where the caller needs no answer.
pub(crate) fn tell(home: &Home, id: &SessionId, (task, session): (&TaskId, SessionNumber), signal: SessionSignal) {
    home.signals.with(home, id, |memory| memory.is_raised = true);
    home.input(task, home.context.clean().task_input(TaskInput::Signal { session, signal }));
}

/// An agent works, as this channel says: what was raised of it is taken back, if the channel may.
pub(crate) fn works(home: &Home, id: &SessionId, (task, session): (&TaskId, SessionNumber), by: AttentionChannel) {
    // Hooks tell that again and again, and once is enough. A weaker channel may have taken back nothing.
    let is_strong = by == AttentionChannel::Hook;
    let was_raised = home.signals.with(home, id, |memory| {
        let was = memory.is_raised;
        memory.is_raised &= !is_strong;
        was
    });
    if was_raised {
        home.input(task, TaskInput::Signal { session, signal: SessionSignal::Works { by } });
    }
}

/// The end of an agent's turn, until it is known what it means.
struct TurnEnd {
    id: SessionId,
    task: TaskId,
    session: SessionNumber,
    /// What was heard of the session when the turn ended.
    mark: u64,
    /// The stay in which the task was then.
    stay: u32,
    text: String,
    /// How often it is looked again while hooks of the lifecycle are at work.
    looks: u32,
}

/// An agent that has ended its turn waits, unless it ends or its task moves within the grace, or it is not its turn.
fn turn_ended(home: &Arc<Home>, id: SessionId, (task, session): (&TaskId, SessionNumber), mark: u64, text: String) {
    let Some(seen) = home.tasks.load(task).ok().flatten() else { return };
    let stay = seen.state.visit.turn;
    later(home, TurnEnd { id, task: task.clone(), session, mark, stay, text, looks: MOST_LOOKS });
}

fn later(home: &Arc<Home>, end: TurnEnd) {
    let weak = Arc::downgrade(home);
    home.later.after(GRACE, move || weak.upgrade().map_or((), |home| conclude(&home, end)));
}

fn conclude(home: &Arc<Home>, end: TurnEnd) {
    let Some(seen) = home.tasks.load(&end.task).ok().flatten() else { return };
    let is_last = home.signals.with(home, &end.id, |memory| memory.heard == end.mark);
    if !is_last || seen.state.visit.turn != end.stay || !home.context.sessions.is_living(&end.id) {
        return;
    }
    if !seen.state.turns.is_empty() && end.looks > 0 {
        return later(home, TurnEnd { looks: end.looks - 1, ..end });
    }
    if seen.state.awaits(&seen.lifecycle, end.session) {
        let (what, by) = (DialogKind::Question, AttentionChannel::Hook);
        let signal = SessionSignal::Waits { what, text: end.text, by };
        tell(home, &end.id, (&end.task, end.session), signal);
    }
}

/// A text in one line, without what would steer a terminal, and not longer than a person reads.
pub(crate) fn plain(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => drop_sequence(&mut rest),
            it if it.is_whitespace() => bare.push(' '),
            // The second are marks that turn the direction of writing, and others that no person sees.
            it if it.is_control()
                || matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}') =>
                {}
            it => bare.push(it),
        }
    }
    let line = bare.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_long = line.chars().count() > LONGEST_TEXT;
    let cut: String = line.chars().take(LONGEST_TEXT).collect();
    if is_long { format!("{cut}…") } else { cut }
}

/// Drops the rest of an escape sequence: up to its final letter, or for a string up to its end.
fn drop_sequence(rest: &mut std::str::Chars<'_>) {
    match rest.next() {
        Some('[') => drop(rest.find(|it| ('\u{40}'..='\u{7e}').contains(it))),
        Some(']' | 'P' | 'X' | '^' | '_') => drop(rest.find(|it| matches!(it, '\u{7}' | '\u{9c}' | '\\'))),
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_harmless_line() {
        assert_eq!(plain("Which\n colour?\t\u{1b}[31mRed\u{1b}[0m"), "Which colour? Red");
        assert_eq!(plain("a\u{1b}]0;title\u{7}b\u{1b}]8;;x\u{1b}\\c\u{202e}d\u{8}"), "abcd");
        assert_eq!(plain("\u{1b}[31"), "");
        let long = plain(&"word ".repeat(1000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (LONGEST_TEXT + 1, true));
    }

    #[test]
    fn a_flood_is_bounded_and_over_when_it_stops() {
        let now = Instant::now();
        let mut memory = SignalMemory { left: MOST_SIGNALS, counted: now, heard: 0, is_raised: true };
        assert_eq!((0..1000).filter(|_| memory.take()).count(), 60);
        memory.counted -= Duration::from_secs(2);
        assert_eq!((0..1000).filter(|_| memory.take()).count(), 10);
    }
}
