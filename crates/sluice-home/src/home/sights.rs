//! Living sessions in terminals, looked at when that can tell something: for dialogs that their program is known to show, and
//! for silence. What stands on a screen raises an attention at most; nothing here clears one because of it, and nothing types.
//!
//! One thread does it. The kernel tells when an agent prints; a session that is silent costs one timer, for its silence. When
//! a screen is looked at, [`super::sight_pace`] decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::task::session::{SessionNumber, SessionRole};
use sluice_os::harness::screens::{AgentDialog, ShownDialog};
use sluice_os::harness::stream::HarnessFormat;
use sluice_os::session::{SessionActivity, SessionFailure, SessionId};
use sluice_os::tmux::TmuxFailure;

use crate::background::locked;
use crate::home::sight_pace::{SightClock, SightStep};
use crate::home::signals::{self, WorkedOn, plain};
use crate::home::{Home, session_id, session_of};
use crate::read::tasks::TaskSnapshot;

/// What was printed so soon after the beginning of a silence is not told apart from it: two clocks are read one after the other.
const SAME_SILENCE: Duration = Duration::from_millis(100);
/// How long no screen is looked at after tmux did not answer.
const TMUX_PAUSE: Duration = Duration::from_secs(60);
/// The longest wait of the thread: a home may be closed, and settings may change.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long it is until a silence that was told, or is never told, is looked at again.
const TOLD_WAIT: Duration = Duration::from_secs(600);

/// What the thread knows of the sessions, and how it hears of them.
pub(crate) struct SessionSights {
    activity: Option<Arc<SessionActivity>>,
    all: Mutex<BTreeMap<SessionId, SessionSight>>,
}

struct SessionSight {
    clock: SightClock,
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
    /// The one that began then, in this stay of the task in a state: where it goes on after a move, a person is told again.
    Since {
        began: Instant,
        stay: u32,
    },
}

#[derive(Clone, Copy)]
enum SightStage {
    /// It has printed something that was not looked at.
    Printing,
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
        let clock = SightClock::new(now);
        let (due, stage) = (clock.after_rest(now), SightStage::Printing);
        let new = || SessionSight { clock, due, stage, shown: None, silence: ToldSilence::Unknown };
        locked(&self.all).entry(id.clone()).or_insert_with(new);
        self.activity.iter().for_each(|activity| activity.wake());
    }

    pub(crate) fn end(&self, id: &SessionId) {
        locked(&self.all).remove(id);
    }

    /// What stands on the screen of a session is told of again, should it be a dialog.
    pub(crate) fn forget_dialog(&self, id: &SessionId) {
        self.with(id, |sight| sight.shown = None);
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
                    sight.clock.woke = now;
                    (sight.stage, sight.due) = (SightStage::Printing, sight.clock.after_rest(now));
                }
            });
        }
    }
}

/// Looks after one session that is due, and says when it is due again.
fn visit(home: &Arc<Home>, activity: &SessionActivity, id: &SessionId, paused_until: &mut Option<Instant>) {
    let sessions = &home.context.sessions;
    let (Some((task, number)), true) = (session_of(id), sessions.is_living(id)) else { return home.sights.end(id) };
    signals::take_up(home, id, false);
    home.pulses.note(sessions, id);
    let Some((stage, clock, silence)) = home.sights.with(id, |sight| (sight.stage, sight.clock, sight.silence)) else {
        return;
    };
    let printed = sessions.still_for(id);
    let still = printed.unwrap_or_else(|| clock.began.elapsed());
    let now = Instant::now();
    // An agent that prints, and of whose silence nothing was told, is looked after without reading its task.
    if let (SightStage::Printing, SightStep::Later(then), ToldSilence::None) = (stage, clock.step(now, still), silence)
    {
        home.sights.with(id, |sight| sight.due = then);
        return;
    }
    // One that cannot be read now is looked at again: its agent lives.
    let Some(seen) = home.tasks.open_task(&task) else {
        home.sights.with(id, |sight| sight.due = Instant::now() + LONGEST_WAIT);
        return;
    };
    look_for_silence(home, id, &seen, number, still);
    let quiet_after = home.context.config().attention.quiet_after;
    let mut looks = |home: &Home| {
        home.sights.with(id, |sight| sight.clock.looked = Some(now));
        // Before the first word there is nothing to see.
        if printed.is_some() {
            look_for_dialog(home, id, &seen, number, paused_until);
        }
    };
    let (stage, due) = match (stage, clock.step(now, still)) {
        (SightStage::Printing, SightStep::LookAndRest) => {
            // First, so that what is printed from now on is heard of; what was printed before is on the screen.
            let is_armed = activity.arm(sessions, id);
            looks(home);
            match is_armed {
                true => {
                    (SightStage::Waiting, now + quiet_after.map_or(LONGEST_WAIT, |after| after.saturating_sub(still)))
                }
                false => (SightStage::Printing, clock.unheard(now)),
            }
        }
        (SightStage::Printing, SightStep::Look) => {
            looks(home);
            let looked = SightClock { looked: Some(now), ..clock };
            (SightStage::Printing, looked.after_rest(now))
        }
        (SightStage::Printing, SightStep::Later(then)) => (SightStage::Printing, then),
        // It was due for its silence: told, or not long enough, or settings have changed.
        (SightStage::Waiting, SightStep::LookAndRest | SightStep::Look | SightStep::Later(_)) => {
            let left = quiet_after.map(|after| after.saturating_sub(still)).filter(|left| !left.is_zero());
            (SightStage::Waiting, now + left.unwrap_or(TOLD_WAIT))
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
        ToldSilence::Since { began, .. } => since < began + SAME_SILENCE,
    };
    if !goes_on && told != ToldSilence::None {
        signals::works(home, id, (&seen.id, number), WorkedOn::Unnamed, AttentionChannel::Engine);
        home.sights.with(id, |sight| sight.silence = ToldSilence::None);
    }
    let stay = seen.state.visit.turn;
    let is_told = match told {
        ToldSilence::None | ToldSilence::Unknown => false,
        ToldSilence::Since { stay: told, .. } => goes_on && told == stay,
    };
    if still >= after && !is_told && seen.state.awaits(&seen.lifecycle, number) {
        signals::tell(home, id, (&seen.id, number), SessionSignal::Quiet { seconds: still.as_secs() });
        home.sights.with(id, |sight| sight.silence = ToldSilence::Since { began: since, stay });
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
    let before = home.sights.with(id, |sight| sight.shown).flatten();
    let is_told = match found.as_ref().filter(|found| before != Some(found.what)) {
        Some(found) => {
            let (what, text) = (kind_of(found.what), plain(home, &found.line));
            let signal = SessionSignal::Waits { what, text, by: AttentionChannel::Screen };
            signals::tell_of_screen(home, id, (&seen.id, number), signal)
        }
        None => true,
    };
    if is_told {
        home.sights.with(id, |sight| sight.shown = found.map(|found| found.what));
    }
}

/// What a dialog of a program is about, in the word of attentions.
fn kind_of(dialog: AgentDialog) -> DialogKind {
    match dialog {
        AgentDialog::Trust => DialogKind::Trust,
        AgentDialog::Login => DialogKind::Login,
        AgentDialog::Permission => DialogKind::Permission,
        AgentDialog::Question => DialogKind::Question,
        AgentDialog::Update => DialogKind::Update,
        AgentDialog::Limit => DialogKind::Limit,
        AgentDialog::Network => DialogKind::Network,
        AgentDialog::Other => DialogKind::Other,
    }
}

/// Which program's screens a session shows: the one that it was started with. Where that is not noted, its role tells.
pub(crate) fn format(home: &Home, seen: &TaskSnapshot, number: SessionNumber) -> Option<HarnessFormat> {
    let about = &seen.state.about;
    let agents = [&seen.state.main, &seen.state.beside].into_iter().filter_map(|session| session.agent());
    let role = agents.into_iter().find(|agent| agent.id == number).map(|agent| agent.role);
    let noted = session_id(&seen.id, number).ok().and_then(|id| home.context.program_of(id.as_str()));
    let name = match (&noted, role) {
        (Some(noted), _) => noted.harness(),
        (None, Some(SessionRole::Reviewer)) => &about.review_harness,
        (None, Some(SessionRole::Worker) | None) => &about.harness,
    };
    home.context.harnesses().get(name).ok().map(|harness| harness.output)
}
