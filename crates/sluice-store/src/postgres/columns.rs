//! A plan as columns, one statement for each table it touches.
//!
//! `unnest` turns the columns into rows on the server, so a batch is a dozen statements however large it is. Never
//! sends anything.

use tokio_postgres::types::ToSql;

use super::plan::{BatchPlan, OutboxChange};
use super::schema::part;
use crate::{Append, Lease, codec};

/// One value, or a column of them.
pub(super) type Column<'a> = Box<dyn ToSql + Sync + 'a>;

pub(super) struct Write<'a> {
    pub(super) sql: &'static str,
    pub(super) columns: Vec<Column<'a>>,
}

macro_rules! write {
    ($sql:expr, $($column:expr),+ $(,)?) => {
        Write { sql: $sql, columns: vec![$(Box::new($column)),+] }
    };
}

const STREAMS: &str = "
INSERT INTO stream (id, part, version, kind, status, belongs, title, open, live, created, updated, data)
SELECT id, part, version, kind, status, belongs, title, open, true, created, updated, data
FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[],
    $9::bigint[], $10::bigint[], $11::bytea[])
    AS new (id, part, version, kind, status, belongs, title, open, created, updated, data)
ON CONFLICT (id) DO UPDATE SET version = excluded.version, kind = excluded.kind, status = excluded.status,
    belongs = excluded.belongs, title = excluded.title, open = excluded.open, live = true,
    created = excluded.created, updated = excluded.updated, data = excluded.data";
const LOG: &str = "
INSERT INTO log (position, epoch, part, stream, first, events)
SELECT position, $2, part, stream, first, events
FROM unnest($1::bigint[], $3::smallint[], $4::text[], $5::bigint[], $6::bytea[])
    AS new (position, part, stream, first, events)";
const PUT_ROWS: &str = "
INSERT INTO piece (stream, major, minor, data)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[])
ON CONFLICT (stream, major, minor) DO UPDATE SET data = excluded.data";
const DROP_ROWS: &str = "
DELETE FROM piece USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS old (stream, major, minor)
WHERE piece.stream = old.stream AND piece.major = old.major AND piece.minor = old.minor";
const PUT_EFFECTS: &str = "
INSERT INTO effect (stream, id, kind, data, holder, until)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::bigint[])
ON CONFLICT (stream, id) DO UPDATE SET kind = excluded.kind, data = excluded.data, holder = excluded.holder,
    until = excluded.until";
const DROP_EFFECTS: &str = "
DELETE FROM effect USING unnest($1::text[], $2::text[]) AS old (stream, id)
WHERE effect.stream = old.stream AND effect.id = old.id";
const HOLD_EFFECTS: &str = "
UPDATE effect SET holder = new.holder, until = new.until
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS new (stream, id, holder, until)
WHERE effect.stream = new.stream AND effect.id = new.id";
const PUT_TIMERS: &str = "
INSERT INTO timer (stream, key, due) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
ON CONFLICT (stream, key) DO UPDATE SET due = excluded.due";
const DROP_TIMERS: &str = "
DELETE FROM timer USING unnest($1::text[], $2::text[]) AS old (stream, key)
WHERE timer.stream = old.stream AND timer.key = old.key";
const BLOBS: &str = "
INSERT INTO blob (digest, body) SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT DO NOTHING";
const USES: &str = "
INSERT INTO blob_use (stream, digest) SELECT * FROM unnest($1::text[], $2::bytea[]) ON CONFLICT DO NOTHING";
const REST: &str = "
UPDATE stream SET live = false WHERE id = ANY ($1::text[])
AND NOT EXISTS (SELECT 1 FROM effect WHERE effect.stream = stream.id)
AND NOT EXISTS (SELECT 1 FROM timer WHERE timer.stream = stream.id)";
const END: &str = "UPDATE owner SET position = $1";

/// The statements that do a plan, in the order in which they must run. `last` is the end of the log.
pub(super) fn writes<'a>(plan: &BatchPlan<'a>, epoch: i64, last: i64) -> Vec<Write<'a>> {
    if plan.stored.is_empty() {
        return Vec::new();
    }
    let (log, end) = log(plan, epoch, last);
    let mut writes = vec![streams(plan), log, write!(END, end)];
    rows(plan, &mut writes);
    effects(plan, &mut writes);
    timers(plan, &mut writes);
    if !plan.uses.is_empty() {
        let (digests, bodies): (Vec<_>, Vec<_>) =
            plan.blobs.iter().map(|(digest, body)| (digest.0.to_vec(), *body)).unzip();
        writes.push(write!(BLOBS, digests, bodies));
        let (streams, digests): (Vec<_>, Vec<_>) =
            plan.uses.iter().map(|(stream, digest)| (*stream, digest.0.to_vec())).unzip();
        writes.push(write!(USES, streams, digests));
    }
    let ended = plan.streams.iter().filter(|(_, append)| !append.header.card.open);
    let ended: Vec<&str> = ended.map(|(stream, _)| *stream).collect();
    if !ended.is_empty() {
        writes.push(write!(REST, ended));
    }
    writes
}

fn streams<'a>(plan: &BatchPlan<'a>) -> Write<'a> {
    let appends: Vec<&'a Append> = plan.streams.values().copied().collect();
    let texts = |of: fn(&Append) -> &str| appends.iter().map(|it| of(it)).collect::<Vec<&str>>();
    let numbers = |of: fn(&Append) -> i64| appends.iter().map(|it| of(it)).collect::<Vec<i64>>();
    write!(
        STREAMS,
        texts(|it| it.stream.as_str()),
        appends.iter().map(|it| part(it.stream.as_str())).collect::<Vec<i16>>(),
        numbers(|it| it.version() as i64),
        texts(|it| &it.header.card.kind),
        texts(|it| &it.header.card.status),
        texts(|it| &it.header.card.group),
        texts(|it| &it.header.card.title),
        appends.iter().map(|it| it.header.card.open).collect::<Vec<bool>>(),
        numbers(|it| it.header.card.created),
        numbers(|it| it.header.card.updated),
        appends.iter().map(|it| it.header.data.as_slice()).collect::<Vec<&[u8]>>(),
    )
}

/// The rows of the log, and where it ends then.
fn log<'a>(plan: &BatchPlan<'a>, epoch: i64, last: i64) -> (Write<'a>, i64) {
    let (columns, end) = log_columns(plan, last);
    let mut columns: Vec<_> = columns.into();
    columns.insert(1, Box::new(epoch));
    (Write { sql: LOG, columns }, end)
}

/// Position, part, stream, first number and events of each row of the log, and where the log ends then.
pub(super) fn log_columns<'a>(plan: &BatchPlan<'a>, last: i64) -> ([Column<'a>; 5], i64) {
    let mut end = last;
    let place = |append: &&Append| {
        let first = end + 1;
        end += append.events.len() as i64;
        first
    };
    let places: Vec<i64> = plan.stored.iter().map(place).collect();
    let columns: [Column<'a>; 5] = [
        Box::new(places),
        Box::new(plan.stored.iter().map(|it| part(it.stream.as_str())).collect::<Vec<i16>>()),
        Box::new(plan.stored.iter().map(|it| it.stream.as_str()).collect::<Vec<&str>>()),
        Box::new(plan.stored.iter().map(|it| it.expected as i64 + 1).collect::<Vec<i64>>()),
        Box::new(plan.stored.iter().map(|it| codec::encode(&it.events)).collect::<Vec<Vec<u8>>>()),
    ];
    (columns, end)
}

fn rows<'a>(plan: &BatchPlan<'a>, writes: &mut Vec<Write<'a>>) {
    if plan.rows.values().any(Option::is_some) {
        writes.push(Write { sql: PUT_ROWS, columns: put_rows(plan).into() });
    }
    let gone = plan.rows.iter().filter(|(_, row)| row.is_none());
    let mut columns = (vec![], vec![], vec![]);
    columns.extend(gone.map(|((stream, key), _)| (*stream, i64::from(key.0), i64::from(key.1))));
    if !columns.0.is_empty() {
        writes.push(write!(DROP_ROWS, columns.0, columns.1, columns.2));
    }
}

/// Stream, key and data of each row that is written.
pub(super) fn put_rows<'a>(plan: &BatchPlan<'a>) -> [Column<'a>; 4] {
    let mut put = (vec![], vec![], vec![], vec![]);
    let rows = plan.rows.iter().filter_map(|((stream, key), row)| Some((*stream, key, (*row)?)));
    put.extend(rows.map(|(stream, key, row)| (stream, i64::from(key.0), i64::from(key.1), row)));
    [Box::new(put.0), Box::new(put.1), Box::new(put.2), Box::new(put.3)]
}

fn effects<'a>(plan: &BatchPlan<'a>, writes: &mut Vec<Write<'a>>) {
    let holder = |lease: &Option<&'a Lease>| lease.map(|it| it.holder.as_str());
    let until = |lease: &Option<&'a Lease>| lease.map(|it| it.until);
    let (mut gone, mut held) = ((vec![], vec![]), (vec![], vec![], vec![], vec![]));
    let mut put = (vec![], vec![], vec![], vec![], vec![], vec![]);
    for ((stream, id), outbox) in &plan.effects {
        match outbox {
            OutboxChange::Gone => gone.extend([(*stream, *id)]),
            OutboxChange::Put(effect, lease) => {
                let (kind, data) = (effect.kind.as_str(), effect.data.as_slice());
                put.extend([(*stream, *id, kind, data, holder(lease), until(lease))]);
            }
            OutboxChange::Held(lease) => held.extend([(*stream, *id, holder(lease), until(lease))]),
        }
    }
    if !gone.0.is_empty() {
        writes.push(write!(DROP_EFFECTS, gone.0, gone.1));
    }
    if !put.0.is_empty() {
        writes.push(write!(PUT_EFFECTS, put.0, put.1, put.2, put.3, put.4, put.5));
    }
    if !held.0.is_empty() {
        writes.push(write!(HOLD_EFFECTS, held.0, held.1, held.2, held.3));
    }
}

fn timers<'a>(plan: &BatchPlan<'a>, writes: &mut Vec<Write<'a>>) {
    let (mut put, mut gone) = ((vec![], vec![], vec![]), (vec![], vec![]));
    for ((stream, key), due) in &plan.timers {
        match due {
            Some(due) => put.extend([(*stream, *key, *due)]),
            None => gone.extend([(*stream, *key)]),
        }
    }
    if !put.0.is_empty() {
        writes.push(write!(PUT_TIMERS, put.0, put.1, put.2));
    }
    if !gone.0.is_empty() {
        writes.push(write!(DROP_TIMERS, gone.0, gone.1));
    }
}
