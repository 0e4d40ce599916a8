//! What stands on the screen of a session, as text: of a living one as its window shows it, else as its recorded output leaves
//! a screen. No character of it is a command to a terminal.

use std::num::NonZeroU16;

use super::record::{SessionId, SessionPlace};
use super::{SessionFailure, SessionStream, Sessions};
use crate::redact::shown_of;
use crate::tmux::TmuxScreen;

/// The most lines and columns of a screen that are shown.
const MOST_ROWS: u16 = 200;
const MOST_COLUMNS: u16 = 400;

/// Bytes of recorded output from which a screen is made. A program that draws a whole screen does so again within them.
const WHOLE_SCREEN: usize = 256 << 10;
/// The same where only its last line is wanted.
pub const LAST_LINE: usize = 32 << 10;

/// The size of a terminal where none is known.
const USUAL: (u16, u16) = (50, 200);

/// A screen, as a person sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionScreen {
    pub rows: u16,
    pub columns: u16,
    /// From the top, without spaces at their ends.
    pub lines: Vec<String>,
    /// Line and column of the cursor, from 0; none if it is hidden, or nothing is to be seen of it.
    pub cursor: Option<(u16, u16)>,
}

impl SessionScreen {
    fn of(rows: u16, columns: u16, lines: impl Iterator<Item = String>, cursor: Option<(u16, u16)>) -> SessionScreen {
        let (rows, columns) = (rows.min(MOST_ROWS), columns.min(MOST_COLUMNS));
        let plain = |line: String| {
            let shown: String = line.chars().filter(|it| !it.is_control()).take(columns.into()).collect();
            shown.trim_end().to_owned()
        };
        let mut lines: Vec<String> = lines.take(rows.into()).map(plain).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let cursor = cursor.filter(|(row, column)| *row < rows && *column <= columns);
        SessionScreen { rows, columns, lines, cursor }
    }

    /// The lowest line in which something can be read.
    pub fn last_line(&self) -> Option<&str> {
        let says = |line: &&String| line.chars().filter(|it| it.is_alphanumeric()).count() > 2;
        self.lines.iter().rfind(says).map(|line| line.trim())
    }
}

impl Sessions {
    /// What stands on the screen of a session: in its window if it lives and has one, else as its output leaves it.
    pub fn look(&self, id: &SessionId) -> Result<SessionScreen, SessionFailure> {
        if let Ok((tmux, pane)) = self.shown(id)
            && let Ok(TmuxScreen { rows, columns, text, cursor }) = tmux.look(&pane)
        {
            return Ok(SessionScreen::of(rows, columns, text.lines().map(str::to_owned), cursor));
        }
        self.replayed(id, WHOLE_SCREEN)
    }

    /// The screen as the last so many bytes of the recorded output leave it. It asks no program, and costs the same however
    /// long a session lives.
    pub fn replayed(&self, id: &SessionId, bytes: usize) -> Result<SessionScreen, SessionFailure> {
        let size = match self.known(id)?.spec().ok().flatten().map(|spec| spec.place) {
            Some(SessionPlace::Terminal { rows, columns, .. }) => Some((rows, columns)),
            Some(SessionPlace::Headless { .. }) | None => None,
        };
        let tail = |stream| self.output_tail(id, stream, bytes).map(|chunk| chunk.bytes);
        let output = tail(SessionStream::Output)?;
        match size {
            Some(size) => Ok(replay(size, &output)),
            None => {
                let printed = [output, tail(SessionStream::Errors)?].concat();
                Ok(end_of(&shown_of(&printed)))
            }
        }
    }
}

/// The screen that a terminal of this size has after these bytes.
fn replay((rows, columns): (u16, u16), bytes: &[u8]) -> SessionScreen {
    let size = |wanted: u16, most: u16| NonZeroU16::new(wanted.min(most)).unwrap_or(NonZeroU16::MIN);
    let (rows, columns) = (size(rows, MOST_ROWS), size(columns, MOST_COLUMNS));
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(bytes);
    let screen = parser.screen();
    let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
    SessionScreen::of(rows.get(), columns.get(), screen.rows(0, columns.get()), cursor)
}

/// The end of what a program printed that has no terminal.
fn end_of(printed: &str) -> SessionScreen {
    let (rows, columns) = USUAL;
    let lines: Vec<&str> = printed.lines().collect();
    let first = lines.len().saturating_sub(rows.into());
    SessionScreen::of(rows, columns, lines[first..].iter().map(|line| (*line).to_owned()), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_draws_leaves_what_it_has_drawn_last() {
        let drawn = b"\x1b[2J\x1b[Hfirst\r\n\x1b[31msecond\x1b[0m \x1b]0;title\x07\x1b[2;1Hother!\x1b[10;3Hlow";
        let screen = replay((24, 80), drawn);
        assert_eq!(
            screen.lines.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
            ["first", "other!", "  low"]
        );
        assert_eq!((screen.rows, screen.columns, screen.cursor), (24, 80, Some((9, 5))));
        assert_eq!(screen.last_line(), Some("low"));
    }

    #[test]
    fn nothing_of_it_is_a_command_to_a_terminal() {
        let hostile = "a\u{1b}[31mb\u{9b}31mc\u{7}\u{8}d\u{1b}]52;c;Zm9v\u{7}e\u{1b}Pq#0\u{1b}\\f";
        for screen in [replay((5, 40), hostile.as_bytes()), end_of(&shown_of(hostile.as_bytes()))] {
            assert!(screen.lines.iter().all(|line| !line.chars().any(char::is_control)), "{screen:?}");
        }
    }

    #[test]
    fn a_screen_has_a_greatest_size() {
        let screen = replay((u16::MAX, u16::MAX), "x".repeat(3000).as_bytes());
        assert_eq!((screen.rows, screen.columns, screen.lines[0].len()), (MOST_ROWS, MOST_COLUMNS, 400));
        assert_eq!(replay((0, 0), b"abc").lines.len(), 1);
    }
}
