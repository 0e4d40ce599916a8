//! Where a task stands: the fold of its events, and nothing that cannot be told from them.

use std::collections::{BTreeMap, VecDeque};

pub use super::attention::{HeardSignal, MarkBehind, RaisedAttention, TaskAttention};
use super::effect::TaskAction;
use super::input::{RunEnd, TaskAsker, WorkEvidence};
pub use super::lent::LentWork;
use super::seen::SectionSnapshot;
use super::session::{SessionNumber, TaskSession, TaskSessionPlace};
use crate::artifact::Verdict;
use crate::id::RunId;
use crate::lifecycle::{Lifecycle, StateId};
use crate::machine::Moment;
use crate::name::FieldName;

/// A transition, by its place in [`Lifecycle::transitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EdgeId(pub u32);

/// A worktree of the project's pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorktreePath(pub String);

/// What git calls the content of a commit. Only ever compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeId(pub String);

/// What git calls a commit. Only ever compared, and handed on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitId(pub String);

/// A task, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskState {
    /// The state of the lifecycle that the task is in.
    pub status: StateId,
    /// The stay in that status.
    pub visit: StatusVisit,
    /// What it is about and who works on it.
    pub about: TaskSubject,
    /// How often a review was begun.
    pub review_round: i64,
    /// How often an agent ended without its artifact.
    pub crash_count: u32,
    /// Numbers that the lifecycle's own hooks set; guards read 0 where there is none.
    pub numbers: BTreeMap<FieldName, i64>,
    /// Texts that the lifecycle's own hooks set.
    pub texts: BTreeMap<FieldName, String>,
    /// Where it is worked on.
    pub workspace: TaskWorkspace,
    /// Where its work stood when its worktree was lent on, until it has one again.
    pub lent: Option<LentWork>,
    /// The task's own session.
    pub main: TaskSession,
    /// The reviewer beside it.
    pub beside: TaskSession,
    /// What has been set going and has not settled, oldest first. Only the first job of the first is under way.
    pub turns: VecDeque<TaskTurn>,
    /// How many turns there have been.
    pub turns_taken: u32,
    /// How many sessions have been asked for; the newest has this number.
    pub sessions_asked: u32,
    /// Why a person should look, if one should.
    pub attention: Option<RaisedAttention>,
    /// What was to be done in this stay and failed, and the worktree that could not be given back because of that, in order;
    /// until it is done again or a person has looked.
    pub undone: Vec<TaskJob>,
    /// How many attentions were raised; the newest has this number.
    pub attentions: u32,
    /// What was last heard of an agent that waits or is quiet.
    pub signal: Option<HeardSignal>,
    /// The newest verdict, and what it was given for.
    pub judged: Option<WorkVerdict>,
    /// What became of the newest run that judges the work, and what it judged.
    pub checked: Option<RunJudgement>,
    /// Where the pull request is.
    pub pull_request: Option<String>,
    /// The commit of its work that was merged.
    pub merged: Option<CommitId>,
    /// The newest run that a state has started, until the task has left it.
    pub run: Option<TaskRun>,
    /// How many events have been applied.
    pub events: u64,
}

/// What a task is about and who works on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSubject {
    /// In one line; may be empty.
    pub summary: String,
    /// The name of the project that it belongs to.
    pub project: String,
    /// The git branch that the work is done on.
    pub branch: String,
    /// The harness that does the work.
    pub harness: String,
    /// The harness that reviews it.
    pub review_harness: String,
}

/// A stay in a status, from the move that led there to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusVisit {
    /// The turn that led there; 0 for the status the task was created in.
    pub turn: u32,
    /// The moment at which the status was entered.
    pub since: Moment,
    /// Who asked for it.
    pub by: TaskAsker,
    /// Whose end means something here.
    pub watch: TaskSessionPlace,
    /// The sections that gates and exit rules of this status read, as they were when it was entered.
    pub seen: BTreeMap<String, SectionSnapshot>,
    /// How many sessions went down here with what was around them.
    pub uprooted: u32,
    /// The verdict that a reviewer last asked for here and was refused.
    pub asked: Option<RefusedVerdict>,
    /// The work as it was handed to a reviewer beside whom its worker may live on.
    pub handed: Option<WorkSnapshot>,
    /// Whether a person has had the agent of this status started again.
    pub helped: bool,
}

/// A verdict that a reviewer asked for by itself, and was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedVerdict {
    /// The verdict that the reviewer asked for.
    pub verdict: Verdict,
    /// The one that TASK.md gave then, if it gave any.
    pub found: Option<Verdict>,
}

impl StatusVisit {
    /// Whether a verdict that stands in TASK.md may be taken from there, without a reviewer or a person who asks for it.
    /// The file does not tell who wrote it: what a reviewer has said by itself counts more, and once the file said
    /// otherwise, it says nothing any more.
    pub fn takes(&self, verdict: Verdict) -> bool {
        self.asked.is_none_or(|asked| asked.verdict == verdict && asked.found.is_none_or(|found| found == verdict))
    }
}

/// The task's worktree, in which its agents work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskWorkspace {
    /// The task has no worktree.
    Unbound,
    /// A worktree is kept free for the task, and not bound yet.
    Reserved(WorktreePath),
    /// The task has this worktree, until it is released.
    Bound(WorktreePath),
}

impl TaskWorkspace {
    /// The worktree that is bound.
    pub fn bound(&self) -> Option<&WorktreePath> {
        match self {
            TaskWorkspace::Bound(name) => Some(name),
            TaskWorkspace::Unbound | TaskWorkspace::Reserved(_) => None,
        }
    }
}

/// A run that a state has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRun {
    /// The id under which the run was started.
    pub id: RunId,
    /// The turn that started it.
    pub turn: u32,
    /// How it ended, if it has.
    pub end: Option<RunEnd>,
    /// The work when it was started, if it judges that. Older engines did not say.
    pub began: Option<WorkSnapshot>,
    /// Whether an agent of the task has lived beside it: then git does not say whose a commit is that was made meanwhile.
    pub accompanied: bool,
}

/// The work at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkSnapshot {
    /// The commit that was checked out, if it could be read. Verdicts of older engines have none.
    pub commit: Option<CommitId>,
    /// The tree of that commit, by which equal content is recognised.
    pub tree: Option<TreeId>,
    /// Whether there were changes beside it, which a verdict may have been about.
    pub dirty: bool,
}

impl WorkSnapshot {
    /// How the work stands, as far as it could be read.
    pub fn of(work: &WorkEvidence) -> WorkSnapshot {
        let standing = work.standing();
        WorkSnapshot {
            commit: standing.map(|standing| standing.commit.clone()),
            tree: standing.map(|standing| standing.tree.clone()),
            dirty: standing.is_some_and(|standing| !standing.dirty.is_empty()),
        }
    }
}

/// A verdict and what it was given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkVerdict {
    /// The verdict that was given, PASS or FAIL.
    pub verdict: Verdict,
    /// The work that the verdict was given for.
    pub work: WorkSnapshot,
}

/// What became of a run that judges the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunJudgement {
    /// The id of the run; `None` if the task went on before it was started.
    pub run: Option<RunId>,
    /// How it ended; `None` if the task went on before that.
    pub end: Option<RunEnd>,
    /// The work that the run judged.
    pub work: WorkSnapshot,
}

impl RunJudgement {
    /// What it says about the work: a run that has not completed says nothing good.
    pub fn verdict(&self) -> Verdict {
        match self.end {
            Some(RunEnd::Completed) => Verdict::Pass,
            Some(RunEnd::Failed | RunEnd::Cancelled) | None => Verdict::Fail,
        }
    }
}

/// A move or a start, with what is left to be done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTurn {
    /// The turn's number, counted from 1 over the task's life.
    pub number: u32,
    /// By how much the crash count drops when it has settled: the crashes before it that no earlier turn takes away.
    pub crashes: u32,
    /// The number of the first job that is left, counted from 1.
    pub step: u32,
    /// The jobs that are left, in order.
    pub jobs: VecDeque<TaskJob>,
    /// The effect of the first job whose outcome has not come back.
    pub waiting: Option<TaskAction>,
}

/// One thing that a turn has to do. Refers into the pinned definition instead of copying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskJob {
    /// A hook of a transition.
    Hook {
        /// The transition that the hook belongs to.
        edge: EdgeId,
        /// The place of the hook among the transition's hooks, counted from 0.
        hook: u32,
    },
    /// Bind a workspace, for a task that begins elsewhere than usual.
    Acquire,
    /// Start an agent that no hook starts.
    Start(AgentStart),
    /// Start the run of this state.
    StartRun(StateId),
    /// Cancel the run of a state that is left.
    CancelRun,
    /// Tell the living agent that a person has answered.
    Tell,
}

/// An agent that no hook starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentStart {
    /// The state that the agent is started for.
    pub state: StateId,
    /// The prompt of that state that the agent is told.
    pub prompt: StatePrompt,
    /// The place it is started in: the task's own, or the one beside it.
    pub place: TaskSessionPlace,
    /// Whether it is started again.
    pub again: bool,
}

/// One of a state's prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatePrompt {
    /// `enter_prompt`, for an agent that is started when the state is entered.
    Enter,
    /// `respawn_prompt`, for an agent that is started again in the state.
    Respawn,
}

/// What a task is in the middle of. One half of the law; see [`super::law`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskPhase {
    /// Nobody works on it: it stands in the usual first state, or has neither a workspace nor a living session or run.
    Waiting,
    /// Everything that was set going has settled.
    Standing,
    /// Hooks are under way.
    Settling,
    /// It is in a terminal state, and its last hooks are under way.
    Closing,
    /// The task is in a terminal state, and everything has settled.
    Finished,
}

impl TaskPhase {
    /// Every phase, in order.
    pub const ALL: [TaskPhase; 5] =
        [TaskPhase::Waiting, TaskPhase::Standing, TaskPhase::Settling, TaskPhase::Closing, TaskPhase::Finished];
}

/// Whether an agent works on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPulse {
    /// An agent is alive, or is being started or ended.
    Active,
    /// The session that the status watches is dead.
    Crashed,
    /// No agent is at work, and none has died here.
    Inactive,
}

impl TaskState {
    /// What the task is in the middle of.
    pub fn phase(&self, lifecycle: &Lifecycle) -> TaskPhase {
        let living = self.has_living_agent() || self.has_open_run();
        let idle = self.workspace.bound().is_none() && self.lent.is_none() && !living;
        match (lifecycle.state(self.status).terminal, self.turns.is_empty()) {
            (true, true) => TaskPhase::Finished,
            (true, false) => TaskPhase::Closing,
            (false, false) => TaskPhase::Settling,
            (false, true) if idle || lifecycle.initial.first() == Some(&self.status) => TaskPhase::Waiting,
            (false, true) => TaskPhase::Standing,
        }
    }

    /// The session in `place`.
    pub fn session(&self, place: TaskSessionPlace) -> &TaskSession {
        match place {
            TaskSessionPlace::Main => &self.main,
            TaskSessionPlace::Beside => &self.beside,
        }
    }

    pub(super) fn session_mut(&mut self, place: TaskSessionPlace) -> &mut TaskSession {
        match place {
            TaskSessionPlace::Main => &mut self.main,
            TaskSessionPlace::Beside => &mut self.beside,
        }
    }

    /// Whether a run that a state started has not ended.
    pub fn has_open_run(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.end.is_none())
    }

    /// Whether a queued job, or the one under way, starts a run.
    pub(super) fn starts_run(&self) -> bool {
        self.turns.iter().flat_map(|turn| &turn.jobs).any(|job| matches!(job, TaskJob::StartRun(_)))
    }

    /// The run of the present state, if it has started one.
    pub fn run_here(&self) -> Option<&TaskRun> {
        self.run.as_ref().filter(|run| run.turn >= self.visit.turn)
    }

    /// Whether an agent of the task lives, or is being started.
    pub fn has_living_agent(&self) -> bool {
        self.main.is_living() || self.beside.is_living()
    }

    /// Whether a session runs or is about to. One whose end is recorded is not: also where what has to start it is not
    /// settled, because the engine died between the two.
    pub fn is_living(&self, session: SessionNumber) -> bool {
        let is_it = |it: &TaskSession| it.is_living() && it.agent().is_some_and(|agent| agent.id == session);
        is_it(&self.main) || is_it(&self.beside)
    }

    /// What a person should see of its sessions: the watched one first.
    pub fn pulse(&self) -> TaskPulse {
        match (self.session(self.visit.watch), self.has_living_agent()) {
            (TaskSession::Starting(_) | TaskSession::Alive(_) | TaskSession::Ending(_), _)
            | (TaskSession::Absent, true) => TaskPulse::Active,
            (TaskSession::Dead(..), _) => TaskPulse::Crashed,
            (TaskSession::Absent, false) => TaskPulse::Inactive,
        }
    }

    /// The value of a numeric field. A field that nobody set is 0, as the checker assumes.
    pub fn number(&self, field: &str) -> i64 {
        match field {
            "review_round" => self.review_round,
            "crash_count" => i64::from(self.crash_count),
            other => self.numbers.get(other).copied().unwrap_or(0),
        }
    }

    /// The crashes that no open turn takes away when it settles: those of this stay.
    pub fn crashes_here(&self) -> u32 {
        let promised = self.turns.iter().fold(0u32, |sum, turn| sum.saturating_add(turn.crashes));
        self.crash_count.saturating_sub(promised)
    }

    /// What must hold of every state that events can lead to; the error says what does not.
    pub fn check_invariants(&self, lifecycle: &Lifecycle) -> Result<(), String> {
        let fail = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        fail((self.status.0 as usize) < lifecycle.states.len(), "the status is not a state of the lifecycle")?;
        let agents: Vec<_> = [&self.main, &self.beside].into_iter().filter_map(TaskSession::agent).collect();
        fail(
            agents.iter().all(|agent| (1..=self.sessions_asked).contains(&agent.id.0)),
            "a session that was not asked for",
        )?;
        fail(agents.len() < 2 || agents[0].id != agents[1].id, "one session stands in two places")?;
        let numbers: Vec<u32> = self.turns.iter().map(|turn| turn.number).collect();
        fail(numbers.is_sorted_by(|a, b| a < b), "turns are out of order")?;
        fail(numbers.last().is_none_or(|last| *last <= self.turns_taken), "a turn that was not taken")?;
        fail(self.run.as_ref().is_none_or(|run| run.turn <= self.turns_taken), "a run that no turn started")?;
        for (index, turn) in self.turns.iter().enumerate() {
            let is_done = index == 0 && !self.waits_for_worktree();
            fail(turn.waiting.is_some() == is_done, "a job other than the first is under way, or none is")?;
            fail(index > 0 || !turn.jobs.is_empty(), "an outcome is awaited, and no job is left")?;
            fail(index == 0 || turn.step == 1, "a turn began before its turn")?;
        }
        let behind = |raised: &RaisedAttention| raised.behind.as_ref().map_or(0, |mark| mark.number);
        let raised = self.attention.as_ref().map_or(0, |raised| raised.number.max(behind(raised)));
        fail(raised <= self.attentions, "an attention that was not counted")?;
        let is_in_front = |raised: &RaisedAttention| {
            raised.behind.as_ref().is_none_or(|mark| mark.why.is_mark() && raised.why.goes_before(&mark.why))
        };
        fail(self.attention.as_ref().is_none_or(is_in_front), "what is less urgent is in front of a mark")?;
        fail(!self.uses_what_is_lent(), "a worktree was lent on, and something of the task goes on in one")?;
        let starts = [&self.main, &self.beside].into_iter().any(|session| matches!(session, TaskSession::Starting(_)));
        fail(!starts || !self.turns.is_empty(), "a session starts, and no hook asks for it")
    }
}
