//! Living sessions in terminals, looked at when that can tell something: for dialogs that their program is known to show, and
//! for silence. What stands on a screen raises an attention at most; nothing here clears one because of it, and nothing types.
//!
//! One thread does it. The kernel tells when an agent prints; a session that is silent costs one timer, for its silence. A
//! screen is looked at a few times after the start, whenever the agent has printed and then paused, and now and then while it
//! prints without a pause.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::task::session::SessionNumber;
use sluice_os::harness::screens::{AgentDialog, ShownDialog};
use sluice_os::harness::stream::HarnessFormat;
use sluice_os::session::{SessionActivity, SessionFailure, SessionId};
use sluice_os::tmux::TmuxFailure;

use crate::background::locked;
use crate::home::signals::{self, plain};
use crate::home::{Home, session_of};
use crate::read::tasks::TaskSnapshot;

/// When a screen is looked at after the start, in milliseconds: dialogs of that time come before anything is printed by hooks.
const AFTER_START: [u64; 4] = [1000, 2000, 4000, 8000];
/// A screen that has not changed for so long is taken to stand still.
const STILL: Duration = Duration::from_millis(600);
/// How long it is until the first look at a screen that never stands still; it doubles each time.
const FIRST_LOOK: Duration = Duration::from_secs(4);
/// The longest time between two looks at such a screen.
const RAREST_LOOK: Duration = Duration::from_secs(60);
/// What was printed so soon after the beginning of a silence is not told apart from it: two clocks are read one after the other.
const SAME_SILENCE: Duration = Duration::from_millis(100);
/// How long no screen is looked at after tmux did not answer.
const TMUX_PAUSE: Duration = Duration::from_secs(60);
/// The longest wait of the thread: a home may be closed, and settings may change.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What the thread knows of the sessions, and how it hears of them.
pub(crate) struct SessionSights {
    activity: Option<Arc<SessionActivity>>,
    all: Mutex<BTreeMap<SessionId, SessionSight>>,
}

struct SessionSight {
    began: Instant,
    due: Instant,
    stage: SightStage,
    /// The dialog that stood there at the last look: it is told of once.
    shown: Option<AgentDialog>,
    silence: ToldSilence,
}

/// What was told of a session's silence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToldSilence {
    /// An engine before this one may have told of one.
    Unknown,
    None,
    /// The one that began then.
    Since(Instant),
}

#[derive(Clone, Copy)]
enum SightStage {
    /// So many looks after the start were had.
    Beginning(usize),
    /// It prints, and is looked at then, should it not pause before.
    Printing { look: Instant, interval: Duration },
    /// The kernel tells when it prints.
    Waiting,
}

impl Default for SessionSights {
    fn default() -> SessionSights {
        let started = SessionActivity::new();
        if let Err(error) = &started {
            tracing::warn!(
                "screens and silence of agents are not seen: the kernel does not tell what they print: {error}"
            );
        }
        SessionSights { activity: started.ok().map(Arc::new), all: Mutex::default() }
    }
}

impl SessionSights {
    /// A session lives that is to be looked at.
    pub(crate) fn begin(&self, id: &SessionId) {
        let now = Instant::now();
        let (due, stage) = (now + Duration::from_millis(AFTER_START[0]), SightStage::Beginning(0));
        let new = || SessionSight { began: now, due, stage, shown: None, silence: ToldSilence::Unknown };
        locked(&self.all).entry(id.clone()).or_insert_with(new);
        self.activity.iter().for_each(|activity| activity.wake());
    }

    pub(crate) fn end(&self, id: &SessionId) {
        locked(&self.all).remove(id);
    }

    fn with<T>(&self, id: &SessionId, then: impl FnOnce(&mut SessionSight) -> T) -> Option<T> {
        locked(&self.all).get_mut(id).map(then)
    }

    /// Those that are due, and when the next one is.
    fn due(&self, now: Instant) -> (Vec<SessionId>, Option<Instant>) {
        let all = locked(&self.all);
        let due = all.iter().filter(|(_, sight)| sight.due <= now).map(|(id, _)| id.clone()).collect();
        (due, all.values().map(|sight| sight.due).filter(|due| *due > now).min())
    }
}

/// Looks at sessions until the home is closed.
pub(crate) fn keep_looking(weak: Weak<Home>) {
    let mut paused_until = None;
    loop {
        let Some(home) = weak.upgrade() else { return };
        let Some(activity) = home.sights.activity.clone() else { return };
        let (due, _) = home.sights.due(Instant::now());
        for id in due {
            visit(&home, &activity, &id, &mut paused_until);
        }
        let (late, next) = home.sights.due(Instant::now());
        drop(home);
        let wait = next.map_or(LONGEST_WAIT, |next| next.saturating_duration_since(Instant::now()).min(LONGEST_WAIT));
        let heard = activity.wait(Some(if late.is_empty() { wait } else { Duration::ZERO }));
        let Some(home) = weak.upgrade() else { return };
        let now = Instant::now();
        for id in heard {
            home.sights.with(&id, |sight| {
                if let SightStage::Waiting = sight.stage {
                    sight.stage = SightStage::Printing { look: now + FIRST_LOOK, interval: FIRST_LOOK };
                    sight.due = now + STILL;
                }
            });
        }
    }
}

/// Looks after one session that is due, and says when it is due again.
fn visit(home: &Arc<Home>, activity: &SessionActivity, id: &SessionId, paused_until: &mut Option<Instant>) {
    let sessions = &home.context.sessions;
    let seen = session_of(id).and_then(|(task, number)| Some((home.tasks.load(&task).ok().flatten()?, number)));
    let (Some((seen, number)), true) = (seen, sessions.is_living(id)) else { return home.sights.end(id) };
    let Some((stage, began)) = home.sights.with(id, |sight| (sight.stage, sight.began)) else { return };
    let still = sessions.still_for(id).unwrap_or_else(|| began.elapsed());
    look_for_silence(home, id, &seen, number, still);
    let now = Instant::now();
    let mut looks = |home: &Home| look_for_dialog(home, id, &seen, number, paused_until);
    let (stage, due) = match stage {
        SightStage::Beginning(looked) => {
            looks(home);
            match AFTER_START.get(looked + 1) {
                Some(next) => (SightStage::Beginning(looked + 1), (began + Duration::from_millis(*next)).max(now)),
                None => (SightStage::Printing { look: now + FIRST_LOOK, interval: FIRST_LOOK }, now + STILL),
            }
        }
        SightStage::Printing { .. } if still >= STILL => {
            // First, so that what is printed from now on is heard of; what was printed before is on the screen.
            let is_armed = activity.arm(sessions, id);
            looks(home);
            let quiet_after = home.context.config().attention.quiet_after;
            match is_armed {
                true => {
                    (SightStage::Waiting, now + quiet_after.map_or(LONGEST_WAIT, |after| after.saturating_sub(still)))
                }
                false => (SightStage::Printing { look: now + RAREST_LOOK, interval: RAREST_LOOK }, now + RAREST_LOOK),
            }
        }
        SightStage::Printing { look, interval } if now >= look => {
            looks(home);
            let interval = (interval * 2).min(RAREST_LOOK);
            (SightStage::Printing { look: now + interval, interval }, now + STILL)
        }
        printing @ SightStage::Printing { .. } => (printing, now + STILL),
        // It was due for its silence: told, or not long enough, or settings have changed.
        SightStage::Waiting => {
            let quiet_after = home.context.config().attention.quiet_after;
            let left = quiet_after.map(|after| after.saturating_sub(still)).filter(|left| !left.is_zero());
            (SightStage::Waiting, now + left.unwrap_or(RAREST_LOOK * 10))
        }
    };
    home.sights.with(id, |sight| (sight.stage, sight.due) = (stage, due));
}

/// An agent that the task waits for and that has printed nothing for long needs a person, until it prints again.
fn look_for_silence(home: &Arc<Home>, id: &SessionId, seen: &TaskSnapshot, number: SessionNumber, still: Duration) {
    let Some(after) = home.context.config().attention.quiet_after else { return };
    let Some(told) = home.sights.with(id, |sight| sight.silence) else { return };
    let since = Instant::now().checked_sub(still).unwrap_or_else(Instant::now);
    let goes_on = match told {
        ToldSilence::None => false,
        ToldSilence::Unknown => still >= after,
        ToldSilence::Since(began) => since < began + SAME_SILENCE,
    };
    if !goes_on && told != ToldSilence::None {
        signals::works(home, id, (&seen.id, number), AttentionChannel::Engine);
        home.sights.with(id, |sight| sight.silence = ToldSilence::None);
    }
    let is_told = goes_on && told != ToldSilence::Unknown;
    if still >= after && !is_told && seen.state.awaits(&seen.lifecycle, number) {
        signals::tell(home, id, (&seen.id, number), SessionSignal::Quiet { seconds: still.as_secs() });
        home.sights.with(id, |sight| sight.silence = ToldSilence::Since(since));
    }
}

/// A dialog that seems to stand on the screen perhaps waits for a person.
fn look_for_dialog(
    home: &Home,
    id: &SessionId,
    seen: &TaskSnapshot,
    number: SessionNumber,
    paused_until: &mut Option<Instant>,
) {
    let format = format(home, seen, number);
    let is_paused = paused_until.is_some_and(|until| Instant::now() < until);
    if is_paused || !format.is_some_and(ShownDialog::are_known) {
        return;
    }
    let screen = match home.context.sessions.screen(id) {
        Ok(screen) => screen,
        Err(SessionFailure::Tmux(TmuxFailure::Hangs { .. })) => {
            *paused_until = Some(Instant::now() + TMUX_PAUSE);
            return;
        }
        // It has just ended, or there is no window to look at.
        Err(_) => return,
    };
    let found = format.and_then(|format| ShownDialog::find(format, &screen));
    let what = found.as_ref().map(|found| found.what);
    let before = home.sights.with(id, |sight| std::mem::replace(&mut sight.shown, what)).flatten();
    if let Some(found) = found.filter(|found| before != Some(found.what)) {
        let what = DialogKind::ALL.into_iter().find(|kind| kind.word() == found.what.word());
        let (what, text) = (what.unwrap_or(DialogKind::Other), plain(&found.line));
        let signal = SessionSignal::Waits { what, text, by: AttentionChannel::Screen };
        signals::tell(home, id, (&seen.id, number), signal);
    }
}

/// Which program's screens a session shows.
fn format(home: &Home, seen: &TaskSnapshot, number: SessionNumber) -> Option<HarnessFormat> {
    let about = &seen.state.about;
    let is_beside = seen.state.beside.agent().is_some_and(|agent| agent.id == number);
    let name = if is_beside { &about.review_harness } else { &about.harness };
    home.context.harnesses().get(name).ok().map(|harness| harness.output)
}
