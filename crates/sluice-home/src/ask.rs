//! What can be asked of a home. Each question is answered when its answer is durable; a person's also waits until what
//! follows from it has settled.

mod access;
mod approve;
mod attention;
mod board;
mod change;
mod changes;
mod checkouts;
mod collect;
mod costs;
mod definitions;
pub mod denied;
mod diff;
mod evidence;
mod file;
pub(crate) mod keys;
pub(crate) mod logins;
mod look;
mod merge;
mod page;
mod printing;
mod run_merge;
pub(crate) mod runs;
mod schedules;
mod screen;
mod settle;
mod signal;
mod strays;
mod views;
mod who;
mod workers;
mod workspaces;

pub use access::{Bearer, DeniedBearer};
pub use costs::CostsFilter;
pub use definitions::{DefinitionDetail, DefinitionFinding, DefinitionInput, DefinitionPicture, DefinitionSummary};
pub use evidence::EvidenceShown;
pub use keys::{IdempotencyKey, KeyStatus, KeyedId};
pub use logins::{LINK_LASTS, SESSION_LASTS};
pub use look::{Census, TaskFilter};
pub use page::{ListPage, PageQuery};
pub use printing::{LogFollower, LogNews, LogWaker};
pub use runs::by_hand;
pub use sluice_os::process::ProcessIdentity;
pub use who::{RequestAccess, Requester};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_api::problem::Problem;
use sluice_engine::host::Host;
use sluice_store::Store;

use crate::ask::logins::PageLinks;
use crate::background::locked;
use crate::fence::HomeFence;
use crate::home::{Home, registry};
use crate::settings::backup;
use crate::settings::store::closed;
use crate::settings::tokens::Tokens;

/// How long a session waits for the answer of a person.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A home that is open.
pub struct Service {
    pub(crate) home: Arc<Home>,
    pub(crate) tokens: Tokens,
    pub(crate) links: PageLinks,
    /// What stops everything when the store becomes another engine's; nothing where it cannot.
    pub(crate) fence: Option<Arc<HomeFence>>,
    pub(crate) host: Mutex<Option<Host>>,
    pub(crate) store: Store,
}

impl Service {
    pub fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// What is known to be damaged in the store, and why.
    pub fn damage(&self) -> BTreeMap<String, String> {
        self.home.tasks.damage()
    }

    /// Since when agents and scripts are paused because the store does not answer, if they are.
    pub fn paused(&self) -> Option<String> {
        self.fence.as_ref().and_then(|fence| fence.paused())
    }

    /// Why `config.toml` as it is now does not count, if it does not.
    pub fn config_trouble(&self) -> Option<String> {
        self.home.context.config_trouble()
    }

    /// Whether the engine has ended by itself.
    pub fn has_ended(&self) -> bool {
        locked(&self.host).as_ref().is_none_or(Host::has_ended)
    }

    /// Whether nothing is going on that the engine must be there for.
    pub fn is_idle(&self) -> bool {
        let tasks = self.home.tasks.open();
        tasks
            .iter()
            .all(|seen| seen.state.turns.is_empty() && !seen.state.main.is_living() && !seen.state.beside.is_living())
            && !self.home.tasks.runs_want_something()
            && !self.home.notices.owes()
    }

    /// What cannot be understood in the store, and why.
    pub fn faults(&self) -> Vec<(String, String)> {
        let host = locked(&self.host);
        let faults = host.as_ref().map(Host::faults).unwrap_or_default();
        faults.into_iter().map(|(stream, why)| (stream.to_string(), why)).collect()
    }

    /// Ends the engine. Sessions go on, unless the store is another engine's now: then so is their work.
    pub fn close(&self) -> Result<(), Problem> {
        let host = locked(&self.host).take();
        let stopped = host.map_or(Ok(()), Host::stop).map_err(|error| closed(&error));
        if self.fence.as_ref().is_some_and(|fence| fence.is_lost()) {
            self.home.context.end_everything();
        }
        stopped
    }

    /// Whether the store is still in its place.
    pub fn is_present(&self) -> bool {
        self.store.present().is_ok()
    }

    /// What became of a store that is not in its place any more. The engine hears of it now, and ends when what was stored is
    /// saved; a copy that takes longer than anybody waits is told as one that is being made.
    pub fn gone(&self) -> Problem {
        let heard = registry::settle(&self.home).err();
        let known = self.store.present().err().map(|error| closed(&error));
        known.or(heard).unwrap_or_else(|| Problem::unavailable("the store was not in its place a moment ago"))
    }

    pub fn backup(&self, who: &Requester, file: &std::path::Path) -> Result<(), Problem> {
        who.must_be_person("a backup")?;
        backup::copy(&self.store, file)
    }
}
