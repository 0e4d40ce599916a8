//! The open home, on which effects, questions and watchers work: its settings, projects, sessions and tasks, and what is
//! remembered of worktrees, branches and remote workers. It decides nothing; the machines of the core do.

pub(crate) mod attention;
pub(crate) mod branches;
pub(crate) mod channels;
mod checkouts;
pub(crate) mod daybook;
pub(crate) mod ended;
pub(crate) mod engine;
pub(crate) mod errand;
pub(crate) mod exits;
pub(crate) mod hook;
pub(crate) mod judged;
pub(crate) mod leftovers;
pub(crate) mod lending;
mod mirrors;
pub(crate) mod notices;
pub(crate) mod project_workers;
pub(crate) mod pulses;
pub(crate) mod registry;
pub(crate) mod repositories;
pub mod reservations;
pub(crate) mod room;
pub(crate) mod rows;
pub(crate) mod scratch;
pub(crate) mod setup;
pub(crate) mod sight_pace;
pub(crate) mod sights;
pub(crate) mod signals;
pub(crate) mod sizes;
mod spares;
pub(crate) mod waits;
pub(crate) mod work;
pub(crate) mod workers;
pub(crate) mod worktrees;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sluice_api::Problem;
use sluice_api::attention::{AttentionCause, AttentionNote};
use sluice_api::project::Project;
use sluice_api::task::{SessionPulse, Task};
use sluice_core::id::TaskId;
use sluice_core::task::session::{SessionNumber, TaskSession};
use sluice_core::task::{Evidence, TaskEvent, TaskInput};
use sluice_engine::actor::{ActorInput, Remark};
use sluice_engine::codec::task_event;
use sluice_engine::host::{EngineClock, EngineHandle, RetentionTerm};
use sluice_engine::reactor::ReactorMessage;
use sluice_os::process::ProcessIdentity;
use sluice_os::session::SessionId;
use sluice_os::taskfile::FrontmatterForgery;
use sluice_os::workspace::{WorkspaceName, WorkspacePool};

use crate::background::lane::Lane;
use crate::background::later::HomeTimer;
use crate::background::locked;
use crate::background::threads::ThreadPool;
use crate::background::turns::KeyedTurns;
use crate::home::attention::{SinceKnown, still_owed};
use crate::home::branches::BranchClaims;
use crate::home::checkouts::CheckoutSnapshots;
use crate::home::daybook::DayBook;
use crate::home::mirrors::Mirrors;
use crate::home::notices::Notices;
use crate::home::pulses::SessionPulses;
use crate::home::registry::Registry;
use crate::home::reservations::Reservations;
use crate::home::room::RoomWatch;
use crate::home::sights::SessionSights;
use crate::home::signals::SessionSignals;
use crate::home::sizes::ChangeSizes;
use crate::home::waits::EffectWaits;
use crate::home::workers::Roster;
use crate::home::worktrees::RunWorktrees;
use crate::perform::PerformContext;
use crate::read::files::{self, TaskFileContent};
use crate::read::tasks::{ReadModel, TaskSnapshot, stream};
use crate::read::view;
use crate::settings::clock::WallClock;
use crate::settings::projects::Projects;
use crate::settings::repositories::Repositories;

/// The folder of the notes about merges.
pub(crate) const MERGING: &str = "merging";

/// One home, as those see it who carry something out in it.
pub struct Home {
    pub context: PerformContext,
    pub projects: Projects,
    pub tasks: Arc<ReadModel>,
    pub reservations: Reservations,
    pub(crate) branches: BranchClaims,
    pub clock: Arc<WallClock>,
    /// When this engine opened it.
    pub(crate) began: i64,
    pub(crate) engine: EngineHandle,
    /// The process that asked last, of each session that asked for something.
    asking: Mutex<BTreeMap<SessionId, ProcessIdentity>>,
    pub(crate) checkouts: CheckoutSnapshots,
    pub(crate) merges: KeyedTurns,
    /// Sessions whose end is waited for.
    watched: Mutex<BTreeSet<SessionId>>,
    pub(crate) worktrees: RunWorktrees,
    /// The repositories in which runs were started.
    pub(crate) repositories: Repositories,
    pub(crate) room: RoomWatch,
    /// Worktrees that are made ready, one thread in each.
    pub(crate) setups: KeyedTurns,
    /// Tasks whose agent went down with what was around it, and when.
    uprooted: Mutex<BTreeMap<TaskId, Instant>>,
    /// The files of processes.
    pub(crate) mirrors: Mirrors,
    pub(crate) later: HomeTimer,
    pub(crate) threads: ThreadPool,
    pub(crate) lane: Lane,
    pub(crate) waits: EffectWaits,
    /// Since when the home itself needs a person.
    pub(crate) known_since: SinceKnown,
    /// What was heard of living agents.
    pub(crate) signals: SessionSignals,
    pub(crate) sights: SessionSights,
    pub(crate) pulses: SessionPulses,
    pub(crate) sizes: ChangeSizes,
    pub(crate) daybook: DayBook,
    /// When there is something to tell a person.
    pub(crate) notices: Notices,
    /// For how long what is over is kept, as the engine was started.
    keep: Option<RetentionTerm>,
    pub(crate) registry: Registry,
    pub roster: Roster,
}

/// The name of a session: its task, and its number there.
pub fn session_id(task: &TaskId, number: SessionNumber) -> Result<SessionId, String> {
    SessionId::new(format!("{task}.{}", number.0))
}

/// The task of a session, and its number there.
pub fn session_of(id: &SessionId) -> Option<(TaskId, SessionNumber)> {
    let (task, number) = id.as_str().split_once('.')?;
    Some((task.parse().ok()?, SessionNumber(number.parse().ok()?)))
}

impl Home {
    /// A home that nothing has happened in yet.
    pub(crate) fn new(
        context: PerformContext,
        projects: Projects,
        tasks: Arc<ReadModel>,
        clock: Arc<WallClock>,
        registry: Registry,
        engine: EngineHandle,
        keep: Option<RetentionTerm>,
    ) -> std::io::Result<Home> {
        let later = HomeTimer::start(clock.clone())?;
        let threads = || ThreadPool::new(later.clone());
        let repositories = Repositories::read(context.places.repositories());
        Ok(Home {
            threads: threads(),
            lane: Lane::new(threads()),
            waits: EffectWaits::default(),
            known_since: SinceKnown::default(),
            context,
            projects,
            tasks,
            reservations: Reservations::default(),
            branches: BranchClaims::default(),
            began: clock.now().0,
            clock,
            engine,
            asking: Mutex::default(),
            checkouts: CheckoutSnapshots::default(),
            merges: KeyedTurns::default(),
            watched: Mutex::default(),
            worktrees: RunWorktrees::default(),
            repositories,
            room: RoomWatch::default(),
            setups: KeyedTurns::default(),
            uprooted: Mutex::default(),
            mirrors: Mirrors::default(),
            signals: SessionSignals::default(),
            sights: SessionSights::default(),
            pulses: SessionPulses::default(),
            sizes: ChangeSizes::default(),
            daybook: DayBook::default(),
            notices: Notices::default(),
            later,
            keep,
            registry,
            roster: Roster::default(),
        })
    }

    /// For how long what is over is kept now; `None`: nothing is forgotten.
    pub(crate) fn term(&self) -> Option<Duration> {
        self.context.config().retention.keep().filter(|_| self.keep.is_some_and(|keep| keep.term().is_some()))
    }

    pub fn pool_of(&self, seen: &TaskSnapshot) -> Result<(Project, WorkspacePool), Problem> {
        let project = self.projects.get(&seen.state.about.project)?;
        let pool = self.projects.pool(&project)?;
        Ok((project, pool))
    }

    /// The note that the merge of a task was begun and is not known to have ended.
    pub(crate) fn merge_note(&self, task: &TaskId) -> PathBuf {
        self.context.places.home().join(MERGING).join(format!("{task}.json"))
    }

    /// Tells the engine something without waiting for its answer.
    pub fn tell(&self, task: &TaskId, said: ActorInput) {
        self.engine.send(ReactorMessage::Say { token: None, stream: stream(task), said });
    }

    /// A session asks for something: it is not ended before this process of it has its answer.
    pub fn asks(&self, session: SessionId, process: ProcessIdentity) {
        locked(&self.asking).insert(session, process);
    }

    /// The process of a session that asked last.
    pub fn asker(&self, session: &SessionId) -> Option<ProcessIdentity> {
        locked(&self.asking).get(session).cloned()
    }

    /// Reads TASK.md. What it says is kept if it is new, and a forged frontmatter is recorded: neither moves anything.
    pub fn read_file(&self, seen: &TaskSnapshot) -> Result<TaskFileContent, Problem> {
        let truth = files::truth(seen, self.tmux_session(seen).as_deref());
        let read = files::read(&self.context.places, seen, &truth)?;
        self.keep_body(seen, &read.body);
        for forgery in self.really_forged(seen, &read.forged) {
            let FrontmatterForgery { key, found, truth } = forgery;
            self.tell(&seen.id, ActorInput::Remark(Remark::Forged { key, found, truth }));
        }
        Ok(read)
    }

    /// Keeps what was read, so that a section which is overwritten later can be brought back. The engine knows whether
    /// it has it already.
    pub fn keep_body(&self, seen: &TaskSnapshot, body: &[u8]) {
        if !body.is_empty() {
            self.tell(&seen.id, ActorInput::Remark(Remark::Read { body: body.to_vec() }));
        }
    }

    /// Of what the frontmatter claims, that which it never said: an agent may write back what it once read.
    fn really_forged(&self, seen: &TaskSnapshot, claims: &[FrontmatterForgery]) -> Vec<FrontmatterForgery> {
        let matters = |claim: &&FrontmatterForgery| ["status", "review_round"].contains(&claim.key.as_str());
        let claims: Vec<&FrontmatterForgery> = claims.iter().filter(matters).collect();
        if claims.is_empty() {
            return Vec::new();
        }
        // The file may have been written after the task was seen, and then says what is true now.
        let now = self.tasks.load(&seen.id).ok().flatten().map_or(0, |now| now.state.review_round);
        let rounds = 0..=seen.state.review_round.max(now);
        let history = self.tasks.task_history(&seen.id).unwrap_or_default();
        let events = history.iter().filter_map(|(_, event)| task_event::read(event.version, &event.data).ok());
        let name = |state| seen.lifecycle.state_name(state).to_owned();
        let statuses: BTreeSet<String> = events
            .flat_map(|event| match event {
                TaskEvent::Created(created) => vec![name(created.status)],
                TaskEvent::Moved(moved) => vec![name(moved.from), name(moved.to)],
                _ => Vec::new(),
            })
            .collect();
        let is_old = |claim: &FrontmatterForgery| match claim.key.as_str() {
            "status" => statuses.contains(&claim.found),
            _ => claim.found.parse::<i64>().is_ok_and(|round| rounds.contains(&round)),
        };
        claims.into_iter().filter(|claim| !is_old(claim)).cloned().collect()
    }

    /// What a task's files say now.
    pub fn evidence(&self, seen: &TaskSnapshot) -> Result<Evidence, Problem> {
        self.evidence_in(seen, &self.read_file(seen)?)
    }

    /// The same for a look that decides nothing: what stands in TASK.md is neither kept nor told.
    pub fn glimpse(&self, seen: &TaskSnapshot) -> Result<Evidence, Problem> {
        let truth = files::truth(seen, self.tmux_session(seen).as_deref());
        self.evidence_in(seen, &files::read(&self.context.places, seen, &truth)?)
    }

    fn evidence_in(&self, seen: &TaskSnapshot, read: &TaskFileContent) -> Result<Evidence, Problem> {
        let body = read.text();
        let is_written = files::is_written(&self.context.places, seen);
        Ok(Evidence { body, is_written, work: crate::home::work::of(self, seen)? })
    }

    pub fn tmux_session(&self, seen: &TaskSnapshot) -> Option<String> {
        self.context.sessions.tmux()?;
        let agents = [seen.state.main.agent(), seen.state.beside.agent()];
        agents.iter().any(Option::is_some).then(|| tmux_name(seen))
    }

    /// Gives the tmux session of a task that has another branch now the name that it is shown with. It is known to us
    /// by its key, so that one which keeps its old name is still found.
    pub fn rename_session(&self, seen: &TaskSnapshot) {
        if let Some(tmux) = self.context.sessions.tmux() {
            let _ = tmux.rename_key(seen.id.as_str(), &tmux_name(seen));
        }
    }

    pub fn shown(&self, seen: &TaskSnapshot) -> Task {
        let ids = seen.living().filter_map(|agent| session_id(&seen.id, agent.id).ok());
        let idle_seconds = ids.filter_map(|id| self.context.sessions.idle_seconds(&id).ok()).min();
        let mut shown = Task { tmux_session: self.tmux_session(seen), idle_seconds, ..view::task(seen) };
        if shown.session == SessionPulse::Active && self.is_gone(seen) {
            shown.session = SessionPulse::Crashed;
        }
        if shown.attention.is_none() {
            shown.attention = self.waits.of(&stream(&seen.id));
            // What takes long passes by itself; a full disk does not.
            shown.needs_person |=
                shown.attention.as_ref().is_some_and(|wait| wait.reason == AttentionCause::WorkAtRisk);
        }
        if let Some(note) = shown.attention.take() {
            shown.last_lines = attention::last_lines(self, seen);
            let text = attention::explained(self, seen, &shown.last_lines, note.text);
            shown.attention = Some(AttentionNote { text, ..note });
        }
        // A pool that is full for long needs a person to see why.
        shown.needs_person |= attention::is_full_for_long(self, seen);
        shown.attention = shown.attention.and_then(|note| {
            let text = still_owed(self, seen, note.text)?;
            Some(AttentionNote { text, ..note })
        });
        shown
    }

    /// Whether none of the sessions that a task takes for living is there: after a start of the machine the task hears
    /// of that a moment later.
    pub(crate) fn is_gone(&self, seen: &TaskSnapshot) -> bool {
        let sessions = [&seen.state.main, &seen.state.beside];
        let is_there = |session: &TaskSession| match session {
            TaskSession::Alive(agent) => {
                session_id(&seen.id, agent.id).is_ok_and(|id| self.context.sessions.is_living(&id))
            }
            TaskSession::Starting(_) | TaskSession::Ending(_) => true,
            TaskSession::Absent | TaskSession::Dead(..) => false,
        };
        sessions.iter().any(|session| session.is_living()) && !sessions.into_iter().any(is_there)
    }

    /// Notes what the main checkout looks like before an agent begins.
    pub(crate) fn remember_checkout(&self, session: &SessionId, seen: &TaskSnapshot) {
        if let Ok((_, pool)) = self.pool_of(seen) {
            self.checkouts.remember(session, pool.repository());
        }
    }

    /// Compares the main checkout with what it looked like when the agent began. A difference is recorded, and nothing
    /// else: it may have been a person.
    pub(crate) fn look_for_leaks(&self, session: &SessionId, seen: &TaskSnapshot) {
        if let Ok((_, pool)) = self.pool_of(seen) {
            for what in self.checkouts.differences(session, pool.repository()) {
                self.tell(&seen.id, ActorInput::Remark(Remark::Leak { what, session: session.to_string() }));
            }
        }
    }

    /// A session that the task takes for living is looked at; when it is over, the task hears of it. Asked for again
    /// and again it does no harm.
    pub(crate) fn watch(self: &Arc<Self>, task: &TaskId, number: SessionNumber) {
        let Ok(id) = session_id(task, number) else { return };
        if !self.takes(&id) {
            return;
        }
        let (home, owner) = (self.clone(), task.to_owned());
        let watched = self.context.sessions.watch(&id, move |id, gone| {
            home.leaves(&id);
            // One that cannot be ended is looked at again by the next comparison.
            if let Ok(gone) = gone {
                crate::home::exits::over(&home, &owner, number, &id, &gone);
            }
        });
        if let Err(failure) = watched {
            self.leaves(&id);
            if let sluice_os::session::SessionFailure::Unknown(_) = failure {
                crate::home::exits::elsewhere(self, task, number);
            }
        } else if self.context.sessions.is_living(&id) {
            self.sights.begin(&id);
            signals::take_up(self, &id, true);
        }
    }

    pub(crate) fn uproot(&self, task: &TaskId) {
        locked(&self.uprooted).insert(task.to_owned(), Instant::now());
    }

    pub(crate) fn take_uprooted(&self, task: &TaskId) -> Option<Instant> {
        locked(&self.uprooted).remove(task)
    }

    /// Takes it upon oneself to look at a session, until [`Home::leaves`] it; not if another thread does.
    pub(crate) fn takes(&self, id: &SessionId) -> bool {
        locked(&self.watched).insert(id.clone())
    }

    pub(crate) fn leaves(&self, id: &SessionId) {
        self.sights.end(id);
        self.pulses.forget(id);
        locked(&self.watched).remove(id);
    }

    /// Says something to the task machine without waiting for its answer.
    pub(crate) fn input(&self, task: &TaskId, input: TaskInput) {
        self.tell(task, ActorInput::Task(input));
    }
}

pub(crate) fn pool_name(path: &str) -> Result<WorkspaceName, String> {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.and_then(|name| WorkspaceName::new(name).ok()).ok_or_else(|| format!("`{path}` is no worktree of the pool"))
}

pub(crate) fn pool_names(size: usize) -> Vec<WorkspaceName> {
    (1..=u32::try_from(size).unwrap_or(u32::MAX)).map(WorkspaceName::numbered).collect()
}

pub fn tmux_name(seen: &TaskSnapshot) -> String {
    let name = format!("{}/{}", seen.state.about.project, seen.state.about.branch);
    // tmux would write these in another way, and then the record would name a session that is not there.
    name.replace(|c: char| matches!(c, '.' | ':' | '\\' | '$') || c.is_control(), "_")
}
