//! Who asks: what a process belongs to, whatever it says about itself.

use super::record::StartRecord;
use super::{SessionId, Sessions};
use crate::process::{HomeNesting, MOST_ANCESTORS, ProcessIdentity, ProcessStat, environment, script_of, stat};

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

    /// Who this process itself is to a home without an engine. Nobody then knows which session or script it belongs to.
    pub fn asker_without_engine(within: &HomeNesting) -> ProcessAsker {
        let looked = |own: ProcessIdentity| looked_at(&own, |first| walk(first, within, &[], None));
        ProcessIdentity::own().map_or(ProcessAsker::Gone, looked)
    }
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
