//! The end of an agent's turn, until it is known what it means: the agent waits, unless it ends, it goes on or its task moves within
//! a grace. While hooks of the lifecycle are at work nothing is said; when they have settled, it is looked at again.

use std::sync::Arc;
use std::time::Duration;

use sluice_api::attention::{AgentNews, SignalSession};
use sluice_api::problem::Problem;
use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::id::TaskId;
use sluice_core::task::TaskInput;
use sluice_core::task::session::SessionNumber;
use sluice_os::session::SessionId;

use super::{RaisedState, left};
use crate::home::Home;

/// How long after the end of its turn an agent may take to end, or its task to move, before it is said to wait.
const GRACE: Duration = Duration::from_millis(500);
/// How long a store that does not answer is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// A turn that has ended.
#[derive(Clone)]
pub(super) struct TurnEnd {
    pub(super) task: TaskId,
    session: SessionNumber,
    /// What was heard of the session when the turn ended.
    mark: u64,
    /// The stay in which the task was then.
    stay: u32,
    text: String,
    /// The grace is over.
    is_due: bool,
    /// The task was told; its next event says that this is stored.
    is_told: bool,
}

/// The turn of an agent has ended. It is kept in a file as well: an engine that is killed before it has judged it leaves it to the
/// next.
pub(super) fn ended(
    home: &Arc<Home>,
    id: &SessionId,
    (task, session): (&TaskId, SessionNumber),
    mark: u64,
    text: String,
) -> Result<(), Problem> {
    let Some(seen) = home.tasks.load(task)? else { return Ok(()) };
    let said = SignalSession {
        session: id.to_string(),
        news: AgentNews::TurnEnded,
        what: None,
        text: text.clone(),
        dialog: None,
    };
    let end =
        TurnEnd { task: task.clone(), session, mark, stay: seen.state.visit.turn, text, is_due: false, is_told: false };
    home.signals.with(home, id, |memory| {
        if memory.heard == mark {
            left(home, id).keep_turn(&said);
            memory.ended = Some(end);
        }
    });
    later(home, id, mark, GRACE);
    Ok(())
}

fn later(home: &Arc<Home>, id: &SessionId, mark: u64, wait: Duration) {
    let (weak, id) = (Arc::downgrade(home), id.clone());
    home.later.after(wait, move || weak.upgrade().map_or((), |home| judge(&home, &id, Some(mark))));
}

/// Something has happened to a task: perhaps its hooks have settled.
pub(crate) fn task_went_on(home: &Arc<Home>, task: &TaskId) {
    for id in home.signals.with_ended_turns(task) {
        judge(home, &id, None);
    }
}

/// Says what the end of a turn means, once its grace is over. With a mark, the grace of that end is over now.
fn judge(home: &Arc<Home>, id: &SessionId, grace_of: Option<u64>) {
    let end = home.signals.with(home, id, |memory| {
        let end = memory.ended.as_mut()?;
        end.is_due |= grace_of == Some(end.mark);
        Some(end.clone()).filter(|end| end.is_due)
    });
    let Some(end) = end else { return };
    if end.is_told {
        return forget(home, id, end.mark);
    }
    let signal = match home.tasks.load(&end.task) {
        // It is not known where the task stands.
        Err(_) => return later(home, id, end.mark, AGAIN),
        Ok(Some(seen)) if seen.state.visit.turn == end.stay && home.context.sessions.is_living(id) => {
            if !seen.state.turns.is_empty() {
                return; // its next event leads here again
            }
            let (what, by) = (DialogKind::Question, AttentionChannel::Hook);
            let waits = SessionSignal::Waits { what, text: end.text, by };
            seen.state.awaits(&seen.lifecycle, end.session).then_some(waits)
        }
        Ok(_) => None,
    };
    let Some(signal) = signal else { return forget(home, id, end.mark) };
    home.signals.with(home, id, |memory| {
        // Meanwhile the agent may have gone on.
        let Some(known) = memory.ended.as_mut().filter(|known| known.mark == end.mark) else { return };
        known.is_told = true;
        memory.raised = RaisedState::ByHook;
        let input = TaskInput::Signal { session: end.session, signal };
        home.input(&end.task, home.context.clean().task_input(input));
    });
}

fn forget(home: &Home, id: &SessionId, mark: u64) {
    home.signals.with(home, id, |memory| {
        if memory.ended.take_if(|known| known.mark == mark).is_some() {
            left(home, id).forget_turn();
        }
    });
}
