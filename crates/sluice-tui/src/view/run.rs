//! A run: its steps as a graph from the top, a bar of time for each, and what the chosen step printed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use sluice_api::shown::{Run, RunItemStatus, RunStep, RunStepStatus};
use sluice_api::timeline::Timeline;

use super::{absent, put, span, window, words};
use crate::look::{RowTone, TerminalLook};
use crate::model::Model;
use crate::model::facts::ScreenAsk;
use crate::text;

/// The deepest indentation of a step.
const DEEPEST: usize = 8;

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, (id, chosen): (&str, usize)) {
    let ask = ScreenAsk::Run(id.to_owned());
    let Some(run) = model.facts.run(&ask) else { return put(frame, area, absent(model, &ask)) };
    let (width, look) = (usize::from(area.width), model.look);
    let mut head = vec![
        Line::styled(
            text::cut(&look.shown(&format!("{} · {} · {}", run.recipe, run.status, run.id)), width),
            look.title(),
        ),
        words(look, run.error.as_deref().unwrap_or(&run.prompt), width),
    ];
    if let Some(question) = &run.question {
        let text = format!("{}: {} ({})", question.step, question.reason, question.options.join(", "));
        head.push(Line::styled(text::cut(&look.shown(&text), width), look.tone(RowTone::Needs)));
    }
    let top = u16::try_from(head.len()).unwrap_or(2);
    let room = area.height.saturating_sub(top);
    // The log has the lower two fifths.
    let below = room * 2 / 5;
    put(frame, Rect { height: top, ..area }, head);
    let place = Rect { y: area.y + top, height: room - below, ..area };
    put(frame, place, graph(model, run, chosen, place));
    let place = Rect { y: area.y + top + room - below, height: below, ..area };
    put(frame, place, log(model, run, chosen, place));
}

/// How many steps stand before each at most: how deep it is in the graph.
fn depths(run: &Run) -> BTreeMap<&str, usize> {
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    // A recipe's steps come after those that they need, but for loops; twice over is enough for a picture.
    for _ in 0..2 {
        for step in &run.steps {
            let before = step.needs.iter().filter_map(|need| depths.get(need.as_str())).max();
            let depth = before.map_or(0, |before| before + 1);
            depths.insert(&step.id, depth.min(DEEPEST));
        }
    }
    depths
}

fn tone(step: &RunStep) -> RowTone {
    match step.status {
        RunStepStatus::Waiting | RunStepStatus::Pending | RunStepStatus::Ready => RowTone::Waits,
        RunStepStatus::Running => RowTone::Works,
        RunStepStatus::Held | RunStepStatus::Blocked => RowTone::Needs,
        RunStepStatus::Completed => RowTone::Good,
        RunStepStatus::Failed => RowTone::Bad,
        RunStepStatus::Skipped | RunStepStatus::Cancelled => RowTone::Quiet,
    }
}

/// A step in one line: how it stands, what it is, what it waits for.
pub(super) fn step_line(look: TerminalLook, run: &Run, step: &RunStep, width: usize) -> Line<'static> {
    let depth = depths(run).get(step.id.as_str()).copied().unwrap_or_default();
    let tone = tone(step);
    let edge = match (depth, look.ascii) {
        (0, _) => String::new(),
        (depth, false) => format!("{}└ ", "  ".repeat(depth - 1)),
        (depth, true) => format!("{}` ", "  ".repeat(depth - 1)),
    };
    let told = told(step);
    let text = format!("{} {} {} {told}", step.id, step.kind, step.status);
    let spans = vec![
        Span::raw(format!(" {edge}")),
        span(format!("{} ", look.glyph(tone)), look.tone(tone)),
        Span::raw(text::cut(&look.shown(&text), width.saturating_sub(text::width(&edge) + 3))),
    ];
    Line::from(spans)
}

/// Attempts, rounds, items, and what came of it.
fn told(step: &RunStep) -> String {
    let attempt = (step.attempt > 1).then(|| format!("attempt {}", step.attempt));
    let round = (step.round > 0).then(|| format!("round {}", step.round));
    let items = step.items.as_ref().map(|items| {
        let done = items.iter().filter(|item| item.status == RunItemStatus::Completed).count();
        format!("items {done}/{}", items.len())
    });
    let said = step.error.clone().or_else(|| step.summary.clone());
    [attempt, round, items, step.result.clone(), said].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn graph(model: &Model, run: &Run, chosen: usize, area: Rect) -> Vec<Line<'static>> {
    let (look, width) = (model.look, usize::from(area.width));
    let bars = if width >= 100 { width * 2 / 5 } else { (width / 3).min(24) };
    let timeline = model.facts.timeline(&ScreenAsk::Timeline(run.id.clone()));
    let chosen = chosen.min(run.steps.len().saturating_sub(1));
    let shown = window(chosen, run.steps.len(), usize::from(area.height));
    let line = |index: usize| {
        let step = &run.steps[index];
        let mut line = step_line(look, run, step, width - bars - 1);
        let used: usize = line.spans.iter().map(|it| text::width(&it.content)).sum();
        line.spans.push(Span::raw(" ".repeat((width - bars).saturating_sub(used))));
        let bar = timeline.map(|it| bar(look, it, &step.id, bars, model.now)).unwrap_or_default();
        line.spans.push(span(bar, look.tone(tone(step))));
        if index == chosen { line.patch_style(look.chosen()) } else { line }
    };
    shown.map(line).collect()
}

/// When the attempts of a step ran, on the time of the whole run.
fn bar(look: TerminalLook, timeline: &Timeline, step: &str, width: usize, now: Timestamp) -> String {
    let second = |time: &str| time.parse::<Timestamp>().map(Timestamp::as_second).unwrap_or(now.as_second());
    let begin = second(&timeline.started_at);
    let end = timeline.finished_at.as_deref().map_or(now.as_second(), second).max(begin + 1);
    let room = i64::try_from(width.saturating_sub(6)).unwrap_or(1).max(1);
    let place =
        |time: i64| usize::try_from((time - begin).clamp(0, end - begin) * (room - 1) / (end - begin)).unwrap_or(0);
    let mut cells = vec![' '; usize::try_from(room).unwrap_or(1)];
    let mut took = 0;
    for bar in timeline.bars.iter().filter(|bar| bar.step == step) {
        let (first, last) = (second(&bar.started_at), bar.finished_at.as_deref().map_or(now.as_second(), second));
        cells[place(first)..=place(last.max(first))].fill(look.filled());
        took = took.max(last - first);
    }
    let took = if cells.iter().all(|cell| *cell == ' ') { String::new() } else { text::span(took) };
    format!("{}{}", cells.into_iter().collect::<String>(), text::right(&took, 5))
}

/// What the chosen step printed last, and its items.
fn log(model: &Model, run: &Run, chosen: usize, area: Rect) -> Vec<Line<'static>> {
    let (look, width, height) = (model.look, usize::from(area.width), usize::from(area.height));
    let Some(step) = run.steps.get(chosen.min(run.steps.len().saturating_sub(1))) else { return Vec::new() };
    let title = format!("{} {} ", look.rule().repeat(2), look.shown(&step.id));
    let rest = width.saturating_sub(text::width(&title));
    let mut lines = vec![Line::styled(format!("{title}{}", look.rule().repeat(rest)), look.faint())];
    for item in step.items.iter().flatten().take(height / 2) {
        let said = item.error.as_deref().or(item.summary.as_deref()).unwrap_or_default();
        let value = item.item.as_str().map_or_else(|| item.item.to_string(), str::to_owned);
        lines.push(words(look, &format!("  {} {value}: {} {said}", item.index, item.status), width));
    }
    let ask = ScreenAsk::StepLog(run.id.clone(), step.id.clone());
    let room = height.saturating_sub(lines.len());
    match model.facts.log(&ask) {
        Some(log) => {
            let all: Vec<&str> = log.lines().collect();
            let first = all.len().saturating_sub(room);
            lines.extend(all[first..].iter().map(|line| words(look, line, width)));
        }
        None => lines.extend(absent(model, &ask)),
    }
    lines
}
