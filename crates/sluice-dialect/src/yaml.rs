//! Reads YAML 1.2 into the tree.
//!
//! The events of `granit-parser` come in, and a stack of open lists and tables grows and shrinks with them. There is
//! no recursion, and every limit is checked before anything is kept. Merge keys (`<<`) are keys like others, and
//! nothing is ever guessed from the look of a quoted text. What a scalar is stands in [`scalar`], and what a syntax
//! error means in [`fault`].

mod alias;
mod fault;
mod scalar;
#[cfg(test)]
pub(crate) mod tests;

use crate::finding::{SyntaxFindings, duplicate, quoted, too_deep};
use crate::read::ParsedFile;
use crate::tree::{DEEPEST, MOST_NODES, Node, NodeValue, TableEntry};
use alias::Anchors;
use granit_parser::{Event, Options, Parser, ScalarStyle, Tag, options};
use scalar::YamlScalar;
use sluice_core::problem::{Code, Diagnosis};
use sluice_core::span::{FileId, Span, SpannedValue};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// Reads `text`. The node is none for a file without a document, such as an empty one.
pub(crate) fn read(file: FileId, text: &str) -> ParsedFile {
    let mut builder = YamlBuilder::new(file, text);
    for event in Parser::new_from_str_with_options(text, parser_options()) {
        let go_on = match event {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => {
                builder.findings.add(fault::problem(file, text, &error));
                false
            }
        };
        if !go_on {
            break;
        }
    }
    builder.findings.reading(builder.root)
}

/// The parser keeps its own stacks, one for brackets and one for indentation; both stay small.
fn parser_options() -> Options {
    options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    }
}

/// A list or table that is not closed yet.
struct OpenCollection {
    start: usize,
    end: usize,
    anchor: usize,
    content: CollectionContent,
}

enum CollectionContent {
    List(Vec<Node>),
    Table { entries: Vec<TableEntry>, key: PendingKey },
}

enum PendingKey {
    /// The next value is a key.
    Awaited,
    /// The next value belongs to this key.
    Named(SpannedValue<String>),
    /// The next value belongs to a key that cannot be used.
    Unusable,
}

struct YamlBuilder<'text> {
    file: FileId,
    text: &'text str,
    findings: SyntaxFindings,
    open: Vec<OpenCollection>,
    anchors: Anchors,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    /// Where the last event ended, to find what stands between two events.
    last_end: usize,
}

impl<'text> YamlBuilder<'text> {
    fn new(file: FileId, text: &'text str) -> Self {
        YamlBuilder {
            file,
            text,
            findings: SyntaxFindings::new(file),
            open: Vec::new(),
            anchors: Anchors::default(),
            root: None,
            documents: 0,
            nodes: 0,
            last_end: 0,
        }
    }

    /// Takes one event. False ends the reading.
    fn event(&mut self, event: Event<'_>, span: granit_parser::Span) -> bool {
        let range = self.range(&span);
        let tag = span.tag_span().map(|tag| self.range(&tag));
        let go_on = match event {
            Event::DocumentStart(..) => self.document(range.clone()),
            Event::Scalar(value, style, anchor, kind) => {
                let kind = kind.as_deref().map(|kind| (kind, tag.unwrap_or(range.clone())));
                let node = self.scalar(&value, style, range.clone(), kind);
                self.counted(range.clone()) && self.anchored(anchor, node)
            }
            Event::SequenceStart(_, anchor, kind) => {
                self.collection_tag("seq", kind, tag);
                self.opened(range.clone(), anchor, CollectionContent::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, kind) => {
                self.collection_tag("map", kind, tag);
                let content = CollectionContent::Table { entries: Vec::new(), key: PendingKey::Awaited };
                self.opened(range.clone(), anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.closed(range.clone()),
            Event::Alias(id) => self.alias(id, range.clone()),
            Event::UnresolvedAlias(name) => self.unknown_alias(&name, range.clone()),
            // The rest is the frame of the stream; the enum is the library's and may grow.
            _ => true,
        };
        self.last_end = range.end;
        go_on
    }

    /// The bytes of `span`, in the text and on character borders whatever the library says.
    fn range(&self, span: &granit_parser::Span) -> Range<usize> {
        let range = span.byte_range().unwrap_or_default();
        let start = self.text.floor_char_boundary(range.start);
        start..self.text.floor_char_boundary(range.end).max(start)
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, range)
    }

    fn document(&mut self, range: Range<usize>) -> bool {
        self.documents += 1;
        if self.documents > 1 {
            let problem = Diagnosis::new(Code::Syntax, self.span(range), "a second document starts here")
                .help("a file holds one definition; put the other one in a file of its own");
            self.findings.add(problem);
        }
        self.documents == 1
    }

    fn scalar(
        &mut self,
        value: &str,
        style: ScalarStyle,
        range: Range<usize>,
        tag: Option<(&Tag, Range<usize>)>,
    ) -> Node {
        let scalar = YamlScalar { file: self.file, text: self.text, value, style, range, gap: self.last_end };
        let (node, problem) = scalar.node(tag);
        if let Some(problem) = problem {
            self.findings.add(problem);
        }
        node
    }

    /// A list may be tagged as a list and a table as a table, to no effect.
    fn collection_tag(&mut self, own: &str, tag: Option<Cow<'_, Tag>>, range: Option<Range<usize>>) {
        if let (Some(tag), Some(range)) = (tag, range)
            && tag.core_suffix() != Some(own)
        {
            let problem = scalar::bad_tag(self.span(range), &tag.original());
            self.findings.add(problem);
        }
    }

    fn opened(&mut self, range: Range<usize>, anchor: usize, content: CollectionContent) -> bool {
        if self.open.len() >= DEEPEST {
            self.findings.too_much(range, too_deep());
            return false;
        }
        let counted = self.counted(range.clone());
        let start = match &content {
            CollectionContent::List(_) => self.dash_before(range.start),
            CollectionContent::Table { .. } => range.start,
        };
        self.open.push(OpenCollection { start, end: range.end, anchor, content });
        counted
    }

    /// The library lets a list that is not indented start behind its first dash. The list starts at the dash.
    fn dash_before(&self, at: usize) -> usize {
        if self.text[at..].starts_with(['-', '[']) {
            return at;
        }
        let before = self.text[self.last_end.min(at)..at].trim_end();
        if before.ends_with('-') { self.last_end.min(at) + before.len() - 1 } else { at }
    }

    fn closed(&mut self, range: Range<usize>) -> bool {
        let Some(open) = self.open.pop() else { return false };
        // Brackets have an end of their own; an indented list or table ends with the last thing in it.
        let end = if range.is_empty() { open.end } else { range.end };
        let value = match open.content {
            CollectionContent::List(items) => NodeValue::List(items),
            CollectionContent::Table { entries, .. } => NodeValue::Table(self.unique(entries)),
        };
        let node = Node { span: self.span(open.start..end.max(open.start)), value };
        self.anchored(open.anchor, node)
    }

    /// The entries without those whose key was there before. Done once for each table, by sorting: a hash set of
    /// keys would be built for every table in the file, and most have a handful of keys.
    fn unique(&mut self, entries: Vec<TableEntry>) -> Vec<TableEntry> {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|a, b| entries[*a].key.value.cmp(&entries[*b].key.value));
        let mut first_of = HashMap::new();
        let mut first = 0;
        for (place, index) in order.iter().enumerate() {
            if place > 0 && entries[order[first]].key.value == entries[*index].key.value {
                first_of.insert(*index, entries[order[first]].key.span);
            } else {
                first = place;
            }
        }
        if first_of.is_empty() {
            return entries;
        }
        let mut kept = Vec::with_capacity(entries.len() - first_of.len());
        for (index, entry) in entries.into_iter().enumerate() {
            match first_of.get(&index) {
                Some(first) => self.findings.add(duplicate(&entry.key, Some(*first))),
                None => kept.push(entry),
            }
        }
        kept
    }

    fn counted(&mut self, range: Range<usize>) -> bool {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            self.findings.too_much(range, format!("the file holds more than {MOST_NODES} values"));
        }
        self.nodes <= MOST_NODES
    }

    /// What is open goes on to `end` at least.
    fn reach(&mut self, end: usize) {
        if let Some(open) = self.open.last_mut() {
            open.end = open.end.max(end);
        }
    }

    /// Keeps `node` for its aliases if it has an anchor, and puts it where it belongs.
    fn anchored(&mut self, anchor: usize, node: Node) -> bool {
        self.reach(node.span.end as usize);
        if anchor > 0
            && let Err(message) = self.anchors.keep(anchor, &node)
        {
            self.findings.too_much(node.span.range(), message);
            return false;
        }
        self.put(node)
    }

    fn alias(&mut self, id: usize, range: Range<usize>) -> bool {
        let name = self.text[range.clone()].to_owned();
        match self.anchors.copy(id, self.open.len()) {
            // A key is shown where it is used; a value is shown where it is written.
            alias::AliasCopy::Node(node) if self.awaits_key() => {
                self.put(Node { span: self.span(range), value: node.value })
            }
            alias::AliasCopy::Node(node) => {
                self.reach(range.end);
                self.put(node)
            }
            alias::AliasCopy::StillOpen => {
                let problem =
                    Diagnosis::new(Code::Syntax, self.span(range), format!("{} stands inside itself", quoted(&name)));
                self.findings.add(problem);
                self.hole()
            }
            alias::AliasCopy::TooMuch => {
                self.findings.too_much(range, alias::too_much());
                false
            }
            alias::AliasCopy::TooDeep => {
                self.findings.too_much(range, too_deep());
                false
            }
        }
    }

    fn unknown_alias(&mut self, name: &str, range: Range<usize>) -> bool {
        let message = format!("nothing is named {} above", quoted(&format!("&{name}")));
        let problem = Diagnosis::new(Code::Syntax, self.span(range), message)
            .help("a text that begins with `*` must be put in quotes");
        self.findings.add(problem);
        self.hole()
    }

    /// Something to stand where a value is missing. The finding that goes with it takes the whole tree away.
    fn hole(&mut self) -> bool {
        if let Some(OpenCollection { content: CollectionContent::Table { key, .. }, .. }) = self.open.last_mut() {
            *key = if matches!(key, PendingKey::Awaited) { PendingKey::Unusable } else { PendingKey::Awaited };
        }
        true
    }

    fn awaits_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(OpenCollection { content: CollectionContent::Table { key: PendingKey::Awaited, .. }, .. })
        )
    }

    /// Puts a finished node into the list or table that is open, or makes it the root.
    fn put(&mut self, node: Node) -> bool {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return true;
        };
        match &mut open.content {
            CollectionContent::List(items) => items.push(node),
            CollectionContent::Table { entries, key } => match std::mem::replace(key, PendingKey::Awaited) {
                PendingKey::Named(name) => entries.push(TableEntry { key: name, value: node }),
                PendingKey::Unusable => {}
                PendingKey::Awaited => match node.value {
                    NodeValue::Text(text) => *key = PendingKey::Named(SpannedValue::new(text.value, node.span)),
                    NodeValue::Null
                    | NodeValue::Bool(_)
                    | NodeValue::Integer(_)
                    | NodeValue::Decimal(_)
                    | NodeValue::List(_)
                    | NodeValue::Table(_) => {
                        *key = PendingKey::Unusable;
                        self.findings.add(bad_key(&node));
                    }
                },
            },
        }
        true
    }
}

fn bad_key(node: &Node) -> Diagnosis {
    let message = format!("a key must be text, and this is {}", node.kind_name());
    let problem = Diagnosis::new(Code::WrongType, node.span, message);
    match node.value {
        NodeValue::List(_) | NodeValue::Table(_) => {
            problem.help("if this is a placeholder such as `{{name}}`, put the whole text in quotes")
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Integer(_) | NodeValue::Decimal(_) | NodeValue::Text(_) => {
            problem.help("put it in quotes")
        }
    }
}
