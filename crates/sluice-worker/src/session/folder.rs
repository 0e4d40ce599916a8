//! The folder of a session: which file holds what, and how it is written.
//!
//! | file | who writes it | what it says |
//! |---|---|---|
//! | `spec.json` | engine | what is to be run |
//! | `claim.json` | the first shim, or an engine that gives up | who alone may start the agent |
//! | `started.json` | shim | who runs; before the agent's first instruction |
//! | `kept.json` | worker | until when the agent may go on, if somebody must keep it |
//! | `ended.json` | engine | that we want it to end; before any signal |
//! | `exit.json` | shim | how the agent ended; before anything else is done about it |
//! | `output.log`, `output.N.log` | shim | what the agent printed; `errors.…` beside it when headless |
//! | `control.sock` | shim | where text for the agent is taken |
//! | `shim.log` | shim | what went wrong in the shim itself |

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record::{ExitRecord, KeeperTerm, SessionClaim, SessionEndRequest, SessionSpec, StartRecord};

/// Where the shim takes text for its agent.
pub(crate) const CONTROL: &str = "control.sock";
/// What went wrong in the shim.
pub(crate) const SHIM_LOG: &str = "shim.log";

/// The folder of one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionFolder(pub(crate) PathBuf);

impl SessionFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, for its owner only: the environment of the agent stands in it.
    pub(crate) fn create(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        self.0.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    pub(crate) fn spec(&self) -> io::Result<Option<SessionSpec>> {
        self.read("spec.json")
    }

    pub(crate) fn claim(&self) -> io::Result<Option<SessionClaim>> {
        self.read("claim.json")
    }

    pub(crate) fn started(&self) -> io::Result<Option<StartRecord>> {
        self.read("started.json")
    }

    pub(crate) fn asked(&self) -> io::Result<Option<SessionEndRequest>> {
        self.read("ended.json")
    }

    pub(crate) fn exit(&self) -> io::Result<Option<ExitRecord>> {
        self.read("exit.json")
    }

    pub(crate) fn kept_until(&self) -> io::Result<Option<KeeperTerm>> {
        self.read("kept.json")
    }

    /// Written whole, but not durable: with the machine the agent goes as well.
    pub(crate) fn write_kept(&self, kept: KeeperTerm) -> io::Result<()> {
        let beside = self.beside("kept.json");
        std::fs::write(&beside, serde_json::to_vec(&kept)?)?;
        std::fs::rename(beside, self.0.join("kept.json"))
    }

    /// Keeps what was run, but not with which environment: there may be secrets in it.
    pub(crate) fn forget_environment(&self) -> io::Result<()> {
        let Some(mut spec) = self.spec()? else { return Ok(()) };
        spec.environment.clear();
        self.write_spec(&spec)
    }

    pub(crate) fn write_spec(&self, spec: &SessionSpec) -> io::Result<()> {
        self.write("spec.json", spec)
    }

    pub(crate) fn write_started(&self, record: &StartRecord) -> io::Result<()> {
        self.write("started.json", record)
    }

    pub(crate) fn write_asked(&self, asked: &SessionEndRequest) -> io::Result<()> {
        self.write("ended.json", asked)
    }

    pub(crate) fn write_exit(&self, exit: &ExitRecord) -> io::Result<()> {
        self.write("exit.json", exit)
    }

    /// Takes the one right to start the agent. Says whether it was still free.
    pub(crate) fn take_claim(&self, claim: &SessionClaim) -> io::Result<bool> {
        let beside = self.write_beside("claim.json", claim)?;
        // A link, unlike a rename, is refused when the name is taken: of many claims exactly one succeeds.
        let linked = std::fs::hard_link(&beside, self.0.join("claim.json"));
        std::fs::remove_file(&beside)?;
        match linked {
            Ok(()) => self.sync().map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match std::fs::read(self.0.join(name)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Written whole, durable when this returns: the file first, then its name.
    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let beside = self.write_beside(name, value)?;
        std::fs::rename(beside, self.0.join(name))?;
        self.sync()
    }

    fn write_beside(&self, name: &str, value: &impl Serialize) -> io::Result<PathBuf> {
        let beside = self.beside(name);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(value)?)?;
        file.sync_all()?;
        Ok(beside)
    }

    /// A name that nobody else uses, for a file that is to be moved to its own.
    fn beside(&self, name: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        self.0.join(format!(".{name}.{}.{count}", std::process::id()))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}
