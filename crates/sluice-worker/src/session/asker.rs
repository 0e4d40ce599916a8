//! Who asks: which session a process belongs to, whatever it says about itself.

use super::record::StartRecord;
use super::{SessionId, Sessions};
use crate::process::{Identity, Stat, carries, stat};

/// Ancestors that are looked at; nobody has more.
const MOST_ANCESTORS: usize = 1000;

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// It belongs to this session.
    Session(SessionId),
    /// It belongs to none.
    Outside,
    /// It is gone, and nothing can be said about it. It must not be taken for an outsider.
    Gone,
}

impl Sessions {
    /// Who a process is. Its ancestors are looked at up to a shim, which becomes the parent of everything below it
    /// that loses its own; and at each of them the terminal session and the mark in the environment, for what the
    /// shim could not hold.
    pub fn asker(&self, pid: i32) -> Asker {
        let Some(first) = stat(pid).filter(|stat| !stat.ended) else { return Asker::Gone };
        let sessions = self.watcher.known();
        // What the engine itself runs is of no session, even if a command of an agent once started the engine.
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut next = Some(first.clone());
        for _ in 0..MOST_ANCESTORS {
            let Some(process) = next.filter(|process| process.pid != own) else { break };
            let marks = sessions.iter().map(|(_, record)| record.mark.as_str());
            let by_number = sessions.iter().find(|(_, record)| belongs(&process, record));
            let found = by_number.or_else(|| {
                let mark = carries(process.pid, marks)?;
                sessions.iter().find(|(_, record)| record.mark == mark)
            });
            if let Some((id, _)) = found {
                return Asker::Session(id.clone());
            }
            next = stat(process.parent);
        }
        // A parent may have ended during the walk, and the child be at home elsewhere: what was seen is seen again.
        if Identity::of(pid) == Some(first.identity()) { Asker::Outside } else { Asker::Gone }
    }
}

fn belongs(process: &Stat, record: &StartRecord) -> bool {
    let is = |identity: &Identity| process.identity() == *identity;
    is(&record.shim)
        || is(&record.agent)
        || (process.session == record.agent.pid && process.start >= record.agent.start)
}
