//! Graphs as SVG that stands alone: it loads no font, runs no script and follows the reader's light or dark scheme.
//!
//! The places come from the [`GraphPlan`], so boxes, lines and labels never overlap; what is too large for a plan is drawn
//! on a grid instead, by [`large`]. Text is escaped here and nowhere else, and no text of a definition becomes
//! anything but text.

mod large;
mod paint;

use std::fmt::Write as _;

use crate::GraphTooLarge;
use crate::measure::width;
use crate::model::{Graph, NodeBox};
use crate::plan::{GraphPlan, GridRow};
use paint::SvgPage;

const COLUMN: f64 = 7.0;
const MARGIN: f64 = 24.0;
const HEADER: f64 = 52.0;
/// The margin of a picture inside a page.
const INSET: f64 = 4.0;

/// Colours are stated as rules and not as variables, which some renderers do not know.
const STYLE: &str = "\
text { font-family: ui-sans-serif, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; }
.page { fill: #ffffff; } .halo { stroke: #ffffff; } .pill { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; }
.about { font-size: 12px; fill: #59636e; }
.box { fill: #f6f8fa; stroke: #8c959f; stroke-width: 1.25; } .inner { fill: none; stroke: #8c959f; }
.name { font-size: 13.5px; font-weight: 600; fill: #1f2328; text-anchor: middle; }
.detail { font-size: 11.5px; fill: #59636e; text-anchor: middle; }
.wire { fill: none; stroke: #6e7781; stroke-width: 1.4; } .head { fill: #6e7781; }
.halo { fill: none; stroke-width: 6; }
.back { stroke: #9a6700; stroke-dasharray: 5 4; } .back-head { fill: #9a6700; }
.label { font-size: 11.5px; fill: #424a53; text-anchor: middle; } .beside { text-anchor: start; fill: #7d4e00; }
.start { fill: #0969da; } .first { stroke: #0969da; }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; } .halo { stroke: #0d1117; } .pill { fill: #0d1117; }
.title, .name { fill: #e6edf3; } .about, .detail { fill: #9198a1; }
.box { fill: #161b22; stroke: #6e7681; } .inner { stroke: #6e7681; }
.wire { stroke: #8b949e; } .head { fill: #8b949e; } .back { stroke: #d29922; } .back-head { fill: #d29922; }
.label { fill: #c9d1d9; } .beside { fill: #e3b341; } .start { fill: #4493f8; } .first { stroke: #4493f8; }
}
";

/// What a page says about a box beside what the definition says: how it stands now, and where a click on it leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMark {
    /// A class for the style of the page; none when it is empty.
    pub class: &'static str,
    /// An address; none when the box leads nowhere.
    pub link: Option<String>,
    /// What is said when the pointer rests on the box, before its notes.
    pub about: String,
}

pub fn svg(graph: &Graph) -> Result<String, GraphTooLarge> {
    let plain = vec![NodeMark::default(); graph.nodes.len()];
    let (body, size, style) = drawn(graph, &plain)?;
    Ok(framed(graph, size, style, &body))
}

/// The picture for inside a page: without a title, a background and rules of its own, because a page that allows no inline
/// style has them in its style sheet. `marks` has a mark for each node, in their order.
pub fn inline_svg(graph: &Graph, marks: &[NodeMark]) -> Result<String, GraphTooLarge> {
    let (body, (wide, high), _) = drawn(graph, marks)?;
    let (wide, high) = (wide + 2.0 * INSET, high + 2.0 * INSET);
    let label = escaped(&format!("{}: {}", graph.title, graph.about()));
    Ok(format!(
        "<svg class=\"graph\" role=\"group\" aria-label=\"{label}\" width=\"{wide}\" height=\"{high}\" \
         viewBox=\"0 0 {wide} {high}\">\n<g transform=\"translate({INSET} {INSET})\">\n{body}</g>\n</svg>\n"
    ))
}

/// The boxes and lines, their size, and the rules that they need beside the usual ones.
fn drawn(graph: &Graph, marks: &[NodeMark]) -> Result<(String, (f64, f64), &'static str), GraphTooLarge> {
    let Ok(plan) = GraphPlan::new(graph, true) else { return large::drawn(graph, marks) };
    let page = SvgPage::new(&plan);
    let mut body = String::new();
    page.wires(&mut body, &plan);
    page.boxes(&mut body, graph, &plan, marks);
    page.labels(&mut body, &plan);
    Ok((body, (plan.columns as f64 * COLUMN, page.height()), ""))
}

/// Opens the group of a box, with its mark; what closes it again.
fn open_node(out: &mut String, node: &NodeBox, mark: Option<&NodeMark>, title: &str) -> &'static str {
    let plain = NodeMark::default();
    let NodeMark { class, link, about } = mark.unwrap_or(&plain);
    match class.is_empty() {
        true => out.push_str("<g>"),
        false => {
            let _ = write!(out, "<g class=\"node {class}\">");
        }
    }
    let close = match link {
        None => "</g>\n",
        Some(link) => {
            let name = escaped(&[node.name.as_str(), about].join(", "));
            let _ = write!(out, "<a href=\"{}\" aria-label=\"{}\">", escaped(link), name.trim_end_matches(", "));
            "</a></g>\n"
        }
    };
    let said: Vec<&str> = [about.as_str(), title].into_iter().filter(|text| !text.is_empty()).collect();
    if !said.is_empty() {
        let _ = write!(out, "<title>{}</title>", escaped(&said.join("; ")));
    }
    close
}

/// The whole picture around `body`, which is as wide and as high as `size`.
fn framed(graph: &Graph, size: (f64, f64), more_style: &str, body: &str) -> String {
    let heading = (width(&graph.title) as f64 * 9.5).max(width(&graph.about()) as f64 * 6.3);
    let wide = size.0.max(heading) + 2.0 * MARGIN;
    let high = size.1 + HEADER + 2.0 * MARGIN;
    let (title, about) = (escaped(&graph.title), escaped(&graph.about()));
    let mut out = String::with_capacity(body.len() + 4096);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"t d\" \
         width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\">"
    );
    let _ = writeln!(out, "<title id=\"t\">{title}</title>\n<desc id=\"d\">{about}</desc>");
    let _ = writeln!(out, "<style>\n{STYLE}{more_style}</style>");
    let _ = writeln!(out, "<rect class=\"page\" width=\"{wide}\" height=\"{high}\" rx=\"10\"/>");
    let _ = writeln!(out, "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{title}</text>", MARGIN + 14.0);
    let _ = writeln!(out, "<text class=\"about\" x=\"{MARGIN}\" y=\"{}\">{about}</text>", MARGIN + 34.0);
    let _ = writeln!(out, "<g transform=\"translate({MARGIN} {})\">", MARGIN + HEADER);
    out.push_str(body);
    out.push_str("</g>\n</svg>\n");
    out
}

fn height(row: GridRow) -> f64 {
    match row {
        GridRow::Channel => 16.0,
        GridRow::Label => 16.0,
        GridRow::Arrow => 24.0,
        GridRow::Border => 8.0,
        GridRow::Content => 17.0,
        GridRow::Blank => 20.0,
    }
}

/// The frame of a box, doubled where a task ends.
fn frame(out: &mut String, node: &NodeBox, starts: bool, (left, top): (f64, f64), (wide, high): (f64, f64)) {
    let mut rect = |class: &str, inset: f64, radius: f64| {
        let (x, y, width, height) = (left + inset, top + inset, wide - 2.0 * inset, high - 2.0 * inset);
        let _ = write!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>"
        );
    };
    rect(if starts { "box first" } else { "box" }, 0.0, 8.0);
    if node.terminal {
        rect("inner", 3.0, 5.5);
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
