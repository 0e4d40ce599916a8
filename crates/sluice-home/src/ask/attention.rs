//! What waits for a person, and the one way to answer it: questions of runs, tasks, and what either waits for.

use sluice_api::attention::{AnswerAttention, Attention, AttentionAnswer, AttentionKind};
use sluice_api::changes::RequestChanges;
use sluice_api::notice::{AttentionMessage, NotifyReport};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::AnswerQuestion;
use sluice_api::task::TaskAnswer;
use sluice_core::machine::RefusalCode;
use sluice_core::task::choices::{TaskChoice, TaskRetry, answers};
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::{TaskAsker, TaskInput};
use sluice_engine::host::EngineClock;
use sluice_os::merge::{MergePush, push_default};

use super::{Requester, Service};
use crate::home::attention::{all, without_store};
use crate::home::channels;
use crate::home::engine::{ask, refusal};
use crate::read::runs::RunSnapshot;
use crate::read::tasks::{TaskSnapshot, stream};
use crate::read::{attention, view_run};
use crate::settings::clock::{new_id, written};
use crate::settings::projects::{git, shown};

/// What is shown as an id belongs to a task or to a run.
enum AttentionOwner {
    Task(Box<TaskSnapshot>),
    Run(Box<RunSnapshot>),
}

impl Service {
    /// Everything that waits for a person, the oldest first. While the store cannot be asked: that, and what is known without.
    pub fn attention(&self) -> Result<Vec<Attention>, Problem> {
        match all(&self.home, &self.faults()) {
            Err(problem) if problem.is_passing() => Ok(without_store(&self.home, &self.faults(), &problem)),
            found => found,
        }
    }

    /// Sends a test message through every channel, and says what came of it.
    pub fn test_channels(&self, who: &Requester) -> Result<NotifyReport, Problem> {
        who.must_be_person("testing the notifications")?;
        let (there, absent) = channels::all(&self.home);
        let message = AttentionMessage {
            id: format!("test-{}", new_id().map_err(Problem::fault)?),
            reason: None,
            title: "Sluice: a test message".to_owned(),
            text: "Sluice tells you here what waits for you.".to_owned(),
            project: None,
            task: None,
            run: None,
            since: written(self.home.clock.now().0),
            answer: Some("sluice inbox".to_owned()),
            link: self.home.context.config().notify.page.clone(),
            things: Vec::new(),
            more: 0,
        };
        let tested = there.iter().map(|channel| channel.test(&self.home, &message));
        let channels = absent.into_iter().chain(tested).collect();
        Ok(NotifyReport { channels, given_up: self.home.notices.given_up() })
    }

    /// What waits under this id: that of the attention, or of a task or run that has exactly one.
    pub fn attention_of(&self, id: &str) -> Result<Attention, Problem> {
        let mut waiting = self.attention()?;
        if let Some(exact) = waiting.iter().position(|it| it.id == id) {
            return Ok(waiting.swap_remove(exact));
        }
        let (owner, number) = self.meant(id)?;
        let whole = match owner {
            AttentionOwner::Task(seen) => seen.id.to_string(),
            AttentionOwner::Run(seen) => seen.id.to_string(),
        };
        only_of(waiting, &whole, number)?.ok_or_else(|| {
            let message = format!("`{}` does not wait for a person", shown(id));
            Problem::not_found(message).hint("`sluice inbox` shows what waits")
        })
    }

    /// Answers what waits under this id.
    pub fn answer_attention(
        &self,
        who: &Requester,
        id: &str,
        wanted: AnswerAttention,
    ) -> Result<AttentionAnswer, Problem> {
        match self.meant(id) {
            Ok((AttentionOwner::Task(seen), number)) => self.answer_task(who, &seen, number, wanted),
            Ok((AttentionOwner::Run(seen), number)) => self.answer_run(who, &seen, number, wanted),
            Err(problem) => {
                who.must_be_person("answering")?;
                let home = self.attention()?.into_iter().find(|it| it.kind == AttentionKind::Home && it.id == id);
                Err(home.map_or(problem, |it| nothing_to_answer(&it.id, &it.text)))
            }
        }
    }

    /// The task or run that an id is about, and what of it. A branch may have slashes, and then stands for its task.
    fn meant<'a>(&self, id: &'a str) -> Result<(AttentionOwner, Option<&'a str>), Problem> {
        let is_branch = self.home.tasks.open().iter().any(|seen| seen.state.about.branch == id);
        match id.rsplit_once('/').filter(|_| !is_branch) {
            None => Ok((self.owner(id)?, None)),
            Some((of, number)) => Ok((self.owner(of)?, Some(number))),
        }
    }

    /// For how many seconds something has waited.
    pub(super) fn seconds_since(&self, since: &str) -> i64 {
        let now = self.home.clock.now().0;
        since.parse::<jiff::Timestamp>().map_or(0, |since| (now - since.as_millisecond()).max(0) / 1000)
    }

    fn owner(&self, of: &str) -> Result<AttentionOwner, Problem> {
        let (task, run) = (self.home.tasks.find(of), self.home.tasks.find_run(of));
        match (task, run) {
            (Ok(task), Ok(run)) if task.id.as_str() != of && run.id.as_str() != of => {
                let message = format!("`{of}` may be task {} or run {}", task.id, run.id);
                Err(Problem::bad_request(message).hint("give more of the id"))
            }
            (Ok(_), Ok(run)) if run.id.as_str() == of => Ok(AttentionOwner::Run(Box::new(run))),
            (Ok(task), _) => Ok(AttentionOwner::Task(Box::new(task))),
            (Err(_), Ok(run)) => Ok(AttentionOwner::Run(Box::new(run))),
            (Err(task), Err(run)) => Err(match (task.status, run.status) {
                (ProblemStatus::NotFound, ProblemStatus::NotFound) => {
                    let message = format!("there is no task and no run `{}`", shown(of));
                    Problem::not_found(message).hint("`sluice inbox` shows what waits for a person")
                }
                (ProblemStatus::NotFound, _) => run,
                (_, _) => task,
            }),
        }
    }

    fn answer_run(
        &self,
        who: &Requester,
        seen: &RunSnapshot,
        number: Option<&str>,
        wanted: AnswerAttention,
    ) -> Result<AttentionAnswer, Problem> {
        let AnswerAttention { option, message } = wanted;
        let waits = only_of(self.attention()?, seen.id.as_str(), number)?;
        if let Some(wait) = waits.as_ref().filter(|it| it.kind == AttentionKind::Wait) {
            let is_cancelled = matches!(option.as_str(), "cancel" | "abort");
            if wait.options.is_empty() || !is_cancelled {
                return Err(match wait.options.as_slice() {
                    [] => nothing_to_answer(&wait.id, &wait.text),
                    options => no_answer(&option, &wait.id, options),
                });
            }
            let now = self.cancel_run(who, seen.id.as_str(), message.unwrap_or_default())?;
            return Ok(of_run(&now, number, option));
        }
        // What does not wait any more is refused there, by what became of it.
        let whole = || number.map_or_else(|| seen.id.to_string(), |number| format!("{}/{number}", seen.id));
        let question = waits.map_or_else(whole, |it| it.id);
        let now = self.answer(who, &question, AnswerQuestion { option: option.clone(), message })?;
        Ok(of_run(&now, number, option))
    }

    fn answer_task(
        &self,
        who: &Requester,
        seen: &TaskSnapshot,
        number: Option<&str>,
        wanted: AnswerAttention,
    ) -> Result<AttentionAnswer, Problem> {
        who.must_be_person("answering for a task")?;
        let AnswerAttention { option, message } = wanted;
        let note = attention::note(seen);
        let known =
            number.is_none_or(|number| note.as_ref().is_some_and(|it| it.id == format!("{}/{number}", seen.id)));
        let wait = self.home.waits.of(&stream(&seen.id)).filter(|_| number.is_none_or(|number| number == "wait"));
        let Some(note) = note.filter(|_| known) else {
            return Err(wait.map_or_else(|| gone(seen, number), |wait| nothing_to_answer(&wait.id, &wait.text)));
        };
        let id = seen.id.as_str();
        // The same words as the commands of tasks, and the same meaning.
        let by_word = match option.as_str() {
            "approve" => Some(self.approve(who, id, message.clone())?),
            "reject" => Some(self.reject(who, id, message.clone())?),
            _ => None,
        };
        if let Some(TaskAnswer { task, notes, .. }) = by_word {
            return Ok(AttentionAnswer { id: note.id, option, task: Some(task), run: None, notes });
        }
        let choices = answers(&seen.lifecycle, &seen.state);
        let Some(choice) = TaskChoice::read(&option, &choices, &seen.lifecycle) else {
            return Err(no_answer(&option, &note.id, &note.choices));
        };
        must_be_kept(choice, &option, message.as_deref())?;
        let TaskAnswer { task, notes, .. } = match choice {
            TaskChoice::Approve => self.approve(who, id, message)?,
            TaskChoice::RequestChanges => {
                let message = message.unwrap_or_default();
                self.request_changes(who, id, &RequestChanges { message, ..RequestChanges::default() })?
            }
            TaskChoice::Respawn | TaskChoice::Retry(TaskRetry::Respawn) => self.respawn(who, id)?,
            TaskChoice::Retry(TaskRetry::Spawn) => self.spawn(who, id)?,
            TaskChoice::Retry(TaskRetry::Hooks) => self.retry_hooks(who, seen)?,
            TaskChoice::Retry(TaskRetry::Push) => self.retry_push(who, seen)?,
            TaskChoice::Move(to) => {
                let recorded =
                    self.go(who, seen, seen.lifecycle.state_name(to), message.filter(|it| !it.trim().is_empty()))?;
                self.settled(who, &seen.id, recorded)?
            }
            TaskChoice::Attach => {
                let look = self.show(who, id)?;
                TaskAnswer { notes: vec![format!("`sluice task attach {id}` shows the session of its agent")], ..look }
            }
            TaskChoice::Skip | TaskChoice::Dismiss => self.dismiss(who, seen)?,
            TaskChoice::Cancel => self.cancel(who, id)?,
        };
        Ok(AttentionAnswer { id: note.id, option, task: Some(task), run: None, notes })
    }
}

impl Service {
    /// A person has looked, and leaves it at that.
    fn dismiss(&self, who: &Requester, seen: &TaskSnapshot) -> Result<TaskAnswer, Problem> {
        let told = ask(&self.home, &seen.id, TaskInput::ClearAttention { by: TaskAsker::Person });
        self.home.tasks.caught_up(&seen.id, &told);
        told?;
        self.show(who, seen.id.as_str())
    }

    /// The hooks that failed are done again, and are over when this answers, if that does not take too long.
    fn retry_hooks(&self, who: &Requester, seen: &TaskSnapshot) -> Result<TaskAnswer, Problem> {
        // A task whose worktree was lent on and that needs one waits for it in the line.
        let input = TaskInput::Retry { by: TaskAsker::Person, room: WorkspaceReservation::Unasked };
        let recorded = ask(&self.home, &seen.id, input)?;
        self.settled(who, &seen.id, recorded)
    }

    /// The default branch is pushed again, as `git push` does it. What else failed is done again after that.
    fn retry_push(&self, who: &Requester, seen: &TaskSnapshot) -> Result<TaskAnswer, Problem> {
        let (_, pool) = self.home.pool_of(seen)?;
        match push_default(pool.repository()).map_err(|error| git(&error))? {
            MergePush::Failed(why) => {
                Err(refusal(RefusalCode::NotReady, format!("merged, and still not pushed: {why}")))
            }
            MergePush::NoRemote | MergePush::Done if seen.state.undone.is_empty() => self.dismiss(who, seen),
            MergePush::NoRemote | MergePush::Done => self.retry_hooks(who, seen),
        }
    }
}

/// The one thing of a task or run that waits, or the one with this number; not one of several.
fn only_of(waiting: Vec<Attention>, whole: &str, number: Option<&str>) -> Result<Option<Attention>, Problem> {
    let is_meant = |it: &Attention| {
        let is_of = it.task.as_deref() == Some(whole) || it.run.as_deref() == Some(whole);
        is_of && number.is_none_or(|number| it.id.ends_with(&format!("/{number}")))
    };
    let mut found = waiting.into_iter().filter(is_meant);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => {
            let message = format!("more than one thing of `{}` waits for a person", shown(whole));
            Err(Problem::bad_request(message).hint("`sluice inbox` shows the id of each"))
        }
        (one, _) => Ok(one),
    }
}

/// Words are kept or refused, never dropped.
fn must_be_kept(choice: TaskChoice, option: &str, message: Option<&str>) -> Result<(), Problem> {
    let is_kept = match choice {
        TaskChoice::Approve | TaskChoice::RequestChanges | TaskChoice::Move(_) => true,
        TaskChoice::Respawn
        | TaskChoice::Retry(_)
        | TaskChoice::Skip
        | TaskChoice::Attach
        | TaskChoice::Dismiss
        | TaskChoice::Cancel => message.is_none_or(|message| message.trim().is_empty()),
    };
    if is_kept {
        return Ok(());
    }
    let message = format!("`{}` takes no message: no agent and no file would get it", shown(option));
    Err(Problem::bad_request(message).hint("answer without it; `sluice task nudge` says something to a living agent"))
}

fn no_answer(option: &str, id: &str, options: &[String]) -> Problem {
    let message = format!("`{}` is no answer to {id}", shown(option));
    Problem::bad_request(message).hint(format!("one of: {}", options.join(", ")))
}

/// What waits without a person's answer being able to change it.
fn nothing_to_answer(id: &str, text: &str) -> Problem {
    let message = format!("there is nothing to answer to {id}: {text}");
    refusal(RefusalCode::NotReady, message).hint("it leaves the inbox by itself when that is over")
}

fn of_run(seen: &RunSnapshot, number: Option<&str>, option: String) -> AttentionAnswer {
    let id = number.map_or_else(|| seen.id.to_string(), |number| format!("{}/{number}", seen.id));
    AttentionAnswer { id, option, task: None, run: Some(view_run::run(seen)), notes: Vec::new() }
}

/// What is answered does not wait any more: says what became of it.
fn gone(seen: &TaskSnapshot, number: Option<&str>) -> Problem {
    let raised = number.map_or(Ok(0), str::parse::<u32>);
    if raised.is_err() || raised.is_ok_and(|number| number > seen.state.attentions) {
        return Problem::not_found(format!("task {} has no such attention", seen.id))
            .hint("`sluice inbox` shows what waits for a person");
    }
    let what = number.map_or_else(|| format!("task {}", seen.id), |number| format!("{}/{number}", seen.id));
    let now = match attention::note(seen) {
        Some(note) => format!("and {} does: {}", note.id, note.text),
        None => format!("and the task is in `{}`", seen.status()),
    };
    let message = format!("{what} does not wait for a person any more, {now}");
    let problem = Problem { status: ProblemStatus::Conflict, ..refusal(RefusalCode::NotReady, message) };
    problem.hint(format!("`sluice task history {}` tells what happened meanwhile", seen.id))
}
