//! The names of all events: as they are stored, and as they are told where a run was started as something else.
//!
//! They stand here and nowhere else. A name that is stored is never changed: a log keeps it for as long as its home.

use crate::run::{RunConclusion, RunEvent, RunKind};

/// Makes the enum of names, each with its word.
macro_rules! names {
    ($($name:ident = $word:literal,)+) => {
        /// The name of an event, as it is stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventName {
            $(#[doc = concat!("`", $word, "`")] $name,)+
        }

        impl EventName {
            /// Every stored event name, in the order of the table.
            pub const ALL: &[EventName] = &[$(EventName::$name,)+];

            /// The name in the log.
            pub const fn word(self) -> &'static str {
                match self { $(EventName::$name => $word,)+ }
            }

            /// The event of this name; `None` for one of another version.
            pub fn read(word: &str) -> Option<EventName> {
                match word { $($word => Some(EventName::$name),)+ _ => None }
            }
        }
    };
}

names! {
    // Events of tasks.
    TaskCreated = "task.created",
    StatusChanged = "status.changed",
    TaskBegan = "task.began",
    AgentRespawning = "agent.respawning",
    AutoAdvanced = "auto.advanced",
    VerdictRefused = "verdict.refused",
    AgentCrashed = "agent.crashed",
    TaskMerged = "task.merged",
    TaskCancelled = "task.cancelled",
    TaskUpdated = "task.updated",
    FieldSet = "field.set",
    WorkspaceReserved = "workspace.reserved",
    WorkspaceBound = "workspace.bound",
    WorkspaceReleased = "workspace.released",
    WorkspaceLent = "workspace.lent",
    SessionAsked = "session.asked",
    AgentRespawned = "agent.respawned",
    AgentSpawned = "agent.spawned",
    SessionNotStarted = "session.not_started",
    SessionEnding = "session.ending",
    SessionEnded = "session.ended",
    SessionNotEnded = "session.not_ended",
    SessionExited = "session.exited",
    PullRequestCreated = "pr.created",
    HookAsked = "hook.asked",
    HookDone = "hook.done",
    HookIdle = "hook.idle",
    HookSkipped = "hook.skipped",
    HookFailed = "hook.failed",
    HookRetrying = "hook.retrying",
    TurnSettled = "turn.settled",
    TaskRunStarted = "task.run_started",
    TaskRunEnded = "task.run_ended",
    TaskRunLeft = "task.run_left",
    SessionWaits = "session.waits",
    SessionQuiet = "session.quiet",
    SessionWorks = "session.works",
    AttentionSet = "attention.set",
    AttentionCleared = "attention.cleared",
    // Remarks about tasks.
    ArtifactRead = "artifact.read",
    ArtifactForged = "artifact.forged",
    CheckoutLeaked = "checkout.leaked",
    TaskDeleted = "task.deleted",
    // Events of runs.
    RunStarted = "run.started",
    StepReady = "step.ready",
    StepStarted = "step.started",
    StepPartStarted = "step.part.started",
    StepPartEnded = "step.part.ended",
    StepPartLost = "step.part.lost",
    StepAttemptFailed = "step.attempt.failed",
    StepCompleted = "step.completed",
    StepFailed = "step.failed",
    StepRetried = "step.retried",
    StepSkipped = "step.skipped",
    RunInterventionRequired = "run.intervention.required",
    RunAnswered = "run.answered",
    StepAsked = "step.asked",
    RunQuestionWithdrawn = "run.question.withdrawn",
    RunBlocked = "run.blocked",
    StepSaid = "step.said",
    StepStopping = "step.stopping",
    RunLooped = "run.looped",
    RunReopened = "run.reopened",
    RunEnding = "run.ending",
    StepCancelled = "step.cancelled",
    RunCompleted = "run.completed",
    RunFailed = "run.failed",
    RunCancelled = "run.cancelled",
    // Remarks about runs.
    RunDeleted = "run.deleted",
    RunMerged = "run.merged",
    // Notes about effects of tasks and runs.
    EffectSettled = "effect.settled",
    EffectLeased = "effect.leased",
    // Facts of the home.
    TokenCreated = "token.created",
    TokenExpired = "token.expired",
    TokenRevoked = "token.revoked",
    AccessDenied = "access.denied",
    ProjectAdded = "project.added",
    ProjectChanged = "project.changed",
    ProjectRemoved = "project.removed",

    KeptDropped = "workspace.dropped",
    GroupCreated = "colony.created",
    MissionCreated = "mission.created",
    WorkerRegistered = "crab.registered",
    WorkerConnected = "crab.connected",
    WorkerLeft = "crab.left",
    WorkerLost = "crab.lost",
    AttemptStarted = "attempt.started",
    AttemptProgress = "attempt.progress",
    AttemptEnded = "attempt.ended",
    RequestBegun = "request.begun",
    RequestAnswered = "request.answered",
    SchedulerTicked = "scheduler.ticked",
    AttentionTold = "attention.told",
    AttentionOver = "attention.over",
    RegistryTurnedOver = "house.turned_over",
    LedgerClosed = "ledger.closed",
}

/// `process.created`: a run of a process template started; told in place of `run.started`.
pub const PROCESS_CREATED: &str = "process.created";
/// A step of a process began.
pub const PROCESS_STEP_STARTED: &str = "process.step_started";
/// A step of a process has ended.
pub const PROCESS_STEP_COMPLETED: &str = "process.step_completed";
/// A step of a process cannot be done, because one before it failed.
pub const PROCESS_STEP_BLOCKED: &str = "process.step_blocked";
/// A workflow needs a person.
pub const WORKFLOW_INTERVENTION: &str = "workflow.intervention.required";

/// The events that a trigger can wait for.
pub const EVENTS: [&str; 35] = [
    EventName::TaskCreated.word(),
    EventName::StatusChanged.word(),
    EventName::AgentSpawned.word(),
    EventName::AgentRespawned.word(),
    EventName::AgentCrashed.word(),
    EventName::AutoAdvanced.word(),
    EventName::HookFailed.word(),
    EventName::TaskMerged.word(),
    EventName::TaskCancelled.word(),
    EventName::PullRequestCreated.word(),
    EventName::TaskRunStarted.word(),
    EventName::TaskRunEnded.word(),
    EventName::TaskRunLeft.word(),
    "workflow.started",
    "workflow.step.started",
    "workflow.step.completed",
    "workflow.completed",
    "workflow.failed",
    "workflow.blocked",
    "workflow.cancelled",
    WORKFLOW_INTERVENTION,
    EventName::RunStarted.word(),
    EventName::RunCompleted.word(),
    EventName::RunFailed.word(),
    EventName::RunBlocked.word(),
    EventName::RunCancelled.word(),
    EventName::RunInterventionRequired.word(),
    EventName::StepStarted.word(),
    EventName::StepCompleted.word(),
    EventName::StepFailed.word(),
    PROCESS_CREATED,
    PROCESS_STEP_STARTED,
    PROCESS_STEP_COMPLETED,
    "process.completed",
    "process.cancelled",
];

/// The name under which an event of a run is told, by what the run was started as. What this build does not know keeps
/// its stored name behind that.
pub fn told(stored: &str, kind: RunKind) -> String {
    let rest = stored.strip_prefix("run.").unwrap_or(stored);
    match (kind, EventName::read(stored)) {
        (RunKind::Run | RunKind::Mission, _) => stored.to_owned(),
        // A step asks, or its agent: either way the workflow needs a person.
        (RunKind::Workflow, Some(EventName::StepAsked)) => WORKFLOW_INTERVENTION.to_owned(),
        (RunKind::Workflow, _) => format!("workflow.{rest}"),
        (RunKind::Process, Some(EventName::RunStarted)) => PROCESS_CREATED.to_owned(),
        (RunKind::Process, Some(EventName::StepStarted)) => PROCESS_STEP_STARTED.to_owned(),
        (RunKind::Process, Some(EventName::StepCompleted | EventName::StepFailed | EventName::StepSkipped)) => {
            PROCESS_STEP_COMPLETED.to_owned()
        }
        (RunKind::Process, _) => format!("process.{rest}"),
    }
}

impl RunEvent {
    /// The name under which the event is stored in the log.
    pub fn name(&self) -> EventName {
        match self {
            RunEvent::Started { .. } => EventName::RunStarted,
            RunEvent::StepReady(_) => EventName::StepReady,
            RunEvent::StepStarted { .. } => EventName::StepStarted,
            RunEvent::PartStarted { .. } => EventName::StepPartStarted,
            RunEvent::PartEnded { .. } => EventName::StepPartEnded,
            RunEvent::PartLost { .. } => EventName::StepPartLost,
            RunEvent::AttemptFailed { .. } => EventName::StepAttemptFailed,
            RunEvent::StepCompleted { .. } => EventName::StepCompleted,
            RunEvent::StepFailed { .. } => EventName::StepFailed,
            RunEvent::StepRetried { .. } => EventName::StepRetried,
            RunEvent::StepSkipped { .. } => EventName::StepSkipped,
            RunEvent::StepHeld { .. } => EventName::RunInterventionRequired,
            RunEvent::Answered { .. } => EventName::RunAnswered,
            RunEvent::Asked { .. } => EventName::StepAsked,
            RunEvent::Withdrawn { .. } => EventName::RunQuestionWithdrawn,
            RunEvent::Blocked { .. } => EventName::RunBlocked,
            RunEvent::Said { .. } => EventName::StepSaid,
            RunEvent::StepStopping { .. } => EventName::StepStopping,
            RunEvent::LoopedBack { .. } => EventName::RunLooped,
            RunEvent::Reopened { .. } => EventName::RunReopened,
            RunEvent::Ending { .. } => EventName::RunEnding,
            RunEvent::StepCancelled { .. } => EventName::StepCancelled,
            RunEvent::Ended { end: RunConclusion::Completed { .. }, .. } => EventName::RunCompleted,
            RunEvent::Ended { end: RunConclusion::Failed { .. }, .. } => EventName::RunFailed,
            RunEvent::Ended { end: RunConclusion::Cancelled { .. }, .. } => EventName::RunCancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name that is told, of all runs and of what is no run.
    fn all() -> Vec<String> {
        let kinds = [RunKind::Run, RunKind::Mission, RunKind::Workflow, RunKind::Process];
        let names = EventName::ALL.iter().flat_map(|name| kinds.map(|kind| told(name.word(), kind)));
        names.chain([PROCESS_STEP_BLOCKED.to_owned()]).collect()
    }

    #[test]
    fn a_name_is_read_as_it_is_written() {
        assert!(EventName::ALL.iter().all(|name| EventName::read(name.word()) == Some(*name)));
        assert_eq!(EventName::read("run.exploded"), None);
    }

    #[test]
    fn a_run_is_told_in_the_words_of_what_it_was_started_as() {
        assert_eq!(told("step.started", RunKind::Mission), "step.started");
        assert_eq!(told("run.completed", RunKind::Workflow), "workflow.completed");
        assert_eq!(told("step.asked", RunKind::Workflow), "workflow.intervention.required");
        assert_eq!(told("step.ready", RunKind::Process), "process.step.ready");
        assert_eq!(told("step.skipped", RunKind::Process), "process.step_completed");
        assert_eq!(told("run.of_a_newer_engine", RunKind::Process), "process.of_a_newer_engine");
    }

    #[test]
    fn a_trigger_waits_for_events_that_there_are() {
        let all = all();
        let unknown: Vec<&str> = EVENTS.into_iter().filter(|name| !all.iter().any(|it| it == name)).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }
}
