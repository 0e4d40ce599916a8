//! The reading side on PostgreSQL: a connection of its own, and one snapshot for every answer.
//!
//! Takes no lock that a writer waits for.

use futures_util::future::join5;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::link::{PostgresLink, PostgresSession, PostgresTrouble};
use crate::record::beyond;
use crate::{
    Card, Cursor, Digest, Effect, Event, Header, LARGEST_PAGE, Lease, LoggedEvent, OpenEffect, Order, Page, Query,
    Reader, RowKey, StoreError, StoredStream, StreamId, StreamSummary, codec,
};

/// The columns that make a card, in the order in which [`card`] takes them.
const CARD: &str = "kind, status, belongs, title, open, created, updated";

fn card(row: &Row, from: usize) -> Card {
    Card {
        kind: row.get(from),
        status: row.get(from + 1),
        group: row.get(from + 2),
        title: row.get(from + 3),
        open: row.get(from + 4),
        created: row.get(from + 5),
        updated: row.get(from + 6),
    }
}

/// The reading side of a [`super::Postgres`].
pub struct PostgresReader {
    link: PostgresLink,
}

impl PostgresReader {
    pub(super) fn new(link: PostgresLink) -> PostgresReader {
        PostgresReader { link }
    }

    fn rows(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        self.link.read(async |session| {
            let statement = session.prepare(sql).await?;
            Ok(session.client.query(&statement, values).await?)
        })
    }
}

/// A number of ours as PostgreSQL has them.
fn number(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

impl Reader for PostgresReader {
    fn load(&mut self, stream: &StreamId) -> Result<Option<StoredStream>, StoreError> {
        self.link.read(async |session| load(session, stream).await)
    }

    fn summary(&mut self, stream: &StreamId) -> Result<Option<StreamSummary>, StoreError> {
        let found = self.rows(&format!("SELECT id, version, {CARD} FROM stream WHERE id = $1"), &[&stream.as_str()])?;
        Ok(found.first().map(summary))
    }

    fn history(&mut self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        // Starts at the row that holds the event after `after`, which may begin before it. Every row has an event, so
        // as many rows as events are wanted, and that first one, are always enough.
        let sql = "SELECT first, events FROM log WHERE stream = $1 AND first >= coalesce(
                (SELECT max(first) FROM log WHERE stream = $1 AND first <= $2), 0)
            ORDER BY first LIMIT $3";
        let (start, most) = (number(after.saturating_add(1)), number(limit.saturating_add(1)));
        let mut history = Vec::new();
        for row in self.rows(sql, &[&stream.as_str(), &start, &most])? {
            let damaged = |detail| self.link.corrupt(format!("stream {stream}: {detail}"));
            let events = codec::decode(row.get(1)).map_err(damaged)?;
            let numbered = (row.get::<_, i64>(0) as u64..).zip(events);
            history.extend(numbered.filter(|(number, _)| *number > after));
            if history.len() >= limit {
                break;
            }
        }
        history.truncate(limit);
        Ok(history)
    }

    fn log(&mut self, after: Cursor, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        let sql = "SELECT position, stream, first, events FROM (
                SELECT *, sum(octet_length(events)) OVER (ORDER BY position) - octet_length(events) AS before,
                    row_number() OVER (ORDER BY position) AS place FROM (
                    SELECT position, stream, first, events FROM log
                    WHERE position >= coalesce((SELECT max(position) FROM log WHERE position <= $1), 0)
                    ORDER BY position LIMIT $2) AS page) AS sized
            WHERE before < $3 OR place <= 2 ORDER BY position"; // the first may hold only what was read before
        let (start, most) = (number(after.0.saturating_add(1)), number(limit.saturating_add(1)));
        let mut log = Vec::new();
        for row in self.rows(sql, &[&start, &most, &number(LARGEST_PAGE)])? {
            let events = match codec::decode(row.get(3)) {
                Ok(events) => events,
                // It is named, and whoever reads goes on behind it.
                Err(why) => {
                    let (place, stream) = (Cursor(row.get::<_, i64>(0) as u64), Some(StreamId(row.get(1))));
                    let damaged = LoggedEvent::damaged(place, stream, row.get::<_, i64>(2) as u64, &why);
                    log.extend(Some(damaged).filter(|_| place > after));
                    continue;
                }
            };
            let places = (row.get::<_, i64>(0) as u64..).zip(row.get::<_, i64>(2) as u64..).zip(events);
            log.extend(places.filter(|((place, _), _)| *place > after.0).map(|((place, number), event)| LoggedEvent {
                cursor: Cursor(place),
                stream: StreamId(row.get(1)),
                number,
                event,
            }));
            if log.len() >= limit {
                break;
            }
        }
        log.truncate(limit);
        Ok(log)
    }

    fn end(&mut self) -> Result<Cursor, StoreError> {
        let found = self.rows("SELECT position, events FROM log ORDER BY position DESC LIMIT 1", &[])?;
        let Some(row) = found.first() else { return Ok(Cursor::default()) };
        let events = codec::decode(row.get(1)).map_err(|detail| self.link.corrupt(detail))?;
        Ok(Cursor((row.get::<_, i64>(0) as u64 + events.len() as u64).saturating_sub(1)))
    }

    fn followed(&mut self) -> Result<Option<Cursor>, StoreError> {
        let found = self.rows("SELECT followed FROM owner", &[])?;
        let place: Option<i64> = found.first().and_then(|row| row.get(0));
        Ok(place.map(|place| Cursor(place as u64)))
    }

    fn open_streams(&mut self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        let sql = "SELECT id FROM stream WHERE live AND id > $1 ORDER BY id LIMIT $2";
        let start = after.map_or("", StreamId::as_str);
        let found = self.rows(sql, &[&start, &number(limit)])?;
        Ok(found.iter().map(|row| StreamId(row.get(0))).collect())
    }

    fn named(&mut self, begins: &str, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        let sql = "SELECT id FROM stream WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3";
        let found = self.rows(sql, &[&begins, &beyond(begins), &number(limit)])?;
        Ok(found.iter().map(|row| StreamId(row.get(0))).collect())
    }

    fn list(&mut self, query: &Query) -> Result<Page, StoreError> {
        let mut conditions = Vec::new();
        let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();
        for (column, wanted) in [("kind", &query.kind), ("status", &query.status), ("belongs", &query.group)] {
            if let Some(wanted) = wanted {
                values.push(wanted);
                conditions.push(format!("{column} = ${}", values.len()));
            }
        }
        match query.open {
            // Written out, so that the index of open streams can be used.
            Some(true) => conditions.push("open".to_owned()),
            Some(false) => conditions.push("NOT open".to_owned()),
            None => {}
        }
        let (beyond, direction) = match query.order {
            Order::Newest => ("<", "DESC"),
            Order::Oldest => (">", "ASC"),
        };
        if let Some(after) = &query.after {
            values.push(&after.created);
            values.push(&after.stream.0);
            conditions.push(format!("(created, id) {beyond} (${}, ${})", values.len() - 1, values.len()));
        }
        let filter = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        let limit = number(query.limit);
        values.push(&limit);
        let sql = format!(
            "SELECT id, version, {CARD} FROM stream {filter}
             ORDER BY created {direction}, id {direction} LIMIT ${}",
            values.len()
        );
        let items = self.rows(&sql, &values)?.iter().map(summary).collect();
        Ok(Page::of(items, query.limit))
    }

    fn blob(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.rows("SELECT body FROM blob WHERE digest = $1", &[&digest.0.as_slice()])?;
        Ok(found.first().map(|row| row.get(0)))
    }
}

fn summary(row: &Row) -> StreamSummary {
    StreamSummary { stream: StreamId(row.get(0)), version: row.get::<_, i64>(1) as u64, card: card(row, 2) }
}

async fn load(session: &mut PostgresSession, stream: &StreamId) -> Result<Option<StoredStream>, PostgresTrouble> {
    let head = session.prepare(&format!("SELECT version, {CARD}, data FROM stream WHERE id = $1")).await?;
    let rows = "SELECT major, minor, data FROM piece WHERE stream = $1 ORDER BY major, minor";
    let rows = session.prepare(rows).await?;
    let effects = "SELECT id, kind, data, holder, until FROM effect WHERE stream = $1 ORDER BY id";
    let effects = session.prepare(effects).await?;
    let timers = session.prepare("SELECT key, due FROM timer WHERE stream = $1 ORDER BY key").await?;
    let client = &session.client;
    let name: [&(dyn ToSql + Sync); 1] = [&stream.as_str()];
    // Sent together and done in this order, all on the snapshot of the first: one round trip.
    let (begun, head, rows, effects, (timers, ended)) = join5(
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
        client.query_opt(&head, &name),
        client.query(&rows, &name),
        client.query(&effects, &name),
        futures_util::future::join(client.query(&timers, &name), client.batch_execute("COMMIT")),
    )
    .await;
    begun?;
    let (head, rows, effects, timers) = (head?, rows?, effects?, timers?);
    ended?;
    let Some(head) = head else { return Ok(None) };
    let open = |row: &Row| {
        let (holder, until): (Option<String>, Option<i64>) = (row.get(3), row.get(4));
        OpenEffect {
            effect: Effect { id: row.get(0), kind: row.get(1), data: row.get(2) },
            lease: holder.zip(until).map(|(holder, until)| Lease { holder, until }),
        }
    };
    let piece = |row: &Row| (RowKey(row.get::<_, i64>(0) as u32, row.get::<_, i64>(1) as u32), row.get(2));
    Ok(Some(StoredStream {
        version: head.get::<_, i64>(0) as u64,
        header: Header { card: card(&head, 1), data: head.get(8) },
        rows: rows.iter().map(piece).collect(),
        effects: effects.iter().map(open).collect(),
        timers: timers.iter().map(|row| (row.get(0), row.get(1))).collect(),
    }))
}
