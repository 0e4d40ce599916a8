//! `/tasks/ID`: where a task stands, what a person can do with it and why the rest is closed; and its history, terminal,
//! changes, TASK.md and usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use sluice_api::Problem;
use sluice_api::attention::Attention;
use sluice_api::board::{BoardAction, BoardRow};
use sluice_api::event::EventShown;
use sluice_api::screen::Screen;
use sluice_api::task::{MoveShown, Task, TaskFile};
use sluice_api::usage::UsageShown;
use sluice_draw::{Graph, NodeMark, inline_svg};
use sluice_home::ask::{Requester, Service};

use super::board::AttentionCard;
use super::changes::ChangesShown;
use super::frame::{Frame, page};
use super::orders::{OrderWords, order};
use super::wording::{self, ago, clock, cut, escape, scrolls, spoken};
use super::{asked, markdown};
use crate::app::App;

/// The most events that the timeline shows, the newest first.
const MOST_EVENTS: usize = 200;
/// The most letters of a summary; TASK.md has the rest.
const LONGEST_SUMMARY: usize = 2000;
/// The most letters of what an event says.
const LONGEST_WORDS: usize = 300;
/// The largest TASK.md that is rendered, in bytes; a larger one is shown as text, and cut.
const LARGEST_FILE: usize = 200_000;

/// Events that tell how the engine did something, and not what happened to the task.
const INNER: [&str; 8] = [
    "hook.asked",
    "effect.settled",
    "artifact.read",
    "session.asked",
    "session.ending",
    "turn.settled",
    "workspace.reserved",
    "hook.done",
];
/// What an event says that its page says already.
const KNOWN_FIELDS: [&str; 6] = ["task_id", "run_id", "workflow_id", "process_id", "project", "id"];

/// What a task page shows below the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskTab {
    Timeline,
    Terminal,
    Changes,
    File,
    Usage,
}

const TABS: [(TaskTab, &str, &str); 5] = [
    (TaskTab::Timeline, "timeline", "Timeline"),
    (TaskTab::Terminal, "terminal", "Terminal"),
    (TaskTab::Changes, "changes", "Changes"),
    (TaskTab::File, "file", "TASK.md"),
    (TaskTab::Usage, "usage", "Usage"),
];

#[derive(Template)]
#[template(path = "task.html")]
pub(super) struct TaskPage {
    frame: Frame,
    task: Task,
    summary: String,
    state: String,
    group: &'static str,
    card: Option<AttentionCard>,
    graph: Option<String>,
    moves: Vec<MoveLine>,
    actions: Vec<ActionButton>,
    tabs: Vec<TabLink>,
    tab: &'static str,
    events: Vec<EventLine>,
    /// Where the events are shown that are left out here.
    all_events: Option<String>,
    screen: Option<Screen>,
    changes: Option<ChangesShown>,
    file: Option<FileText>,
    usage: Option<UsageShown>,
    age: String,
    used: String,
    run_link: Option<String>,
}

/// A transition, and why it is closed.
struct MoveLine {
    to: String,
    label: String,
    is_open: bool,
    by: &'static str,
    why: String,
}

struct ActionButton {
    word: &'static str,
    words: OrderWords,
    is_first: bool,
}

struct TabLink {
    label: &'static str,
    link: String,
    is_here: bool,
}

pub(super) struct EventLine {
    pub(super) time: String,
    pub(super) clock: String,
    pub(super) kind: String,
    pub(super) actor: String,
    pub(super) about: String,
    pub(super) link: Option<String>,
    pub(super) words: String,
}

struct FileText {
    html: String,
    versions: usize,
}

/// What is looked up for a task.
struct TaskFacts {
    task: Task,
    row: Option<BoardRow>,
    attention: Option<Attention>,
    graph: Option<String>,
    events: Vec<EventShown>,
    screen: Option<Screen>,
    changes: Option<sluice_api::changes::Changes>,
    file: Option<TaskFile>,
    usage: Option<UsageShown>,
}

/// Answers `GET /tasks/ID` of a browser.
pub(super) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>, frame: Frame) -> Response {
    let tab = frame.query.get("tab").and_then(|word| TABS.iter().find(|(_, it, _)| *it == word));
    let (tab, word, _) = *tab.unwrap_or(&TABS[0]);
    let (wants_facts, wants_tab) = (frame.wants("facts"), frame.wants("tab"));
    let facts =
        asked(&app, frame.visitor.who(), move |service, who| look(service, who, &id, tab, wants_facts, wants_tab));
    match facts.await {
        Ok(facts) => page(Ok(TaskPage::new(frame, facts, word))),
        Err(problem) => page::<TaskPage>(Err((frame, problem))),
    }
}

fn look(
    service: &Service,
    who: &Requester,
    id: &str,
    tab: TaskTab,
    wants_facts: bool,
    wants_tab: bool,
) -> Result<TaskFacts, Problem> {
    let task = service.show(who, id)?.task;
    let id = task.id.clone();
    let wants = |wanted: TaskTab| wants_tab && tab == wanted;
    let row = service.board_rows(std::slice::from_ref(&id))?.rows.into_iter().next();
    let attention = match task.attention.as_ref().filter(|_| wants_facts) {
        // It may have been answered meanwhile.
        Some(note) => service.attention_of(&note.id).ok(),
        None => None,
    };
    Ok(TaskFacts {
        graph: if wants_facts { Some(machine(service, &task)?) } else { None },
        events: if wants(TaskTab::Timeline) { service.history(&id)?.events } else { Vec::new() },
        screen: wants(TaskTab::Terminal).then(|| service.task_screen(&id)).transpose()?,
        changes: wants(TaskTab::Changes).then(|| service.task_changes(&id)).transpose()?,
        file: wants(TaskTab::File).then(|| service.file(&id, None)).transpose()?,
        usage: wants(TaskTab::Usage).then(|| service.task_usage(&id)).transpose()?,
        task,
        row,
        attention,
    })
}

/// The state machine, with the present state lit and the states that can be reached now marked.
fn machine(service: &Service, task: &Task) -> Result<String, Problem> {
    let lifecycle = service.task_lifecycle(&task.id)?;
    let graph = Graph::of_lifecycle(&lifecycle);
    let open: BTreeMap<&str, bool> = task.moves.iter().flatten().map(|it| (it.to.as_str(), it.open)).collect();
    let mark = |node: &sluice_draw::NodeBox| {
        let (class, about) = match (node.name == task.status, open.get(node.name.as_str())) {
            (true, _) => ("now", "the present state"),
            (false, Some(true)) => ("open", "can be reached now"),
            (false, Some(false)) => ("closed", "not open now"),
            (false, None) => ("other", ""),
        };
        NodeMark { class, link: None, about: about.to_owned() }
    };
    let marks: Vec<NodeMark> = graph.nodes.iter().map(mark).collect();
    Ok(inline_svg(&graph, &marks).unwrap_or_else(|large| format!("<p>{large}</p>")))
}

impl TaskPage {
    fn new(frame: Frame, facts: TaskFacts, tab: &'static str) -> TaskPage {
        let TaskFacts { task, row, attention, graph, mut events, screen, changes, file, usage } = facts;
        let now = Timestamp::now();
        let path = format!("/tasks/{}", escape(&task.id));
        let tabs = TABS.iter().map(|(_, word, label)| TabLink {
            label,
            link: wording::address(&path, &[("tab", word)]),
            is_here: *word == tab,
        });
        let tabs = tabs.collect();
        events.reverse();
        let frame = frame.titled(cut(&task.branch, 60), "board");
        let card = attention.map(|it| AttentionCard::new(it, now));
        let mut actions = row.as_ref().map(actions).unwrap_or_default();
        // What the card offers is not offered twice.
        let offered =
            |word: &str| card.iter().flat_map(|card| &card.options).any(|it| it.word.replace('-', "_") == word);
        actions.retain(|action| !offered(action.word));
        let wants_all = frame.query.get("all").is_some();
        events.retain(|event| wants_all || !INNER.contains(&event.kind.as_str()));
        let group = row.as_ref().map_or("done", |row| row.group.word());
        let at: Vec<String> = frame.query.all("at").map(str::to_owned).collect();
        let may_review = row.as_ref().is_some_and(|row| row.actions.contains(&BoardAction::RequestChanges));
        TaskPage {
            state: match row.as_ref().and_then(|row| row.round) {
                Some(round) => match round.bound {
                    Some(bound) => format!("{}, review {} of {bound}", task.status, round.round),
                    None => format!("{}, review {}", task.status, round.round),
                },
                None => task.status.clone(),
            },
            summary: cut(&task.summary, LONGEST_SUMMARY),
            group,
            all_events: (!wants_all).then(|| wording::address(&path, &[("tab", "timeline"), ("all", "1")])),
            card,
            graph,
            moves: task.moves.iter().flatten().map(MoveLine::new).collect(),
            actions,
            tabs,
            tab,
            events: events.iter().take(MOST_EVENTS).map(EventLine::new).collect(),
            screen,
            changes: changes.map(|it| ChangesShown::new(it, &path, &at, may_review && frame.may_act())),
            file: file.map(|file| FileText { versions: file.versions.len(), html: rendered(&file.text) }),
            usage,
            age: ago(&task.updated_at, now),
            used: row.and_then(|row| row.usage).map(|sum| wording::used(&sum)).unwrap_or_default(),
            run_link: task.run.as_ref().map(|run| format!("/runs/{}", escape(run))),
            frame,
            task,
        }
    }
}

fn rendered(text: &str) -> String {
    match text.len() <= LARGEST_FILE {
        true => markdown::rendered(text),
        false => {
            let end = text.floor_char_boundary(LARGEST_FILE);
            format!("<pre>{}</pre><p>The file is larger: the rest is not shown.</p>", markdown::escaped(&text[..end]))
        }
    }
}

impl MoveLine {
    fn new(it: &MoveShown) -> MoveLine {
        MoveLine {
            label: spoken(&it.to),
            to: it.to.clone(),
            is_open: it.open,
            by: it.by.word(),
            why: it.why.clone().unwrap_or_default(),
        }
    }
}

/// The buttons of a task, what a person most often wants first, and what cannot be taken back last.
fn actions(row: &BoardRow) -> Vec<ActionButton> {
    const ORDER: [BoardAction; 9] = [
        BoardAction::Approve,
        BoardAction::Merge,
        BoardAction::RequestChanges,
        BoardAction::CreatePr,
        BoardAction::Spawn,
        BoardAction::Respawn,
        BoardAction::Nudge,
        BoardAction::Cancel,
        BoardAction::Delete,
    ];
    let there = ORDER.into_iter().filter(|action| row.actions.contains(action));
    let button = |(index, action): (usize, BoardAction)| {
        let words = order(action);
        ActionButton { word: action.word(), is_first: index == 0 && !words.is_grave, words }
    };
    there.enumerate().map(button).collect()
}

impl EventLine {
    pub(super) fn new(event: &EventShown) -> EventLine {
        let link = match event.id.split_once('/') {
            Some(("task", _)) => Some(format!("/tasks/{}", escape(&event.correlation_id))),
            Some(("run", _)) => Some(format!("/runs/{}", escape(&event.correlation_id))),
            Some(_) | None => None,
        };
        EventLine {
            clock: clock(&event.time),
            time: event.time.clone(),
            kind: event.kind.clone(),
            actor: event.actor.clone(),
            about: event.correlation_id.clone(),
            link,
            words: cut(&said(&event.data), LONGEST_WORDS),
        }
    }
}

/// What an event says, in one line: its plain fields, in their order.
fn said(data: &serde_json::Value) -> String {
    let field = |(key, value): (&String, &serde_json::Value)| match value {
        serde_json::Value::String(text) if !text.is_empty() => Some(format!("{key}: {text}")),
        serde_json::Value::Number(number) => Some(format!("{key}: {number}")),
        serde_json::Value::Bool(true) => Some(key.clone()),
        serde_json::Value::String(_)
        | serde_json::Value::Bool(false)
        | serde_json::Value::Null
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => None,
    };
    let Some(fields) = data.as_object() else { return String::new() };
    let told = fields.iter().filter(|(key, _)| !KNOWN_FIELDS.contains(&key.as_str()));
    told.filter_map(field).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOSTILE: &str = "</script><script>alert(1)</script>";

    /// As an engine sends it: a field that comes later has its default.
    fn task() -> Task {
        let moved = |to: &str, why: Option<&str>| json!({"to": to, "open": why.is_none(), "why": why, "by": "person"});
        let sent = json!({
            "id": "k3f9", "project": "coffee", "branch": "latte", "workflow": "default", "harness": "claude",
            "review_harness": "codex", "status": "reviewing", "review_round": 1, "crash_count": 0, "summary": HOSTILE,
            "session": "inactive", "needs_person": true, "pr_url": "javascript:alert(1)",
            "attention": {
                "id": "k3f9/1", "reason": "review", "text": "the work is ready",
                "since": "2026-11-18T11:56:00.000Z", "choices": [], "said_by": "engine",
            },
            "moves": [moved("done", None), moved("working", Some("the gate needs `## Review`"))],
            "created_at": "2026-11-18T10:00:00.000Z", "updated_at": "2026-11-18T11:56:00.000Z",
        });
        serde_json::from_value(sent).expect("it is a task")
    }

    fn page(may_act: bool) -> String {
        let facts = TaskFacts {
            task: task(),
            row: None,
            attention: None,
            graph: Some("<svg></svg>".to_owned()),
            events: Vec::new(),
            screen: None,
            changes: None,
            file: None,
            usage: None,
        };
        let frame = Frame::sample(may_act, &[], &["facts"]);
        TaskPage::new(frame, facts, "timeline").render().expect("it renders")
    }

    #[test]
    fn the_facts_of_a_task() {
        let page = page(true);
        assert!(!page.contains("<script") && !page.contains("href=\"javascript"), "{page}");
        let page: String = page.lines().filter(|line| !line.contains("<time")).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(page);
    }

    #[test]
    fn a_reader_sees_moves_and_no_buttons() {
        let page = page(false);
        assert!(!page.contains("<button") && !page.contains("<form"), "{page}");
        assert!(page.contains("the gate needs"), "{page}");
    }

    #[test]
    fn an_event_is_told_in_one_line() {
        let data =
            serde_json::json!({ "task_id": "k", "to": "done", "empty": "", "round": 2, "list": [1], "is": true });
        assert_eq!(said(&data), "to: done · round: 2 · is");
    }
}
