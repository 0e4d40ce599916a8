//! One connection, made when it is needed and given up at the first trouble.
//!
//! Giving it up is the only answer to any error: the server then ends whatever was going on, so no transaction is ever
//! left half open. Never tries anything twice by itself: only the caller knows what may be repeated.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use crate::StoreError;

/// How long a connection may take to be made, and a lock to be had.
const SHORT: Duration = Duration::from_secs(5);
/// How long a batch may take before the server counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a look-up may take: a caller waits for it, and can ask again.
const LOOK_UP: Duration = Duration::from_secs(10);
/// For how long after a look-up without an answer others are told so at once: those who waited behind it would wait as long.
const SILENT: Duration = Duration::from_secs(1);
/// When to ask again after the first failure; doubled by each further one.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(5);

// - A batch may be one statement without a transaction around it, whose isolation could be said there.
// - A server told to lose commits would break our promise; a stricter setting is left alone.
// - A machine that vanished inside a transaction must not hold the owner's row for ever.
// - Everything we ask is a look-up or a walk along an index. Statistics that are old or not there yet must not talk the
//   planner into reading a whole table or sorting it. What is switched off counts as enormously dear, and what is dear
//   is compiled first, which takes 100 ms: hence no `jit`. And since there is one good plan for each statement whatever
//   its values, it is made once.
const SETTINGS: &str = "
SET search_path = sluice, pg_catalog;
SET default_transaction_isolation = 'read committed';
SET lock_timeout = '5s';
SET idle_in_transaction_session_timeout = '10s';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off;
SET jit = off;
SET plan_cache_mode = force_generic_plan;
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local');
";

/// What is the matter with a server to which there is no connection.
const GONE: &str = "cannot be reached";

pub(super) struct PostgresLink {
    runtime: Runtime,
    config: Config,
    place: String,
    session: Option<PostgresSession>,
    failures: u32,
    /// Until when the server is taken for one that does not answer.
    silent_until: Option<Instant>,
}

pub(super) struct PostgresSession {
    pub(super) client: Client,
    statements: HashMap<String, Statement>,
}

/// Why some work on a connection did not come to its end.
pub(super) enum PostgresTrouble {
    /// PostgreSQL, or the way to it.
    Sql(Error),
    /// Ours; the connection is as it should be.
    Store(StoreError),
}

impl From<Error> for PostgresTrouble {
    fn from(error: Error) -> PostgresTrouble {
        PostgresTrouble::Sql(error)
    }
}

impl PostgresSession {
    /// The statement, prepared at its first use on this connection.
    pub(super) async fn prepare(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl PostgresLink {
    pub(super) fn new(mut config: Config, place: String) -> Result<PostgresLink, StoreError> {
        config.connect_timeout(SHORT).tcp_user_timeout(PATIENCE);
        if config.get_application_name().is_none() {
            config.application_name("sluice");
        }
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| StoreError::Failed { place: place.clone(), source: error.into() })?;
        Ok(PostgresLink { runtime, config, place, session: None, failures: 0, silent_until: None })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn corrupt(&self, detail: String) -> StoreError {
        StoreError::Corrupt { place: self.place.clone(), detail }
    }

    /// Asks something that changes nothing. A connection that broke while nobody used it is made again at once: what
    /// only reads may be asked twice.
    pub(super) fn read<T>(
        &mut self,
        work: impl AsyncFn(&mut PostgresSession) -> Result<T, PostgresTrouble>,
    ) -> Result<T, StoreError> {
        if self.silent_until.is_some_and(|until| Instant::now() < until) {
            let elapsed = std::io::Error::from(std::io::ErrorKind::TimedOut);
            return Err(self.unavailable("does not answer", elapsed.into()));
        }
        let was_open = self.session.is_some();
        match self.within(LOOK_UP, &work) {
            Err(StoreError::Unavailable { why: GONE, .. }) if was_open && self.failures == 1 => {
                self.within(LOOK_UP, work)
            }
            answer => answer,
        }
    }

    pub(super) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut PostgresSession) -> Result<T, PostgresTrouble>,
    ) -> Result<T, StoreError> {
        self.within(PATIENCE, work)
    }

    fn within<T>(
        &mut self,
        patience: Duration,
        work: impl AsyncFnOnce(&mut PostgresSession) -> Result<T, PostgresTrouble>,
    ) -> Result<T, StoreError> {
        let PostgresLink { runtime, config, session, .. } = self;
        let done = runtime.block_on(async {
            let work = async {
                let session = match session {
                    Some(open) if !open.client.is_closed() => open,
                    _ => session.insert(connect(config).await?),
                };
                work(session).await
            };
            tokio::time::timeout(patience, work).await
        });
        match done {
            Ok(Ok(answer)) => {
                (self.failures, self.silent_until) = (0, None);
                Ok(answer)
            }
            Ok(Err(PostgresTrouble::Store(error))) => Err(error),
            Ok(Err(PostgresTrouble::Sql(error))) => {
                self.session = None;
                Err(self.fault(error))
            }
            Err(elapsed) => {
                self.session = None;
                self.silent_until = Some(Instant::now() + SILENT);
                Err(self.unavailable("does not answer", elapsed.into()))
            }
        }
    }

    fn unavailable(&mut self, why: &'static str, source: crate::error::StoreErrorCause) -> StoreError {
        let retry_after = LAST_RETRY.min(FIRST_RETRY * 2_u32.pow(self.failures.min(10)));
        self.failures = self.failures.saturating_add(1);
        StoreError::Unavailable { place: self.place.clone(), why, retry_after, source }
    }

    /// What PostgreSQL says, as what one can do about it.
    fn fault(&mut self, error: Error) -> StoreError {
        let place = self.place.clone();
        // Without a code it was not the server that spoke: the connection could not be made, or broke.
        let Some(code) = error.code() else { return self.unavailable(GONE, error.into()) };
        match *code {
            SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY => StoreError::Full { place },
            // A standby, or a server that somebody has made read-only for a while: what is asked again may reach another.
            SqlState::READ_ONLY_SQL_TRANSACTION => self.unavailable("takes no writes at the moment", error.into()),
            SqlState::CANNOT_CONNECT_NOW => self.unavailable("is starting or stopping", error.into()),
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
                StoreError::Corrupt { place, detail: error.to_string() }
            }
            SqlState::INVALID_CATALOG_NAME
            | SqlState::INVALID_PASSWORD
            | SqlState::INVALID_AUTHORIZATION_SPECIFICATION
            | SqlState::INSUFFICIENT_PRIVILEGE => StoreError::CannotOpen { place, source: error.into() },
            SqlState::LOCK_NOT_AVAILABLE | SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => {
                self.unavailable("is kept waiting by another transaction", error.into())
            }
            // 08: connection; 53: resources; 57: the server is told to stop, or is starting.
            _ if ["08", "53", "57"].iter().any(|class| code.code().starts_with(class)) => {
                self.unavailable(GONE, error.into())
            }
            _ => StoreError::Failed { place, source: error.into() },
        }
    }
}

async fn connect(config: &Config) -> Result<PostgresSession, Error> {
    let (client, connection) = config.connect(NoTls).await?;
    // What breaks the connection also fails whatever is asked on it, so nobody needs this task's answer.
    drop(tokio::spawn(connection));
    client.batch_execute(SETTINGS).await?;
    Ok(PostgresSession { client, statements: HashMap::new() })
}
