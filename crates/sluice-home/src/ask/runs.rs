//! Runs: what can be asked of one, and said by those who do its steps.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::{AnswerQuestion, StartRun, StepHeard, StepSays};
use sluice_api::shown::{Run, RunStatus};
use sluice_core::id::RunId;
use sluice_core::machine::RefusalCode;
use sluice_core::recipe::{Data, FailureKind, StepId};
use sluice_core::run::{
    AttemptReport, ManualStepInput, QuestionRequest, RunConclusion, RunInput, RunKind, RunPhase, Speaker, StepOutcome,
    StepState,
};
use sluice_core::task::TaskInput;
use sluice_engine::run_actor::RunActor;
use sluice_os::git::has_branch;
use sluice_os::session::SessionStream;
use sluice_os::workspace::keeps_of;
use sluice_store::{Query, StreamSummary};
use sluice_worker::names::run_branch;
use sluice_worker::value::data;

use super::page::{ListPage, PageQuery, newest};
use super::{ANSWER_WITHIN, KeyedId, Requester, Service};
use crate::evidence::{last_commit, tail};
use crate::home::attention::waiting_for_worker;
use crate::home::engine::{ask, refusal, say};
use crate::perform::sweep;
use crate::read::runs::{RunSnapshot, id_of, stream};
use crate::read::view_run::{self, UnheldSteps};
use crate::settings::bounds::{LONGEST_SUMMARY, cut};
use crate::settings::projects::git;
use crate::start::{EngineStart, start_as};
use crate::undone::described;

/// Runs that have ended are wanted too: all of them, or only those with this status.
pub(crate) struct EndedRunsFilter(pub(crate) Option<RunPhase>);

/// How long a command waits for the steps that always run, when a run is cancelled.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of a session's output that are shown.
const LONGEST_LOG: usize = 1 << 20;

impl Service {
    pub fn start(&self, who: &Requester, chosen: &KeyedId, wanted: &StartRun) -> Result<RunSnapshot, Problem> {
        who.must_be_person("starting a run")?;
        match self.started_before(chosen)? {
            Some(seen) => Ok(seen),
            None => start_as(&self.home, wanted, EngineStart { id: Some(chosen.id()?), ..EngineStart::default() }),
        }
    }

    /// The run that was started before, if this asks for it again.
    pub(crate) fn started_before(&self, chosen: &KeyedId) -> Result<Option<RunSnapshot>, Problem> {
        chosen.there().map_or(Ok(None), |id| self.home.tasks.run_named(id))
    }

    /// The run that is meant. A caller who sees its end also finds the files about it.
    pub fn run(&self, id: &str) -> Result<RunSnapshot, Problem> {
        let seen = self.home.tasks.find_run(id)?;
        self.home.mirrors.write_as(&seen);
        crate::evidence::conclude(&self.home, &seen);
        Ok(seen)
    }

    /// A run as people see it, with what it waits for.
    pub fn shown_run(&self, id: &str) -> Result<Run, Problem> {
        let seen = self.run(id)?;
        if seen.card.status == RunActor::DELETED {
            let message = format!("run {} has been deleted", seen.id);
            let hint = format!("`sluice events --correlation {}` tells of it", seen.id);
            return Err(Problem::not_found(message).hint(hint));
        }
        let mut run = view_run::run_with(&seen, &self.unheld_steps(&seen));
        run.attention = self.home.waits.of(&stream(&seen.id)).map(|wait| wait.text);
        if !seen.state.given.origin.base.is_empty() {
            // The files of the repository say it: to look at a run starts no git.
            let root = Path::new(&seen.state.given.origin.root);
            let branch = run_branch(&seen.id);
            run.branch = Some(branch).filter(|branch| has_branch(root, branch));
            run.kept = keeps_of(root, seen.id.as_str());
        }
        for (id, step) in (0u32..).map(StepId).zip(&mut run.steps) {
            step.worker = self.home.roster.worker_of(&seen.id, id);
        }
        Ok(run)
    }

    /// The steps of a run that wait for a worker.
    pub fn unheld_steps(&self, seen: &RunSnapshot) -> UnheldSteps {
        UnheldSteps(waiting_for_worker(&self.home, seen))
    }

    /// Runs, the open ones first, each newest first; without `all` only those that have not ended.
    pub fn list_runs(
        &self,
        status: Option<&str>,
        all: bool,
        wanted: &PageQuery,
    ) -> Result<ListPage<RunSnapshot>, Problem> {
        if let Some(status) = status.filter(|status| RunStatus::read(status).is_none()) {
            let message = format!("`{status}` is no status of a run");
            let known: Vec<&str> = RunStatus::ALL.iter().map(|status| status.word()).collect();
            return Err(Problem::bad_request(message).hint(format!("one of: {}", known.join(", "))));
        }
        let query = Query { status: status.map(str::to_owned), ..of_runs(all || status.is_some()) };
        wanted.gather(&self.home.tasks, &query, |summary| {
            let discarded = |seen: &RunSnapshot| view_run::is_process(seen) && !is_listed(seen, true);
            Ok(self.summed_up(summary)?.filter(|seen| !discarded(seen)))
        })
    }

    /// Runs that are called so and of which this is so, newest first: all that are open, and with `ended` the newest that have,
    /// perhaps only those with a status. What this costs depends on how many are called so, not on how many others have ended.
    pub(crate) fn runs_called(
        &self,
        kind: RunKind,
        ended: Option<EndedRunsFilter>,
        is_so: impl Fn(&RunSnapshot) -> bool,
    ) -> Result<Vec<RunSnapshot>, Problem> {
        let look = |summary: &StreamSummary| {
            let known = RunActor::kind_of(&summary.card);
            if known.is_some_and(|known| known != kind) {
                return Ok(None);
            }
            Ok(self.summed_up(summary)?.filter(|seen| seen.state.given.origin.kind == kind && is_so(seen)))
        };
        let when = |seen: &RunSnapshot| (seen.card.created, seen.id.to_string());
        let mut runs = PageQuery::default().gather(&self.home.tasks, &of_runs(false), look)?.items;
        if let Some(EndedRunsFilter(status)) = ended {
            let groups = crate::roster::groups::ids(&self.home).into_iter();
            // Those that an earlier Sluice stored last do not say what they are called, and have to be looked at.
            let groups = groups.flat_map(|group| [RunActor::belongs(&group, kind), group]);
            let status = status.map(|status| status.word().to_owned());
            let queries = groups.map(|group| Query { group: Some(group), status: status.clone(), ..Query::default() });
            runs.extend(newest(&self.home.tasks, queries, look, when)?);
        }
        runs.sort_by_cached_key(|seen| Reverse(when(seen)));
        Ok(runs)
    }

    /// The run that a card is about. One that cannot be read does not hide the others.
    fn summed_up(&self, summary: &StreamSummary) -> Result<Option<RunSnapshot>, Problem> {
        if summary.card.status == RunActor::DELETED {
            return Ok(None);
        }
        let Some(id) = id_of(&summary.stream) else { return Ok(None) };
        self.home.tasks.unless_damaged(&summary.stream, self.home.tasks.run_of(&id, summary))
    }

    /// The processes that are active, oldest first; with `all` also those that were completed. What was cancelled is gone
    /// from every list.
    pub fn list_processes(&self, all: bool) -> Result<Vec<RunSnapshot>, Problem> {
        // Without `all`, of those that have ended only those that failed are wanted.
        let ended = EndedRunsFilter((!all).then_some(RunPhase::Failed));
        let mut runs = self.runs_called(RunKind::Process, Some(ended), |seen| is_listed(seen, all))?;
        runs.reverse();
        Ok(runs)
    }

    pub fn process(&self, id: &str) -> Result<RunSnapshot, Problem> {
        match self.run(id) {
            Ok(seen) if view_run::is_process(&seen) && is_listed(&seen, true) => Ok(seen),
            Err(problem) if problem.status != ProblemStatus::NotFound => Err(problem),
            Ok(_) | Err(_) => Err(Problem::not_found(format!("there is no process `{id}`"))
                .hint("`sluice process list --all` shows all of them")),
        }
    }

    /// What the agent of a step is told about the steps before it.
    pub fn run_context(&self, id: &str, step: &str) -> Result<String, Problem> {
        let seen = self.run(id)?;
        let step = seen.step(step)?;
        Ok(sluice_core::run::context(&seen.plan, &seen.state, step))
    }

    /// What the steps of a run have printed: of one step, or of all.
    pub fn run_log(&self, id: &str, step: Option<&str>) -> Result<String, Problem> {
        let seen = self.run(id)?;
        let only = step.map(|name| seen.step(name)).transpose()?;
        let mut text = String::new();
        for (id, (defined, state)) in (0u32..).map(StepId).zip(seen.plan.recipe.steps.iter().zip(&seen.state.steps)) {
            if only.is_some_and(|only| only != id) || state.attempts == 0 {
                continue;
            }
            if only.is_none() {
                text.push_str(&format!("==> {} <==\n", defined.name));
            }
            text.push_str(&self.printed(&seen, id, state));
        }
        Ok(text)
    }

    /// What a step has printed: its agents' own streams, else what the run keeps of it.
    pub(super) fn printed(&self, seen: &RunSnapshot, step: StepId, state: &StepState) -> String {
        let begins = format!("{}.{}.", seen.id, step.0);
        let sessions = self.home.context.sessions.list().unwrap_or_default();
        let mut text = String::new();
        for session in sessions.iter().filter(|id| id.as_str().starts_with(&begins)) {
            if let Ok(chunk) = self.home.context.sessions.output_tail(session, SessionStream::Output, LONGEST_LOG) {
                text.push_str(&String::from_utf8_lossy(&chunk.bytes));
            }
        }
        for path in self.printed_files(&begins) {
            text.push_str(&last_of(&path));
        }
        if let (true, Some(outcome)) = (text.is_empty(), state.left.as_ref().or(state.latest.as_ref())) {
            // What an agent elsewhere printed is on its machine; here is what it had to say.
            let said = if let Data::Text(output) = &outcome.output { Some(output) } else { None };
            if let Some(said) = said.or_else(|| Some(&outcome.summary).filter(|summary| !summary.is_empty())) {
                text.push_str(said);
                text.push('\n');
            }
            text.push_str(outcome.stderr.as_deref().unwrap_or_default());
        }
        text
    }

    /// The files with what scripts printed beyond what a run keeps, oldest attempt first.
    fn printed_files(&self, begins: &str) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.home.context.places.printed());
        let all = folder.into_iter().flatten().flatten().map(|entry| entry.path());
        let is_meant = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begins));
        let mut found: Vec<PathBuf> = all.filter(is_meant).collect();
        found.sort();
        found
    }

    /// An agent or script says how its step went, or asks a person; for an ask, the answer if there is one.
    pub fn step_says(&self, who: &Requester, said: StepSays) -> Result<StepHeard, Problem> {
        let Requester::Step { run, speaker } = who else {
            let message = "Not allowed: only the agent of a step may speak for it";
            return Err(refusal(RefusalCode::NotYours, message).hint("`sluice answer` and `sluice run` are for people"));
        };
        let StepSays { verb, summary, result, output, text, options, default, timeout_seconds } = said;
        // A secret that is cut is not known any more.
        let summary = summary.map(|summary| cut(&self.home.context.clean().text(&summary), LONGEST_SUMMARY));
        let outcome = StepOutcome {
            summary: summary.clone().unwrap_or_default(),
            result,
            output: output.as_ref().map(data).unwrap_or_default(),
            ..StepOutcome::default()
        };
        let by = *speaker;
        let report = match verb.as_str() {
            "complete" => AttemptReport::Completed(outcome),
            "fail" => {
                let error = summary.unwrap_or_else(|| "its agent says that it failed".into());
                AttemptReport::Failed { kind: FailureKind::Failed, error, outcome }
            }
            "ask" => {
                let text = text.unwrap_or_default();
                return self.asks(
                    run,
                    by,
                    QuestionRequest { text, options, default, wait: timeout_seconds.map(Duration::from_secs) },
                );
            }
            other => return Err(Problem::bad_request(format!("a step cannot `{other}`"))),
        };
        say(&self.home, run, RunInput::Said { by, report })?;
        Ok(StepHeard::Said { said: true })
    }

    /// Asks a person, and waits for the answer as long as the command may wait; asked again in the same words it waits
    /// for the same answer.
    fn asks(&self, run: &RunId, by: Speaker, ask: QuestionRequest) -> Result<StepHeard, Problem> {
        // As it is stored: by its words it is found again.
        let ask = self.home.context.clean().ask(ask);
        say(&self.home, run, RunInput::Ask { by, ask: ask.clone() })?;
        let answered = self.home.tasks.wait_for(&stream(run), ANSWER_WITHIN, || {
            let seen = self.home.tasks.load_run(run).ok().flatten()?;
            let asked = seen.state.step(by.step).asked(by.part, &ask)?;
            asked.answer.clone()
        });
        Ok(match answered {
            Some(answer) => StepHeard::Answered { answered: true, option: answer.option, message: answer.message },
            None => StepHeard::Unanswered { answered: false },
        })
    }

    fn tell_run(&self, who: &Requester, run: &RunId, input: RunInput) -> Result<RunSnapshot, Problem> {
        say(&self.home, run, RunInput::By { asker: who.to_run(run), input: Box::new(input) })?;
        let seen = self.home.tasks.load_run(run)?;
        let seen = seen.ok_or_else(|| Problem::fault(format!("run {run} is gone")))?;
        self.home.mirrors.write_as(&seen);
        crate::evidence::conclude(&self.home, &seen);
        Ok(seen)
    }

    /// Ends a run with everything it has started; of a patrol that rests, what would come next. When this answers, nothing
    /// of the run lives any more.
    pub fn cancel_run(&self, who: &Requester, id: &str, reason: String) -> Result<RunSnapshot, Problem> {
        let seen = self.run(id)?;
        if who.is_person() && crate::start::repeats::end(&self.home, &seen)?.is_some() {
            return Ok(seen);
        }
        let seen = self.tell_run(who, &seen.id, RunInput::Cancel { reason })?;
        let seen = self.until_ended(seen)?;
        if seen.state.end.is_none() {
            return Ok(seen); // the steps that always run take longer; it ends when they have
        }
        match sweep(&seen.id).map_err(|failure| Problem::unavailable(described(&failure)))? {
            0 => Ok(seen),
            left => {
                Err(Problem::fault(format!("run {} is cancelled, but {left} of its processes would not go", seen.id)))
            }
        }
    }

    /// A run that is being ended, when it has, or when a command need not wait any longer.
    fn until_ended(&self, seen: RunSnapshot) -> Result<RunSnapshot, Problem> {
        let now = || self.home.tasks.load_run(&seen.id).ok().flatten();
        self.home
            .tasks
            .wait_for(&stream(&seen.id), SETTLED_WITHIN, || now().filter(|now| now.state.ending.is_none()).map(drop));
        let now = self.home.tasks.load_run(&seen.id)?;
        Ok(now.unwrap_or(seen))
    }

    pub fn retry_run(
        &self,
        who: &Requester,
        id: &str,
        step: Option<&str>,
        guidance: Option<String>,
    ) -> Result<RunSnapshot, Problem> {
        let seen = self.run(id)?;
        let step = step.map(|name| seen.step(name)).transpose()?;
        self.must_have_its_work(&seen)?;
        let seen = self.tell_run(who, &seen.id, RunInput::Retry { step, guidance })?;
        if let Some(task) = &seen.state.given.origin.task {
            // So that it does not look for a person any more when this is answered. A task that cannot be told now
            // hears of it with the next look at its run.
            let told = ask(&self.home, task, TaskInput::RunReopened { run: seen.id.clone() });
            self.home.tasks.caught_up(task, &told);
        }
        Ok(seen)
    }

    /// Refuses to try a run again whose commits went with its branch: its steps would build on what is not there.
    fn must_have_its_work(&self, seen: &RunSnapshot) -> Result<(), Problem> {
        let given = &seen.state.given;
        let is_here = !given.origin.base.is_empty() && given.workspace.starts_with('/');
        if !is_here || Path::new(&given.workspace).exists() {
            return Ok(());
        }
        let last = last_commit(&self.home, &seen.id).filter(|commit| *commit != given.origin.base);
        let Some(commit) = last else { return Ok(()) };
        let (repository, branch) = (self.repository_of(seen)?, run_branch(&seen.id));
        if repository.branch_commit(&branch).map_err(|error| git(&error))?.is_some() {
            return Ok(());
        }
        let message =
            format!("Retry not allowed: the branch `{branch}`, which held what run {} has done, is gone", seen.id);
        let hint = match repository.commit(&commit) {
            Ok(Some(_)) => {
                format!("make it again: `git -C {} branch {branch} {commit}`", repository.folder().display())
            }
            Ok(None) | Err(_) => format!("begin anew: `sluice start {}`", seen.plan.recipe.name),
        };
        Err(refusal(RefusalCode::NoWorkspace, message).hint(hint))
    }

    /// Answers a question: `RUN` if it has one, or `RUN/NUMBER`.
    pub fn answer(&self, who: &Requester, question: &str, wanted: AnswerQuestion) -> Result<RunSnapshot, Problem> {
        let (run, number) = match question.split_once('/') {
            Some((run, number)) => (run, Some(number)),
            None => (question, None),
        };
        let seen = self.run(run)?;
        let open = seen.state.questions().find(|(_, it)| number.is_none_or(|number| it.id.to_string() == number));
        let Some((_, open)) = open else {
            let asked = seen.state.questions;
            let problem = match number.map_or(Ok(asked), str::parse::<u32>) {
                Ok(known) if (1..=asked).contains(&known) => {
                    let message = match number {
                        Some(number) => format!("the question {}/{number} has been answered or withdrawn", seen.id),
                        None => format!("run {} has no open question: each has been answered or withdrawn", seen.id),
                    };
                    Problem::new(ProblemStatus::Conflict, RefusalCode::NotReady.as_str(), message)
                }
                Ok(_) | Err(_) => Problem::not_found(format!("run {} has no such question", seen.id)),
            };
            return Err(problem.hint("`sluice inbox` shows those that are open"));
        };
        let AnswerQuestion { option, message } = wanted;
        let question = open.id;
        self.tell_run(who, &seen.id, RunInput::Answer { question, option, message })
    }

    pub fn by_hand(
        &self,
        who: &Requester,
        seen: &RunSnapshot,
        step: &str,
        what: ManualStepInput,
    ) -> Result<RunSnapshot, Problem> {
        let step = seen.step(step)?;
        self.tell_run(who, &seen.id, RunInput::ByHand { step, what })
    }

    pub fn close_run(&self, who: &Requester, id: &RunId, summary: String) -> Result<RunSnapshot, Problem> {
        self.tell_run(who, id, RunInput::Close { summary })
    }
}

/// The end of a file, and where the rest of it is.
fn last_of(path: &Path) -> String {
    let place = path.display();
    match tail(path, LONGEST_LOG as u64) {
        Ok((size, bytes)) => {
            let part = match size.saturating_sub(LONGEST_LOG as u64) {
                0 => format!("{size} bytes, in {place}"),
                _ => format!("the last {LONGEST_LOG} of {size} bytes; all of it is in {place}"),
            };
            format!("[{part}]\n{}", String::from_utf8_lossy(&bytes))
        }
        Err(error) => format!("[{place} cannot be read: {error}]\n"),
    }
}

/// Whether a process is in a list. One that failed stays active, for its supervisor.
fn is_listed(seen: &RunSnapshot, all: bool) -> bool {
    match &seen.state.end {
        None | Some(RunConclusion::Failed { .. }) => true,
        // A patrol that rests goes on.
        Some(RunConclusion::Completed { .. }) => all || seen.next_turn.is_some(),
        Some(RunConclusion::Cancelled { .. }) => false,
    }
}

/// The cards of runs; with `all` also of those that have ended.
fn of_runs(all: bool) -> Query {
    Query { kind: Some(RunActor::KIND.into()), open: if all { None } else { Some(true) }, ..Query::default() }
}

pub fn by_hand(verb: &str, summary: Option<String>, result: Option<String>) -> Option<ManualStepInput> {
    let outcome = StepOutcome { summary: summary.clone().unwrap_or_default(), result, ..StepOutcome::default() };
    match verb {
        "start" => Some(ManualStepInput::Start),
        "complete" => Some(ManualStepInput::Complete(outcome)),
        "fail" => Some(ManualStepInput::Fail(summary.unwrap_or_else(|| "it was said to have failed".into()))),
        "skip" => Some(ManualStepInput::Skip),
        _ => None,
    }
}
