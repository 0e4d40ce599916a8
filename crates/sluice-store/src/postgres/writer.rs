//! The writing side on PostgreSQL: a batch is one transaction under the lock of the owner's row, of one round trip where
//! its streams are known and it holds nothing unusual ([`super::step`]), else of two.
//!
//! The lock is held from the first look at the epoch to the end of the transaction, so no two writers are ever in a
//! batch at once, and the log grows in the order of the commits. What a cut-off commit became is found out before
//! anything else is written; see [`CommitDoubt`].

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{join, join_all, join3};

use super::columns::{Write, writes};
use super::link::{PostgresLink, PostgresSession, PostgresTrouble};
use super::plan::BatchPlan;
use super::step::{self, KnownVersions};
use crate::ownership::StoreOwner;
use crate::{Append, Conflict, Cursor, Event, Ownership, StoreError, StreamId, Writer, admit};

/// Read committed, said aloud: the server may have another default, and the versions must be read after the lock.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const LOCK_OWNER: &str = "SELECT position FROM owner WHERE epoch = $1 FOR UPDATE";

/// The writing side of a [`super::Postgres`].
pub struct PostgresWriter {
    link: PostgresLink,
    epoch: Option<u64>,
    doubt: Option<CommitDoubt>,
    kept: UnreportedAppends,
    known: KnownVersions,
}

/// A batch whose commit was sent and not answered.
struct CommitDoubt {
    /// Where its first row of the log stands, if it is stored.
    position: i64,
    epoch: i64,
    stored: UnreportedAppends,
}

impl CommitDoubt {
    fn of(plan: &BatchPlan<'_>, epoch: i64, last: i64) -> CommitDoubt {
        let stored = plan.stored.iter().map(|it| ((it.stream.clone(), it.expected), it.events.clone()));
        CommitDoubt { position: last + 1, epoch, stored: stored.collect() }
    }
}

/// What each append of a batch is answered.
type BatchAnswers = Vec<Result<u64, Conflict>>;

/// The version of a stream with this append, if that was stored though no caller was told.
fn stored_before(kept: &UnreportedAppends, append: &Append) -> Option<u64> {
    let events = kept.get(&(append.stream.clone(), append.expected))?;
    (*events == append.events).then(|| append.version())
}

/// Appends that are stored though no caller was told, by stream and expected version, with their events.
type UnreportedAppends = BTreeMap<(StreamId, u64), Vec<Event>>;

impl PostgresWriter {
    pub(super) fn new(link: PostgresLink) -> PostgresWriter {
        let known = KnownVersions::default();
        PostgresWriter { link, epoch: None, doubt: None, kept: UnreportedAppends::new(), known }
    }

    fn mine(&self) -> Result<i64, StoreError> {
        self.epoch.map(|epoch| epoch as i64).ok_or(StoreError::LostOwnership)
    }

    /// Stores a batch over what is known; `None` if that does not suffice, or is not true any more.
    fn append_known(&mut self, epoch: i64, batch: &[Append]) -> Result<Option<BatchAnswers>, StoreError> {
        let Some((last, versions)) = self.known.of(batch) else { return Ok(None) };
        let PostgresWriter { link, doubt, kept, known, .. } = self;
        let plan = BatchPlan::of(batch, versions.clone(), |append| stored_before(kept, append));
        if !step::fits(&plan) {
            return Ok(None);
        }
        *doubt = Some(CommitDoubt::of(&plan, epoch, last));
        let stored = link.run(async |session| step::store(session, &plan, (epoch, last), &versions).await);
        if !matches!(stored, Ok(true)) {
            known.clear();
        }
        let is_stored = stored?;
        *doubt = None;
        if !is_stored {
            return Ok(None);
        }
        known.learn(&plan, last + plan.events());
        Ok(Some(plan.answers))
    }

    /// Stores a batch after a look at the versions of its streams.
    fn append_asked(&mut self, epoch: i64, batch: &[Append]) -> Result<BatchAnswers, StoreError> {
        let PostgresWriter { link, doubt, kept, known, .. } = self;
        let answers = link.run(async |session| {
            let Some((last, versions)) = begin(session, epoch, batch).await? else {
                session.client.batch_execute("ROLLBACK").await?;
                return Err(PostgresTrouble::Store(StoreError::LostOwnership));
            };
            let plan = BatchPlan::of(batch, versions, |append| stored_before(kept, append));
            *doubt = Some(CommitDoubt::of(&plan, epoch, last));
            send_and_commit(session, &writes(&plan, epoch, last)).await?;
            *doubt = None;
            known.learn(&plan, last + plan.events());
            Ok(plan.answers)
        });
        if answers.is_err() {
            known.clear();
        }
        answers
    }

    /// Finds out what became of a batch whose commit was not answered.
    ///
    /// The old connection may still be at it on the server, so the owner's row is locked first: whoever has the lock
    /// knows that the other transaction has ended, one way or the other.
    fn resolve(&mut self) -> Result<(), StoreError> {
        let Some(doubt) = &self.doubt else { return Ok(()) };
        let (position, epoch) = (doubt.position, doubt.epoch);
        let stored = self.link.run(async |session| {
            session.client.batch_execute(BEGIN).await?;
            session.client.execute("SELECT 1 FROM owner FOR UPDATE", &[]).await?;
            let row = "SELECT 1 FROM log WHERE position = $1 AND epoch = $2";
            let stored = session.client.query_opt(row, &[&position, &epoch]).await?.is_some();
            session.client.batch_execute("COMMIT").await?;
            Ok(stored)
        })?;
        if let Some(doubt) = self.doubt.take().filter(|_| stored) {
            self.kept.extend(doubt.stored);
        }
        Ok(())
    }
}

impl Writer for PostgresWriter {
    fn own(&mut self, owner: &str, ttl: Duration) -> Result<Ownership, StoreError> {
        let mine = self.epoch;
        let ownership = self.link.run(async |session| {
            session.client.batch_execute(BEGIN).await?;
            let answer = own(session, mine, owner, ttl).await?;
            session.client.batch_execute(if answer.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
            answer.map_err(PostgresTrouble::Store)
        })?;
        if mine.is_none() {
            // Whatever was in doubt belongs to another time: the new owner loads everything anyway.
            (self.doubt, self.kept) = (None, UnreportedAppends::new());
            self.known.clear();
        }
        self.epoch = Some(ownership.epoch);
        Ok(ownership)
    }

    fn release(&mut self) -> Result<(), StoreError> {
        let Some(epoch) = self.epoch else { return Ok(()) };
        let sql = "UPDATE owner SET until = 0 WHERE epoch = $1";
        self.link.run(async |session| Ok(session.client.execute(sql, &[&(epoch as i64)]).await?))?;
        self.epoch = None;
        Ok(())
    }

    fn append(&mut self, batch: &[Append]) -> Result<Vec<Result<u64, Conflict>>, StoreError> {
        admit::admit(batch)?;
        let epoch = self.mine()?;
        self.resolve()?;
        let answers = match self.append_known(epoch, batch)? {
            Some(answers) => answers,
            None => self.append_asked(epoch, batch)?,
        };
        if !self.kept.is_empty() {
            for append in batch {
                self.kept.remove(&(append.stream.clone(), append.expected));
            }
        }
        Ok(answers)
    }

    fn follow(&mut self, upto: Cursor) -> Result<(), StoreError> {
        let (epoch, upto) = (self.mine()?, upto.0 as i64);
        let sql = "UPDATE owner SET followed = $1 WHERE epoch = $2";
        match self.link.run(async |session| Ok(session.client.execute(sql, &[&upto, &epoch]).await?))? {
            0 => Err(StoreError::LostOwnership),
            _ => Ok(()),
        }
    }

    fn forget(&mut self, streams: &[StreamId]) -> Result<usize, StoreError> {
        let epoch = self.mine()?;
        self.resolve()?;
        let names: Vec<&str> = streams.iter().map(StreamId::as_str).collect();
        self.known.clear();
        self.link.run(async |session| {
            session.client.batch_execute(BEGIN).await?;
            if session.client.query_opt(LOCK_OWNER, &[&epoch]).await?.is_none() {
                session.client.batch_execute("ROLLBACK").await?;
                return Err(PostgresTrouble::Store(StoreError::LostOwnership));
            }
            let gone = forget(session, &names).await?;
            session.client.batch_execute("COMMIT").await?;
            Ok(gone)
        })
    }
}

async fn own(
    session: &PostgresSession,
    mine: Option<u64>,
    owner: &str,
    ttl: Duration,
) -> Result<Result<Ownership, StoreError>, PostgresTrouble> {
    // The time of the database: engines on several machines need not agree on the hour.
    let sql = "SELECT epoch, name, until, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM owner FOR UPDATE";
    let row = session.client.query_one(sql, &[]).await?;
    let mut stored = StoreOwner { epoch: row.get::<_, i64>(0) as u64, name: row.get(1), until: row.get(2) };
    let ownership = match stored.take(mine, owner, row.get(3), ttl) {
        Ok(ownership) => ownership,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let sql = "UPDATE owner SET epoch = $1, name = $2, until = $3";
    session.client.execute(sql, &[&(ownership.epoch as i64), &stored.name, &stored.until]).await?;
    Ok(Ok(ownership))
}

/// Begins a batch: the end of the log and the versions of the streams, or nothing if the epoch is another.
async fn begin(
    session: &mut PostgresSession,
    epoch: i64,
    batch: &[Append],
) -> Result<Option<(i64, BTreeMap<String, u64>)>, PostgresTrouble> {
    let lock = session.prepare(LOCK_OWNER).await?;
    let versions = session.prepare("SELECT id, version FROM stream WHERE id = ANY ($1::text[])").await?;
    let names: Vec<&str> = batch.iter().map(|append| append.stream.as_str()).collect();
    let client = &session.client;
    // Sent together and done in this order: one round trip.
    let (begun, owner, found) =
        join3(client.batch_execute(BEGIN), client.query_opt(&lock, &[&epoch]), client.query(&versions, &[&names]))
            .await;
    begun?;
    let Some(owner) = owner? else { return Ok(None) };
    let versions = found?.into_iter().map(|row| (row.get(0), row.get::<_, i64>(1) as u64)).collect();
    Ok(Some((owner.get(0), versions)))
}

/// Sends all statements and the commit together: one round trip. The first that failed is the one that matters; the
/// commit behind it is then a rollback.
async fn send_and_commit(session: &mut PostgresSession, writes: &[Write<'_>]) -> Result<(), PostgresTrouble> {
    let mut statements = Vec::with_capacity(writes.len());
    for write in writes {
        let values: Vec<_> =
            write.columns.iter().map(|it| &**it as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
        statements.push((session.prepare(write.sql).await?, values));
    }
    let client = &session.client;
    let sent = statements.iter().map(|(statement, values)| client.execute(statement, values));
    // Each goes out when it is first polled, and few are polled in order; of many, `join_all` promises no order.
    debug_assert!(statements.len() <= 30, "the commit could overtake a statement");
    let (sent, committed) = join(join_all(sent), client.batch_execute("COMMIT")).await;
    for done in sent {
        done?;
    }
    Ok(committed?)
}

async fn forget(session: &PostgresSession, names: &[&str]) -> Result<usize, PostgresTrouble> {
    let client = &session.client;
    let sql = "DELETE FROM stream WHERE id = ANY ($1::text[]) AND NOT live RETURNING id";
    let gone: Vec<String> = client.query(sql, &[&names]).await?.into_iter().map(|row| row.get(0)).collect();
    client.execute("DELETE FROM log WHERE stream = ANY ($1::text[])", &[&gone]).await?;
    client.execute("DELETE FROM piece WHERE stream = ANY ($1::text[])", &[&gone]).await?;
    let sql = "DELETE FROM blob_use WHERE stream = ANY ($1::text[]) RETURNING digest";
    let digests: Vec<Vec<u8>> = client.query(sql, &[&gone]).await?.into_iter().map(|row| row.get(0)).collect();
    let sql = "DELETE FROM blob WHERE digest = ANY ($1::bytea[])
        AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob_use.digest = blob.digest)";
    client.execute(sql, &[&digests]).await?;
    Ok(gone.len())
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::postgres::Postgres;
    use crate::testing::Cluster;
    use crate::{Card, Header, Reader};

    fn append(stream: &str, expected: u64, data: u8) -> Append {
        let event = Event { kind: "e".to_owned(), version: 1, data: vec![data], ..Event::default() };
        let card = Card { open: true, ..Card::default() };
        Append::new(StreamId::new(stream), expected, vec![event], Header { card, data: Vec::new() })
    }

    /// The doubt that a cut-off commit of these appends, at the beginning of the log, would leave.
    fn doubt(appends: &[Append]) -> Option<CommitDoubt> {
        let stored = appends.iter().map(|it| ((it.stream.clone(), it.expected), it.events.clone())).collect();
        Some(CommitDoubt { position: 1, epoch: 1, stored })
    }

    #[test]
    fn a_commit_that_was_stored_but_not_answered_is_answered_by_the_next_call() {
        let store = Postgres::open(&Cluster::shared().database()).unwrap();
        let mut writer = store.writer().unwrap();
        writer.own("a", Duration::from_secs(3600)).unwrap();
        let batch = vec![append("s", 0, 1), append("t", 0, 2), append("s", 1, 3)];
        assert_eq!(writer.append(&batch).unwrap(), [Ok(1), Ok(1), Ok(2)]);
        writer.doubt = doubt(&batch);
        // In parts, among others, and one that only looks the same.
        let [first, second, third] = batch.try_into().unwrap();
        assert_eq!(writer.append(&[append("u", 0, 9), first]).unwrap(), [Ok(1), Ok(1)]);
        let other = append("t", 0, 77);
        let answers = writer.append(&[other, second, third, append("s", 2, 4)]).unwrap();
        assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, true, true]);
        let history = store.reader().unwrap().history(&StreamId::new("s"), 0, 9).unwrap();
        assert_eq!(history.iter().map(|(_, event)| event.data[0]).collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn a_commit_that_was_not_stored_is_done_by_the_next_call() {
        let store = Postgres::open(&Cluster::shared().database()).unwrap();
        let mut writer = store.writer().unwrap();
        writer.own("a", Duration::from_secs(3600)).unwrap();
        let batch = vec![append("s", 0, 1)];
        writer.doubt = doubt(&batch);
        assert_eq!(writer.append(&batch).unwrap(), [Ok(1)]);
        assert_eq!(store.reader().unwrap().history(&StreamId::new("s"), 0, 9).unwrap().len(), 1);
    }

    #[test]
    fn what_is_known_and_not_true_any_more_is_asked_for() {
        let cluster = Cluster::shared();
        let address = cluster.database();
        let store = Postgres::open(&address).unwrap();
        let mut writer = store.writer().unwrap();
        writer.own("a", Duration::from_secs(3600)).unwrap();
        assert_eq!(writer.append(&[append("s", 0, 1), append("t", 0, 2)]).unwrap(), [Ok(1), Ok(1)]);
        let known = |writer: &PostgresWriter| writer.known.of(&[append("s", 1, 3)]).is_some();
        assert!(known(&writer));
        assert_eq!(
            writer.append(&[append("s", 1, 3), append("s", 2, 4), append("t", 9, 5)]).unwrap()[..2],
            [Ok(2), Ok(3)]
        );
        // Another version than is known: nothing of the batch is stored over it.
        cluster.execute(&address, "UPDATE sluice.stream SET version = 5 WHERE id = 's'");
        let answers = writer.append(&[append("t", 1, 6), append("s", 3, 7)]).unwrap();
        let conflict = Conflict { stream: StreamId::new("s"), expected: 3, found: 5 };
        assert_eq!(answers, [Ok(2), Err(conflict)]);
        // Another end of the log.
        cluster.execute(&address, "UPDATE sluice.owner SET position = position + 10");
        assert_eq!(writer.append(&[append("t", 2, 8)]).unwrap(), [Ok(3)]);
        let log = store.reader().unwrap().log(Cursor(0), 99).unwrap();
        let told: Vec<(u64, u8)> = log.iter().map(|it| (it.cursor.0, it.event.data[0])).collect();
        assert_eq!(told, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (16, 8)]);
        // Another owner.
        let mut other = store.writer().unwrap();
        cluster.execute(&address, "UPDATE sluice.owner SET until = 0");
        other.own("b", Duration::from_secs(3600)).unwrap();
        assert!(matches!(writer.append(&[append("t", 3, 9)]), Err(StoreError::LostOwnership)));
        assert!(!known(&writer));
    }
}
