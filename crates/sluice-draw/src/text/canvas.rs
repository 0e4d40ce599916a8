//! A grid of characters on which lines join and cross by themselves.
//!
//! Lines of one net join where they meet, lines of different nets cross, and anything else that would have to share
//! a cell is reported and never drawn over in silence.

use super::{TextStyle, Tone};
use crate::measure::char_width;

const UP: u8 = 1;
const RIGHT: u8 = 2;
const DOWN: u8 = 4;
const LEFT: u8 = 8;
const ALONG: u8 = LEFT | RIGHT;
const ACROSS: u8 = UP | DOWN;

/// The signs of solid lines by the directions they lead to, from 0 to 15.
const SOLID: [char; 16] = [' ', '│', '─', '╰', '│', '│', '╭', '├', '─', '╯', '─', '┴', '╮', '┤', '┬', '┼'];
/// As [`SOLID`], in ASCII.
const ASCII: [char; 16] = [' ', '|', '-', '+', '|', '|', '+', '+', '-', '+', '-', '+', '+', '+', '+', '+'];

#[derive(Clone, Debug)]
enum CanvasCell {
    Empty,
    /// `crossed` is set when a line of another net passes under it; it must then go straight on.
    Line {
        net: usize,
        directions: u8,
        dashed: bool,
        crossed: bool,
    },
    Sign(String, Tone),
    /// The right half of a wide character.
    Covered,
}

#[derive(Debug)]
pub(super) struct Canvas {
    cells: Vec<Vec<CanvasCell>>,
    clear: bool,
}

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Canvas {
        Canvas { cells: vec![vec![CanvasCell::Empty; columns]; rows], clear: true }
    }

    /// Whether nothing had to share a cell that could not.
    pub(super) fn is_clear(&self) -> bool {
        self.clear
    }

    /// Writes `text` from `(column, row)` on, over whatever is there.
    pub(super) fn write(&mut self, column: usize, row: usize, text: &str, tone: Tone) {
        let Some(cells) = self.cells.get_mut(row) else { return };
        let mut at = column;
        for c in text.chars() {
            match char_width(c) {
                0 => {
                    if let Some(CanvasCell::Sign(sign, _)) = at.checked_sub(1).and_then(|before| cells.get_mut(before))
                    {
                        sign.push(c);
                    }
                }
                wide => {
                    for (offset, cell) in cells.iter_mut().skip(at).take(wide).enumerate() {
                        *cell = if offset == 0 { CanvasCell::Sign(c.to_string(), tone) } else { CanvasCell::Covered };
                    }
                    at += wide;
                }
            }
        }
    }

    /// Draws a line along `points`. With `open` ends it leads on, upwards at its start and downwards at its end.
    pub(super) fn line(&mut self, points: &[(usize, usize)], net: usize, dashed: bool, open: (bool, bool)) {
        if let (Some(first), true) = (points.first(), open.0) {
            self.join(*first, UP, net, dashed);
        }
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            for y in y0.min(y1)..y0.max(y1) {
                self.join((x0, y), DOWN, net, dashed);
                self.join((x0, y + 1), UP, net, dashed);
            }
            for x in x0.min(x1)..x0.max(x1) {
                self.join((x, y1), RIGHT, net, dashed);
                self.join((x + 1, y1), LEFT, net, dashed);
            }
        }
        if let (Some(last), true) = (points.last(), open.1) {
            self.join(*last, DOWN, net, dashed);
        }
    }

    fn join(&mut self, (column, row): (usize, usize), direction: u8, net: usize, dashed: bool) {
        let Some(cell) = self.cells.get_mut(row).and_then(|cells| cells.get_mut(column)) else {
            self.clear = false;
            return;
        };
        match cell {
            CanvasCell::Empty => *cell = CanvasCell::Line { net, directions: direction, dashed, crossed: false },
            CanvasCell::Line { net: other, directions, dashed: other_dashed, crossed } if *other == net => {
                *directions |= direction;
                *other_dashed &= dashed;
                self.clear &= !*crossed || *directions & ALONG == 0;
            }
            // Where lines cross, the one from top to bottom is drawn through.
            CanvasCell::Line { directions, crossed, .. } => {
                let crosses = |one: u8, other: u8| one & ALONG == 0 && other & ACROSS == 0;
                if crosses(direction, *directions) {
                    *cell = CanvasCell::Line { net, directions: direction, dashed, crossed: true };
                } else if crosses(*directions, direction) {
                    *crossed = true;
                } else {
                    self.clear = false;
                }
            }
            // Frames and heads are written after the lines; a line never ends in a text.
            CanvasCell::Sign(..) | CanvasCell::Covered => self.clear = false,
        }
    }

    /// The rows as text, without spaces at their ends.
    pub(super) fn render(&self, style: &TextStyle) -> String {
        let mut out = String::new();
        for cells in &self.cells {
            let mut line = String::new();
            let (mut run, mut run_tone) = (String::new(), Tone::Plain);
            let end = cells.iter().rposition(|cell| !matches!(cell, CanvasCell::Empty)).map_or(0, |last| last + 1);
            for cell in &cells[..end] {
                let (sign, tone) = match cell {
                    CanvasCell::Empty => (" ".to_owned(), Tone::Plain),
                    CanvasCell::Line { directions, dashed, .. } => {
                        (sign(*directions, *dashed, style).to_string(), Tone::Plain)
                    }
                    CanvasCell::Sign(sign, tone) => (sign.clone(), *tone),
                    CanvasCell::Covered => continue,
                };
                if tone != run_tone {
                    line.push_str(&style.tone(&run, run_tone));
                    run.clear();
                    run_tone = tone;
                }
                run.push_str(&sign);
            }
            line.push_str(&style.tone(&run, run_tone));
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

fn sign(directions: u8, dashed: bool, style: &TextStyle) -> char {
    let table = if style.ascii { ASCII } else { SOLID };
    let solid = table[usize::from(directions & 15)];
    match (dashed, solid) {
        (true, '─') => '╌',
        (true, '│') => '╎',
        (true, '-') => '.',
        (true, '|') => ':',
        (true | false, solid) => solid,
    }
}
