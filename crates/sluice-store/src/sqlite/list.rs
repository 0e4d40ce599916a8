//! Lists on SQLite: which index is walked, and from where.
//!
//! The index is named in the statement. Leaving the choice to SQLite was rejected: without statistics it guesses, and
//! a wrong guess shows only when there are many ended streams.

use rusqlite::types::ToSql;
use rusqlite::{Connection, Row};

use super::reader::{CARD_COLUMNS, HEADER_OF_STREAM, card};
use super::sums::header_sum;
use crate::{Damage, Header, Order, Page, PageKey, Query, StreamId, StreamSummary};

pub(super) fn list(connection: &Connection, query: &Query) -> Result<Page, rusqlite::Error> {
    let mut conditions = Vec::new();
    let mut values: Vec<&dyn ToSql> = Vec::new();
    for (column, wanted) in [("stream.kind", &query.kind), ("status", &query.status), ("belongs", &query.group)] {
        if let Some(wanted) = wanted {
            values.push(wanted);
            conditions.push(format!("{column} = ?{}", values.len()));
        }
    }
    match query.open {
        // Written out, because SQLite uses a partial index only for the very condition it was made with.
        Some(true) => conditions.push("open = 1".to_owned()),
        Some(false) => conditions.push("open = 0".to_owned()),
        None => {}
    }
    let (beyond, direction) = match query.order {
        Order::Newest => ("<", "DESC"),
        Order::Oldest => (">", "ASC"),
    };
    if let Some(after) = &query.after {
        values.push(&after.created);
        values.push(&after.stream.0);
        conditions.push(format!("(created, id) {beyond} (?{}, ?{})", values.len() - 1, values.len()));
    }
    let filter = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    let limit = query.limit as i64;
    values.push(&limit);
    let sql = format!(
        "SELECT id, header.version, {CARD_COLUMNS}, header.data, header.sum
         FROM stream INDEXED BY {} {HEADER_OF_STREAM} {filter}
         ORDER BY created {direction}, id {direction} LIMIT ?{}",
        index(query),
        values.len()
    );
    let mut page = Page { items: Vec::new(), damaged: Vec::new(), next: None };
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(values.as_slice())?;
    let mut rows = 0;
    while let Some(row) = found.next()? {
        rows += 1;
        // One that cannot be read hides no other, and is named.
        match summary(row) {
            Ok(Some(summary)) => page.items.push(summary),
            Ok(None) => page.damaged.push(damage(row, "a header with a wrong checksum")),
            Err(error) => page.damaged.push(damage(row, &error.to_string())),
        }
        page.next = match (rows == query.limit, row.get(7), row.get(0)) {
            (true, Ok(created), Ok(id)) => Some(PageKey { created, stream: StreamId(id) }),
            (true | false, _, _) => None,
        };
    }
    Ok(page)
}

/// What a row shows; `None` if it is not what was written.
fn summary(row: &Row<'_>) -> Result<Option<StreamSummary>, rusqlite::Error> {
    let (stream, version) = (StreamId(row.get(0)?), row.get::<_, i64>(1)? as u64);
    let header = Header { card: card(row, 2)?, data: row.get(9)? };
    let is_whole = header_sum(&stream, version, &header) == row.get::<_, i64>(10)?;
    Ok(is_whole.then_some(StreamSummary { stream, version, card: header.card }))
}

fn damage(row: &Row<'_>, why: &str) -> Damage {
    Damage { stream: row.get(0).ok().map(StreamId), why: why.to_owned() }
}

/// The index to walk. Open streams are few whatever else there is, so that one comes first.
fn index(query: &Query) -> &'static str {
    match query {
        Query { open: Some(true), .. } => "stream_open",
        Query { kind: Some(_), status: Some(_), .. } => "stream_status",
        Query { group: Some(_), .. } => "stream_belongs",
        Query { kind: Some(_), .. } => "stream_kind",
        _ => "stream_created",
    }
}
