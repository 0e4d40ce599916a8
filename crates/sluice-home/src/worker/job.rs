//! One step at a worker, from its assignment to its report.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_core::lifecycle::Permissions;
use sluice_core::recipe::FailureKind;
use sluice_core::run::Report;
use sluice_core::run::effect::Script;
use sluice_worker::burrow::{Burrow, Wanted};
use sluice_worker::git::{Git, GitError};
use sluice_worker::passing::Passing;
use sluice_worker::session::{Failure, Keeper, SessionId, boot_ms};

use super::{FIRST_PAUSE, LONGEST_PAUSE, Worker, is_passing};
use crate::hands::run::workspace_branch;
use crate::projects::described;
use crate::service::burrow;
use crate::spans;
use crate::undone::Unavailable;
use crate::view_run::plain;
use crate::workbench::{Order, Voice, Work, Workbench, reported};

/// A step that was assigned.
pub(super) struct Job {
    pub(super) order: Order,
    mission: String,
    task: String,
    title: String,
    dispatch: u64,
    /// Where the repository is, and where to start there.
    repository: Option<String>,
    commit: Option<String>,
    /// Where the engine's name for the worktree stands, and has to be made the folder that it has here.
    named: Named,
    /// It may not change the work.
    only_looks: bool,
    /// Who keeps what runs, and for how long after a sign that was answered.
    keeper: Keeper,
    /// Until when it is this worker's for sure.
    until_ms: AtomicU64,
    /// It is not this worker's any more.
    is_given_back: AtomicBool,
    /// What was last told of its agent.
    told: Mutex<String>,
}

impl Job {
    /// What an assignment says.
    pub(super) fn read(payload: &Value, url: &str, keeper: Keeper) -> Result<Job, String> {
        let text = |key: &str| payload[key].as_str().map(str::to_owned);
        let must = |key: &str| text(key).ok_or_else(|| format!("it has no `{key}`"));
        let work = match payload["script"].as_str() {
            Some(script) => {
                let environment: Vec<(String, String)> =
                    serde_json::from_value(payload["environment"].clone()).map_err(|error| error.to_string())?;
                Work::Script(Script { script: script.to_owned(), environment })
            }
            None => Work::Agent { prompt: must("prompt")? },
        };
        let only_looks = payload["is_arbiter"] == true;
        let is_reduced = only_looks || payload["permissions"] == "reduced";
        let mut environment = vec![("SLUICE_URL".to_owned(), url.to_owned())];
        environment.extend(text("agent_token").map(|token| ("SLUICE_TOKEN".to_owned(), token)));
        environment.extend(std::env::var("SLUICE_CA").ok().map(|file| ("SLUICE_CA".to_owned(), file)));
        let usual = std::env::var("SLUICE_HARNESS").ok();
        let order = Order {
            name: must("performance")?,
            run: must("mission_id")?,
            step: must("step_id")?,
            attempt: payload["attempt"].as_u64().and_then(|it| u32::try_from(it).ok()).unwrap_or(1),
            role: must("role")?,
            harness: [text("harness"), usual].into_iter().flatten().find(|name| !name.is_empty()),
            permissions: if is_reduced { Permissions::Reduced } else { Permissions::Full },
            folder: PathBuf::new(),
            voice: Voice::Elsewhere { environment },
            keeper: None,
            work,
        };
        Ok(Job {
            order,
            mission: must("mission_id")?,
            task: must("task_id")?,
            title: text("title").unwrap_or_default(),
            dispatch: payload["dispatch"].as_u64().ok_or("it has no number")?,
            repository: text("repo"),
            commit: text("commit"),
            named: Named::read(payload),
            only_looks,
            keeper,
            until_ms: AtomicU64::new(0),
            is_given_back: AtomicBool::new(false),
            told: Mutex::default(),
        })
    }

    /// What the attempt is called: the same however often it is told.
    pub(super) fn run_id(&self, crab: &str) -> String {
        format!("{crab}-{}", self.dispatch)
    }

    /// It is not this worker's any more: what runs is ended, and nothing is reported.
    pub(super) fn give_back(&self, bench: &Workbench) {
        self.is_given_back.store(true, Ordering::Relaxed);
        self.stop(bench);
    }

    /// Its run wants it ended: what runs is ended, and that is reported.
    pub(super) fn stop(&self, bench: &Workbench) {
        if let Err(why) = bench.stop(&self.order.name) {
            bench.log.line(&format!("{} cannot be ended: {why}", self.order.name));
        }
    }

    /// For how long an answer keeps it.
    pub(super) fn kept_for(&self) -> Duration {
        Duration::from_millis(self.keeper.away_ms)
    }

    /// The engine has answered a sign that was sent then: until half of the time is over in which it waits for another, the
    /// step is this worker's, whatever happens to the connection.
    pub(super) fn keep(&self, bench: &Workbench, sent_ms: u64) {
        let until_ms = sent_ms.saturating_add(self.keeper.away_ms);
        let before = self.until_ms.fetch_max(until_ms, Ordering::Relaxed);
        let Ok(id) = SessionId::new(&self.order.name) else { return };
        match bench.sessions.keep(&id, until_ms.max(before)) {
            Ok(()) | Err(Failure::Unknown(_)) => {}
            Err(failure) => bench.log.line(&format!("{id} is not kept: {}", described(&failure))),
        }
    }

    fn is_kept(&self) -> bool {
        boot_ms() < self.until_ms.load(Ordering::Relaxed)
    }

    fn is_given_back(&self) -> bool {
        self.is_given_back.load(Ordering::Relaxed)
    }

    /// Whether an agent says something else than before.
    pub(super) fn is_news(&self, line: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *told != line;
        line.clone_into(&mut told);
        is_new
    }
}

impl Worker {
    /// Carries a step out and reports. Whatever keeps it from being done fails the step, and not the worker.
    pub(super) fn carry_out(&self, job: &Job) {
        let run_id = job.run_id(&self.crab);
        let begin = json!({
            "run_id": run_id, "mission_id": job.mission, "task_id": job.task, "crab_id": self.crab,
            "burrow_path": burrow(&job.mission),
        });
        if let Err(problem) = self.insist(job, "/v1/runs/start", &begin) {
            return self.bench.log.line(&format!("{} is not begun: {}", job.task, problem.message));
        }
        let report = self.report_of(job);
        if job.is_given_back() || self.is_leaving() {
            return;
        }
        let mut body = match report {
            Ok((report, commit)) => written(&report, commit),
            Err(why) => json!({ "status": "failed", "summary": why }),
        };
        body["run_id"] = json!(run_id);
        if let Err(problem) = self.insist(job, "/v1/runs/complete", &body) {
            self.bench.log.line(&format!("{} does not count: {}", job.task, problem.message));
        }
    }

    /// What came of a step, and where the work stands now.
    fn report_of(&self, job: &Job) -> Result<(Report, Option<String>), String> {
        let id = SessionId::new(&job.order.name)?;
        let goes_on = !matches!(self.bench.sessions.adopt(&id), Err(Failure::Unknown(_)));
        let branch = workspace_branch(&job.mission);
        let wanted = Wanted {
            root: self.bench.places.home(),
            run: &job.mission,
            branch: &branch,
            remote: job.repository.as_deref(),
            commit: job.commit.as_deref(),
            goes_on,
        };
        let burrow = self.patiently(job, || Burrow::open(&Git::default(), &wanted))?;
        self.until_kept(job);
        if job.is_given_back() {
            return Err("it is not this worker's any more".into());
        }
        let keeper = Keeper { until_ms: job.until_ms.load(Ordering::Relaxed), ..job.keeper.clone() };
        let work = job.named.made(&job.order.work, &burrow.folder.display().to_string());
        let order = Order { folder: burrow.folder.clone(), keeper: Some(keeper), work, ..job.order.clone() };
        let kind = match &order.work {
            Work::Script(_) => "script",
            Work::Agent { .. } if job.only_looks => "arbiter",
            Work::Agent { .. } => "agent",
        };
        let span = spans::step(&order.run, &order.step, order.attempt, kind);
        let report = self.performed(job, &order)?;
        spans::step_ended(span, &report);
        self.bench.performed(&order.name);
        if job.only_looks || job.is_given_back() {
            return Ok((report, None)); // what an arbiter changed is not where the next step starts
        }
        if !self.is_still_ours(job) {
            return Err("it is not this worker's any more".into());
        }
        let message = format!("{}: {}", job.mission, job.title);
        let commit = self.patiently(job, || burrow.save(&message, || self.is_still_ours(job)));
        match (commit, &report) {
            (Ok(commit), _) => Ok((report, commit)),
            (Err(why), Report::Completed(_)) => Err(format!("its work cannot be handed on: {why}")),
            (Err(_), Report::Failed { .. }) => Ok((report, None)),
        }
    }

    /// Waits until the step is this worker's for sure: nothing is begun that would be paused at once.
    fn until_kept(&self, job: &Job) {
        let inner = self.inner();
        let waits = |_: &mut super::Inner| !job.is_kept() && !job.is_given_back() && !self.is_leaving();
        drop(self.changed.wait_while(inner, waits));
    }

    /// Tries again for a while: a remote may be away for a moment, and the git of a worker that was killed may still be at
    /// the same mirror. What the machine is short of is waited for as long as the step is this worker's.
    fn patiently<T>(&self, job: &Job, act: impl Fn() -> Result<T, GitError>) -> Result<T, String> {
        let mut wait = FIRST_PAUSE;
        loop {
            match act() {
                Ok(done) => return Ok(done),
                Err(error) if job.is_given_back() || self.is_leaving() => return Err(described(&error)),
                Err(error) if wait > LONGEST_PAUSE && !error.is_passing() => return Err(described(&error)),
                Err(error) => self.bench.log.line(&format!("{} is tried again: {}", job.task, described(&error))),
            }
            self.pause(wait.min(LONGEST_PAUSE));
            wait = wait.saturating_mul(2);
        }
    }

    /// Carries an order out. What cannot be begun now is tried again, for as long as the step is this worker's.
    fn performed(&self, job: &Job, order: &Order) -> Result<Report, String> {
        let mut wait = FIRST_PAUSE;
        loop {
            match reported(&self.bench, self.bench.perform(order)) {
                Ok(report) => return Ok(report),
                Err(_) if job.is_given_back() || self.is_leaving() => {
                    return Err("it is not this worker's any more".into());
                }
                Err(Unavailable(why)) => self.bench.log.line(&format!("{} is tried again: {why}", job.task)),
            }
            self.pause(wait);
            wait = (wait * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks before anything is brought to the remote: what a lost attempt has made must not stand in the way there.
    fn is_still_ours(&self, job: &Job) -> bool {
        self.insist(job, "/v1/runs/update", &json!({ "run_id": job.run_id(&self.crab) })).is_ok()
    }

    /// Asks until somebody answers. An answer that says no is an answer.
    fn insist(&self, job: &Job, path: &str, body: &Value) -> Result<(), Problem> {
        let mut wait = FIRST_PAUSE;
        loop {
            match self.client.post::<Value>(path, body) {
                Ok(_) => return Ok(()),
                Err(problem) if !is_passing(&problem) => return Err(problem),
                Err(problem) if job.is_given_back() || self.is_leaving() => return Err(problem),
                Err(_) => self.pause(wait),
            }
            wait = (wait * 2).min(LONGEST_PAUSE);
        }
    }
}

/// The engine's name for a run's worktree, and where it stands in what is to be done.
#[derive(Default)]
struct Named {
    name: String,
    /// Where it begins in the prompt, in bytes. `None`: the engine does not tell, so it may stand anywhere.
    at: Option<Vec<usize>>,
    /// The variables of a script's environment that hold it. `None`: any of them.
    variables: Option<Vec<String>>,
}

impl Named {
    fn read(payload: &Value) -> Named {
        // What is told and cannot be read changes nothing.
        Named {
            name: payload["worktree_path"].as_str().unwrap_or_default().to_owned(),
            at: serde_json::from_value(payload["worktree_at"].clone()).unwrap_or(Some(Vec::new())),
            variables: serde_json::from_value(payload["worktree_in"].clone()).unwrap_or(Some(Vec::new())),
        }
    }

    /// What is to be done, with this folder in the place of the name. Whatever else looks like the name stays, unless an
    /// engine, or what it stored, is of a version that did not tell the places: `{{worktree_path}}` must be the folder.
    fn made(&self, work: &Work, folder: &str) -> Work {
        let anywhere = |text: &str| match self.name.is_empty() {
            true => text.to_owned(),
            false => text.replace(&self.name, folder),
        };
        match work {
            Work::Agent { prompt } => {
                let Some(places) = &self.at else { return Work::Agent { prompt: anywhere(prompt) } };
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
                Work::Agent { prompt: made }
            }
            Work::Script(Script { script, environment }) => {
                let here = |(key, value): &(String, String)| {
                    let value = match &self.variables {
                        None => anywhere(value),
                        Some(variables) if variables.contains(key) && *value == self.name => folder.to_owned(),
                        Some(_) => value.clone(),
                    };
                    (key.clone(), value)
                };
                let environment = environment.iter().map(here).collect();
                Work::Script(Script { script: script.clone(), environment })
            }
        }
    }
}

/// A report in the words of the wire.
fn written(report: &Report, commit: Option<String>) -> Value {
    let (status, failure, error, outcome) = match report {
        Report::Completed(outcome) => ("completed", None, None, outcome),
        Report::Failed { kind, error, outcome } => ("failed", Some(word(*kind)), Some(error), outcome),
    };
    let token_usage = outcome.usage.as_deref().map(|usage| {
        let (read, made) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        json!({ "prompt_tokens": read, "completion_tokens": made, "total_tokens": usage.total.unwrap_or(read + made) })
    });
    json!({
        "status": status,
        "failure": failure,
        "error": error,
        "summary": outcome.summary,
        "result": outcome.result,
        "output": plain(&outcome.output),
        "commit": commit,
        "token_usage": token_usage,
    })
}

fn word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Failed => "failed",
        FailureKind::Timeout => "timeout",
        FailureKind::Crashed => "crashed",
        FailureKind::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_the_engine_put_its_name_for_the_worktree_the_folder_stands() {
        let prompt = "In burrows/mission-m/ as /ann/burrows/mission-m/ says: burrows/mission-m/.";
        let named = |at: Value| {
            Named::read(&json!({ "worktree_path": "burrows/mission-m/", "worktree_at": at, "worktree_in": ["A", "B"] }))
        };
        let earlier = Named::read(&json!({ "worktree_path": "burrows/mission-m/" }));
        let told = |at: Value| match named(at).made(&Work::Agent { prompt: prompt.into() }, "/bob/m") {
            Work::Agent { prompt } => prompt,
            Work::Script(_) => String::new(),
        };
        let last = prompt.rfind("burrows").unwrap_or_default();
        assert_eq!(told(json!([3, last])), "In /bob/m as /ann/burrows/mission-m/ says: /bob/m.");
        // An engine that says that it stands nowhere, or something wrong, changes nothing else.
        for odd in [json!([]), json!([4, 9999]), json!(["x"])] {
            assert_eq!(told(odd), prompt);
        }
        // One that does not know of places has it made the folder wherever it stands.
        assert_eq!(told(json!(null)), "In /bob/m as /ann//bob/m says: /bob/m.");
        let pairs = [("A", "burrows/mission-m/"), ("B", "burrows/mission-m/x"), ("C", "burrows/mission-m/")];
        let environment = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let script = Work::Script(Script { script: "true".into(), environment });
        let Work::Script(made) = named(json!(null)).made(&script, "/bob/m") else { panic!("it is a script") };
        let values: Vec<&str> = made.environment.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["/bob/m", "burrows/mission-m/x", "burrows/mission-m/"]);
        let Work::Script(made) = earlier.made(&script, "/bob/m") else { panic!("it is a script") };
        let values: Vec<&str> = made.environment.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["/bob/m", "/bob/mx", "/bob/m"]);
    }
}
