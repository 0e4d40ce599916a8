//! A home from its files to its threads: its store is taken, what was going on is taken up, its sessions are looked after.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sluice_api::problem::Problem;
use sluice_engine::host::{EngineInbox, Host, HostParts, RetentionTerm, StoreClaim};
use sluice_engine::reactor::ReactorMessage;
use sluice_engine::workers::{WorkerId, WorkerOffer};
use sluice_os::process::{HomeNesting, StrayProcesses};
use sluice_store::{Meaning, Store};

use crate::ask::Service;
use crate::ask::logins::PageLinks;
use crate::background::threads::spawn;
use crate::definitions::PinnedDefinitions;
use crate::effect::LocalExecutor;
use crate::fence::HomeFence;
use crate::home::Home;
use crate::home::registry::Registry;
use crate::home::worktrees;
use crate::perform::PerformContext;
use crate::perform::fence::StoreFence;
use crate::read::tasks::{ReadModel, STORE};
use crate::settings::attached;
use crate::settings::clock::WallClock;
use crate::settings::config::{ConfigFile, HomeConfig};
use crate::settings::identity::HomeIdentity;
use crate::settings::ids::{LOCAL, OWN};
use crate::settings::places::HomePaths;
use crate::settings::projects::Projects;
use crate::settings::store::closed;
use crate::settings::tokens::Tokens;
use crate::undone::described;

/// So many steps of runs are carried out at once on this machine.
const MOST_PERFORMANCES: usize = 64;
/// A store of so many bytes is looked through before anything is answered.
const LARGEST_AT_ONCE: u64 = 16 << 20;

impl Service {
    /// Opens a home: takes its store, takes up what was going on, looks after its sessions.
    pub fn open(places: HomePaths, address: Option<String>, program: PathBuf) -> Result<Service, Problem> {
        // First of all: a home that is made now remembers what is around it.
        HomeNesting::enter(places.home());
        let settings = ConfigFile::open(places.config())?;
        let projects = Projects::read(places.projects(), places.home().to_owned())?;
        let tokens = Tokens::read(places.tokens())?;
        let choice = attached::choose(&places, &settings.config(), address)?;
        let store = Store::open(&choice.address).map_err(|error| closed(&error))?;
        attached::must_hold_what_was_saved(&choice, &store)?;
        attached::remember(&places, &choice)?;
        let clock = Arc::new(WallClock::default());
        let (tasks, observer) =
            ReadModel::start(&store, Arc::new(PinnedDefinitions)).map_err(|error| closed(&error))?;
        verify(&store, &tasks)?;
        let (owner, fence) = claim(&places, &settings.config(), &store)?;
        let term = settings.config().retention.keep();
        let keep = term.map(|term| RetentionTerm::new(&mut *store.reader()?, &*clock, term)).transpose();
        let keep = keep.map_err(|error| closed(&error))?;
        let registry = Registry::read(&tasks)?;
        let inbox = EngineInbox::default();
        let bench = PerformContext::open(places, settings, program)?
            .fenced(fence.clone().map(|fence| fence as Arc<dyn StoreFence>));
        let home = Home::new(bench, projects, tasks, clock.clone(), registry, inbox.handle(), keep)
            .map_err(|error| Problem::fault(error.to_string()))?;
        let home = Arc::new(home);
        worktrees::sweep_spares(&home);
        // Without it what a script leaves behind is recognised by its environment alone.
        let strays = StrayProcesses::adopt().unwrap_or_default();
        if let Some(fence) = &fence {
            let weak = Arc::downgrade(&home);
            fence.asks(move || weak.upgrade().is_some_and(|home| !home.context.sessions.living().is_empty()));
        }
        let host = Host::start_at(
            inbox,
            HostParts {
                store: store.clone(),
                owner,
                clock,
                executor: Box::new(LocalExecutor::new(home.clone())),
                definitions: Arc::new(PinnedDefinitions),
                observer,
                keep,
            },
        )
        .map_err(|error| closed(&error))?;
        host.handle().send(ReactorMessage::Joined(WorkerOffer {
            id: WorkerId(OWN.into()),
            role: "any".into(),
            group: LOCAL.into(),
            knows_scratch: true,
            capacity: MOST_PERFORMANCES,
            lease: None,
        }));
        home.roster.take_up(&home);
        let looking = Arc::downgrade(&home);
        spawn("exits", move || crate::home::exits::keep_looking(looking, strays))?;
        let looking = Arc::downgrade(&home);
        spawn("sights", move || crate::home::sights::keep_looking(looking))?;
        let waiting = Arc::downgrade(&home);
        spawn("queue", move || crate::effect::queue::keep_going(waiting))?;
        crate::watch::notify::start(&home, host.fault_look())?;
        crate::watch::follower::start(&home)?;
        let finishing = Arc::downgrade(&home);
        spawn("merges", move || crate::effect::merges::keep_finishing(&finishing))?;
        Ok(Service { home, tokens, links: PageLinks::default(), fence, host: Mutex::new(Some(host)), store })
    }
}

/// Compares everything in the store with its sums. Damage that hits a key makes something seem not to be there, which no
/// single answer notices. A large store is looked through beside what is asked of it.
fn verify(store: &Store, tasks: &Arc<ReadModel>) -> Result<(), Problem> {
    let Some(bytes) = store.bytes() else { return Ok(()) };
    let (store, tasks) = (store.clone(), tasks.clone());
    let look = move || match store.verify() {
        Ok(found) => found.into_iter().for_each(|damage| tasks.note(damage)),
        Err(error) => match error.meaning() {
            Meaning::Damaged => tasks.note_damage(STORE.to_owned(), described(&error)),
            // It says nothing about what is stored; each read looks at what it reads all the same.
            Meaning::Unavailable(_) | Meaning::Refused | Meaning::Unusable => {}
        },
    };
    if bytes <= LARGEST_AT_ONCE {
        look();
        return Ok(());
    }
    spawn("verify", look)
}

/// Who owns the store, and what stops when it is another's. A store of this machine's alone is owned by the home: whoever
/// opens a home holds its lock, so an engine that still seems to own the store is dead, and need not be waited for.
/// Elsewhere a machine that was copied, with the home on it, may be at work: there the start of the machine counts too.
fn claim(
    places: &HomePaths,
    config: &HomeConfig,
    store: &Store,
) -> Result<(StoreClaim, Option<Arc<HomeFence>>), Problem> {
    let identity = HomeIdentity::of_original(places.home())?;
    if !store.is_shared() {
        // As engines before this one called themselves.
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let formerly = vec![format!("{}:{}", machine.trim(), places.home().display())];
        return Ok((StoreClaim { formerly, ..StoreClaim::from(identity.home.as_str()) }, None));
    }
    let fence = Arc::new(HomeFence::new(places.fence(), &identity)?);
    let (name, term) = (identity.name(), config.engine.term());
    Ok((StoreClaim { name, formerly: Vec::new(), term, fence: fence.clone() }, Some(fence)))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use sluice_core::event_name::EventName;
    use sluice_store::StreamId;

    use super::*;
    use crate::home::registry::{MOST_FACTS, RegistryChange, RegistryEntry, ledger, settle};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct NumberEntry(u64);

    impl RegistryEntry for NumberEntry {
        const PREFIX: &'static str = "number/";
    }

    #[test]
    fn a_long_ledger_makes_way_and_nothing_in_force_is_lost() {
        let home = tempfile::tempdir().expect("a folder");
        let places = HomePaths::new(home.path());
        let program = std::env::current_exe().expect("this test");
        let service = Service::open(places, Some("memory:".into()), program).expect("a home");
        let home = service.home();
        let say = |key: &str, value: u64| {
            let happened = RegistryChange::new(EventName::GroupCreated, "test", &value).put(key, &NumberEntry(value));
            home.registry.record(home, happened).expect("stored");
        };
        say("first", 1);
        (1..MOST_FACTS).for_each(|number| say("again", number));
        home.registry.tidy(home).expect("it is tidied");
        say("later", 2);
        let of = |stream: &StreamId| home.tasks.loader().reader().summary(stream).expect("a store");
        settle(home).expect("everything is stored");
        assert_eq!(of(&ledger(1)).expect("a new one").version, 2);
        assert!(!of(&ledger(0)).expect("the old one").card.open, "it is forgotten like ended work");
        home.registry.tidy(home).expect("there is nothing to do");
        assert_eq!(of(&ledger(2)), None);
        let read = Registry::read(&home.tasks).expect("read again");
        let values = ["first", "again", "later"].map(|key| read.get(key));
        assert_eq!(values, [Some(NumberEntry(1)), Some(NumberEntry(MOST_FACTS - 1)), Some(NumberEntry(2))]);
        service.close().expect("closed");
    }
}
