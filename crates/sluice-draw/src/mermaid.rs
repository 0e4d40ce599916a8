//! Graphs in Mermaid: `stateDiagram-v2` for lifecycles, `flowchart TD` for recipes.
//!
//! Names never become identifiers, because `end`, hyphens and keywords break Mermaid's grammars; each node is
//! called by its number and shows its name. Whatever could mean something to a grammar is written as an entity.

use std::fmt::Write as _;

use crate::model::{Graph, GraphEdge, GraphKind, NodeBox};

pub fn mermaid(graph: &Graph) -> String {
    let mut out = format!("---\ntitle: \"{}\"\n---\n", yaml(&graph.title));
    match graph.kind {
        GraphKind::Lifecycle => state_diagram(&mut out, graph),
        GraphKind::Recipe => flowchart(&mut out, graph),
    }
    out
}

fn state_diagram(out: &mut String, graph: &Graph) {
    out.push_str("stateDiagram-v2\n    direction TB\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        line(out, format_args!("state \"{}\" as s{index}", escaped(&node.name)));
        for detail in &node.details {
            line(out, format_args!("s{index} : {}", escaped(detail)));
        }
    }
    for index in places(graph, |node| node.initial) {
        line(out, format_args!("[*] --> s{index}"));
    }
    for edge in &graph.edges {
        let label = label(edge, " ");
        let colon = if label.is_empty() { "" } else { " : " };
        line(out, format_args!("s{} --> s{}{colon}{label}", edge.from, edge.to));
    }
    for index in places(graph, |node| node.terminal) {
        line(out, format_args!("s{index} --> [*]"));
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        for note in &node.notes {
            line(out, format_args!("note right of s{index} : {}", escaped(note)));
        }
    }
}

fn flowchart(out: &mut String, graph: &Graph) {
    out.push_str("flowchart TD\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        let details: String = node.details.iter().map(|detail| format!("<br/>{}", escaped(detail))).collect();
        line(out, format_args!("n{index}(\"<b>{}</b>{details}\")", escaped(&node.name)));
    }
    for edge in &graph.edges {
        let label = label(edge, "<br/>");
        let quoted = if label.is_empty() { label } else { format!("|\"{label}\"|") };
        let arrow = if edge.back { "-.->" } else { "-->" };
        line(out, format_args!("n{} {arrow}{quoted} n{}", edge.from, edge.to));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "    {text}");
}

fn places(graph: &Graph, test: impl Fn(&NodeBox) -> bool) -> impl Iterator<Item = usize> {
    graph.nodes.iter().enumerate().filter(move |(_, node)| test(node)).map(|(index, _)| index)
}

fn label(edge: &GraphEdge, joiner: &str) -> String {
    edge.label().into_iter().map(escaped).collect::<Vec<_>>().join(joiner)
}

/// `text` with every character as an entity that Mermaid, its markdown or HTML could take for its own.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for (place, c) in text.char_indices() {
        let plain = match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | ',' | '/' | '\'' | '!' | '?' | '_' | '=' => true,
            // `1. x` and `- x` are lists to Mermaid, which it refuses.
            '.' => !before.is_ascii_digit(),
            '-' => place > 0 && before != ' ',
            c => !c.is_ascii() && !c.is_control(),
        };
        match plain {
            true => out.push(c),
            false => {
                let _ = write!(out, "#{};", u32::from(c));
            }
        }
        before = c;
    }
    out
}

fn yaml(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_see_no_signs() {
        assert_eq!(
            escaped("a: \"b\"; <c> #d [e]{f}|g|"),
            "a#58; #34;b#34;#59; #60;c#62; #35;d #91;e#93;#123;f#125;#124;g#124;"
        );
        assert_eq!(escaped("1. agent-review"), "1#46; agent-review");
        assert_eq!(escaped("- x\n%%y"), "#45; x#10;#37;#37;y");
    }
}
