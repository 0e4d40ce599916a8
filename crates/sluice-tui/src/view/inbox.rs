//! The inbox: what waits for a person, one at a time, like mail.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use sluice_api::attention::Attention;

use super::{absent, plain, put, span, words};
use crate::look::{RowTone, TerminalLook};
use crate::model::facts::ScreenAsk;
use crate::model::{DashboardScreen, Model};
use crate::text;

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model) {
    let width = usize::from(area.width);
    let look = model.look;
    let Some(letters) = model.facts.inbox(&ScreenAsk::Inbox) else {
        return put(frame, area, absent(model, &ScreenAsk::Inbox));
    };
    let Some(letter) = model.letter() else {
        let is_begun = !matches!(model.screen(), DashboardScreen::Inbox { at: None, .. });
        let words = match letters.len() {
            0 => " Nothing waits for you.".to_owned(),
            _ if !is_begun => " asking the engine".to_owned(),
            1 => " This is answered or has passed. [j] shows the other that waits.".to_owned(),
            count => format!(" This is answered or has passed. [j] shows the next of {count} that wait."),
        };
        return put(frame, area, vec![Line::default(), Line::styled(text::cut(&words, width), look.faint())]);
    };
    let at = letters.iter().position(|it| it.id == letter.id).unwrap_or_default();
    let mut lines = vec![Line::from(vec![
        span(format!("{} ", super::title(model)), look.title()),
        span(format!("{} of {}", at + 1, letters.len()), look.faint()),
    ])];
    lines.push(Line::default());
    lines.extend(told(model, letter, width));
    put(frame, area, lines);
}

/// One thing that waits: what it is about, why, what can be answered, and what was printed last.
fn told(model: &Model, letter: &Attention, width: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let of = letter.project.as_ref().map(|project| format!(" of {project}")).unwrap_or_default();
    let step = letter.step.as_ref().map(|step| format!(", step {step}")).unwrap_or_default();
    let title = format!("{}{of}{step}", letter.title);
    let since = text::age(&letter.since, model.now);
    let mut lines = vec![
        Line::from(vec![
            span(format!(" {} ", look.glyph(RowTone::Needs)), look.tone(RowTone::Needs)),
            span(text::cut(&look.shown(&title), width.saturating_sub(4)), look.title()),
        ]),
        words(look, &format!("   {} · waits {since} · said by {}", letter.reason, letter.said_by), width),
        Line::default(),
    ];
    lines.extend(
        text::wrap(&letter.text, width.saturating_sub(4)).into_iter().take(8).map(|it| plain(format!("   {it}"))),
    );
    lines.push(Line::default());
    lines.extend(options(look, &letter.options, width));
    if let (Some(default), Some(deadline)) = (&letter.default, &letter.deadline) {
        lines.push(words(look, &format!("   `{default}` is the answer at {deadline}"), width));
    }
    lines.push(Line::default());
    let printed = letter.printed.iter().flat_map(|printed| printed.lines());
    let evidence = letter.evidence.iter().map(String::as_str).chain(printed);
    lines.extend(evidence.take(200).map(|line| words(look, &format!("   {} {line}", look.bar()), width)));
    lines
}

/// What can be answered, with the number that chooses it.
pub(super) fn options(look: TerminalLook, options: &[String], width: usize) -> Vec<Line<'static>> {
    let option = |(at, option): (usize, &String)| words(look, &format!("   [{}] {option}", at + 1), width);
    options.iter().take(9).enumerate().map(option).collect()
}
