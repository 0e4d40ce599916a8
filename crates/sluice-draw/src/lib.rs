//! Pictures of definitions: `sluice graph` as text, Mermaid, Graphviz and SVG.
//!
//! A definition becomes a [`Graph`], and each format draws that. Nothing here reads a file or writes one, the same
//! graph always gives the same bytes, and no name or label can break out of its place in the picture.

mod channel;
mod dot;
mod layers;
mod layout;
mod measure;
mod mermaid;
mod model;
mod plan;
mod svg;
mod text;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use std::fmt;

pub use dot::dot;
pub use mermaid::mermaid;
pub use model::{Graph, GraphEdge, GraphKind, NodeBox};
pub use svg::svg;
pub use text::{TextStyle, text};

/// The formats that a graph can be drawn in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawFormat {
    Text,
    Mermaid,
    /// The language of Graphviz.
    Dot,
    /// A picture that stands alone.
    Svg,
}

impl DrawFormat {
    pub const ALL: [DrawFormat; 4] = [DrawFormat::Text, DrawFormat::Mermaid, DrawFormat::Dot, DrawFormat::Svg];

    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            DrawFormat::Text => "text",
            DrawFormat::Mermaid => "mermaid",
            DrawFormat::Dot => "dot",
            DrawFormat::Svg => "svg",
        }
    }
}

/// Why a graph is not drawn as a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphTooLarge {
    /// What there is too much of: `nodes`, `edges`, `lines between the layers`.
    pub what: &'static str,
    /// How much there is, at least.
    pub count: usize,
    /// How much can be drawn.
    pub limit: usize,
}

impl fmt::Display for GraphTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GraphTooLarge { what, count, limit } = self;
        write!(f, "the graph is too large for a picture: {count} {what}, and at most {limit} can be drawn")
    }
}

impl std::error::Error for GraphTooLarge {}

/// Draws `graph` in `format`; `style` matters for [`DrawFormat::SourceText`] only.
///
/// Only SVG has limits, and they are those of the checker: a graph that is too large to be laid out with care is drawn
/// on a grid. Text that is too large for a picture becomes an outline, and the other two formats leave the layout to
/// their readers.
pub fn draw(graph: &Graph, format: DrawFormat, style: &TextStyle) -> Result<String, GraphTooLarge> {
    match format {
        DrawFormat::Text => Ok(text(graph, style)),
        DrawFormat::Mermaid => Ok(mermaid(graph)),
        DrawFormat::Dot => Ok(dot(graph)),
        DrawFormat::Svg => svg(graph),
    }
}
