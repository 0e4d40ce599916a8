//! What stands over a screen: help, a look at what waits, a line of words, a form, a question.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear};

use super::{plain, put, row, span, words};
use crate::keys::{self, TABLE};
use crate::model::asking::{Confirm, Form, LinePrompt, Purpose};
use crate::model::facts::ScreenAsk;
use crate::model::{Model, Overlay, commands, holds};
use crate::text;

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model) {
    match &model.overlay {
        None => {}
        Some(Overlay::Help { scroll }) => {
            let lines = help(model);
            let wanted = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
            let place = middle(area, 76, wanted);
            let room = usize::from(place.height.saturating_sub(2));
            let first = (*scroll).min(lines.len().saturating_sub(room));
            let title = format!("{} keys", model.scope().title());
            boxed(frame, place, model, &title, lines.into_iter().skip(first).collect());
        }
        Some(Overlay::Peek { id, attention }) => {
            let height = (area.height * 3 / 5).max(8);
            let place = Rect { y: area.y + area.height.saturating_sub(height + 2), height, ..area };
            let size = (usize::from(place.width).saturating_sub(2), usize::from(height) - 2);
            let lines = peek(model, id, attention.as_deref(), size);
            boxed(frame, place, model, &super::super::model::name(model, id), lines);
        }
        Some(Overlay::Prompt(prompt)) => line(frame, area, model, prompt),
        Some(Overlay::Form(form)) => fields(frame, area, model, form),
        Some(Overlay::Confirm(confirm)) => {
            let text = question(model, confirm, usize::from(area.width));
            put(frame, row(area, area.height - 2), vec![Line::styled(text, model.look.title())]);
            // No other key does anything now.
            put(frame, row(area, area.height - 1), vec![Line::default()]);
        }
    }
}

/// The question before something grave. The keys are always seen: a long name is cut, and the sentence goes where there is no room.
fn question(model: &Model, confirm: &Confirm, width: usize) -> String {
    const KEYS: &str = "[y] yes, any other key: no";
    let whole = format!("? {} {KEYS}", confirm.outcome);
    let ends = [whole, format!("? {KEYS}"), "? [y]".to_owned()];
    let what = model.look.shown(&confirm.what);
    let needed = text::width(&what).min(LEAST_NAMED);
    let fits = |end: &&String| text::width(end) + needed <= width;
    let end = ends.iter().find(fits).unwrap_or(&ends[2]);
    format!("{}{end}", text::cut(&what, width.saturating_sub(text::width(end))))
}

/// The columns that what is asked about has at least, before the sentence after it is left out.
const LEAST_NAMED: usize = 16;

/// A place of so many columns and lines in the middle.
fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height.saturating_sub(2)));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

fn boxed(frame: &mut Frame, area: Rect, model: &Model, title: &str, lines: Vec<Line<'static>>) {
    let title = text::cut(&model.look.shown(title), usize::from(area.width).saturating_sub(6));
    let block = Block::bordered().border_type(BorderType::Plain).title(format!(" {title} "));
    frame.render_widget(Clear, area);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    put(frame, inner, lines);
}

/// Every key of this screen; those that cannot be used now are faint, and say so.
pub(super) fn help(model: &Model) -> Vec<Line<'static>> {
    let scope = model.scope();
    let mut lines: Vec<Line> = Vec::new();
    for binding in TABLE.iter().filter(|binding| binding.scopes.contains(&scope)) {
        let key = text::fit(&keys::label(binding.key), 10);
        let line = match holds(model, binding) {
            true => Line::from(vec![span(key, model.look.title()), Span::raw(binding.help)]),
            false => Line::styled(format!("{key}{} (not now)", binding.help), model.look.faint()),
        };
        lines.push(line);
    }
    lines.push(Line::default());
    lines.extend(commands().iter().map(|(name, help)| plain(format!("{} {help}", text::fit(&format!(":{name}"), 12)))));
    lines
}

/// What waits, what can be answered, and the end of the screen.
fn peek(model: &Model, id: &str, attention: Option<&str>, (width, height): (usize, usize)) -> Vec<Line<'static>> {
    let look = model.look;
    let mut lines = Vec::new();
    let row = model.board.as_ref().and_then(|board| board.row(id));
    let ask = ScreenAsk::Screen(model.kind(id), id.to_owned());
    match row.and_then(|row| row.attention.as_ref()) {
        Some(note) if Some(note.id.as_str()) != attention => {
            let text = format!("something else waits now: {}: {}", note.reason, note.text);
            lines.extend(text::wrap(&text, width).into_iter().take(4).map(plain));
            lines.push(plain("[q] and [Space] show it with its options"));
        }
        Some(note) => {
            let text = format!("{}: {}", note.reason, note.text);
            lines.extend(text::wrap(&text, width).into_iter().take(4).map(plain));
            lines.extend(super::inbox::options(look, &note.choices, width));
        }
        None => lines.extend(row.map(|row| words(look, &format!("{} · {}", row.status, row.text), width))),
    }
    lines.push(Line::styled(look.rule().repeat(width), look.faint()));
    let letter = model
        .facts
        .inbox(&ScreenAsk::Inbox)
        .and_then(|letters| letters.iter().find(|it| it.task.as_deref() == Some(id) || it.run.as_deref() == Some(id)));
    let room = height.saturating_sub(lines.len());
    let shown: Vec<String> = match (model.facts.screen(&ask), letter) {
        (Some(screen), _) if !screen.lines.is_empty() => screen.lines.clone(),
        (_, Some(letter)) => {
            let printed = letter.printed.iter().flat_map(|printed| printed.lines()).map(str::to_owned);
            letter.evidence.iter().cloned().chain(printed).collect()
        }
        _ => Vec::new(),
    };
    let skipped = shown.len().saturating_sub(room);
    lines.extend(shown.iter().skip(skipped).map(|line| words(look, line, width)));
    if shown.is_empty() && model.facts.screen(&ask).is_none() {
        lines.extend(super::absent(model, &ask));
    }
    lines
}

/// The line in which a person types, at the place of the footer.
fn line(frame: &mut Frame, area: Rect, model: &Model, prompt: &LinePrompt) {
    let width = usize::from(area.width);
    let title = match prompt.purpose {
        Purpose::Command => ":".to_owned(),
        Purpose::Filter => "/".to_owned(),
        Purpose::RequestChanges(_)
        | Purpose::Nudge(_)
        | Purpose::Answer { .. }
        | Purpose::Comment(..)
        | Purpose::Restore(_)
        | Purpose::SaveView => format!("{} > ", text::cut(&model.look.shown(&prompt.purpose.title()), width / 2)),
    };
    let room = width.saturating_sub(text::width(&title) + 1).max(1);
    let skipped = prompt.input.visual_scroll(room);
    let typed: String = model.look.shown(prompt.input.value()).chars().skip(skipped).collect();
    let shown = text::cut(&typed, room);
    let place = row(area, area.height - 1);
    put(frame, place, vec![Line::from(vec![span(title.clone(), model.look.title()), Span::raw(shown)])]);
    let column = text::width(&title) + prompt.input.visual_cursor().saturating_sub(skipped);
    let column = u16::try_from(column.min(width - 1)).unwrap_or_default();
    frame.set_cursor_position(Position { x: place.x + column, y: place.y });
    if prompt.purpose == Purpose::Command {
        let begun = prompt.input.value().trim().to_owned();
        let fits = commands().iter().filter(|(name, _)| name.starts_with(&begun));
        let names = fits.map(|(name, _)| *name).collect::<Vec<_>>().join("  ");
        put(frame, row(area, area.height - 2), vec![Line::styled(text::cut(&names, width), model.look.faint())]);
    }
}

fn fields(frame: &mut Frame, area: Rect, model: &Model, form: &Form) {
    let look = model.look;
    let height = u16::try_from(form.fields.len()).unwrap_or(u16::MAX).saturating_add(4);
    let place = middle(area, 70, height);
    let width = usize::from(place.width).saturating_sub(2);
    let names = form.fields.iter().map(|field| text::width(&field.name)).max().unwrap_or_default().min(20);
    let room = width.saturating_sub(names + 6);
    let shown = super::window(form.at, form.fields.len(), usize::from(place.height).saturating_sub(4).max(1));
    let first = shown.start;
    let field = |index: usize| {
        let field = &form.fields[index];
        let mark = if field.is_required { "*" } else { " " };
        let name = text::fit(&look.shown(&field.name), names);
        let skipped = if index == form.at { field.input.visual_scroll(room) } else { 0 };
        let value: String = look.shown(field.input.value()).chars().skip(skipped).collect();
        let more = if field.choices.len() > 1 && index == form.at { "  (Left, Right)" } else { "" };
        let line = Line::from(format!(" {mark} {name} : {}{more}", text::cut(&value, room)));
        if index == form.at { line.style(look.title()) } else { line }
    };
    let mut lines: Vec<Line> = shown.map(field).collect();
    lines.push(Line::default());
    lines.push(Line::styled(" Enter: on, at the last field: send · Esc: leave · * is needed", look.faint()));
    boxed(frame, place, model, &form.title, lines);
    if let Some(field) = form.fields.get(form.at) {
        let column = names + 6 + field.input.visual_cursor().saturating_sub(field.input.visual_scroll(room));
        let x = place.x + 1 + u16::try_from(column.min(width.saturating_sub(1))).unwrap_or_default();
        let y = place.y + 1 + u16::try_from(form.at - first).unwrap_or_default();
        frame.set_cursor_position(Position { x, y });
    }
}
