//! Creating and changing a task: moves, spawning, cancelling, words for its agents.

use std::sync::Arc;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::task::{Branch, CreateTask, TaskAnswer, UpdateTask};
use sluice_core::machine::RefusalCode::{self, NotYours};
use sluice_core::name::StateName;
use sluice_core::task::input::{TaskUpdate, WorkspaceReservation};
use sluice_core::task::{Evidence, TaskAsker, TaskInput, decide};
use sluice_engine::actor::{ActorInput, Remark};
use sluice_engine::host::EngineClock;
use sluice_engine::reactor::EventRange;
use sluice_os::git::Repository;
use sluice_os::session::{SayDelivery, SayRequest};

use super::{KeyedId, Requester, Service};
use crate::definitions::committed::DefinitionSite;
use crate::effect;
use crate::home::branches::BranchHold;
use crate::home::engine::{ask, ask_with_room, begin, refusal, refused_of, room, room_again, say_to};
use crate::home::{judged, session_id};
use crate::read::tasks::{TaskSnapshot, stream};
use crate::settings::projects::{git, shown};
use crate::start::{create_task, must_hold_no_secret};
use crate::undone::described;

impl Service {
    /// Creates a task, and starts its agent unless told otherwise.
    pub fn create(&self, who: &Requester, chosen: &KeyedId, wanted: &CreateTask) -> Result<TaskAnswer, Problem> {
        who.must_be_person("creating a task")?;
        if let Some(there) = chosen.there()
            && self.home.tasks.named(there)?.is_some()
        {
            return self.show(who, there);
        }
        let id = chosen.id()?;
        let created = create_task(&self.home, &id, wanted, DefinitionSite::Checkout, None)?;
        self.settled(who, &id, created)
    }

    /// Moves a task, or changes what it is about.
    pub fn update(&self, who: &Requester, id: &str, wanted: UpdateTask) -> Result<TaskAnswer, Problem> {
        let mut seen = Arc::new(self.home.tasks.find(id)?);
        let id = &seen.id.clone();
        who.must_be_of(id)?;
        self.is_at_work(who);
        let mut recorded = nothing(&seen);
        let summary = wanted.summary.map(|summary| crate::start::summary(&self.home, &summary)).transpose()?;
        let change = |update| ask(&self.home, id, TaskInput::Update { by: who.to(id), update });
        let branch = wanted.branch.map(|branch| self.rebranched(who, &seen, branch)).transpose()?;
        if let Some((branch, claimed)) = branch {
            let changed = change(TaskUpdate::Branch(branch));
            match &changed {
                Err(problem) if problem.status == ProblemStatus::Accepted => claimed.queue(),
                Ok(_) => {
                    self.home.tasks.caught_up(id, &changed);
                    claimed.settle();
                }
                Err(_) => self.home.tasks.refresh(id),
            }
            recorded = changed?;
            seen = self.since(id, recorded)?;
            self.home.rename_session(&seen);
        }
        if let Some(summary) = summary {
            recorded = change(TaskUpdate::Summary(summary))?;
            seen = self.since(id, recorded)?;
        }
        if let Some(status) = wanted.status {
            recorded = self.go(who, &seen, &status, None)?;
        }
        self.settled(who, id, recorded)
    }

    pub(super) fn go(
        &self,
        who: &Requester,
        seen: &TaskSnapshot,
        to: &str,
        feedback: Option<String>,
    ) -> Result<EventRange, Problem> {
        let id = &seen.id;
        let evidence = self.home.evidence(seen)?;
        let room = if seen.lifecycle.initial.first() == Some(&seen.state.status) {
            room(&self.home, seen)?
        } else {
            room_again(&self.home, seen, |room| {
                let evidence = evidence.clone();
                TaskInput::Move { by: who.to(id), to: StateName::new(to), evidence, room, feedback: None }
            })?
        };
        if let Requester::Session { .. } = who {
            // First, because a refusal leaves nothing behind.
            let asked = TaskInput::Verdict { by: who.to(id), to: StateName::new(to), evidence: evidence.clone() };
            match ask(&self.home, id, asked) {
                Err(problem) if problem.status != ProblemStatus::Accepted => return Err(problem),
                // What is still on its way to the store comes before the move, too.
                Ok(_) | Err(_) => {}
            }
        }
        let (to, room_now) = (StateName::new(to), room.clone());
        let input = TaskInput::Move { by: who.to(id), to, evidence, room: room_now, feedback };
        let asked = ask(&self.home, id, input);
        self.home.tasks.caught_up(id, &asked);
        self.home.reservations.answered(id, &room, &asked);
        asked
    }

    /// The branch that a task is to have: the one that is checked out, an existing one, or the present one renamed.
    /// Whether the asker may is decided before anything is renamed, and the name is spoken for.
    fn rebranched(
        &self,
        who: &Requester,
        seen: &TaskSnapshot,
        wanted: Branch,
    ) -> Result<(String, BranchHold<'_>), Problem> {
        let name = match &wanted {
            Branch::Current => effect::current_branch(&self.home, seen)
                .map_err(|why| refusal(RefusalCode::NoWorkspace, why).hint("`branch=NAME` names it"))?,
            Branch::Named(name) => name.clone(),
        };
        must_hold_no_secret(&self.home, &name)?;
        let input = TaskInput::Update { by: who.to(&seen.id), update: TaskUpdate::Branch(name.clone()) };
        decide(&seen.lifecycle, &seen.state, &input, self.home.clock.now())
            .map_err(|refusal| refused_of(seen.id.as_str(), &refusal))?;
        let (_, pool) = self.home.pool_of(seen)?;
        let repository = pool.repository();
        repository.check_branch(&name).map_err(|error| git(&error))?;
        let old = &seen.state.about.branch;
        let claimed = self.claim(seen, &name, repository.default_branch())?;
        let is_there = repository.branch_commit(&name).map_err(|error| git(&error))?.is_some();
        let is_renamed = !is_there && repository.branch_commit(old).map_err(|error| git(&error))?.is_some();
        if is_renamed {
            drop(self.claim(seen, old, repository.default_branch())?);
            repository.rename_branch(old, &name).map_err(|error| git(&error))?;
            return Ok((name, claimed));
        }
        // A person may name any branch there is, an agent the one that it works on.
        let is_here = || effect::current_branch(&self.home, seen).is_ok_and(|current| current == name);
        if is_there && !who.is_person() && name != *old && !is_here() {
            let message = format!("Not allowed: `{name}` is not checked out in this task's worktree");
            return Err(refusal(NotYours, message).hint("check it out there, or leave it to a person"));
        }
        if is_there && !who.is_person() && name != *old && !is_its_own(repository, &name, seen)? {
            let message =
                format!("Not allowed: the branch `{name}` may be older than this task, and belong to other work");
            return Err(refusal(NotYours, message).hint("make a new branch from it, or leave it to a person"));
        }
        Ok((name, claimed))
    }

    /// Speaks for a branch that a task may have: it is not the default branch, nor another task's.
    fn claim(&self, seen: &TaskSnapshot, branch: &str, default: &str) -> Result<BranchHold<'_>, Problem> {
        if branch == default {
            return Err(refusal(NotYours, format!("Not allowed: `{branch}` is the default branch, and no task's")));
        }
        let claimed = self.home.branches.claim(&self.home, &seen.state.about.project, branch, &seen.id);
        claimed.map_err(|other| refusal(NotYours, format!("Not allowed: `{branch}` is the branch of task {other}")))
    }

    pub fn spawn(&self, who: &Requester, id: &str) -> Result<TaskAnswer, Problem> {
        let seen = self.home.tasks.find(id)?;
        let recorded = begin(&self.home, &seen, who.to(&seen.id), room(&self.home, &seen)?)?;
        self.settled(who, &seen.id, recorded)
    }

    pub fn respawn(&self, who: &Requester, id: &str) -> Result<TaskAnswer, Problem> {
        let seen = self.home.tasks.find(id)?;
        self.until_end_is_heard(&seen.id)?;
        let seen = self.home.tasks.find(seen.id.as_str())?;
        let recorded = ask_with_room(&self.home, &seen, |room| TaskInput::Respawn { by: who.to(&seen.id), room })?;
        self.settled(who, &seen.id, recorded)
    }

    pub fn cancel(&self, who: &Requester, id: &str) -> Result<TaskAnswer, Problem> {
        let seen = self.home.tasks.find(id)?;
        // It is given up whatever its file says, and even if it cannot be read.
        let evidence = self.home.evidence(&seen).unwrap_or_else(|_| Evidence::default());
        let recorded = ask(&self.home, &seen.id, TaskInput::Cancel { by: who.to(&seen.id), evidence })?;
        // Its agents are ended: nobody waits any longer until one has read what it was told.
        for agent in [&seen.state.main, &seen.state.beside].into_iter().filter_map(|session| session.agent()) {
            session_id(&seen.id, agent.id).iter().for_each(|id| self.home.context.sessions.cut_short(id));
        }
        self.settled(who, &seen.id, recorded)
    }

    /// Cancels a task if it is open, deletes its branch, and removes it from every list.
    pub fn delete(&self, who: &Requester, id: &str) -> Result<TaskAnswer, Problem> {
        who.must_be_person("deleting a task")?;
        let seen = self.home.tasks.find(id)?;
        let id = seen.id.clone();
        if seen.card.open {
            let cancelled = self.cancel(who, id.as_str())?;
            if cancelled.still_running {
                let message = format!("task {id} is cancelled, and has not settled yet");
                return Err(refusal(RefusalCode::NotReady, message).hint("delete it again in a moment"));
            }
        }
        let seen = self.home.tasks.find(id.as_str())?;
        let mut notes = Vec::new();
        if let Ok((_, pool)) = self.home.pool_of(&seen) {
            judged::keep(&self.home, &seen)?;
            let deleted = pool.delete_branch(&seen.state.about.branch, id.as_str());
            notes.extend(deleted.err().map(|error| format!("its branch stays: {}", described(&error))));
        }
        notes.extend(self.put_away(&seen));
        let task = self.home.shown(&seen);
        say_to(&self.home, stream(&id), id.as_str(), ActorInput::Remark(Remark::Deleted))?;
        Ok(TaskAnswer { task, transition: None, notes, still_running: false })
    }

    /// Sends a task back to its worker, perhaps with words for it.
    pub(super) fn send_back(&self, who: &Requester, id: &str, message: String) -> Result<TaskAnswer, Problem> {
        let seen = self.home.tasks.find(id)?;
        let evidence = self.home.evidence(&seen)?;
        let recorded = ask_with_room(&self.home, &seen, |room| {
            let (message, evidence) = (message.clone(), evidence.clone());
            TaskInput::RequestChanges { by: who.to(&seen.id), message, evidence, room }
        })?;
        self.settled(who, &seen.id, recorded)
    }

    /// There is no session to speak to or to look into; how one is started, if anything starts one.
    pub(super) fn no_session(&self, seen: &TaskSnapshot) -> Problem {
        let (id, by) = (&seen.id, TaskAsker::Person);
        let may = |input: &TaskInput| decide(&seen.lifecycle, &seen.state, input, self.home.clock.now()).is_ok();
        let spawn = TaskInput::Spawn { by, evidence: Evidence::default(), room: WorkspaceReservation::Full };
        // Where a state has only a run, that is what is started again.
        let has_agent = seen.lifecycle.state(seen.state.status).respawn_prompt.is_some();
        let hint = match may(&spawn) {
            true => format!("`sluice task spawn {id}` starts one"),
            false if has_agent && may(&TaskInput::Respawn { by, room: WorkspaceReservation::Unasked }) => {
                format!("`sluice task respawn {id}` starts one")
            }
            false => {
                format!("`sluice task show {id}` tells where it stands: no agent is started in `{}`", seen.status())
            }
        };
        let message = format!("task {id} has no living session");
        refusal(RefusalCode::NotReady, message).hint(hint)
    }

    /// Types a text into the session of a task: its worker's, else its reviewer's.
    pub fn nudge(&self, who: &Requester, id: &str, text: &str) -> Result<TaskAnswer, Problem> {
        who.must_be_person("nudging")?;
        let seen = self.home.tasks.find(id)?;
        let Some(agent) = seen.living().next() else { return Err(self.no_session(&seen)) };
        let session = session_id(&seen.id, agent.id).map_err(Problem::fault)?;
        let failed = |why: String| {
            let message = format!("the text did not reach the agent: {}", shown(&why));
            Problem::new(ProblemStatus::Refused, "not_delivered", message)
                .hint(format!("`sluice task attach {}` shows what it is doing", seen.id))
        };
        let said = self.home.context.sessions.say(&session, &SayRequest::new(text));
        match said.map_err(|failure| failed(described(&failure)))? {
            SayDelivery::Delivered { .. } => self.settled(who, &seen.id, nothing(&seen)),
            SayDelivery::NotDelivered { reason } => Err(failed(reason)),
        }
    }
}

/// Nothing was recorded of a task that was seen.
pub(super) fn nothing(seen: &TaskSnapshot) -> EventRange {
    EventRange { after: seen.version, last: seen.version }
}

/// Whether a branch is a task's own: its branch renamed, or one that was made here since the task was created and that no
/// remote has.
fn is_its_own(repository: &Repository, branch: &str, seen: &TaskSnapshot) -> Result<bool, Problem> {
    let is_its_own = || {
        let old = &seen.state.about.branch;
        if repository.branch_commit(old)?.is_none() && repository.is_renamed_from(branch, old)? {
            return Ok(true);
        }
        let since = repository.branch_since(branch)?;
        let is_new = since.is_some_and(|since| since >= seen.card.created.div_euclid(1000));
        Ok(is_new && !repository.is_on_remote(branch)?)
    };
    is_its_own().map_err(|error| git(&error))
}
