//! Reads the fields of a table that has been compared with its shape.
//!
//! A field of the wrong type reads as if it were not there: it has been reported, and need not be again.

use std::time::Duration;

use sluice_core::recipe::Data;
use sluice_core::span::{SourceText, Span, SpannedValue};

use crate::duration;
use crate::tree::{Node, NodeValue, TableEntry};

#[derive(Clone, Copy)]
pub(super) struct TableFields<'a> {
    node: &'a Node,
}

impl<'a> TableFields<'a> {
    pub(super) fn of(node: &'a Node) -> Self {
        TableFields { node }
    }

    pub(super) fn span(self) -> Span {
        self.node.span
    }

    pub(super) fn node(self, key: &str) -> Option<&'a Node> {
        self.node.get(key)
    }

    pub(super) fn key(self, key: &str) -> Option<Span> {
        self.entries().iter().find(|entry| entry.key.value == key).map(|entry| entry.key.span)
    }

    pub(super) fn entries(self) -> &'a [TableEntry] {
        self.node.as_table().unwrap_or_default()
    }

    pub(super) fn text(self, key: &str) -> Option<&'a SourceText> {
        self.node(key).and_then(Node::as_text)
    }

    pub(super) fn name(self, key: &str) -> Option<SpannedValue<String>> {
        self.text(key).map(named)
    }

    pub(super) fn string(self, key: &str) -> Option<String> {
        self.text(key).map(|text| text.value.clone())
    }

    pub(super) fn number<N: TryFrom<i64>>(self, key: &str) -> Option<SpannedValue<N>> {
        let node = self.node(key)?;
        Some(SpannedValue::new(N::try_from(node.as_integer()?).ok()?, node.span))
    }

    pub(super) fn flag(self, key: &str) -> Option<bool> {
        self.node(key)?.as_bool()
    }

    pub(super) fn duration(self, key: &str) -> Option<Duration> {
        self.node(key).and_then(|node| duration::of(node).ok())
    }

    pub(super) fn table(self, key: &str) -> Option<TableFields<'a>> {
        self.node(key).filter(|node| node.as_table().is_some()).map(TableFields::of)
    }

    pub(super) fn list(self, key: &str) -> &'a [Node] {
        self.node(key).and_then(Node::as_list).unwrap_or_default()
    }

    pub(super) fn tables(self, key: &str) -> impl Iterator<Item = TableFields<'a>> {
        self.list(key).iter().filter(|node| node.as_table().is_some()).map(TableFields::of)
    }

    /// The names in a list of texts; `None` when there is no such list.
    pub(super) fn names(self, key: &str) -> Option<Vec<SpannedValue<String>>> {
        match &self.node(key)?.value {
            NodeValue::List(nodes) => Some(nodes.iter().filter_map(Node::as_text).map(named).collect()),
            NodeValue::Null => Some(Vec::new()),
            _ => None,
        }
    }

    /// The member of `all` whose word stands there.
    pub(super) fn choice<T: Copy>(self, key: &str, all: &[(&str, T)]) -> Option<T> {
        let written = &self.text(key)?.value;
        all.iter().find(|(word, _)| word.eq_ignore_ascii_case(written)).map(|(_, value)| *value)
    }
}

pub(super) fn named(text: &SourceText) -> SpannedValue<String> {
    SpannedValue::new(text.value.clone(), text.span)
}

pub(super) fn data(node: &Node) -> Data {
    match &node.value {
        NodeValue::Null => Data::Null,
        NodeValue::Bool(value) => Data::Bool(*value),
        NodeValue::Integer(number) => Data::Number(number.to_string()),
        NodeValue::Decimal(number) => Data::Number(number.clone()),
        NodeValue::Text(text) => Data::Text(text.value.clone()),
        NodeValue::List(nodes) => Data::List(nodes.iter().map(data).collect()),
        NodeValue::Table(entries) => {
            Data::Table(entries.iter().map(|entry| (entry.key.value.clone(), data(&entry.value))).collect())
        }
    }
}
