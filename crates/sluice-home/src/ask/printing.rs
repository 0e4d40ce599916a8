//! What the agents of a task or run print, for those who follow it: piece by piece, whole lines, until the agents have ended.
//!
//! A follower has a place in each stream and no memory of what was printed before. The kernel tells when an agent prints
//! ([`SessionActivity`]); that one has ended, or another has begun, is told by the events, which wake the follower.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sluice_api::diff::LogPiece;
use sluice_api::problem::Problem;
use sluice_core::id::{RunId, TaskId};
use sluice_core::recipe::StepId;
use sluice_core::run::StepStatusKind;
use sluice_os::redact::shown_of;
use sluice_os::session::{SessionActivity, SessionId, SessionStream};

use super::Service;
use crate::home::session_id;
use crate::read::runs::RunSnapshot;
use crate::settings::projects::shown;

/// Bytes that are read of a stream at a time.
const PIECE: usize = 64 << 10;
/// A line that is longer is told before it has ended.
const LONGEST_LINE: usize = 8 << 10;

/// One who follows what agents print.
pub struct LogFollower {
    of: FollowedWork,
    activity: Arc<SessionActivity>,
    places: BTreeMap<(SessionId, &'static str), StreamPlace>,
    /// Attempts of scripts that were told: their step, and which attempt it was.
    told: BTreeSet<(u32, u32)>,
    /// The step whose words were told last.
    speaker: Option<u32>,
}

enum FollowedWork {
    /// A session of a task; `None` where the task never had one.
    Task(Option<SessionId>),
    Run {
        id: RunId,
        step: Option<StepId>,
    },
}

/// How far a stream was read, and the beginning of a line whose end has not come.
#[derive(Default)]
struct StreamPlace {
    next: u64,
    begun: Vec<u8>,
}

/// What there is to tell a follower of a log.
pub enum LogNews {
    /// A session has printed this piece.
    Piece(LogPiece),
    /// Nothing more was printed yet.
    Quiet,
    /// The agents have ended, and all was told.
    Ended,
}

/// Lets a follower go on that waits.
#[derive(Clone)]
pub struct LogWaker(Arc<SessionActivity>);

impl LogWaker {
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl LogFollower {
    fn new(of: FollowedWork) -> Result<LogFollower, Problem> {
        let activity = SessionActivity::new()
            .map_err(|error| Problem::unavailable(format!("what agents print cannot be followed now: {error}")))?;
        let (places, told) = (BTreeMap::new(), BTreeSet::new());
        Ok(LogFollower { of, activity: Arc::new(activity), places, told, speaker: None })
    }

    /// Up to where a stream was told, for the next engine.
    fn place(&self, session: &SessionId, name: &'static str) -> Option<String> {
        let place = self.places.get(&(session.clone(), name))?;
        let told = place.next.saturating_sub(u64::try_from(place.begun.len()).unwrap_or_default());
        Some(format!("{session}/{name}:{told}"))
    }

    pub fn waker(&self) -> LogWaker {
        LogWaker(self.activity.clone())
    }

    /// Waits until an agent prints, or the follower is woken.
    pub fn wait(&self) {
        self.activity.wait(None);
    }
}

impl Service {
    /// Follows what the agent of a task prints, the one at work or else the newest, after its last lines.
    pub fn follow_task_log(
        &self,
        id: &str,
        lines: Option<usize>,
        from: Option<&str>,
    ) -> Result<(LogFollower, Option<LogPiece>), Problem> {
        let seen = self.home.tasks.find(id)?;
        if let Some(from) = from {
            // Its session is the one that was followed, though a newer one may be there.
            let places = places_of(from)?;
            let own = |it: &&(SessionId, &str)| it.0.as_str().starts_with(&format!("{}.", seen.id));
            let session = places.keys().find(own).map(|(session, _)| session.clone());
            let mut follower = LogFollower::new(FollowedWork::Task(session))?;
            follower.places = places;
            return Ok((follower, None));
        }
        let session = self.session_of_log(&seen);
        let mut follower = LogFollower::new(FollowedWork::Task(session.clone()))?;
        let Some(session) = session else { return Ok((follower, None)) };
        // The places first: what is printed meanwhile is told after the last lines, or twice, but never lost.
        for (stream, name) in STREAMS {
            let end = self.home.context.sessions.output_tail(&session, stream, 0).map_or(0, |chunk| chunk.next());
            follower.places.insert((session.clone(), name), StreamPlace { next: end, begun: Vec::new() });
        }
        let text = self.printed_last(&session, lines).0;
        let places = STREAMS.iter().filter_map(|(_, name)| follower.place(&session, name)).collect();
        Ok((follower, Some(LogPiece { session: Some(session.to_string()), text, ended: false, places })))
    }

    /// Follows what the steps of a run print, or one of them, from the beginning.
    pub fn follow_run_log(&self, id: &str, step: Option<&str>, from: Option<&str>) -> Result<LogFollower, Problem> {
        let seen = self.run(id)?;
        let step = step.map(|name| seen.step(name)).transpose()?;
        let mut follower = LogFollower::new(FollowedWork::Run { id: seen.id, step })?;
        if let Some(from) = from {
            (follower.places, follower.told) = (places_of(from)?, scripts_of(from));
        }
        Ok(follower)
    }

    /// The next piece for a follower. It never waits.
    pub fn log_news(&self, follower: &mut LogFollower) -> Result<LogNews, Problem> {
        match &follower.of {
            FollowedWork::Task(None) => Ok(LogNews::Ended),
            FollowedWork::Task(Some(session)) => {
                let session = session.clone();
                // Before it is read: what it printed until it ended is then read.
                let is_living = self.home.context.sessions.is_living(&session);
                follower.activity.arm(&self.home.context.sessions, &session);
                let read = STREAMS.iter().find_map(|it| Some((it.1, self.piece(follower, &session, *it, is_living)?)));
                Ok(match read {
                    Some((name, text)) => {
                        let places = follower.place(&session, name).into_iter().collect();
                        LogNews::Piece(LogPiece { session: Some(session.to_string()), text, ended: false, places })
                    }
                    None if is_living => LogNews::Quiet,
                    None => LogNews::Ended,
                })
            }
            FollowedWork::Run { id, step } => {
                let (id, step) = (id.clone(), *step);
                self.run_news(follower, &id, step)
            }
        }
    }

    fn run_news(&self, follower: &mut LogFollower, id: &RunId, only: Option<StepId>) -> Result<LogNews, Problem> {
        let seen = self.run(id.as_str())?;
        let sessions = self.home.context.sessions.list().unwrap_or_default();
        let steps = (0u32..).zip(&seen.state.steps).filter(|(step, _)| only.is_none_or(|only| only.0 == *step));
        let mut lives = false;
        for (step, state) in steps {
            let begins = format!("{id}.{step}.");
            let own: Vec<&SessionId> = sessions.iter().filter(|it| it.as_str().starts_with(&begins)).collect();
            for session in &own {
                let is_living = self.home.context.sessions.is_living(session);
                lives |= is_living;
                follower.activity.arm(&self.home.context.sessions, session);
                if let Some(text) = self.piece(follower, session, STREAMS[0], is_living) {
                    let place = follower.place(session, STREAMS[0].1);
                    return Ok(piece(follower, &seen, step, (Some(session), place), &text));
                }
            }
            let is_over = !matches!(state.kind(), StepStatusKind::Ready | StepStatusKind::Running);
            if own.is_empty() && is_over && state.attempts > 0 && follower.told.insert((step, state.attempts)) {
                let text = self.printed(&seen, StepId(step), state);
                if !text.is_empty() {
                    let place = format!("{step}.{}/{SCRIPT}:1", state.attempts);
                    return Ok(piece(follower, &seen, step, (None, Some(place)), &text));
                }
            }
        }
        Ok(if seen.state.end.is_some() && !lives { LogNews::Ended } else { LogNews::Quiet })
    }

    /// What came since the last piece, in whole lines; of an agent that has ended, everything.
    fn piece(
        &self,
        follower: &mut LogFollower,
        session: &SessionId,
        (stream, name): (SessionStream, &'static str),
        is_living: bool,
    ) -> Option<String> {
        let place = follower.places.entry((session.clone(), name)).or_default();
        let chunk = self.home.context.sessions.output_from(session, stream, place.next, PIECE).unwrap_or_default();
        if !chunk.bytes.is_empty() {
            place.next = chunk.next();
            place.begun.extend(chunk.bytes);
        }
        let last = place.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = if !is_living || place.begun.len() - last > LONGEST_LINE { place.begun.len() } else { last };
        let bytes: Vec<u8> = place.begun.drain(..whole).collect();
        (!bytes.is_empty()).then(|| shown_of(&bytes))
    }

    /// The session whose output is the log of a task: the reviewer's first, for it is the one at work.
    pub(super) fn session_of_log(&self, seen: &crate::read::tasks::TaskSnapshot) -> Option<SessionId> {
        let id: &TaskId = &seen.id;
        let living = seen.living().next_back().and_then(|agent| session_id(id, agent.id).ok());
        living.or_else(|| self.newest_session(seen))
    }
}

/// A piece of a step of a run; where another step spoke before, its name stands above.
fn piece(
    follower: &mut LogFollower,
    seen: &RunSnapshot,
    step: u32,
    (session, place): (Option<&SessionId>, Option<String>),
    text: &str,
) -> LogNews {
    let is_new = follower.speaker.replace(step) != Some(step);
    let name = &seen.plan.recipe.step(StepId(step)).name;
    let head = if is_new { format!("==> {name} <==\n") } else { String::new() };
    let (session, text, places) =
        (session.map(SessionId::to_string), format!("{head}{text}"), place.into_iter().collect());
    LogNews::Piece(LogPiece { session, text, ended: false, places })
}

/// The streams among the places that a follower gives back, and how far each was told.
fn places_of(from: &str) -> Result<BTreeMap<(SessionId, &'static str), StreamPlace>, Problem> {
    let mut places = BTreeMap::new();
    for written in from.split(',').filter(|written| !written.is_empty()) {
        let wrong = || Problem::bad_request(format!("`{}` is no place in a log", shown(written)));
        let (stream, next) = written.rsplit_once(':').ok_or_else(wrong)?;
        let (session, name) = stream.rsplit_once('/').ok_or_else(wrong)?;
        let next = next.parse().map_err(|_| wrong())?;
        if name == SCRIPT {
            continue;
        }
        let (_, name) = STREAMS.into_iter().find(|(_, known)| *known == name).ok_or_else(wrong)?;
        let session = SessionId::new(session).map_err(|_| wrong())?;
        places.insert((session, name), StreamPlace { next, begun: Vec::new() });
    }
    Ok(places)
}

/// The attempts of scripts among the places that a follower gives back.
fn scripts_of(from: &str) -> BTreeSet<(u32, u32)> {
    let attempt = |written: &str| {
        let (attempt, name) = written.rsplit_once(':')?.0.rsplit_once('/')?;
        let (step, attempt) = attempt.split_once('.').filter(|_| name == SCRIPT)?;
        Some((step.parse().ok()?, attempt.parse().ok()?))
    };
    from.split(',').filter_map(attempt).collect()
}

/// What a place is called that stands for all that an attempt of a script printed.
const SCRIPT: &str = "script";

const STREAMS: [(SessionStream, &str); 2] = [(SessionStream::Output, "output"), (SessionStream::Errors, "errors")];
