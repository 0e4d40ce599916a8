//! The usual batch in one statement, and so in one round trip: streams that are known and go on, their events, rows and
//! effects. What else a batch can hold goes the long way ([`super::writer`]).
//!
//! The statement locks the owner's row, and writes nothing unless epoch, end of the log and versions are as they are
//! known. So what is known need not be true; it only saves the question.

use std::collections::{BTreeMap, HashMap};

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::columns::{Column, log_columns, put_rows};
use super::link::{PostgresSession, PostgresTrouble};
use super::plan::{BatchPlan, OutboxChange};
use crate::{Append, StreamId};

/// How many streams are remembered; beyond, all are forgotten and asked for again.
const MOST: usize = 16_384;

/// Nothing is written where the owner's row is another than is known. Where a version is, the division fails, and with it
/// all of the statement.
const STEP: &str = "
WITH mine AS (
    UPDATE owner SET position = $3 WHERE epoch = $1 AND position = $2 RETURNING one
), head AS (
    UPDATE stream SET version = new.version, kind = new.kind, status = new.status, belongs = new.belongs,
        title = new.title, open = true, live = true, created = new.created, updated = new.updated, data = new.data
    FROM mine, unnest($5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[],
        $12::bigint[], $13::bigint[], $14::bytea[])
        AS new (id, before, version, kind, status, belongs, title, created, updated, data)
    WHERE stream.id = new.id AND stream.version = new.before
    RETURNING 1
), events AS (
    INSERT INTO log (position, epoch, part, stream, first, events)
    SELECT new.position, $1, new.part, new.stream, new.first, new.events
    FROM mine, unnest($15::bigint[], $16::smallint[], $17::text[], $18::bigint[], $19::bytea[])
        AS new (position, part, stream, first, events)
), rows AS (
    INSERT INTO piece (stream, major, minor, data)
    SELECT new.stream, new.major, new.minor, new.data
    FROM mine, unnest($20::text[], $21::bigint[], $22::bigint[], $23::bytea[]) AS new (stream, major, minor, data)
    ON CONFLICT (stream, major, minor) DO UPDATE SET data = excluded.data
), settled AS (
    DELETE FROM effect USING mine, unnest($24::text[], $25::text[]) AS old (stream, id)
    WHERE effect.stream = old.stream AND effect.id = old.id
), asked AS (
    INSERT INTO effect (stream, id, kind, data, holder, until)
    SELECT new.stream, new.id, new.kind, new.data, new.holder, new.until
    FROM mine, unnest($26::text[], $27::text[], $28::text[], $29::bytea[], $30::text[], $31::bigint[])
        AS new (stream, id, kind, data, holder, until)
    ON CONFLICT (stream, id) DO UPDATE SET kind = excluded.kind, data = excluded.data, holder = excluded.holder,
        until = excluded.until
)
SELECT 1 / (CASE WHEN (SELECT count(*) FROM head) = $4 THEN 1 ELSE 0 END) FROM mine";

/// What the owner knows without asking. It may be emptied at any moment.
#[derive(Default)]
pub(super) struct KnownVersions {
    versions: HashMap<StreamId, u64>,
    /// The end of the log.
    end: Option<i64>,
}

impl KnownVersions {
    pub(super) fn clear(&mut self) {
        self.versions.clear();
        self.end = None;
    }

    /// The end of the log and the versions of the streams of a batch, if all of that is known.
    pub(super) fn of(&self, batch: &[Append]) -> Option<(i64, BTreeMap<String, u64>)> {
        let end = self.end?;
        let known = |append: &Append| Some((append.stream.0.clone(), *self.versions.get(&append.stream)?));
        Some((end, batch.iter().map(known).collect::<Option<_>>()?))
    }

    /// A plan has been stored.
    pub(super) fn learn(&mut self, plan: &BatchPlan<'_>, end: i64) {
        if self.versions.len() >= MOST {
            self.versions.clear();
        }
        self.end = Some(end);
        for append in plan.streams.values() {
            // Ended streams are seldom written again, and there may be very many.
            match append.header.card.open {
                true => drop(self.versions.insert(append.stream.clone(), append.version())),
                false => drop(self.versions.remove(&append.stream)),
            }
        }
    }
}

/// Whether a plan holds nothing but what the statement can store.
pub(super) fn fits(plan: &BatchPlan<'_>) -> bool {
    let is_plain = |change: &OutboxChange<'_>| matches!(change, OutboxChange::Gone | OutboxChange::Put(..));
    !plan.stored.is_empty()
        && plan.timers.is_empty()
        && plan.uses.is_empty()
        && plan.rows.values().all(Option::is_some)
        && plan.effects.values().all(is_plain)
        && plan.streams.values().all(|append| append.header.card.open)
}

/// Stores a plan that fits, over what is known. False: nothing is stored, because something is not as it is known.
pub(super) async fn store(
    session: &mut PostgresSession,
    plan: &BatchPlan<'_>,
    (epoch, last): (i64, i64),
    before: &BTreeMap<String, u64>,
) -> Result<bool, PostgresTrouble> {
    let statement = session.prepare(STEP).await?;
    let (log, end) = log_columns(plan, last);
    let count = plan.streams.len() as i64;
    let mut columns: Vec<Column<'_>> = vec![Box::new(epoch), Box::new(last), Box::new(end), Box::new(count)];
    columns.extend(heads(plan, before));
    columns.extend(log);
    columns.extend(put_rows(plan));
    columns.extend(effects(plan));
    let values: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as &(dyn ToSql + Sync)).collect();
    match session.client.query_opt(&statement, &values).await {
        Ok(found) => Ok(found.is_some()),
        Err(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn heads<'a>(plan: &BatchPlan<'a>, before: &BTreeMap<String, u64>) -> [Column<'a>; 10] {
    let appends: Vec<&'a Append> = plan.streams.values().copied().collect();
    let texts = |of: fn(&Append) -> &str| Box::new(appends.iter().map(|it| of(it)).collect::<Vec<&'a str>>());
    let numbers = |of: fn(&Append) -> i64| Box::new(appends.iter().map(|it| of(it)).collect::<Vec<i64>>());
    let known = |it: &&Append| before.get(it.stream.as_str()).copied().unwrap_or_default() as i64;
    [
        texts(|it| it.stream.as_str()),
        Box::new(appends.iter().map(known).collect::<Vec<i64>>()),
        numbers(|it| it.version() as i64),
        texts(|it| &it.header.card.kind),
        texts(|it| &it.header.card.status),
        texts(|it| &it.header.card.group),
        texts(|it| &it.header.card.title),
        numbers(|it| it.header.card.created),
        numbers(|it| it.header.card.updated),
        Box::new(appends.iter().map(|it| it.header.data.as_slice()).collect::<Vec<&'a [u8]>>()),
    ]
}

/// The effects that leave, and those that come.
fn effects<'a>(plan: &BatchPlan<'a>) -> [Column<'a>; 8] {
    let (mut gone, mut put) = ((vec![], vec![]), (vec![], vec![], vec![], vec![], vec![], vec![]));
    for ((stream, id), change) in &plan.effects {
        match change {
            OutboxChange::Put(effect, lease) => {
                let (kind, data) = (effect.kind.as_str(), effect.data.as_slice());
                let (holder, until) = (lease.map(|it| it.holder.as_str()), lease.map(|it| it.until));
                put.extend([(*stream, *id, kind, data, holder, until)]);
            }
            OutboxChange::Gone | OutboxChange::Held(_) => gone.extend([(*stream, *id)]),
        }
    }
    let (streams, ids, kinds, data, holders, until) = put;
    [
        Box::new(gone.0),
        Box::new(gone.1),
        Box::new(streams),
        Box::new(ids),
        Box::new(kinds),
        Box::new(data),
        Box::new(holders),
        Box::new(until),
    ]
}
