//! What is heard of living agents becomes a signal of their task: what their hooks tell, what stands on their screens, and
//! that they are silent. How much of it is taken is bounded; what it means is decided by the task's machine.
//!
//! The channel `protocol` comes in here as well, once agents are driven by a protocol of their own (ACP): the owner of that
//! connection calls [`heard`], as the route for hooks does.

pub(crate) mod turns;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sluice_api::attention::{AgentDialogKind, AgentNews, SignalSession};
use sluice_api::problem::Problem;
use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::id::TaskId;
use sluice_core::task::TaskInput;
use sluice_core::task::session::SessionNumber;
use sluice_engine::actor::ActorInput;
use sluice_engine::reactor::ReactorMessage;
use sluice_os::session::SessionId;

use crate::background::locked;
use crate::home::engine::wait;
use crate::home::signals::turns::TurnEnd;
use crate::home::{Home, session_id, session_of};
use crate::read::tasks::stream;
use crate::settings::left_signal::LeftSignal;

/// Characters of a dialog's text that are kept.
const LONGEST_TEXT: usize = 500;
/// What the hooks of a session may say: so much at once, and so much a second afterwards.
const HOOK_LIMIT: SignalLimit = SignalLimit { most: 60.0, per_second: 5.0 };
/// How many dialogs the screen of a session may raise. Agents can print them as they like, and each may be a notification.
const SCREEN_LIMIT: SignalLimit = SignalLimit { most: 10.0, per_second: 1.0 / 30.0 };
/// So many dialogs of a session are remembered; beyond, the oldest are forgotten.
const MOST_DIALOGS: usize = 16;
/// Bytes of a dialog's name.
const LONGEST_NAME: usize = 100;
/// So many sessions are remembered; beyond, those are forgotten that have ended.
const MOST_SESSIONS: usize = 1000;

/// What the hook of an agent program tells.
pub(crate) enum HeardNews<'a> {
    Waits { what: DialogKind, text: &'a str },
    TurnEnded { text: &'a str },
    Works,
}

impl<'a> HeardNews<'a> {
    /// What a hook says on the wire.
    pub(crate) fn of(said: &'a SignalSession) -> HeardNews<'a> {
        let text = &said.text;
        match said.news {
            AgentNews::Waits => HeardNews::Waits { what: said.what.map_or(DialogKind::Other, kind_of), text },
            AgentNews::TurnEnded => HeardNews::TurnEnded { text },
            AgentNews::Works => HeardNews::Works,
        }
    }
}

fn kind_of(dialog: AgentDialogKind) -> DialogKind {
    match dialog {
        AgentDialogKind::Trust => DialogKind::Trust,
        AgentDialogKind::Login => DialogKind::Login,
        AgentDialogKind::Permission => DialogKind::Permission,
        AgentDialogKind::Question => DialogKind::Question,
        AgentDialogKind::Update => DialogKind::Update,
        AgentDialogKind::Limit => DialogKind::Limit,
        AgentDialogKind::Network => DialogKind::Network,
        AgentDialogKind::Other => DialogKind::Other,
    }
}

/// What is over when an agent works.
#[derive(Clone, Copy)]
pub(crate) enum WorkedOn<'a> {
    /// Whatever it waited for.
    Everything,
    /// The dialog with this name; a tool can work while another waits.
    Dialog(&'a str),
    /// What has no name: a screen, a silence, the end of a turn.
    Unnamed,
}

/// What is remembered of the sessions that were heard of.
#[derive(Default)]
pub(crate) struct SessionSignals(Mutex<BTreeMap<SessionId, SignalMemory>>);

struct SignalLimit {
    most: f64,
    per_second: f64,
}

/// What a session may still say, and when that was counted.
struct SignalAllowance {
    left: f64,
    counted: Instant,
}

struct SignalMemory {
    hooks: SignalAllowance,
    screens: SignalAllowance,
    /// Grows with everything that is heard: what was to be said after a grace is then out of date.
    heard: u64,
    raised: RaisedState,
    /// The dialogs with names that are open, and what was said of each; the last one is raised.
    dialogs: Vec<(String, SessionSignal)>,
    /// The turn that has ended, until it is known what that means.
    ended: Option<TurnEnd>,
}

/// What may be raised that is to be taken back when the agent works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RaisedState {
    Nothing,
    /// By a screen or a silence, or by an engine before this one.
    Perhaps,
    ByHook,
}

impl SessionSignals {
    /// Does something with what is remembered of a session. What is said to the task in here is said in this order.
    fn with<T>(&self, home: &Home, id: &SessionId, then: impl FnOnce(&mut SignalMemory) -> T) -> T {
        let mut all = locked(&self.0);
        if all.len() >= MOST_SESSIONS && !all.contains_key(id) {
            all.retain(|id, _| home.context.sessions.is_living(id));
        }
        then(all.entry(id.clone()).or_insert_with(SignalMemory::new))
    }

    /// The sessions of a task of which a turn has ended.
    fn with_ended_turns(&self, task: &TaskId) -> Vec<SessionId> {
        let all = locked(&self.0);
        let is_meant = |memory: &SignalMemory| memory.ended.as_ref().is_some_and(|end| end.task == *task);
        all.iter().filter(|(_, memory)| is_meant(memory)).map(|(id, _)| id.clone()).collect()
    }
}

impl SignalAllowance {
    /// Whether another signal may be taken.
    fn take(&mut self, limit: &SignalLimit) -> bool {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.counted).as_secs_f64();
        self.left = (self.left + since * limit.per_second).min(limit.most);
        self.counted = now;
        let may = self.left >= 1.0;
        self.left -= if may { 1.0 } else { 0.0 };
        may
    }
}

impl SignalMemory {
    fn new() -> SignalMemory {
        SignalMemory {
            hooks: SignalAllowance { left: HOOK_LIMIT.most, counted: Instant::now() },
            screens: SignalAllowance { left: SCREEN_LIMIT.most, counted: Instant::now() },
            heard: 0,
            // What a session said before this engine began may still be raised.
            raised: RaisedState::Perhaps,
            dialogs: Vec::new(),
            ended: None,
        }
    }

    /// A dialog is open.
    fn opens(&mut self, dialog: Option<&str>, signal: &SessionSignal) {
        self.raised = RaisedState::ByHook;
        let Some(name) = dialog else { return };
        self.dialogs.retain(|(open, _)| open != name);
        if self.dialogs.len() >= MOST_DIALOGS {
            self.dialogs.remove(0);
        }
        self.dialogs.push((name.to_owned(), signal.clone()));
    }

    /// What is to be said now that the agent works: nothing, that it does, or what it still waits for.
    fn after_work(&mut self, on: WorkedOn<'_>, by: AttentionChannel) -> Option<SessionSignal> {
        // A weaker channel than a hook may have taken back nothing.
        if by != AttentionChannel::Hook {
            return (self.raised != RaisedState::Nothing).then_some(SessionSignal::Works { by });
        }
        let before = self.dialogs.len();
        match on {
            WorkedOn::Everything => self.dialogs.clear(),
            WorkedOn::Dialog(name) => self.dialogs.retain(|(open, _)| open != name),
            WorkedOn::Unnamed => {}
        }
        match self.dialogs.last() {
            Some((_, open)) => (self.dialogs.len() < before).then(|| open.clone()),
            // Hooks tell that again and again, and once is enough.
            None => {
                let was = std::mem::replace(&mut self.raised, RaisedState::Nothing);
                (was != RaisedState::Nothing).then_some(SessionSignal::Works { by })
            }
        }
    }
}

/// A hook of a session's agent program tells something, perhaps about one dialog of it. Whether it was taken.
pub(crate) fn heard(
    home: &Arc<Home>,
    task: &TaskId,
    session: SessionNumber,
    news: &HeardNews<'_>,
    dialog: Option<&str>,
) -> Result<bool, Problem> {
    let by = AttentionChannel::Hook;
    let id = session_id(task, session).map_err(Problem::fault)?;
    let dialog = dialog.filter(|name| name.len() <= LONGEST_NAME);
    let taken = home.signals.with(home, &id, |memory| {
        let may = match news {
            HeardNews::Works => true,
            HeardNews::Waits { .. } | HeardNews::TurnEnded { .. } => memory.hooks.take(&HOOK_LIMIT),
        };
        may.then(|| {
            memory.heard += 1;
            memory.ended = None;
            left(home, &id).forget_turn();
            memory.heard
        })
    });
    let Some(mark) = taken else { return Ok(false) };
    match news {
        HeardNews::Waits { what, text } => {
            let signal = SessionSignal::Waits { what: *what, text: plain(home, text), by };
            raise(home, &id, (task, session), signal, dialog)?;
        }
        HeardNews::Works => {
            works(home, &id, (task, session), dialog.map_or(WorkedOn::Everything, WorkedOn::Dialog), by);
        }
        HeardNews::TurnEnded { text } => {
            // What stood open in the turn does not any more.
            works(home, &id, (task, session), WorkedOn::Everything, by);
            turns::ended(home, &id, (task, session), mark, plain(home, text))?;
        }
    }
    Ok(true)
}

fn left(home: &Home, id: &SessionId) -> LeftSignal {
    LeftSignal::of(&home.context.places, id)
}

/// Takes up what the hooks of a session said while no engine was there, or none that lived to judge it.
pub(crate) fn take_up(home: &Arc<Home>, id: &SessionId, is_adopted: bool) {
    let Some((task, session)) = session_of(id) else { return };
    let left = left(home, id);
    let Some(said) = left.take().or_else(|| left.turn().filter(|_| is_adopted)) else { return };
    let taken = heard(home, &task, session, &HeardNews::of(&said), said.dialog.as_deref());
    if let Err(problem) = taken {
        // The next look finds it again.
        tracing::warn!("what the hook of {id} said waits: {}", problem.message);
        left.leave(&said);
    }
}

/// An agent is said to wait for a person.
fn raise(
    home: &Home,
    id: &SessionId,
    (task, session): (&TaskId, SessionNumber),
    signal: SessionSignal,
    dialog: Option<&str>,
) -> Result<(), Problem> {
    // What is remembered and what is said have the same order, whichever thread comes first.
    let asked = home.signals.with(home, id, |memory| {
        memory.opens(dialog, &signal);
        let said = ActorInput::Task(home.context.clean().task_input(TaskInput::Signal { session, signal }));
        home.engine.ask(|token| ReactorMessage::Say { token: Some(token), stream: stream(task), said })
    });
    wait(&home.engine, &asked, task.as_str()).map(drop)
}

/// An agent waits or is silent, where the caller needs no answer.
pub(crate) fn tell(home: &Home, id: &SessionId, (task, session): (&TaskId, SessionNumber), signal: SessionSignal) {
    home.signals.with(home, id, |memory| {
        memory.raised = if memory.raised == RaisedState::Nothing { RaisedState::Perhaps } else { memory.raised };
        home.input(task, home.context.clean().task_input(TaskInput::Signal { session, signal }));
    });
}

/// A dialog stands on a session's screen. Whether it was taken: a screen that shows one after another is believed less.
pub(crate) fn tell_of_screen(
    home: &Home,
    id: &SessionId,
    (task, session): (&TaskId, SessionNumber),
    signal: SessionSignal,
) -> bool {
    let is_taken = home.signals.with(home, id, |memory| memory.screens.take(&SCREEN_LIMIT));
    if is_taken {
        tell(home, id, (task, session), signal);
    }
    is_taken
}

/// An agent works, as this channel says: what was raised of it is taken back, if the channel may.
pub(crate) fn works(
    home: &Home,
    id: &SessionId,
    (task, session): (&TaskId, SessionNumber),
    on: WorkedOn<'_>,
    by: AttentionChannel,
) {
    let was_by_hook = home.signals.with(home, id, |memory| {
        let was_by_hook = memory.raised == RaisedState::ByHook;
        let said = memory.after_work(on, by);
        let is_cleared = matches!(said, Some(SessionSignal::Works { .. }));
        said.into_iter().for_each(|signal| home.input(task, TaskInput::Signal { session, signal }));
        was_by_hook && is_cleared
    });
    if was_by_hook {
        // Should the screen show a dialog all the same, it is told of again.
        home.sights.forget_dialog(id);
    }
}

/// A text in one line, without secrets and what would steer a terminal, and not longer than a person reads. A secret that is cut is
/// not known any more, so it is cut last.
pub(crate) fn plain(home: &Home, text: &str) -> String {
    cut(&home.context.clean().text(&bare(text)))
}

fn cut(line: &str) -> String {
    let is_long = line.chars().count() > LONGEST_TEXT;
    let cut: String = line.chars().take(LONGEST_TEXT).collect();
    if is_long { format!("{cut}…") } else { cut }
}

/// A text in one line, without what would steer a terminal.
pub(crate) fn bare(text: &str) -> String {
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
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_text_is_one_harmless_line() {
        assert_eq!(bare("Which\n colour?\t\u{1b}[31mRed\u{1b}[0m"), "Which colour? Red");
        assert_eq!(bare("a\u{1b}]0;title\u{7}b\u{1b}]8;;x\u{1b}\\c\u{202e}d\u{8}"), "abcd");
        assert_eq!(bare("\u{1b}[31"), "");
        let long = cut(&bare(&"word ".repeat(1000)));
        assert_eq!((long.chars().count(), long.ends_with('…')), (LONGEST_TEXT + 1, true));
    }

    #[test]
    fn a_flood_is_bounded_and_over_when_it_stops() {
        let now = Instant::now();
        for (limit, at_once, in_a_minute) in [(HOOK_LIMIT, 60, 60), (SCREEN_LIMIT, 10, 2)] {
            let mut allowance = SignalAllowance { left: limit.most, counted: now };
            assert_eq!((0..1000).filter(|_| allowance.take(&limit)).count(), at_once);
            allowance.counted -= Duration::from_secs(61);
            assert_eq!((0..1000).filter(|_| allowance.take(&limit)).count(), in_a_minute);
        }
    }

    /// A tool that ends says nothing about a dialog of another; when the last dialog is answered, the agent works.
    #[test]
    fn a_tool_that_has_ended_takes_back_its_own_dialog_only() {
        let by = AttentionChannel::Hook;
        let waits = |text: &str| SessionSignal::Waits { what: DialogKind::Permission, text: text.to_owned(), by };
        let works = Some(SessionSignal::Works { by });
        let mut memory = SignalMemory::new();
        assert_eq!(memory.after_work(WorkedOn::Everything, by), works, "an engine before may have raised something");
        assert_eq!(memory.after_work(WorkedOn::Everything, by), None);
        memory.opens(Some("one"), &waits("one"));
        memory.opens(Some("two"), &waits("two"));
        assert_eq!(memory.after_work(WorkedOn::Dialog("three"), by), None);
        assert_eq!(memory.after_work(WorkedOn::Unnamed, by), None);
        assert_eq!(memory.after_work(WorkedOn::Dialog("two"), by), Some(waits("one")));
        assert_eq!(memory.after_work(WorkedOn::Dialog("one"), by), works);
        memory.opens(Some("one"), &waits("one"));
        assert_eq!(memory.after_work(WorkedOn::Everything, by), works);
        memory.opens(None, &waits("other"));
        assert_eq!(memory.after_work(WorkedOn::Dialog("one"), by), works);
        (0..2 * MOST_DIALOGS).for_each(|count| memory.opens(Some(&count.to_string()), &waits("many")));
        assert_eq!(memory.dialogs.len(), MOST_DIALOGS);
    }
}
