//! Looking: tasks, what happened to them, and the log of everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sluice_api::attention::AttentionCause;
use sluice_api::event::EventShown;
use sluice_api::problem::Problem;
use sluice_api::task::{Attach, History, Task, TaskAnswer, TaskList};
use sluice_core::event_name::EventName;
use sluice_core::id::{RunId, TaskId};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::RefusalCode;
use sluice_core::task::session::SessionNumber;
use sluice_dialect::catalogue::{Catalogue, CataloguePlaces};
use sluice_dialect::{Definition, Sources};
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Cursor, LARGEST_PAGE, LoggedEvent, Query};

use super::page::PageQuery;
use super::{Requester, Service, checkouts};
use crate::home::attention::{last_lines, last_lines_of};
use crate::home::engine::refusal;
use crate::home::{room, session_id};
use crate::read::files::holds;
use crate::read::runs;
use crate::read::tasks::{TaskSnapshot, id_of, stream};
use crate::read::view::{self, EventSubject};
use crate::settings::projects::shown;
use crate::undone::described;

const CARDS_AT_A_TIME: usize = 1000;

/// So many events of a run are read together: each may be large.
const AT_ONCE: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
pub struct TaskFilter<'a> {
    pub status: Option<&'a str>,
    pub project: Option<&'a str>,
    /// Also those that have ended.
    pub all: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Open tasks, by status.
    pub tasks: BTreeMap<String, i64>,
    /// Open runs, by status.
    pub runs: BTreeMap<String, i64>,
    /// Effects of tasks that are not settled.
    pub effects: i64,
    pub faults: i64,
    /// What waits for a person, by reason.
    pub attention: BTreeMap<&'static str, i64>,
    /// For how many seconds the oldest of that has waited; 0 if nothing waits.
    pub oldest_attention: i64,
    /// Free bytes on the file systems of the home, by the folder of the home that is on each.
    pub disk: BTreeMap<String, u64>,
}

impl Service {
    /// The tasks, oldest first; with `all` those that have ended as well.
    pub fn list(&self, wanted: &TaskFilter<'_>, part: &PageQuery) -> Result<TaskList, Problem> {
        let TaskFilter { status, project, all } = wanted;
        let of_project = |seen: &TaskSnapshot| project.is_none_or(|project| seen.state.about.project == project);
        let fits = |seen: &TaskSnapshot| status.is_none_or(|status| seen.status() == status) && of_project(seen);
        let (mut tasks, mut next) = (Vec::new(), None);
        if part.after.is_none() {
            tasks.extend(self.home.tasks.open().iter().filter(|seen| fits(seen)).map(|seen| TaskSnapshot::clone(seen)));
        }
        if *all || status.is_some() {
            let status = status.map(str::to_owned);
            let query = Query { kind: Some("task".into()), status, open: Some(false), ..Query::default() };
            let ended = part.gather(&self.home.tasks, &query, |summary| {
                if summary.card.status == TaskActor::DELETED {
                    return Ok(None);
                }
                // One that cannot be read does not hide the others.
                let Some(id) = id_of(&summary.stream) else { return Ok(None) };
                let read = self.home.tasks.load(&id);
                Ok(self.home.tasks.unless_damaged(&summary.stream, read)?.filter(&fits))
            })?;
            tasks.extend(ended.items);
            next = ended.next;
        }
        if tasks.is_empty() {
            status.iter().try_for_each(|status| self.must_be_a_status(status))?;
            project.iter().try_for_each(|project| self.home.projects.get(project).map(drop))?;
        }
        tasks.sort_by(|one, other| (one.card.created, &one.id).cmp(&(other.card.created, &other.id)));
        tasks.dedup_by(|one, other| one.id == other.id);
        Ok(TaskList { tasks: tasks.iter().map(|seen| self.home.shown(seen)).collect(), next })
    }

    /// Whether some lifecycle has a state of this name: one of an open task, or one that a task here could have.
    fn must_be_a_status(&self, status: &str) -> Result<(), Problem> {
        let home = self.home.context.places.home();
        let mut known: BTreeSet<String> = BTreeSet::new();
        let mut learn =
            |lifecycle: &Lifecycle| known.extend(lifecycle.states.iter().map(|state| state.name.to_string()));
        self.home.tasks.open().iter().for_each(|seen| learn(&seen.lifecycle));
        let roots = self.home.projects.list().into_iter().map(|project| Some(PathBuf::from(project.path)));
        for repository in roots.chain([None]) {
            let catalogue = Catalogue::gather(&CataloguePlaces { repository, home: Some(home.to_owned()) });
            for entry in &catalogue.entries {
                if let Some(Definition::Lifecycle(lifecycle)) = &entry.load(&mut Sources::new()).definition {
                    learn(lifecycle);
                }
            }
        }
        if known.contains(status) {
            return Ok(());
        }
        let all: Vec<&str> = known.iter().map(String::as_str).collect();
        Err(Problem::bad_request(format!("`{}` is no status of any task here", shown(status)))
            .hint(format!("one of: {}", all.join(", "))))
    }

    pub fn census(&self) -> Result<Census, Problem> {
        let mut census = Census::default();
        for seen in self.home.tasks.open() {
            *census.tasks.entry(seen.status().to_owned()).or_default() += 1;
            census.effects += i64::try_from(seen.open_effects.len()).unwrap_or(i64::MAX);
        }
        let query = Query { kind: Some("run".into()), open: Some(true), limit: CARDS_AT_A_TIME, ..Query::default() };
        self.home.tasks.walk(query, |summary| {
            *census.runs.entry(summary.card.status).or_default() += 1;
            Ok(true)
        })?;
        let home = self.home.context.places.home();
        let folder = |path: &str| Path::new(path).strip_prefix(home).ok()?.to_str().map(str::to_owned);
        let rooms = room::rooms(&self.home).into_iter();
        let named = |path: &str| folder(path).filter(|name| !name.is_empty()).unwrap_or_else(|| "home".to_owned());
        census.disk = rooms.map(|room| (named(&room.path), room.free_bytes)).collect();
        let waiting = self.attention()?;
        census.attention = AttentionCause::ALL.iter().map(|cause| (cause.word(), 0)).collect();
        for attention in &waiting {
            *census.attention.entry(attention.reason.word()).or_default() += 1;
        }
        census.oldest_attention = waiting.first().map_or(0, |oldest| self.seconds_since(&oldest.since));
        census.faults = i64::try_from(self.faults().len()).unwrap_or(i64::MAX);
        Ok(census)
    }

    /// A task, with what the asker could do with it now. For that its files and its repository are looked at.
    pub fn show(&self, who: &Requester, id: &str) -> Result<TaskAnswer, Problem> {
        let seen = self.not_deleted(id)?;
        let moves = Some(self.moves(who, &seen));
        let (last_lines, kept) = (last_lines(&self.home, &seen), checkouts::kept_of(&self.home, &seen));
        let task = Task { last_lines, moves, kept, ..self.home.shown(&seen) };
        Ok(TaskAnswer { task, transition: None, notes: Vec::new(), still_running: false })
    }

    /// A task as it stands, as a list shows it: nothing is asked of git, and no file of the task is read.
    pub fn show_briefly(&self, id: &str) -> Result<TaskAnswer, Problem> {
        let seen = self.not_deleted(id)?;
        let still_running = !seen.state.turns.is_empty();
        Ok(TaskAnswer { task: self.home.shown(&seen), transition: None, notes: Vec::new(), still_running })
    }

    fn not_deleted(&self, id: &str) -> Result<TaskSnapshot, Problem> {
        let seen = self.home.tasks.find(id)?;
        if seen.card.status == TaskActor::DELETED {
            let message = format!("task {} has been deleted", seen.id);
            return Err(Problem::not_found(message).hint(format!("`sluice task history {}` tells of it", seen.id)));
        }
        Ok(seen)
    }

    /// Events of a task after the one of a number, as they are shown.
    pub fn task_events(&self, id: &TaskId, after: u64, limit: usize) -> Result<Vec<(u64, EventShown)>, Problem> {
        let Some(seen) = self.home.tasks.load(id)? else { return Ok(Vec::new()) };
        let of_task = stream(id);
        let page = self.home.tasks.history(&of_task, after, limit)?;
        let shown = page.into_iter().map(|(number, event)| {
            let entry = LoggedEvent { cursor: Cursor(number), stream: of_task.clone(), number, event };
            (number, self.task_event(&entry, &seen))
        });
        Ok(shown.collect())
    }

    /// An event of a task, as it is shown. One that tells of a crash shows what the agent printed last: that is no part of
    /// what is stored, and goes when the session is forgotten.
    fn task_event(&self, entry: &LoggedEvent, seen: &TaskSnapshot) -> EventShown {
        let mut shown = view::event(entry, EventSubject::Task(seen));
        if EventName::read(&shown.kind) == Some(EventName::AgentCrashed) {
            let number =
                shown.data["session"].as_str().and_then(|it| it.strip_prefix('s')).and_then(|it| it.parse().ok());
            let lines =
                number.map(|number| last_lines_of(&self.home, &seen.id, SessionNumber(number))).unwrap_or_default();
            if let (Value::Object(facts), false) = (&mut shown.data, lines.is_empty()) {
                facts.insert("last_lines".into(), lines.into());
            }
        }
        shown
    }

    /// The task whose worktree a folder is in.
    pub fn here(&self, who: &Requester, cwd: &str) -> Result<TaskAnswer, Problem> {
        let folder = Path::new(cwd).canonicalize().unwrap_or_else(|_| cwd.into());
        match self.home.tasks.open().iter().find(|seen| holds(seen, &folder)) {
            Some(seen) => self.show(who, seen.id.as_str()),
            None => Err(Problem::not_found(format!("{cwd} is in no task's worktree"))
                .hint("give the id of the task; `sluice task list` shows the ids")),
        }
    }

    pub fn history(&self, id: &str) -> Result<History, Problem> {
        let seen = self.home.tasks.find(id)?;
        let events = self.home.tasks.task_history(&seen.id)?;
        let of_task = stream(&seen.id);
        let shown = events.into_iter().map(|(number, event)| {
            let entry = LoggedEvent { cursor: Cursor(number), stream: of_task.clone(), number, event };
            self.task_event(&entry, &seen)
        });
        Ok(History { events: shown.collect() })
    }

    /// How to attach to a task's session. What is typed there is told to its agent, and that is for a person.
    pub fn attach(&self, who: &Requester, id: &str) -> Result<Attach, Problem> {
        who.must_be_person("attaching to a session")?;
        let seen = self.home.tasks.find(id)?;
        // The reviewer first: it is the one that is at work.
        let Some(agent) = seen.living().next_back() else { return Err(self.no_session(&seen)) };
        let session = session_id(&seen.id, agent.id).map_err(Problem::fault)?;
        let (socket, target) = self.home.context.sessions.pane(&session).map_err(|failure| {
            refusal(RefusalCode::NotReady, described(&failure)).hint(match self.home.context.sessions.tmux() {
                Some(_) => "it has just ended, or its window is gone: look again with `sluice task show`",
                None => "without tmux there is no window to look into; `sluice doctor` tells more",
            })
        })?;
        Ok(Attach { socket: socket.display().to_string(), target })
    }

    /// Events of everything, after a place in the log, as they are shown.
    pub fn events(&self, after: Cursor, limit: usize) -> Result<Vec<(Cursor, EventShown)>, Problem> {
        let logged = self.home.tasks.log(after, limit)?;
        let mut shown = Vec::with_capacity(logged.len());
        let mut task: Option<TaskSnapshot> = None;
        for entry in &logged {
            if let Some(id) = id_of(&entry.stream) {
                if task.as_ref().is_none_or(|seen| seen.id != id) {
                    task = self.home.tasks.load(&id).ok().flatten();
                }
                let event = match &task {
                    Some(seen) => self.task_event(entry, seen),
                    None => view::event(entry, EventSubject::Unknown),
                };
                shown.push((entry.cursor, event));
            } else {
                shown.push((entry.cursor, self.run_event(entry)));
            }
        }
        Ok(shown)
    }

    /// An event of a run. Where all its steps stand is read for its end only: whoever follows a long run asks often.
    fn run_event(&self, entry: &LoggedEvent) -> EventShown {
        let unknown = || view::event(entry, EventSubject::Unknown);
        let Some(id) = runs::id_of(&entry.stream) else { return unknown() };
        let Ok(Some(setting)) = self.home.tasks.setting(&id) else { return unknown() };
        let is_end = EventName::read(&entry.event.kind) == Some(EventName::RunCompleted);
        let ended = if is_end { self.home.tasks.load_run(&id).ok().flatten() } else { None };
        view::event(entry, EventSubject::Run(&setting, ended.as_ref()))
    }

    /// Events of one run with a number above `after`, as they are shown: at most `limit`, fewer where they are large, and
    /// none only when there are no more.
    pub fn run_events(&self, id: &RunId, after: u64, limit: usize) -> Result<Vec<(u64, EventShown)>, Problem> {
        let stream = runs::stream(id);
        let (mut shown, mut bytes, mut last) = (Vec::new(), 0, after);
        while shown.len() < limit && bytes < LARGEST_PAGE {
            let page = self.home.tasks.history(&stream, last, limit.min(AT_ONCE))?;
            let is_all = page.len() < limit.min(AT_ONCE);
            for (number, event) in page {
                bytes += event.data.len();
                last = number;
                let entry = LoggedEvent { cursor: Cursor(number), stream: stream.clone(), number, event };
                shown.push((number, self.run_event(&entry)));
            }
            if is_all {
                break;
            }
        }
        Ok(shown)
    }
}
