//! Floors: the least that a durable step can cost on this disk, with nothing of ours around it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Statement};

use crate::turns::each;

/// What one commit brings: about as much as the events of a step.
const ROW: [u8; 200] = [7; 200];
/// How many commits a round has.
pub const ROUND: usize = 100;

/// Something that can be made durable, one small piece after the other.
pub trait Floor {
    /// Makes one piece durable.
    fn commit(&mut self);

    /// How long one takes, over a round of them.
    fn round(&mut self) -> Duration {
        each(ROUND, || (0..ROUND).for_each(|_| self.commit()))
    }
}

/// A file that is appended to and synced.
pub struct PlainFile(File);

impl PlainFile {
    /// A new file in this folder.
    pub fn new(folder: &Path) -> PlainFile {
        PlainFile(File::create(folder.join("plain")).unwrap())
    }
}

impl Floor for PlainFile {
    fn commit(&mut self) {
        self.0.write_all(&ROW).unwrap();
        self.0.sync_data().unwrap();
    }
}

/// SQLite with one table and every commit synced.
pub struct BareSqlite(Connection);

impl BareSqlite {
    /// A new database in this folder.
    pub fn new(folder: &Path) -> BareSqlite {
        let database = Connection::open(folder.join("bare.db")).unwrap();
        database
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE log (data BLOB);")
            .unwrap();
        BareSqlite(database)
    }

    /// Commits until the write-ahead log is written over and no longer grows, as in any database that has been in use
    /// for a while. SQLite begins again after 1,000 pages.
    pub fn settled(mut self) -> BareSqlite {
        (0..1_200).for_each(|_| self.commit());
        self
    }
}

impl Floor for BareSqlite {
    fn commit(&mut self) {
        self.0.prepare_cached("INSERT INTO log VALUES (?1)").unwrap().execute([&ROW[..]]).unwrap();
    }
}

/// A table in PostgreSQL.
pub struct BarePostgres {
    runtime: Runtime,
    client: Client,
    insert: Statement,
}

impl BarePostgres {
    /// A new table in the database at this address.
    pub fn new(address: &str) -> BarePostgres {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, insert) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
            drop(tokio::spawn(connection));
            client.batch_execute("CREATE TABLE bare (data bytea)").await.unwrap();
            let insert = client.prepare("INSERT INTO bare VALUES ($1)").await.unwrap();
            (client, insert)
        });
        BarePostgres { runtime, client, insert }
    }
}

impl Floor for BarePostgres {
    fn commit(&mut self) {
        self.runtime.block_on(self.client.execute(&self.insert, &[&ROW.as_slice()])).unwrap();
    }
}
