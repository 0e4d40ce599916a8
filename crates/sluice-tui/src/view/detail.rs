//! One task or run: its facts, the moves that are possible and what the others lack, and its tabs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use sluice_api::board::BoardRow;
use sluice_api::event::EventShown;
use sluice_api::screen::Screen;
use sluice_api::shown::{Run, StepUsage};
use sluice_api::task::{MoveShown, Task};
use sluice_api::usage::{UsageShown, UsageSum};

use super::{absent, plain, put, span, words};
use crate::look::{RowTone, TerminalLook};
use crate::model::diff::DiffPart;
use crate::model::facts::ScreenAsk;
use crate::model::{Model, Tab};
use crate::text;

/// The most lines that facts and moves take from the tabs.
const HEAD_LINES: usize = 12;

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, (id, tab, scroll): (&str, Tab, usize)) {
    let width = usize::from(area.width);
    let mut lines = head(model, id, width);
    // The tabs have at least the half.
    lines.truncate(HEAD_LINES.min(usize::from(area.height) / 2));
    lines.push(tabs(model, id, tab));
    let room = usize::from(area.height).saturating_sub(lines.len());
    let body = body(model, id, tab, width);
    let first = scroll.min(body.len().saturating_sub(room));
    lines.extend(body.into_iter().skip(first).take(room));
    put(frame, area, lines);
}

fn tabs(model: &Model, id: &str, now: Tab) -> Line<'static> {
    let look = model.look;
    let tab = |tab: &Tab| match *tab == now {
        true => span(format!("[{}] ", tab.title()), look.title()),
        false => span(format!(" {}  ", tab.title()), look.faint()),
    };
    Line::from(Tab::of(model.kind(id)).iter().map(tab).collect::<Vec<_>>())
}

fn head(model: &Model, id: &str, width: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let row = model.board.as_ref().and_then(|board| board.row(id));
    let mut lines = Vec::new();
    if let Some(row) = row {
        let tone = super::board::tone(row);
        let name = format!("{} · {} · {}", row.name, row.project.as_deref().unwrap_or("-"), row.id);
        lines.push(Line::from(vec![
            span(format!("{} ", look.glyph(tone)), look.tone(tone)),
            span(text::cut(&look.shown(&name), width.saturating_sub(2)), look.title()),
        ]));
        lines.extend((!row.summary.is_empty()).then(|| words(look, &format!("  {}", row.summary), width)));
        lines.push(words(look, &facts(row, model), width));
        lines.extend(row.attention.iter().flat_map(|note| {
            let text = format!("{}: {}", note.reason, note.text);
            text::wrap(&text, width.saturating_sub(4)).into_iter().take(3).map(|it| plain(format!("  {it}")))
        }));
    }
    if let Some(task) = model.facts.task(&ScreenAsk::Task(id.to_owned())) {
        lines.extend(moves(look, task, width));
    }
    if let Some(error) = model.facts.run(&ScreenAsk::Run(id.to_owned())).and_then(|run| run.error.as_ref()) {
        lines.push(words(look, &format!("  {error}"), width));
    }
    if lines.is_empty() {
        lines.push(words(look, id, width));
    }
    lines
}

fn facts(row: &BoardRow, model: &Model) -> String {
    let agent = [row.harness.as_deref(), row.model.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let usage = row.usage.as_ref().map(sum).unwrap_or_default();
    let since = format!("for {}", text::age(&row.since, model.now));
    let parts = [row.workflow.clone(), row.status.clone(), since, agent, usage, row.pr_url.clone().unwrap_or_default()];
    let filled: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    format!("  {}", filled.join(" · "))
}

/// The moves that are open, and why the others are not.
fn moves(look: TerminalLook, task: &Task, width: usize) -> Vec<Line<'static>> {
    let moves = task.moves.as_deref().unwrap_or_default();
    let open: Vec<&str> = moves.iter().filter(|it| it.open).map(|it| it.to.as_str()).collect();
    let mut lines = Vec::new();
    if !open.is_empty() {
        lines.push(words(look, &format!("  can go to: {}", open.join(", ")), width));
    }
    let why = |it: &MoveShown| it.why.clone().or_else(|| it.merge.as_ref().and_then(|merge| merge.why.clone()));
    for it in moves.iter().filter(|it| !it.open || it.merge.as_ref().is_some_and(|merge| !merge.open)) {
        let kind = if it.open { "no merge" } else { "not open" };
        let line = format!("  {kind}: {}: {}", it.to, why(it).unwrap_or_default());
        lines.push(Line::styled(text::cut(&look.shown(&line), width), look.faint()));
    }
    lines
}

/// The lines of a tab.
pub(super) fn body(model: &Model, id: &str, tab: Tab, width: usize) -> Vec<Line<'static>> {
    let kind = model.kind(id);
    let owned = id.to_owned();
    let ask = match tab {
        Tab::Terminal => ScreenAsk::Screen(kind, owned),
        Tab::Diff => ScreenAsk::Changes(kind, owned),
        Tab::File => ScreenAsk::File(owned),
        Tab::Log => ScreenAsk::Log(kind, owned),
        Tab::History => ScreenAsk::History(kind, owned),
        Tab::States => ScreenAsk::Task(owned),
        Tab::Steps => match model.run_of(id) {
            Some(run) => ScreenAsk::Run(run),
            None => return vec![plain("the present state has no run")],
        },
        Tab::Usage => ScreenAsk::Usage(kind, owned),
    };
    let (look, facts) = (model.look, &model.facts);
    let shown = match tab {
        Tab::Terminal => facts.screen(&ask).map(|screen| terminal(look, screen, width)),
        Tab::Diff => facts.changes(&ask).map(|changes| {
            let title = |part: DiffPart| format!("{} — [d] shows the lines", part.title());
            let parts = DiffPart::ALL.iter().filter_map(|part| part.of(changes).map(|it| (title(*part), it)));
            parts.flat_map(|(title, part)| super::diff::files(look, &title, part, width)).collect()
        }),
        Tab::File => facts.file(&ask).map(|file| text_lines(look, &file.text, width)),
        Tab::Log => facts.log(&ask).map(|log| text_lines(look, log, width)),
        Tab::History => facts.history(&ask).map(|events| events.iter().map(|it| event(look, it, width)).collect()),
        Tab::States => facts.task(&ask).map(|task| states(look, task, width)),
        Tab::Steps => facts.run(&ask).map(|run| steps(look, run, width)),
        Tab::Usage => facts.usage(&ask).map(|usage| used(look, usage, width)),
    };
    shown.unwrap_or_else(|| absent(model, &ask))
}

fn text_lines(look: TerminalLook, text: &str, width: usize) -> Vec<Line<'static>> {
    if text.trim().is_empty() {
        return vec![plain("there is nothing in it")];
    }
    text::lines(text, super::MOST_LINES).iter().map(|line| words(look, line, width)).collect()
}

pub(super) fn terminal(look: TerminalLook, screen: &Screen, width: usize) -> Vec<Line<'static>> {
    if screen.session.is_none() {
        return vec![plain("no agent has run yet")];
    }
    let state = if screen.alive { "" } else { "the session has ended; this stood on its screen" };
    let first = (!state.is_empty()).then(|| Line::styled(state, look.faint()));
    first.into_iter().chain(screen.lines.iter().map(|line| words(look, line, width))).collect()
}

/// An event, in one line.
pub(super) fn event(look: TerminalLook, event: &EventShown, width: usize) -> Line<'static> {
    let data = event.data.as_object().into_iter().flatten();
    let data = data.filter(|(_, value)| !value.is_null() && !value.is_object() && !value.is_array());
    let data =
        data.map(|(key, value)| format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    let data = data.take(8).collect::<Vec<_>>().join(" ");
    let subject = event.subject.clone().unwrap_or_else(|| event.correlation_id.clone());
    let line = format!("{}  {:<24} {:<20} {:<10} {data}", text::clock(&event.time), event.kind, subject, event.actor);
    words(look, &line, width)
}

/// The statuses of the lifecycle, with the present one lit, and where each move leads.
fn states(look: TerminalLook, task: &Task, width: usize) -> Vec<Line<'static>> {
    let moves = task.moves.as_deref().unwrap_or_default();
    let state = |status: &String| {
        let way = moves.iter().find(|it| it.to == *status);
        match (status == &task.status, way) {
            (true, _) => Line::styled(format!(" {} {}", look.glyph(RowTone::Works), look.shown(status)), look.chosen()),
            (false, Some(way)) => {
                let more = match (&way.why, way.open) {
                    (Some(why), false) => format!("not open: {why}"),
                    _ => format!("open, by {}", way.by),
                };
                words(look, &format!("   {} {status:<20} {more}", if look.ascii { "->" } else { "→" }), width)
            }
            (false, None) => Line::styled(format!("     {}", look.shown(status)), look.faint()),
        }
    };
    task.statuses.iter().map(state).collect()
}

fn steps(look: TerminalLook, run: &Run, width: usize) -> Vec<Line<'static>> {
    run.steps.iter().map(|step| super::run::step_line(look, run, step, width)).collect()
}

fn used(look: TerminalLook, usage: &UsageShown, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![words(look, &format!("all: {}", sum(&usage.total)), width)];
    for by in &usage.by {
        let agent = [by.harness.as_deref(), by.model.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        lines.push(words(look, &format!("  {agent:<24} {}", sum(&by.sum)), width));
    }
    for attempt in &usage.attempts {
        let told = attempt.usage.as_ref().map_or_else(|| "not told".to_owned(), tokens);
        let line = format!("  {:<24} #{:<3} {told}", attempt.step, attempt.attempt);
        lines.push(words(look, &line, width));
    }
    lines.extend(usage.notes.iter().map(|note| words(look, note, width)));
    lines
}

fn tokens(usage: &StepUsage) -> String {
    let tokens = usage.total_tokens.map(|count| format!("{} tokens", text::amount(count)));
    let cost = usage.cost_usd.map(text::money);
    [tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What was used up, and how much of it is not known.
pub(super) fn sum(sum: &UsageSum) -> String {
    let tokens = sum.total_tokens.map(|count| format!("{} tokens", text::amount(count)));
    let cost = sum.cost_usd.map(text::money);
    let silent = (sum.without_cost > 0).then(|| format!("{} of {} tell no cost", sum.without_cost, sum.attempts));
    let parts: Vec<String> = [tokens, cost, silent].into_iter().flatten().collect();
    if parts.is_empty() { "nothing is told".to_owned() } else { parts.join(" · ") }
}
