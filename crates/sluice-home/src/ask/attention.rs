//! What waits for a person, and the one way to answer it: questions of runs, tasks, and what either waits for.

use sluice_api::attention::{AnswerAttention, Attention, AttentionAnswer};
use sluice_api::notice::{AttentionMessage, NotifyReport};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::AnswerQuestion;
use sluice_api::task::{MergeTask, TaskAnswer, UpdateTask};
use sluice_core::machine::RefusalCode;
use sluice_core::task::answers::TaskChoice;
use sluice_core::task::{TaskAsker, TaskInput};
use sluice_engine::host::EngineClock;

use super::{Requester, Service};
use crate::home::attention::all;
use crate::home::channels;
use crate::home::engine::{ask, refusal};
use crate::read::runs::RunSnapshot;
use crate::read::tasks::TaskSnapshot;
use crate::read::{attention, view_run};
use crate::settings::clock::{new_id, written};
use crate::settings::projects::shown;

/// What is shown as an id belongs to a task or to a run.
enum AttentionOwner {
    Task(Box<TaskSnapshot>),
    Run(Box<RunSnapshot>),
}

impl Service {
    /// Everything that waits for a person, the oldest first.
    pub fn attention(&self) -> Result<Vec<Attention>, Problem> {
        all(&self.home, &self.faults())
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
            things: Vec::new(),
        };
        let tested = there.iter().map(|channel| channel.test(&self.home, &message));
        Ok(NotifyReport { channels: absent.into_iter().chain(tested).collect() })
    }

    /// What waits under this id: that of the attention, or of a task or run that has exactly one.
    pub fn attention_of(&self, id: &str) -> Result<Attention, Problem> {
        let (of, number) = split(id);
        let whole = match self.owner(of)? {
            AttentionOwner::Task(seen) => seen.id.to_string(),
            AttentionOwner::Run(seen) => seen.id.to_string(),
        };
        let is_meant = |it: &Attention| {
            let is_of = it.task.as_deref() == Some(whole.as_str()) || it.run.as_deref() == Some(whole.as_str());
            is_of && number.is_none_or(|number| it.id.ends_with(&format!("/{number}")))
        };
        let mut found = self.attention()?.into_iter().filter(is_meant);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => {
                let message = format!("more than one thing of `{}` waits for a person", shown(of));
                Err(Problem::bad_request(message).hint("`sluice inbox` shows the id of each"))
            }
            (None, _) => {
                let message = format!("`{}` does not wait for a person", shown(id));
                Err(Problem::not_found(message).hint("`sluice inbox` shows what waits"))
            }
        }
    }

    /// Answers what waits under this id.
    pub fn answer_attention(
        &self,
        who: &Requester,
        id: &str,
        wanted: AnswerAttention,
    ) -> Result<AttentionAnswer, Problem> {
        let (of, number) = split(id);
        match self.owner(of)? {
            AttentionOwner::Task(seen) => self.answer_task(who, &seen, number, wanted),
            AttentionOwner::Run(seen) => self.answer_run(who, &seen, number, wanted),
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
        let asks = seen.state.question().is_some();
        let is_wait = matches!(number, Some("worker" | "wait")) || (number.is_none() && !asks);
        if is_wait && matches!(option.as_str(), "cancel" | "abort") {
            let now = self.cancel_run(who, seen.id.as_str(), message.unwrap_or_default())?;
            return Ok(of_run(&now, number, option));
        }
        let question = number.map_or_else(|| seen.id.to_string(), |number| format!("{}/{number}", seen.id));
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
        let Some(note) = note.filter(|_| known) else { return Err(gone(seen, number)) };
        let choices = seen.state.choices(&seen.lifecycle);
        let Some(choice) = TaskChoice::read(&option, &choices, &seen.lifecycle) else {
            let message = format!("`{}` is no answer to {}", shown(&option), note.id);
            return Err(Problem::bad_request(message).hint(format!("one of: {}", note.choices.join(", "))));
        };
        let id = seen.id.as_str();
        let TaskAnswer { task, notes, .. } = match choice {
            TaskChoice::Approve => self.merge(who, id, &MergeTask::default())?,
            TaskChoice::RequestChanges => self.request_changes(who, id, message.unwrap_or_default())?,
            TaskChoice::Respawn => self.respawn(who, id)?,
            TaskChoice::Retry if choices.contains(&TaskChoice::Respawn) => self.respawn(who, id)?,
            TaskChoice::Retry => self.spawn(who, id)?,
            TaskChoice::Move(to) => {
                let status = Some(seen.lifecycle.state_name(to).to_owned());
                self.update(who, id, UpdateTask { status, ..UpdateTask::default() })?
            }
            TaskChoice::Attach => {
                let look = self.show(who, id)?;
                TaskAnswer { notes: vec![format!("`sluice task attach {id}` shows the session of its agent")], ..look }
            }
            TaskChoice::Dismiss => {
                let told = ask(&self.home, &seen.id, TaskInput::ClearAttention { by: TaskAsker::Person });
                self.home.tasks.caught_up(&seen.id, &told);
                told?;
                self.show(who, id)?
            }
            TaskChoice::Cancel => self.cancel(who, id)?,
        };
        Ok(AttentionAnswer { id: note.id, option, task: Some(task), run: None, notes })
    }
}

/// `TASK/3` or `RUN/3`, or a task or run alone.
fn split(id: &str) -> (&str, Option<&str>) {
    id.split_once('/').map_or((id, None), |(of, number)| (of, Some(number)))
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
