//! Pictures of definitions: `sluice graph` as text, Mermaid, Graphviz and SVG.
//!
//! A definition becomes a [`Graph`], and each format draws that. Nothing here reads a file or writes one, the same
//! graph always gives the same bytes, and no name or label can break out of its place in the picture.
//!
//! Only SVG has limits, and they are those of the checker: a graph that is too large to be laid out with care is drawn
//! on a grid. Text that is too large for a picture becomes an outline, and the other two formats leave the layout to
//! their readers.

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
pub use svg::{NodeMark, inline_svg, svg};
pub use text::{TextStyle, text};

/// Why a graph is not drawn as a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphTooLarge {
    /// What there is too much of: `nodes`, `edges`, `lines between the layers`.
    pub what: &'static str,
    /// How much there is, at least.
    pub count: usize,
    pub limit: usize,
}

impl fmt::Display for GraphTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GraphTooLarge { what, count, limit } = self;
        write!(f, "the graph is too large for a picture: {count} {what}, and at most {limit} can be drawn")
    }
}

impl std::error::Error for GraphTooLarge {}
