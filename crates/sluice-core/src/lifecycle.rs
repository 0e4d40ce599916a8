//! A lifecycle: the state machine that a task goes through, once it has been checked.
//!
//! Only [`crate::check::lifecycle`] makes one, so every name in it leads somewhere. If no error was found, its guards
//! also exclude each other and its exit rules leave no case open; only then may a task be started with it. It holds no
//! positions: those belong to the [`draft`].

pub mod action;
pub mod draft;

use std::collections::BTreeMap;

use action::{PlainAction, TaskAction};

use crate::artifact::Gate;
use crate::expr::Expr;
use crate::name::{DefinitionName, FieldName, PromptName, StateName};
use crate::text::{ShellCommand, Template};

/// A checked lifecycle: states, transitions, exit rules and prompts of a kind of task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// Its name, by which projects and tasks choose it.
    pub name: DefinitionName,
    /// Its author's version number.
    pub version: u64,
    /// The states, in the order of the file.
    pub states: Vec<LifecycleState>,
    /// The states a task can be created in; the first is the usual one.
    pub initial: Vec<StateId>,
    /// The transitions, in the order of the file.
    pub transitions: Vec<LifecycleTransition>,
    /// What happens when an agent's process ends by itself.
    pub exits: ExitMonitoring,
    /// What agents are told.
    pub prompts: BTreeMap<PromptName, Template>,
}

/// A state, by its place in [`Lifecycle::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// A state that a task of this lifecycle can be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleState {
    /// The state's name, unique in the lifecycle and shown as the task's status.
    pub name: StateName,
    /// Whether the task ends here.
    pub terminal: bool,
    /// The prompt of an agent that is started here again; without one, none can be.
    pub respawn_prompt: Option<PromptName>,
    /// The prompt of an agent that is started whenever the state is entered, by escalation too.
    pub enter_prompt: Option<PromptName>,
    /// The run that is started whenever the state is entered.
    pub run: Option<StateRun>,
}

/// A run that a state starts. It is cancelled when the state is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRun {
    /// Of this recipe, which is looked up when the run starts.
    pub recipe: String,
    /// What it is given.
    pub inputs: Vec<(String, Template)>,
    /// The state that the task moves to when the run has completed; without one it stays.
    pub completed: Option<StateId>,
    /// The state that it moves to when the run has failed; without one it stays.
    pub failed: Option<StateId>,
}

/// A permitted move of a task from one state to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleTransition {
    /// The state that the task must be in.
    pub from: StateId,
    /// The state that the task is in afterwards.
    pub to: StateId,
    /// A condition on the task's counters that must hold; `None` when there is none.
    pub guard: Option<Expr>,
    /// What the task's artifact must satisfy; `None` when it is not read.
    pub gate: Option<Gate>,
    /// Who may take it, where the author says so.
    pub by: Option<AssignedTaker>,
    /// What is then done, in order.
    pub hooks: Vec<TransitionHook>,
}

impl LifecycleTransition {
    /// Whether one of its hooks is `spawn_agent` or `spawn_reviewer`.
    pub fn spawns(&self) -> bool {
        self.hooks.iter().any(|hook| hook.spawn().is_some())
    }

    /// Whether it asks for a verdict.
    pub fn gives_verdict(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.verdict.is_some())
    }
}

/// Whom an author gives a transition to. A person may take every transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignedTaker {
    /// The task's agents may take it too.
    Agent,
    /// Only a person may take it; every agent is refused.
    Person,
}

/// The agents that may take a transition, besides a person and the lifecycle's own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionTakers {
    /// Every agent of the task.
    Agents,
    /// The reviewer: the transition is a verdict.
    Reviewer,
    /// No agent at all, for the reason given; only a person may take it.
    Persons(PersonsOnlyReason),
}

/// Why only a person may take a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonsOnlyReason {
    /// The author says so.
    Said,
    /// It has no gate and starts an agent.
    StartsAgent,
    /// The run of the state that it leaves takes it.
    EndsRun,
    /// It has no gate and ends the task.
    EndsTask,
}

/// What is done on a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionHook {
    /// Bind a worktree to the task.
    AcquireWorkspace,
    /// Unbind the worktree. Never starts another task.
    ReleaseWorkspace,
    /// Start the task's agent.
    SpawnAgent(AgentSpawn),
    /// Start a reviewer beside the living agent.
    SpawnReviewer(AgentSpawn),
    /// End the task's session with everything in it.
    KillSession,
    /// End the reviewer; the worker lives on.
    KillReviewer,
    /// Type a message to the worker.
    NotifyWorker {
        /// In place of the engine's own words.
        message: Option<Template>,
        /// Whether a worker is started where none is alive.
        start: bool,
    },
    /// Count a field up by one.
    Increment(FieldName),
    /// Run a command in the task's workspace.
    RunCommand(ShellCommand),
    /// Set a field of the task.
    SetField {
        /// The field's name; never one that only the engine sets.
        field: FieldName,
        /// The value that the field has afterwards.
        value: FieldValue,
    },
    /// Ask for an effect, and nothing else.
    Plain(PlainHook),
}

/// A hook that only asks for an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainHook {
    /// The plain action whose effect is asked for.
    pub action: PlainAction,
    /// What stands under each of its keys.
    pub texts: BTreeMap<&'static str, Template>,
}

impl TransitionHook {
    /// The agent that it starts, if it is `spawn_agent` or `spawn_reviewer`.
    pub fn spawn(&self) -> Option<&AgentSpawn> {
        if let Self::SpawnAgent(spawn) | Self::SpawnReviewer(spawn) = self { Some(spawn) } else { None }
    }

    fn starts_agent(&self) -> bool {
        self.spawn().is_some() || matches!(self, Self::NotifyWorker { start: true, .. })
    }

    /// The action of this hook, without its parameters.
    pub fn action(&self) -> TaskAction {
        match self {
            TransitionHook::AcquireWorkspace => TaskAction::AcquireWorkspace,
            TransitionHook::ReleaseWorkspace => TaskAction::ReleaseWorkspace,
            TransitionHook::SpawnAgent(_) => TaskAction::SpawnAgent,
            TransitionHook::SpawnReviewer(_) => TaskAction::SpawnReviewer,
            TransitionHook::KillSession => TaskAction::KillSession,
            TransitionHook::KillReviewer => TaskAction::KillReviewer,
            TransitionHook::NotifyWorker { .. } => TaskAction::NotifyWorker,
            TransitionHook::Increment(_) => TaskAction::Increment,
            TransitionHook::RunCommand(_) => TaskAction::RunCommand,
            TransitionHook::SetField { .. } => TaskAction::SetField,
            TransitionHook::Plain(plain) => TaskAction::Plain(plain.action),
        }
    }
}

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpawn {
    /// What it is told.
    pub prompt: PromptName,
    /// Whose harness it uses.
    pub harness: HarnessChoice,
    /// What it may do.
    pub permissions: AgentPermissions,
    /// A field that is counted up before it starts.
    pub increment: Option<FieldName>,
}

/// Which of the task's two harnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarnessChoice {
    /// The one that does the work.
    Task,
    /// The one that reviews it.
    Review,
}

/// What an agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentPermissions {
    /// Everything: the agent's program asks for no permission.
    Full,
    /// Read, and write its artifact.
    Reduced,
}

/// What a field can be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A number, which guards can read.
    Number(i64),
    /// Text, which prompts can show.
    Text(String),
}

/// What the engine does about agents whose process has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitMonitoring {
    /// Seconds between two looks, as a backstop: an end is noticed at once.
    pub poll_interval: u32,
    /// The first that matches is applied.
    pub rules: Vec<ExitRule>,
}

/// One exit rule: what follows when an agent's process ends by itself in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitRule {
    /// The state that the task must be in for the rule to apply.
    pub state: StateId,
    /// What the artifact must be for the rule to apply.
    pub artifact: ArtifactTest,
    /// What the engine does when the rule applies.
    pub reaction: ExitReaction,
}

/// What an exit rule asks of the artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArtifactTest {
    /// Nothing: the rule applies whatever the artifact says.
    Any,
    /// That it is there and satisfies the gate.
    Present(Gate),
    /// That no rule of this state with a gate matched.
    Missing,
}

/// What follows from an exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReaction {
    /// The task moves on, through the transition's gate and hooks.
    Advance(StateId),
    /// It moves on along the clause that holds; exactly one does.
    Choose(Vec<(Expr, StateId)>),
    /// It counts as a crash.
    Crash {
        /// After so many the task is stuck.
        stuck_after: Option<u32>,
        /// Before that, the agent is started again at once.
        respawn: bool,
    },
    /// It is shown; a person decides.
    MarkDead,
}

/// The state in which a task has been merged.
pub const DONE: &str = "done";
/// The state that crashes escalate to.
pub const STUCK: &str = "stuck";
/// The states that `task create` can set, the usual one first.
pub const CREATABLE: [&str; 4] = ["pending", "clarification", "agent-review", "reviewing"];
/// The numeric fields that every task has.
pub const COUNTERS: [&str; 2] = ["review_round", "crash_count"];
/// The prompt of a worker that is started because none was alive to be told something.
pub const WORKER_AGAIN: &str = "worker_respawn";

impl Lifecycle {
    /// The state that `id` refers to; panics when the lifecycle has no such state.
    pub fn state(&self, id: StateId) -> &LifecycleState {
        &self.states[id.0 as usize]
    }

    /// The name of state `id`.
    pub fn state_name(&self, id: StateId) -> &str {
        self.state(id).name.as_str()
    }

    /// The agents that may take `edge`. The machine and the checker ask here, so that they agree.
    ///
    /// An artifact of the right form opens a gate, whoever wrote it, but a verdict is the reviewer's, and how a run ended
    /// is the run's to say. Without a gate an agent could start agents for ever, or end its own task: there a person
    /// decides unless the author says otherwise.
    pub fn takers(&self, edge: &LifecycleTransition) -> TransitionTakers {
        let run = self.state(edge.from).run.as_ref();
        let ends_run = run.is_some_and(|run| [run.completed, run.failed].contains(&Some(edge.to)));
        match (edge.by, &edge.gate) {
            (Some(AssignedTaker::Person), _) => TransitionTakers::Persons(PersonsOnlyReason::Said),
            (_, Some(_)) if edge.gives_verdict() => TransitionTakers::Reviewer,
            (None, _) if ends_run => TransitionTakers::Persons(PersonsOnlyReason::EndsRun),
            (Some(AssignedTaker::Agent), _) | (None, Some(_)) => TransitionTakers::Agents,
            (None, None) if self.state(edge.to).terminal => TransitionTakers::Persons(PersonsOnlyReason::EndsTask),
            (None, None) if edge.hooks.iter().any(TransitionHook::starts_agent) => {
                TransitionTakers::Persons(PersonsOnlyReason::StartsAgent)
            }
            (None, None) => TransitionTakers::Agents,
        }
    }

    /// Whether the run of a state judges the work: the task moves on when it has completed, and can come from there to
    /// where it is merged without a worker being started on the way, whose work would be another.
    pub fn judges(&self, state: StateId) -> bool {
        let (run, done) = (self.state(state).run.as_ref(), self.find(DONE));
        let Some((first, done)) = run.and_then(|run| run.completed).zip(done) else { return false };
        let ways = |from: StateId| self.transitions.iter().filter(move |edge| edge.from == from);
        let mut reached: Vec<StateId> = Vec::new();
        reached.extend(ways(state).find(|edge| edge.to == first && !self.starts_worker(edge)).map(|edge| edge.to));
        let mut next = 0;
        while let Some(at) = reached.get(next).copied() {
            for edge in ways(at) {
                if edge.to == done {
                    return true;
                }
                if edge.to != state && !reached.contains(&edge.to) && !self.starts_worker(edge) {
                    reached.push(edge.to);
                }
            }
            next += 1;
        }
        false
    }

    /// Whether whoever is started in a state, in the task's own place, is the author of a verdict.
    pub fn is_reviewed(&self, state: StateId) -> bool {
        self.transitions.iter().any(|edge| edge.from == state && edge.gives_verdict())
    }

    /// Whether a transition starts somebody who does the work, or can.
    pub(crate) fn starts_worker(&self, edge: &LifecycleTransition) -> bool {
        let starts = |hook: &TransitionHook| hook.starts_agent() && !matches!(hook, TransitionHook::SpawnReviewer(_));
        let enters = self.state(edge.to).enter_prompt.is_some();
        (enters || edge.hooks.iter().any(starts)) && !self.is_reviewed(edge.to)
    }

    /// Whether only a person leads a task out of a state: no agent may, no rule does, and no run is started there.
    pub fn is_left_by_persons(&self, state: StateId) -> bool {
        let leads_on = |reaction: &ExitReaction| match reaction {
            ExitReaction::Advance(_) | ExitReaction::Choose(_) => true,
            ExitReaction::Crash { stuck_after, .. } => stuck_after.is_some(),
            ExitReaction::MarkDead => false,
        };
        let is_persons = |edge: &LifecycleTransition| matches!(self.takers(edge), TransitionTakers::Persons(_));
        self.state(state).run.is_none()
            && !self.exits.rules.iter().any(|rule| rule.state == state && leads_on(&rule.reaction))
            && self.transitions.iter().filter(|edge| edge.from == state).all(is_persons)
    }

    /// The state called `name`.
    pub fn find(&self, name: &str) -> Option<StateId> {
        let index = self.states.iter().position(|state| state.name.as_str() == name)?;
        u32::try_from(index).ok().map(StateId)
    }
}
