//! The tree that YAML and TOML are both read into, in which every value knows its place.
//!
//! It holds what was written, in the order in which it was written, and nothing about the syntax. It never knows
//! which keys a format has. It is at most [`DEEPEST`] deep, so that walking, cloning and dropping it can be
//! written as plain recursion; an arena or a hand-written `Drop` would buy depth that no definition needs.

use sluice_core::span::{SourceText, Span, SpannedValue};

pub const DEEPEST: usize = 64;

/// How many values a file may hold, with every alias counted as a copy of what it stands for.
pub const MOST_NODES: usize = 1_000_000;

/// A value and its place. The place of a quoted text includes the quotes, that of a list or table its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub span: Span,
    pub value: NodeValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeValue {
    /// Nothing: `null`, `~` or an empty place. TOML has none.
    Null,
    Bool(bool),
    Integer(i64),
    /// Any other number, as it was written, so that nobody has to agree about rounding here.
    Decimal(String),
    /// Text, quoted or not. A TOML date is text too.
    Text(SourceText),
    List(Vec<Node>),
    /// A table. Its keys are unique.
    Table(Vec<TableEntry>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// The key; its place includes its quotes.
    pub key: SpannedValue<String>,
    pub value: Node,
}

impl Node {
    /// What kind of value this is, as one would say it: `a list`.
    pub fn kind_name(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(true) => "`true`",
            NodeValue::Bool(false) => "`false`",
            NodeValue::Integer(_) => "a whole number",
            NodeValue::Decimal(_) => "a number",
            NodeValue::Text(_) => "text",
            NodeValue::List(_) => "a list",
            NodeValue::Table(_) => "a table",
        }
    }

    /// The value of `key`, if this is a table that has it. Looks through the whole table.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_table()?.iter().find(|entry| entry.key.value == key).map(|entry| &entry.value)
    }

    pub fn as_text(&self) -> Option<&SourceText> {
        if let NodeValue::Text(text) = &self.value { Some(text) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let NodeValue::Bool(value) = self.value { Some(value) } else { None }
    }

    pub fn as_integer(&self) -> Option<i64> {
        if let NodeValue::Integer(value) = self.value { Some(value) } else { None }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        if let NodeValue::List(items) = &self.value { Some(items) } else { None }
    }

    pub fn as_table(&self) -> Option<&[TableEntry]> {
        if let NodeValue::Table(entries) = &self.value { Some(entries) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::span::FileId;

    #[test]
    fn a_table_is_asked_by_key_and_anything_else_has_none() {
        let span = Span::new(FileId(0), 0..1);
        let one = Node { span, value: NodeValue::Integer(1) };
        assert_eq!(one.get("a"), None);
        let table = Node {
            span,
            value: NodeValue::Table(vec![TableEntry { key: SpannedValue::new("a".into(), span), value: one.clone() }]),
        };
        assert_eq!(table.get("a"), Some(&one));
        assert_eq!(table.get("b"), None);
        assert_eq!(table.get("a").map(Node::kind_name), Some("a whole number"));
    }
}
