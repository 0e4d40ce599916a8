//! Lists on SQLite: which index is walked, and from where.
//!
//! The index is named in the statement. Leaving the choice to SQLite was rejected: without statistics it guesses, and
//! a wrong guess shows only when there are many ended streams.

use rusqlite::types::ToSql;
use rusqlite::{Connection, Row};

use super::reader::{CARD_COLUMNS, HEADER_OF_STREAM, card};
use crate::{Order, Page, Query, StreamId, Summary};

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
        "SELECT id, header.version, {CARD_COLUMNS} FROM stream INDEXED BY {} {HEADER_OF_STREAM} {filter}
         ORDER BY created {direction}, id {direction} LIMIT ?{}",
        index(query),
        values.len()
    );
    let read = |row: &Row<'_>| {
        Ok(Summary { stream: StreamId(row.get(0)?), version: row.get::<_, i64>(1)? as u64, card: card(row, 2)? })
    };
    let items: Vec<Summary> =
        connection.prepare_cached(&sql)?.query_map(values.as_slice(), read)?.collect::<Result<_, _>>()?;
    Ok(Page::of(items, query.limit))
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
