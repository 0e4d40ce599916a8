//! A mark that no process can take off: the limit of its file locks.
//!
//! No kernel since Linux 2.4.25 looks at that limit, but every one keeps it: it goes through every fork and every program
//! that a process becomes, with and without environment, parent and terminal; a process may lower it and never raise it
//! again, unless it is root. An engine lowers its own when it starts, so everything that comes from it stands deeper than
//! those around it, whatever it does to hide and whoever of its ancestors still lives.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many engines can be started inside each other and be told apart.
const DEEPEST: u64 = 1 << 12;
/// Bits of a mark that tell one home from another at the same depth.
const HOME: u32 = 40;
/// The lowest limit that is no mark. Below it the depth counts down.
const UNMARKED: u64 = 1 << 60;

/// How deep a process stands inside engines: the limit of its file locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NestingMark(u64);

impl NestingMark {
    pub(crate) fn own() -> NestingMark {
        NestingMark(getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX))
    }

    /// Of another process; none where the system does not show limits. Of one that has gone, or cannot be looked at at the
    /// moment, nothing can be said.
    pub(crate) fn of(pid: i32) -> io::Result<NestingMark> {
        let limits = match std::fs::read_to_string(format!("/proc/{pid}/limits")) {
            Err(_) if !Path::new("/proc/self/limits").try_exists()? => return Ok(NestingMark(u64::MAX)),
            limits => limits?,
        };
        // One that goes at this moment has an empty list.
        if limits.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"));
        let limit = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        Ok(NestingMark(limit.unwrap_or(u64::MAX)))
    }

    /// How many engines a process with this mark is inside of. A limit that is lower than any mark is as deep as can be.
    pub(crate) fn depth(self) -> u64 {
        match self.0.checked_sub(UNMARKED) {
            Some(_) => 0,
            None => (((UNMARKED - 1 - self.0) >> HOME) + 1).min(DEEPEST),
        }
    }

    /// How many engines of other homes a process with this mark is inside of.
    pub(crate) fn depth_around(self, home: &str) -> u64 {
        let depth = self.depth();
        let is_of_home = depth > 0 && self.0 & ((1 << HOME) - 1) == digest(home);
        if is_of_home { depth - 1 } else { depth }
    }

    /// The mark of what the engine of a home starts, when the engine itself has this one and so many are around the home.
    fn below(self, home: &str, around: u64) -> NestingMark {
        let depth = (self.depth().max(around) + 1).min(DEEPEST);
        NestingMark((UNMARKED - (depth << HOME)) | digest(home))
    }

    /// Puts the mark of a home on this process, and so on everything that it starts from now on.
    pub(crate) fn put_below(self, home: &str, around: u64) -> std::io::Result<()> {
        let mark = Some(self.below(home, around).0.min(self.0));
        Ok(setrlimit(Resource::Locks, Rlimit { current: mark, maximum: mark })?)
    }
}

/// What tells a home from others, in as many bits as a mark has for it.
fn digest(home: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    home.hash(&mut hasher);
    hasher.finish() >> (u64::BITS - HOME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_started_by_an_engine_stands_deeper_and_stays_there() {
        let outside = NestingMark(u64::MAX);
        let (agent, other) = (outside.below("/one", 0), outside.below("/two", 0));
        assert_eq!((outside.depth(), agent.depth(), other.depth()), (0, 1, 1));
        assert_ne!(agent, other);
        assert_eq!((agent.depth_around("/one"), agent.depth_around("/two")), (0, 1));
        let mut deeper = agent;
        for depth in 2..100 {
            let next = deeper.below("/inner", 0);
            assert!(next.0 < deeper.0 && next.depth() == depth, "{depth}");
            deeper = next;
        }
        // Whoever starts the engine of a home, what comes from it stands deeper than those around the home.
        assert_eq!(outside.below("/inner", 3).depth(), 4);
        // Lowered on purpose it is only deeper.
        assert!((0..100).all(|limit| NestingMark(limit).depth() == DEEPEST));
        assert_eq!(NestingMark::of(rustix::process::getpid().as_raw_nonzero().get()).unwrap(), NestingMark::own());
        // Nobody has this number, and nothing is said of nobody.
        assert!(NestingMark::of(i32::MAX).is_err());
    }
}
