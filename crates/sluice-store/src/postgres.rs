//! A store in PostgreSQL, for several machines: one engine at a time writes, the others wait to take over.
//!
//! Each writer and reader has one connection and drives it itself, from the thread that calls it; it must not be called
//! from inside an async runtime. A connection that broke is made again by the next call. Nothing here waits for the
//! server to come back (the caller is told when to ask again), sends a NOTIFY, or uses a sequence as a cursor.
//!
//! Connections are not encrypted yet: use a unix socket, or a network you trust.

mod columns;
mod hazards;
mod link;
mod plan;
mod reader;
mod schema;
mod step;
mod writer;

use std::fmt::Write;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::StoreError;
pub use hazards::Hazard;
use link::PostgresLink;
pub use reader::PostgresReader;
pub use writer::PostgresWriter;

/// A store in PostgreSQL. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Postgres {
    config: Config,
    place: String,
}

impl Postgres {
    /// Opens the store in the database at this address (`postgres://user@host/database`), makes its tables if they are
    /// not there, and brings them up to date. They stand in a schema of their own, `sluice`.
    pub fn open(address: &str) -> Result<Postgres, StoreError> {
        let mut config: Config = address.parse().map_err(|_| StoreError::Address(without_password(address)))?;
        let place = place(&config);
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        let postgres = Postgres { config, place };
        schema::update(&mut postgres.link()?)?;
        Ok(postgres)
    }

    /// What the store at this address is called. Opens nothing.
    pub(crate) fn name_of(address: &str) -> Result<String, StoreError> {
        let config: Config = address.parse().map_err(|_| StoreError::Address(without_password(address)))?;
        Ok(place(&config))
    }

    /// A writer, which owns nothing yet.
    pub fn writer(&self) -> Result<PostgresWriter, StoreError> {
        Ok(PostgresWriter::new(self.link()?))
    }

    /// A reader with a connection of its own, which needs no ownership.
    pub fn reader(&self) -> Result<PostgresReader, StoreError> {
        Ok(PostgresReader::new(self.link()?))
    }

    /// Settings of the server with which it can lose what it said was stored.
    pub fn hazards(&self) -> Result<Vec<Hazard>, StoreError> {
        hazards::hazards(&mut self.link()?)
    }

    fn link(&self) -> Result<PostgresLink, StoreError> {
        PostgresLink::new(self.config.clone(), self.place.clone())
    }
}

/// How messages name the database: where it is and what it is called, never who asks or with which password.
fn place(config: &Config) -> String {
    let mut place = "postgres://".to_owned();
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => place.push_str(host),
        #[cfg(unix)]
        Some(Host::Unix(path)) => {
            let _ = write!(place, "{}", path.display());
        }
        None => {}
    }
    if let Some(port) = config.get_ports().first().filter(|port| **port != 5432) {
        let _ = write!(place, ":{port}");
    }
    let _ = write!(place, "/{}", config.get_dbname().unwrap_or_default());
    place
}

/// An address that cannot be read, less what may be a password in it.
fn without_password(address: &str) -> String {
    match address.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://…@{rest}"),
        None => address.to_owned(),
    }
}
