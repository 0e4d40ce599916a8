//! Who asks: what a process belongs to, whatever it says about itself.

use std::collections::BTreeMap;

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
    /// that loses its own; or up to the engine, which does the same for what is of no session. At each of them the
    /// terminal session and the marks in the environment are looked at too, for what neither could hold; and at last the
    /// mark that no process can take off.
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
    for _ in 0..MOST_ANCESTORS {
        // Whoever started the engine does not matter: a command of an agent may have.
        if Some(process.pid) == engine {
            return Some(ProcessAsker::Started);
        }
        // Whoever cannot be looked at is not taken for a person.
        let environment = environment(process.pid).ok()?;
        let carries = |mark: &str| environment.iter().any(|entry| entry == mark.as_bytes());
        let found = sessions.iter().find(|(_, record)| belongs(&process, record) || carries(&record.mark));
        if let Some((id, _)) = found {
            return Some(ProcessAsker::Session(id.clone()));
        }
        if let Some(script) = script_of(&process, &environment) {
            return Some(script.map_or(ProcessAsker::Started, ProcessAsker::Script));
        }
        if within.holds(&environment) {
            return Some(ProcessAsker::Started);
        }
        if process.parent == 0 {
            break;
        }
        process = stat(process.parent)?;
    }
    Some(if within.marks(first.pid).ok()? { ProcessAsker::Started } else { ProcessAsker::Outside })
}

fn belongs(process: &ProcessStat, record: &StartRecord) -> bool {
    let is = |identity: &ProcessIdentity| process.identity() == *identity;
    is(&record.shim)
        || is(&record.agent)
        || (process.session == record.agent.pid && process.start >= record.agent.start)
}
