//! Who asks: what a process belongs to, whatever it says about itself.

use std::collections::{BTreeMap, BTreeSet};

use super::record::StartRecord;
use super::{SessionId, Sessions};
use crate::process::{
    HomeNesting, MARK, MOST_ANCESTORS, ProcessIdentity, ProcessStat, environment, environment_of, script_of, stat,
};

/// How often the ancestors of a process are looked at when one of them ends meanwhile.
const MOST_WALKS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessAsker {
    Session(SessionId),
    /// It belongs to a script that runs and speaks for this.
    Script(String),
    /// The engine started it, or it was left behind by what an engine started: it speaks for nobody.
    Started,
    Outside,
    /// It is gone or cannot be looked at, and nothing can be said about it. It must not be taken for an outsider.
    Gone,
}

impl Sessions {
    /// Who a process is. Its ancestors are looked at up to a shim, which becomes the parent of everything below it
    /// that loses its own; or up to a script's first process; or up to the engine, which does the same for what is of no
    /// session. The terminal session is looked at too. Marks in the environment are for what none of these could hold: a
    /// process writes them as it likes, so ancestors go before marks, and marks that disagree are worth nothing. At last
    /// comes the mark that no process can take off.
    pub fn asker(&self, asking: &ProcessIdentity, within: &HomeNesting) -> ProcessAsker {
        let engine = rustix::process::getpid().as_raw_nonzero().get();
        looked_at(asking, |first| walk(first, within, &self.watcher.known(), Some(engine)))
    }

    /// With which environment the session or script was started that a process belongs to; nothing for one that is of none.
    /// It is for an engine that has just begun, and knows no session yet. What a process of a session has set since is not
    /// in it.
    pub fn given_to(&self, process: &ProcessIdentity, within: &HomeNesting) -> Option<BTreeMap<String, String>> {
        let started = |id: SessionId| self.folder(&id).started().ok().flatten().map(|record| (id, record));
        let known: Vec<(SessionId, StartRecord)> =
            self.list().unwrap_or_default().into_iter().filter_map(started).collect();
        match looked_at(process, |first| walk(first, within, &known, None)) {
            ProcessAsker::Session(id) => {
                let spec = self.folder(&id).spec().ok().flatten();
                Some(spec.map(|spec| spec.environment).unwrap_or_default())
            }
            ProcessAsker::Script(_) | ProcessAsker::Started => Some(
                first_of_script(process).map(|first| environment_of(&first).into_iter().collect()).unwrap_or_default(),
            ),
            ProcessAsker::Outside | ProcessAsker::Gone => None,
        }
    }

    /// Who this process itself is to a home without an engine. Nobody then knows which session or script it belongs to.
    pub fn asker_without_engine(within: &HomeNesting) -> ProcessAsker {
        let looked = |own: ProcessIdentity| looked_at(&own, |first| walk(first, within, &[], None));
        ProcessIdentity::own().map_or(ProcessAsker::Gone, looked)
    }
}

/// The process with which the script began that a process belongs to.
fn first_of_script(process: &ProcessIdentity) -> Option<ProcessIdentity> {
    let carries = |pid: i32| {
        environment(pid).is_ok_and(|all| all.iter().any(|entry| entry.starts_with(format!("{MARK}=").as_bytes())))
    };
    let (mut first, mut next) = (None, stat(process.pid));
    for _ in 0..MOST_ANCESTORS {
        let Some(here) = next.take().filter(|here| carries(here.pid)) else { break };
        next = stat(here.parent);
        first = Some(here.identity());
    }
    first
}

/// Looks at a process until it is known who it is.
fn looked_at(asking: &ProcessIdentity, walk: impl Fn(ProcessStat) -> Option<ProcessAsker>) -> ProcessAsker {
    for _ in 0..MOST_WALKS {
        let look = || stat(asking.pid).filter(|stat| !stat.ended && stat.identity() == *asking);
        let Some(first) = look() else { break };
        if let Some(found) = walk(first) {
            // What was seen is seen again: its number may have been given to another meanwhile.
            return look().map_or(ProcessAsker::Gone, |_| found);
        }
    }
    ProcessAsker::Gone
}

/// Looks at a process and its ancestors; nothing if one of them ended meanwhile, and its child is at home elsewhere, or
/// if one of them cannot be looked at.
fn walk(
    first: ProcessStat,
    within: &HomeNesting,
    sessions: &[(SessionId, StartRecord)],
    engine: Option<i32>,
) -> Option<ProcessAsker> {
    let mut process = first.clone();
    let (mut carried, mut is_within) = (BTreeSet::new(), false);
    for _ in 0..MOST_ANCESTORS {
        // Whoever started the engine does not matter: a command of an agent may have.
        if Some(process.pid) == engine {
            return Some(ProcessAsker::Started);
        }
        if let Some((id, _)) = sessions.iter().find(|(_, record)| belongs(&process, record)) {
            return Some(ProcessAsker::Session(id.clone()));
        }
        // A process that the engine cannot look at is not taken for a person.
        let environment = environment(process.pid).ok()?;
        if let Some(script) = script_of(&process, &environment, engine) {
            return Some(script.map_or(ProcessAsker::Started, ProcessAsker::Script));
        }
        let carries = |mark: &str| environment.iter().any(|entry| entry == mark.as_bytes());
        carried.extend(sessions.iter().filter(|(_, record)| carries(&record.mark)).map(|(id, _)| id.clone()));
        is_within |= within.holds(&environment);
        if process.parent == 0 {
            break;
        }
        process = stat(process.parent)?;
    }
    let mut carried = carried.into_iter();
    match (carried.next(), carried.next()) {
        (Some(id), None) => Some(ProcessAsker::Session(id)),
        (None, None) if !is_within && !within.marks(first.pid).ok()? => Some(ProcessAsker::Outside),
        (None, _) | (Some(_), Some(_)) => Some(ProcessAsker::Started),
    }
}

fn belongs(process: &ProcessStat, record: &StartRecord) -> bool {
    let is = |identity: &ProcessIdentity| process.identity() == *identity;
    is(&record.shim)
        || is(&record.agent)
        || (process.session == record.agent.pid && process.start >= record.agent.start)
}
