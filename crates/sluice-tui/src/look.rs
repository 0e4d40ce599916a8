//! How things look: shapes first, colours beside them. Sixteen colours, none with `NO_COLOR`, and only ASCII with `--ascii`.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use crate::text;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalLook {
    /// It shows ASCII alone.
    pub ascii: bool,
    /// It shows sixteen colours.
    pub colour: bool,
}

/// Whose turn it is, or how something ended: what a glyph and a colour say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowTone {
    /// A person is needed.
    Needs,
    /// It failed or died.
    Bad,
    /// It is at work.
    Works,
    /// It waits for something other than a person.
    Waits,
    /// It ended as wanted.
    Good,
    /// It is there, and says nothing.
    Quiet,
}

impl TerminalLook {
    /// The shape, which says the same as the colour.
    pub(crate) fn glyph(self, tone: RowTone) -> &'static str {
        match (tone, self.ascii) {
            (RowTone::Needs, false) => "▲",
            (RowTone::Bad, false) => "✗",
            (RowTone::Works, false) => "●",
            (RowTone::Waits, false) => "◌",
            (RowTone::Good, false) => "✓",
            (RowTone::Quiet, false) => "○",
            (RowTone::Needs, true) => "!",
            (RowTone::Bad, true) => "x",
            (RowTone::Works, true) => "*",
            (RowTone::Waits, true) => ".",
            (RowTone::Good, true) => "+",
            (RowTone::Quiet, true) => "o",
        }
    }

    pub(crate) fn tone(self, tone: RowTone) -> Style {
        let colour = match tone {
            RowTone::Needs => Color::Yellow,
            RowTone::Bad => Color::Red,
            RowTone::Works => Color::Green,
            RowTone::Waits => Color::Cyan,
            RowTone::Good => Color::Green,
            RowTone::Quiet => Color::Reset,
        };
        self.ink(colour)
    }

    pub(crate) fn ink(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// What is less important; without colours it is like the rest.
    pub(crate) fn faint(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }

    pub(crate) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The line that is chosen. Reversing needs no colour.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A text of another's, harmless.
    pub(crate) fn shown(self, words: &str) -> String {
        text::line(words)
    }

    /// The line between two panes, or below a head.
    pub(crate) fn rule(self) -> &'static str {
        if self.ascii { "-" } else { "─" }
    }

    pub(crate) fn bar(self) -> &'static str {
        if self.ascii { "|" } else { "│" }
    }

    /// How full something is, in eight steps.
    pub(crate) fn level(self, eighths: u8) -> char {
        const HIGH: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '_', '.', '.', '-', '-', '=', '=', '#'];
        let at = usize::from(eighths.min(8));
        if self.ascii { ASCII[at] } else { HIGH[at] }
    }

    /// A bar of time, filled.
    pub(crate) fn filled(self) -> char {
        if self.ascii { '#' } else { '█' }
    }
}

/// Replaces whatever is no ASCII, and takes away every colour, where the terminal shall not show them. It is done once, at the end
/// of drawing, so that no screen can forget it.
pub(crate) fn finish(look: TerminalLook, buffer: &mut Buffer) {
    for cell in buffer.content.iter_mut() {
        if look.ascii && !cell.symbol().is_ascii() {
            let plain = text::plain(cell.symbol());
            cell.set_symbol(plain.get(..1).unwrap_or(" "));
        }
        if !look.colour {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}
