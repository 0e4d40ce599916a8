//! `/runs/ID`: the question on top, the graph with the state of each step, the time bars, and a step looked at closely.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use sluice_api::Problem;
use sluice_api::attention::Attention;
use sluice_api::board::{BoardAction, BoardRow};
use sluice_api::shown::{Run, RunStatus, RunStep, RunStepStatus};
use sluice_api::timeline::{BarEnd, Timeline};
use sluice_api::usage::UsageShown;
use sluice_draw::{Graph, NodeMark, inline_svg};
use sluice_home::ask::{EvidenceShown, Service};

use super::asked;
use super::board::AttentionCard;
use super::frame::{Frame, page};
use super::wording::{self, ago, cut, escape, scrolls, span, took};
use crate::app::App;

/// The most bars of the page, the newest; a run with more attempts has them in the API.
const MOST_BARS: usize = 300;
/// The most steps of the table.
const MOST_STEPS: usize = 1200;
/// The most letters of a run's prompt.
const LONGEST_PROMPT: usize = 2000;
/// The most letters of an output or a log, from its end.
const LONGEST_TEXT: usize = 60_000;
const LONGEST_LINE: usize = 200;
/// The width of the time chart, in its own units.
const WIDE: i64 = 1000;

#[derive(Template)]
#[template(path = "run.html")]
pub(super) struct RunPage {
    frame: Frame,
    run: Run,
    status: &'static str,
    is_open: bool,
    is_over: bool,
    card: Option<AttentionCard>,
    graph: Option<String>,
    steps: Vec<StepLine>,
    more_steps: usize,
    bars: Vec<BarLine>,
    more_bars: usize,
    whole: String,
    drawer: Option<Drawer>,
    usage: Option<UsageShown>,
    used: String,
    age: String,
    can_cancel: bool,
    can_retry: bool,
    can_merge: bool,
    can_delete: bool,
    task_link: Option<String>,
    prompt: String,
}

struct StepLine {
    name: String,
    kind: String,
    role: String,
    needs: String,
    status: &'static str,
    attempt: u32,
    summary: String,
    took: String,
    link: String,
    is_here: bool,
}

struct BarLine {
    name: String,
    class: &'static str,
    x: i64,
    wide: i64,
    took: String,
    is_running: bool,
}

/// A step looked at closely.
struct Drawer {
    step: RunStep,
    status: &'static str,
    output: String,
    log: String,
    evidence: Vec<EvidenceShown>,
    is_running: bool,
    close: String,
}

struct RunPageFacts {
    run: Run,
    row: Option<BoardRow>,
    attention: Option<Attention>,
    graph: Option<String>,
    timeline: Option<Timeline>,
    log: String,
    evidence: Vec<EvidenceShown>,
    usage: Option<UsageShown>,
}

/// Which parts of the page are wanted.
#[derive(Clone, Copy)]
struct RunParts {
    facts: bool,
    bars: bool,
    step: bool,
    usage: bool,
}

/// Answers `GET /runs/ID` of a browser.
pub(super) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>, frame: Frame) -> Response {
    let step = frame.query.get("step").map(str::to_owned);
    let parts = RunParts {
        facts: frame.wants("facts"),
        bars: frame.wants("bars"),
        step: frame.wants("step"),
        usage: frame.wants("usage"),
    };
    let wanted = step.clone();
    let facts = asked(&app, frame.visitor.who(), move |service, _| look(service, &id, wanted.as_deref(), parts));
    match facts.await {
        Ok(facts) => page(Ok(RunPage::new(frame, facts, step.as_deref()))),
        Err(problem) => page::<RunPage>(Err((frame, problem))),
    }
}

fn look(service: &Service, id: &str, step: Option<&str>, parts: RunParts) -> Result<RunPageFacts, Problem> {
    let run = service.shown_run(id)?;
    let id = run.id.clone();
    let row = service.board_rows(std::slice::from_ref(&id))?.rows.into_iter().next();
    let attention = match run.question.as_ref().filter(|_| parts.facts) {
        Some(question) => service.attention_of(&question.id).ok(),
        None => None,
    };
    let step = step.filter(|_| parts.step);
    Ok(RunPageFacts {
        graph: if parts.facts { Some(graph(service, &run)?) } else { None },
        timeline: parts.bars.then(|| service.run_timeline(&id)).transpose()?,
        log: step.map(|step| service.run_log(&id, Some(step))).transpose()?.unwrap_or_default(),
        evidence: step.map(|step| service.run_evidence(&id, step)).transpose()?.unwrap_or_default(),
        usage: parts.usage.then(|| service.run_usage(&id)).transpose()?,
        run,
        row,
        attention,
    })
}

fn graph(service: &Service, run: &Run) -> Result<String, Problem> {
    let recipe = service.run_recipe(&run.id)?;
    let graph = Graph::of_recipe(&recipe);
    let mark = |node: &sluice_draw::NodeBox| {
        let step = run.steps.iter().find(|step| step.id == node.name);
        let Some(step) = step else { return NodeMark::default() };
        let link = wording::address(&format!("/runs/{}", escape(&run.id)), &[("step", &step.id)]);
        NodeMark { class: class(step.status), link: Some(format!("{link}#step")), about: step.status.word().to_owned() }
    };
    let marks: Vec<NodeMark> = graph.nodes.iter().map(mark).collect();
    Ok(inline_svg(&graph, &marks).unwrap_or_else(|large| format!("<p>{large}</p>")))
}

fn class(status: RunStepStatus) -> &'static str {
    match status {
        RunStepStatus::Waiting | RunStepStatus::Pending => "waiting",
        RunStepStatus::Ready => "ready",
        RunStepStatus::Running => "running",
        RunStepStatus::Held | RunStepStatus::Blocked => "held",
        RunStepStatus::Completed => "completed",
        RunStepStatus::Failed => "failed",
        RunStepStatus::Skipped => "skipped",
        RunStepStatus::Cancelled => "cancelled",
    }
}

impl RunPage {
    fn new(frame: Frame, facts: RunPageFacts, chosen: Option<&str>) -> RunPage {
        let RunPageFacts { run, row, attention, graph, timeline, log, evidence, usage } = facts;
        let now = Timestamp::now();
        let path = format!("/runs/{}", escape(&run.id));
        let can = |action: BoardAction| row.as_ref().is_some_and(|row| row.actions.contains(&action));
        let is_open = matches!(run.status, RunStatus::Running | RunStatus::Held);
        let has_failed = matches!(run.status, RunStatus::Failed | RunStatus::Cancelled);
        let (bars, more_bars, whole) = timeline.as_ref().map(bars).unwrap_or_default();
        let step = chosen.and_then(|name| run.steps.iter().find(|step| step.id == name)).cloned();
        let drawer = step.filter(|_| frame.wants("step")).map(|step| Drawer {
            status: step.status.word(),
            // A script's output is what it printed: once is enough.
            output: Some(end_of(&shown(&step.output))).filter(|text| text.trim() != log.trim()).unwrap_or_default(),
            log: end_of(&log),
            evidence,
            is_running: step.status == RunStepStatus::Running,
            close: path.clone(),
            step,
        });
        let steps = run.steps.iter().take(MOST_STEPS).map(|step| StepLine::new(step, &path, chosen));
        let steps: Vec<StepLine> = steps.collect();
        RunPage {
            frame: frame.titled(cut(&run.recipe, 60), "board"),
            status: run.status.word(),
            is_open,
            is_over: !is_open,
            card: attention.map(|it| AttentionCard::new(it, now)),
            graph,
            more_steps: run.steps.len().saturating_sub(steps.len()),
            steps,
            bars,
            more_bars,
            whole,
            drawer,
            usage,
            used: row.as_ref().and_then(|row| row.usage.as_ref()).map(wording::used).unwrap_or_default(),
            age: ago(&run.updated_at, now),
            can_cancel: is_open,
            can_retry: can(BoardAction::Retry) || has_failed,
            can_merge: can(BoardAction::Merge),
            can_delete: !is_open,
            task_link: run.task.as_ref().map(|task| format!("/tasks/{}", escape(task))),
            prompt: cut(&run.prompt, LONGEST_PROMPT),
            run,
        }
    }
}

impl StepLine {
    fn new(step: &RunStep, path: &str, chosen: Option<&str>) -> StepLine {
        let time = step.started_at.as_deref().zip(step.finished_at.as_deref()).and_then(|(from, to)| span(from, to));
        StepLine {
            kind: step.kind.clone(),
            role: Some(step.role.clone()).filter(|role| role != "any").unwrap_or_default(),
            needs: step.needs.join(", "),
            status: class(step.status),
            attempt: step.attempt,
            summary: cut(step.error.as_deref().or(step.summary.as_deref()).unwrap_or_default(), LONGEST_LINE),
            took: time.map(took).unwrap_or_default(),
            link: format!("{}#step", wording::address(path, &[("step", &step.id)])),
            is_here: chosen == Some(step.id.as_str()),
            name: step.id.clone(),
        }
    }
}

/// The newest bars, how many were left out, and how long the whole took.
fn bars(timeline: &Timeline) -> (Vec<BarLine>, usize, String) {
    let end = timeline.finished_at.as_deref().unwrap_or(&timeline.now);
    let whole = span(&timeline.started_at, end).unwrap_or(0).max(1);
    let first = timeline.bars.len().saturating_sub(MOST_BARS);
    let bar = |bar: &sluice_api::timeline::TimeBar| {
        let to = bar.finished_at.as_deref().unwrap_or(&timeline.now);
        let start = span(&timeline.started_at, &bar.started_at).unwrap_or(0).clamp(0, whole);
        let length = span(&bar.started_at, to).unwrap_or(0).clamp(0, whole);
        let item = bar.item.map(|item| format!(" [{item}]")).unwrap_or_default();
        let turn = bar.turn.map(|turn| format!(" turn {turn}{}", if bar.arbiter { ", arbiter" } else { "" }));
        let again = if bar.attempt > 1 { format!(" (attempt {})", bar.attempt) } else { String::new() };
        let x = (start * WIDE / whole).min(WIDE - 4);
        BarLine {
            name: format!("{}{item}{}{again}", bar.step, turn.unwrap_or_default()),
            class: bar.end.word(),
            x,
            wide: (length * WIDE / whole).clamp(4, WIDE - x),
            took: took(length),
            is_running: bar.end == BarEnd::Running,
        }
    };
    (timeline.bars[first..].iter().map(bar).collect(), timeline.left_out + first, took(whole))
}

/// A value as a person reads it.
fn shown(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// The end of a text, which is what a person wants to see of a long one; control characters are made visible.
fn end_of(text: &str) -> String {
    let from = text.ceil_char_boundary(text.len().saturating_sub(LONGEST_TEXT));
    let kept: String =
        text[from..].chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect();
    if from > 0 { format!("… {from} bytes before\n{kept}") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_where_their_time_is() {
        let bar = |step: &str, from: &str, to: Option<&str>, end| sluice_api::timeline::TimeBar {
            step: step.to_owned(),
            item: None,
            turn: None,
            arbiter: false,
            attempt: 1,
            end,
            started_at: from.to_owned(),
            finished_at: to.map(str::to_owned),
        };
        let timeline = Timeline {
            run: "r".into(),
            now: "2026-11-18T12:01:40Z".into(),
            started_at: "2026-11-18T12:00:00Z".into(),
            finished_at: None,
            bars: vec![
                bar("plan", "2026-11-18T12:00:00Z", Some("2026-11-18T12:00:50Z"), BarEnd::Completed),
                bar("work", "2026-11-18T12:00:50Z", None, BarEnd::Running),
            ],
            left_out: 0,
        };
        let (bars, left_out, whole) = bars(&timeline);
        let places: Vec<_> = bars.iter().map(|bar| (bar.name.as_str(), bar.x, bar.wide, bar.took.as_str())).collect();
        assert_eq!(places, [("plan", 0, 500, "50s"), ("work", 500, 500, "50s")]);
        assert_eq!((left_out, whole.as_str()), (0, "1m 40s"));
    }

    #[test]
    fn a_long_text_is_shown_from_its_end_without_escapes() {
        assert_eq!(end_of("a\u{1b}[31mb\n"), "a[31mb\n");
        let long = end_of(&"é".repeat(LONGEST_TEXT));
        assert!(long.starts_with("… ") && long.ends_with("éé"), "{}", &long[..20]);
    }
}
