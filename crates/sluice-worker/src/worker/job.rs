//! One step at a worker, from its assignment to its report.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_api::Problem;
use sluice_api::work::{NO_MERGE_TURN, OrderWorkspace, StepOrder, StepPermissions, StepReport, StepStart};
use sluice_core::id::{Dispatch, MalformedId, RunId};
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::recipe::{FailureKind, StepWorkspace};
use sluice_core::run::effect::RunScript;
use sluice_core::run::{AttemptPart, AttemptReport, StepOutcome};
use sluice_os::git::GitError;
use sluice_os::passing::PassingError;
use sluice_os::session::{SessionFailure, SessionId, SessionKeeper, boot_ms};

use super::worktrees::RemoteWorktrees;
use super::{FIRST_PAUSE, LONGEST_PAUSE, WorkerRuntime, is_passing};
use crate::machine::units::written_size;
use crate::names::{remote_folder, remote_scratch};
use crate::perform::performer::{WorktreeAccess, perform};
use crate::perform::{LocalOrder, OrderWork, PerformContext, PerformResult, StepIdentity, reported};
use crate::report::written;
use crate::spans;
use crate::undone::described;
use crate::undone::{PerformError, PerformFailure, UnavailableReason};

/// So long a remote may be away before a step that has ended fails.
const LONGEST_AWAY: Duration = Duration::from_secs(60 * 60);

pub(super) struct WorkerAssignment {
    pub(super) order: LocalOrder,
    pub(super) mission: RunId,
    pub(super) task: String,
    pub(super) title: String,
    dispatch: Dispatch,
    /// Where the repository is, and where to start there.
    pub(super) repository: Option<String>,
    pub(super) commit: Option<String>,
    /// Where the engine's name for the worktree stands, and has to be made the folder that it has here.
    named: WorktreeAlias,
    pub(super) workspace: StepWorkspace,
    pub(super) access: WorktreeAccess,
    /// Who keeps what runs, and for how long after a sign that was answered.
    keeper: SessionKeeper,
    /// Until when it is this worker's for sure.
    until_ms: AtomicU64,
    /// It is not this worker's any more.
    is_given_back: AtomicBool,
    /// Its run wants it ended.
    is_stopped: AtomicBool,
    told: Mutex<String>,
}

impl WorkerAssignment {
    /// The step of an order. Each field is named, so that one that is added is not forgotten here.
    pub(super) fn of(order: StepOrder, url: &str, keeper: SessionKeeper) -> Result<WorkerAssignment, MalformedId> {
        let StepOrder {
            protocol: _, // an engine that speaks another version was refused when this worker registered
            dispatch,
            task_id,
            mission_id,
            step_id,
            role,
            title,
            prompt,
            context: _, // stands in the prompt where the step wants it
            worktree_path,
            worktree_at,
            worktree_in,
            kind: _, // says which of `script` and `prompt` counts, and for people
            is_arbiter,
            script,
            environment,
            attempt,
            part,
            performance,
            harness,
            permissions,
            own_workspace,
            workspace,
            repo,
            commit,
            lease_ms: _, // is in `keeper`
            away_ms: _,
            agent_token,
        } = order;
        let work = work_of(script, environment, prompt);
        let permissions = allowed(permissions, is_arbiter);
        let workspace = place(workspace, own_workspace);
        let access = match &work {
            OrderWork::Script(_) => WorktreeAccess::of_script(workspace),
            OrderWork::Agent { .. } if is_arbiter => WorktreeAccess::Looks,
            OrderWork::Agent { .. } => WorktreeAccess::of_agent(part_called(&part), workspace, permissions),
        };
        let order = LocalOrder {
            name: performance,
            run: mission_id.parse()?,
            step: step_id,
            attempt,
            role,
            harness: harness_of(harness),
            permissions,
            folder: PathBuf::new(),
            voice: voice(url, agent_token),
            keeper: None,
            work,
        };
        Ok(WorkerAssignment {
            mission: order.run.clone(),
            order,
            task: task_id,
            title,
            dispatch: Dispatch(dispatch),
            repository: repo,
            commit,
            named: WorktreeAlias { name: worktree_path, at: worktree_at, variables: worktree_in },
            workspace,
            access,
            keeper,
            until_ms: AtomicU64::new(0),
            is_given_back: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            told: Mutex::default(),
        })
    }

    /// What the attempt is called: the same however often it is told.
    pub(super) fn run_id(&self, worker: &str) -> String {
        format!("{worker}-{}", self.dispatch)
    }

    /// It is not this worker's any more: what runs is ended, and nothing is reported.
    pub(super) fn give_back(&self, bench: &PerformContext) {
        self.is_given_back.store(true, Ordering::Relaxed);
        self.stop(bench);
    }

    /// Its run wants it ended: what runs is ended, and that is reported.
    pub(super) fn stop(&self, bench: &PerformContext) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Err(why) = bench.stop(&self.order.name) {
            tracing::warn!("{} cannot be ended: {why}", self.order.name);
        }
    }

    /// For how long an answer keeps it.
    pub(super) fn kept_for(&self) -> Duration {
        Duration::from_millis(self.keeper.away_ms)
    }

    /// The engine has answered a sign that was sent then: until half of the time is over in which it waits for another, the
    /// step is this worker's, whatever happens to the connection.
    pub(super) fn keep(&self, bench: &PerformContext, sent_ms: u64) {
        let until_ms = sent_ms.saturating_add(self.keeper.away_ms);
        let before = self.until_ms.fetch_max(until_ms, Ordering::Relaxed);
        let Ok(id) = SessionId::new(&self.order.name) else { return };
        match bench.sessions.keep(&id, until_ms.max(before)) {
            Ok(()) | Err(SessionFailure::Unknown(_)) => {}
            Err(failure) => tracing::warn!("{id} is not kept: {}", described(&failure)),
        }
    }

    fn is_kept(&self) -> bool {
        boot_ms() < self.until_ms.load(Ordering::Relaxed)
    }

    pub(super) fn is_given_back(&self) -> bool {
        self.is_given_back.load(Ordering::Relaxed)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Whether an agent says something else than before.
    pub(super) fn is_news(&self, line: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *told != line;
        line.clone_into(&mut told);
        is_new
    }
}

impl WorkerRuntime {
    /// Carries a step out and reports. Whatever keeps it from being done fails the step, and not the worker.
    pub(super) fn carry_out(&self, job: &WorkerAssignment) {
        let run_id = job.run_id(&self.id);
        let begin = StepStart {
            run_id: Some(run_id.clone()),
            mission_id: job.mission.to_string(),
            task_id: job.task.clone(),
            crab_id: self.id.clone(),
            burrow_path: Some(match job.workspace {
                StepWorkspace::Scratch => remote_scratch(&job.mission),
                StepWorkspace::Run | StepWorkspace::Own | StepWorkspace::Here => remote_folder(&job.mission),
            }),
        };
        if let Err(problem) = self.insist(job, "/v1/runs/start", &begin) {
            return tracing::warn!(step = job.task, "is not begun: {}", problem.message);
        }
        let trees = RemoteWorktrees::new(self, job);
        self.until_roomy(job);
        let report = self.report_of(&trees, job);
        if job.is_given_back() || self.is_leaving() {
            return;
        }
        let failed =
            |error| AttemptReport::Failed { kind: FailureKind::Failed, error, outcome: StepOutcome::default() };
        let report = report.unwrap_or_else(|UnavailableReason(why)| failed(why));
        let mut said = StepReport { onto: trees.merged_with(), ..written(run_id.clone(), &report) };
        loop {
            match self.insist(job, "/v1/runs/complete", &said) {
                Ok(()) => return trees.finish(),
                // Something else was brought in since, which only happens around a restart of the engine.
                Err(problem) if problem.code == NO_MERGE_TURN => {
                    said = self.merged_again(&trees, run_id.clone(), &report)
                }
                Err(problem) => {
                    return tracing::warn!(step = job.task, "does not count: {}", problem.message);
                }
            }
        }
    }

    /// The report with its work merged once more, or that this failed.
    fn merged_again(&self, trees: &RemoteWorktrees<'_>, run_id: String, report: &AttemptReport) -> StepReport {
        let (AttemptReport::Completed(outcome) | AttemptReport::Failed { outcome, .. }) = report;
        let outcome = outcome.clone();
        let report = match trees.merge_again() {
            Ok(commit) => AttemptReport::Completed(StepOutcome { commit, ..outcome }),
            Err(PerformError::Failed(PerformFailure { kind, error, .. })) => {
                AttemptReport::Failed { kind, error: error.to_string(), outcome }
            }
            Err(PerformError::Unavailable(UnavailableReason(error))) => {
                AttemptReport::Failed { kind: FailureKind::Lost, error, outcome }
            }
        };
        StepReport { onto: trees.merged_with(), ..written(run_id, &self.bench.clean().report(report)) }
    }

    fn report_of(
        &self,
        trees: &RemoteWorktrees<'_>,
        job: &WorkerAssignment,
    ) -> Result<AttemptReport, UnavailableReason> {
        let LocalOrder { run, step, attempt, .. } = &job.order;
        let kind = match &job.order.work {
            OrderWork::Script(_) => "script",
            OrderWork::Agent { .. } if job.access == WorktreeAccess::Looks => "arbiter",
            OrderWork::Agent { .. } => "agent",
        };
        let span = spans::step(run, step, *attempt, kind);
        let performed = perform(trees, job.access, |folder| {
            self.until_kept(job);
            if job.is_given_back() {
                return Err(not_ours().into());
            }
            let keeper = SessionKeeper { until_ms: job.until_ms.load(Ordering::Relaxed), ..job.keeper.clone() };
            let work = job.named.made(&job.order.work, &folder.display().to_string());
            let order = LocalOrder { folder: folder.to_owned(), keeper: Some(keeper), work, ..job.order.clone() };
            let performed = self.performed(job, &order);
            if job.is_given_back() || self.is_leaving() {
                return Err(not_ours().into());
            }
            performed
        });
        let report = reported(&self.bench, performed)?;
        spans::step_ended(span, &report);
        Ok(report)
    }

    /// Waits until the step is this worker's for sure: nothing is begun that would be paused at once.
    fn until_kept(&self, job: &WorkerAssignment) {
        let inner = self.inner();
        let waits = |_: &mut super::WorkerRuntimeState| !job.is_kept() && !job.is_given_back() && !self.is_leaving();
        drop(self.changed.wait_while(inner, waits));
    }

    /// Waits until the disk has room for the step: one that is begun without would fail, and nothing is wrong with it.
    fn until_roomy(&self, job: &WorkerAssignment) {
        let is_wanted = || !job.is_given_back() && !job.is_stopped() && !self.is_leaving();
        let mut wait = FIRST_PAUSE;
        while is_wanted() && self.is_full() {
            tracing::warn!(step = job.task, "waits for room: {} is free", written_size(self.free_bytes()));
            self.pause(wait);
            wait = (wait * 2).min(LONGEST_PAUSE);
        }
    }

    /// Tries again for a while: the git of a worker that was killed may still be at the same mirror. What the machine is short of
    /// is waited for as long as the step is this worker's, and so is a remote that is away: the work is done, and is lost to the
    /// run if it is not handed on.
    pub(super) fn patiently<T>(
        &self,
        job: &WorkerAssignment,
        act: impl Fn() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let (mut wait, began) = (FIRST_PAUSE, Instant::now());
        loop {
            match act() {
                Ok(done) => return Ok(done),
                Err(error @ (GitError::Conflict { .. } | GitError::Unresolved { .. })) => return Err(error),
                Err(error) if job.is_given_back() || self.is_leaving() => return Err(error),
                // It is ended, or its time is over: what it has is not waited for any longer.
                Err(error) if job.is_stopped() => return Err(error),
                Err(error) if error.is_away() && began.elapsed() < LONGEST_AWAY => {
                    tracing::warn!(step = job.task, "is tried again: {}", described(&error));
                }
                Err(error) if wait > LONGEST_PAUSE && !error.is_passing() => return Err(error),
                Err(error) => tracing::warn!(step = job.task, "is tried again: {}", described(&error)),
            }
            self.pause(wait.min(LONGEST_PAUSE));
            wait = wait.saturating_mul(2);
        }
    }

    /// Carries an order out. What cannot be begun now is tried again, for as long as the step is this worker's.
    fn performed(&self, job: &WorkerAssignment, order: &LocalOrder) -> PerformResult {
        let mut wait = FIRST_PAUSE;
        let performed = loop {
            match self.bench.perform(order) {
                Err(PerformError::Unavailable(_)) if job.is_given_back() || self.is_leaving() => {
                    return Err(not_ours().into());
                }
                Err(PerformError::Unavailable(UnavailableReason(why))) => {
                    tracing::warn!(step = job.task, "is tried again: {why}");
                }
                performed => break performed,
            }
            self.pause(wait);
            wait = (wait * 2).min(LONGEST_PAUSE);
        };
        self.bench.performed(&order.name);
        performed
    }

    /// Asks until the engine answers. An answer that says no is an answer.
    fn insist(&self, job: &WorkerAssignment, path: &str, body: &impl Serialize) -> Result<(), Problem> {
        self.insist_on::<Value>(job, path, body).map(drop)
    }

    /// The same, with the answer.
    pub(super) fn insist_on<T: DeserializeOwned>(
        &self,
        job: &WorkerAssignment,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Problem> {
        let mut wait = FIRST_PAUSE;
        loop {
            match self.client.post::<T>(path, body) {
                Ok(answer) => return Ok(answer),
                Err(problem) if !is_passing(&problem) => return Err(problem),
                Err(problem) if job.is_given_back() || self.is_leaving() => return Err(problem),
                Err(_) => self.pause(wait),
            }
            wait = (wait * 2).min(LONGEST_PAUSE);
        }
    }
}

/// What is to be done: a command if there is one, else what an agent is told.
fn work_of(script: Option<String>, environment: Option<Vec<(String, String)>>, prompt: String) -> OrderWork {
    match script {
        Some(script) => OrderWork::Script(RunScript { script, environment: environment.unwrap_or_default() }),
        None => OrderWork::Agent { prompt },
    }
}

/// What the agent of a step may do. One that judges may only look.
fn allowed(permissions: StepPermissions, is_arbiter: bool) -> AgentPermissions {
    match (permissions, is_arbiter) {
        (StepPermissions::Full, false) => AgentPermissions::Full,
        (StepPermissions::Full | StepPermissions::Reduced, _) => AgentPermissions::Reduced,
    }
}

/// Where a step works. An engine of an earlier version says only whether it has a worktree of its own.
fn place(workspace: Option<OrderWorkspace>, own_workspace: bool) -> StepWorkspace {
    match workspace {
        Some(OrderWorkspace::Run) => StepWorkspace::Run,
        Some(OrderWorkspace::Own) => StepWorkspace::Own,
        Some(OrderWorkspace::Scratch) => StepWorkspace::Scratch,
        Some(OrderWorkspace::Here) => StepWorkspace::Here,
        None if own_workspace => StepWorkspace::Own,
        None => StepWorkspace::Run,
    }
}

/// The agent program of a step: the one that it names, else the one that this worker was started with.
fn harness_of(named: Option<String>) -> Option<String> {
    let usual = std::env::var("SLUICE_HARNESS").ok();
    [named, usual].into_iter().flatten().find(|name| !name.is_empty())
}

fn voice(url: &str, agent_token: Option<String>) -> StepIdentity {
    let mut environment = vec![("SLUICE_URL".to_owned(), url.to_owned())];
    environment.extend(agent_token.map(|token| ("SLUICE_TOKEN".to_owned(), token)));
    environment.extend(std::env::var("SLUICE_CA").ok().map(|file| ("SLUICE_CA".to_owned(), file)));
    StepIdentity::Elsewhere { environment }
}

/// A part, by its name. One that this build does not know is none that writes beside others.
fn part_called(name: &str) -> AttemptPart {
    AttemptPart::parse(name).unwrap_or(AttemptPart::Whole)
}

/// Why nothing is done or said about a step that is not this worker's any more.
pub(super) fn not_ours() -> UnavailableReason {
    UnavailableReason("it is not this worker's any more".to_owned())
}

/// The engine's name for a run's worktree, and where it stands in what is to be done.
#[derive(Default)]
struct WorktreeAlias {
    name: String,
    /// Where it begins in the prompt, in bytes. `None`: the engine does not tell, so it may stand anywhere.
    at: Option<Vec<usize>>,
    /// The variables of a script's environment that hold it. `None`: any of them.
    variables: Option<Vec<String>>,
}

impl WorktreeAlias {
    /// What is to be done, with this folder in the place of the name. Whatever else looks like the name stays, unless an
    /// engine, or what it stored, is of a version that did not tell the places: `{{worktree_path}}` must be the folder.
    fn made(&self, work: &OrderWork, folder: &str) -> OrderWork {
        let anywhere = |text: &str| match self.name.is_empty() {
            true => text.to_owned(),
            false => text.replace(&self.name, folder),
        };
        match work {
            OrderWork::Agent { prompt } => {
                let Some(places) = &self.at else { return OrderWork::Agent { prompt: anywhere(prompt) } };
                let (mut made, mut done) = (String::with_capacity(prompt.len()), 0);
                for at in places {
                    let Some(before) = prompt.get(done..*at) else { continue };
                    if prompt[*at..].starts_with(&self.name) {
                        made.push_str(before);
                        made.push_str(folder);
                        done = at + self.name.len();
                    }
                }
                made.push_str(&prompt[done..]);
                OrderWork::Agent { prompt: made }
            }
            OrderWork::Script(RunScript { script, environment }) => {
                let here = |(key, value): &(String, String)| {
                    let value = match &self.variables {
                        None => anywhere(value),
                        Some(variables) if variables.contains(key) && *value == self.name => folder.to_owned(),
                        Some(_) => value.clone(),
                    };
                    (key.clone(), value)
                };
                let environment = environment.iter().map(here).collect();
                OrderWork::Script(RunScript { script: script.clone(), environment })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_the_engine_put_its_name_for_the_worktree_the_folder_stands() {
        let prompt = "In burrows/mission-m/ as /ann/burrows/mission-m/ says: burrows/mission-m/.";
        let name = "burrows/mission-m/".to_owned();
        let named = |at| WorktreeAlias { name: name.clone(), at, variables: Some(vec!["A".into(), "B".into()]) };
        let earlier = WorktreeAlias { name: name.clone(), ..WorktreeAlias::default() };
        let told = |at| match named(at).made(&OrderWork::Agent { prompt: prompt.into() }, "/bob/m") {
            OrderWork::Agent { prompt } => prompt,
            OrderWork::Script(_) => String::new(),
        };
        let last = prompt.rfind("burrows").unwrap_or_default();
        assert_eq!(told(Some(vec![3, last])), "In /bob/m as /ann/burrows/mission-m/ says: /bob/m.");
        // An engine that says that it stands nowhere, or something wrong, changes nothing else.
        for odd in [vec![], vec![4, 9999]] {
            assert_eq!(told(Some(odd)), prompt);
        }
        // One that does not know of places has it made the folder wherever it stands.
        assert_eq!(told(None), "In /bob/m as /ann//bob/m says: /bob/m.");
        let pairs = [("A", "burrows/mission-m/"), ("B", "burrows/mission-m/x"), ("C", "burrows/mission-m/")];
        let environment = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let script = OrderWork::Script(RunScript { script: "true".into(), environment });
        let OrderWork::Script(made) = named(None).made(&script, "/bob/m") else { panic!("it is a script") };
        let values: Vec<&str> = made.environment.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["/bob/m", "burrows/mission-m/x", "burrows/mission-m/"]);
        let OrderWork::Script(made) = earlier.made(&script, "/bob/m") else { panic!("it is a script") };
        let values: Vec<&str> = made.environment.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["/bob/m", "/bob/mx", "/bob/m"]);
    }
}
