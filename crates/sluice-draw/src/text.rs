//! Graphs for a terminal: recipes as a picture of boxes and lines, lifecycles as an outline of states and arrows.
//!
//! A picture that does not fit, or in which a line could be taken for another, is never drawn: the outline, which
//! always fits, takes its place. Nothing is refused, and no condition is left out that the model has.

mod canvas;
mod outline;
mod overview;
mod picture;

use crate::measure::clip;
use crate::model::{Graph, GraphKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    pub width: usize,
    /// Only ASCII for frames, lines and arrows. Names stay as they are.
    pub ascii: bool,
    /// Bold and dim, by escape sequences.
    pub ansi: bool,
}

impl Default for TextStyle {
    fn default() -> Self {
        TextStyle { width: 100, ascii: false, ansi: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Strong,
    Dim,
}

impl TextStyle {
    fn tone(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Dim => "2",
        };
        if self.ansi && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// `unicode`, or `ascii` where only that is wanted.
    fn sign(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }

    /// The words that this module's own signs occur in, for a terminal that has none of them.
    fn words(&self, text: &str) -> String {
        match self.ascii {
            true => text.replace('→', "->").replace('×', "x").replace('·', "-").replace('…', "~"),
            false => text.to_owned(),
        }
    }
}

pub fn text(graph: &Graph, style: &TextStyle) -> String {
    // Narrower than this, not even a name would be readable.
    let style = &TextStyle { width: style.width.max(40), ..*style };
    let about = style.words(&format!(" · {}", graph.about()));
    let title = clip(&graph.title, style.width / 2);
    let room = style.width - crate::measure::width(&title);
    let mut out = format!("{}{}\n\n", style.tone(&title, Tone::Strong), style.tone(&clip(&about, room), Tone::Dim));
    match graph.kind {
        GraphKind::Lifecycle => {
            out.push_str(&overview::overview(graph, style));
            out.push_str(&outline::outline(graph, style));
        }
        GraphKind::Recipe => {
            out.push_str(&picture::picture(graph, style).unwrap_or_else(|| outline::outline(graph, style)));
        }
    }
    out
}
