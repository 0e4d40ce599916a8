//! Whether what went wrong passes: the machine is short of something (file descriptors, processes, memory, a disk that takes
//! what is written), or somebody else is at it. The same call may succeed later, so it is no outcome of what was to be done.
//!
//! What the system says has a number. What another program says about its own want of the same things is a text: git,
//! tmux and the shim use the system's words.

use std::io;

use rustix::io::Errno;

use crate::git::{GitError, GitErrorFamily};
use crate::session::{self, ExitRecord};
use crate::taskfile::TaskFileError;
use crate::{process, tmux};

/// What the system answers when it has too little of something.
const SHORTAGES: [Errno; 7] =
    [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::NOSPC, Errno::DQUOT, Errno::ROFS];
/// The same in the words that programs print, and git's own for memory, for a disk that takes no more of a file, and for what
/// another git is about to write.
const WORDS: [&str; 11] = [
    "Too many open files",
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "Out of memory",
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Out of diskspace",
    "unable to write file",
    "unable to create thread",
    // Another git makes a worktree of the same repository, and has not written this file yet.
    "commondir: Success",
];

pub trait PassingError: std::error::Error {
    /// Whether the same call may succeed later, with nothing changed but what the machine has to give.
    fn is_passing(&self) -> bool;
}

/// Whether a program says that the machine has too little of something.
pub(crate) fn tells_of_shortage(said: &str) -> bool {
    WORDS.iter().any(|words| said.contains(words))
}

/// Whether git says so of this machine. What a remote says of its own, git passes on with its name in front.
pub(crate) fn tells_of_own_shortage(said: &str) -> bool {
    let is_own = |line: &&str| !["remote:", "error: remote", "! [remote"].iter().any(|it| line.starts_with(it));
    said.split("; ").filter(is_own).any(tells_of_shortage)
}

impl PassingError for io::Error {
    fn is_passing(&self) -> bool {
        let number = self.raw_os_error();
        SHORTAGES.iter().any(|shortage| number == Some(shortage.raw_os_error()))
            || self.kind() == io::ErrorKind::OutOfMemory
    }
}

impl PassingError for GitError {
    fn is_passing(&self) -> bool {
        match self {
            // What a remote says no to it says no to again, unless it is this machine that cannot ask.
            GitError::Push { said, .. } | GitError::Forge { said, .. } => tells_of_own_shortage(said),
            // Nothing says that it is ever over: a remote hangs, a lock was left behind, somebody never stops writing.
            GitError::Late { .. } | GitError::Locked { .. } | GitError::Changing { .. } => false,
            other => other.family() == GitErrorFamily::Unavailable,
        }
    }
}

impl PassingError for process::ProcessFailure {
    fn is_passing(&self) -> bool {
        match self {
            process::ProcessFailure::Start { source, .. } | process::ProcessFailure::System { source, .. } => {
                source.is_passing()
            }
            // It has begun: whether it is run again is not ours to say.
            process::ProcessFailure::Begun { .. } | process::ProcessFailure::TooLong { .. } => false,
        }
    }
}

impl PassingError for tmux::TmuxFailure {
    fn is_passing(&self) -> bool {
        match self {
            tmux::TmuxFailure::Start(source) => source.is_passing(),
            tmux::TmuxFailure::Said { said, .. } => tells_of_shortage(said),
            // Whoever stopped it lets it go on, or ends it; then the next server is asked.
            tmux::TmuxFailure::Hangs { .. } => true,
        }
    }
}

impl PassingError for session::SessionFailure {
    fn is_passing(&self) -> bool {
        match self {
            session::SessionFailure::System { source, .. } => source.is_passing(),
            session::SessionFailure::Tmux(failure) => failure.is_passing(),
            session::SessionFailure::Start { why, .. } => tells_of_shortage(why),
            session::SessionFailure::Late { .. } => true,
            session::SessionFailure::Refused(_)
            | session::SessionFailure::Unknown(_)
            | session::SessionFailure::Stubborn { .. } => false,
        }
    }
}

impl PassingError for TaskFileError {
    fn is_passing(&self) -> bool {
        match self {
            TaskFileError::Unreadable { source, .. } | TaskFileError::Unwritable { source, .. } => source.is_passing(),
            TaskFileError::Missing { .. }
            | TaskFileError::Link { .. }
            | TaskFileError::NotAFile { .. }
            | TaskFileError::TooLarge { .. } => false,
        }
    }
}

impl ExitRecord {
    /// Why its agent was never started, if that was for want of something that the machine has again later.
    pub fn shortage(&self) -> Option<&str> {
        match &self.end {
            session::AgentEnd::NotStarted(why) if tells_of_shortage(why) => Some(why),
            session::AgentEnd::NotStarted(_) | session::AgentEnd::Code(_) | session::AgentEnd::Signal(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn want_of_what_the_machine_gives_passes_whoever_says_it() {
        for shortage in SHORTAGES {
            let system = || io::Error::from(shortage);
            assert!(system().is_passing(), "{shortage:?}");
            assert!(tells_of_shortage(&system().to_string()), "{}", system());
            let no_program = GitError::NoProgram { program: "git".into(), source: system() };
            assert_eq!(no_program.family(), GitErrorFamily::Unavailable);
            let start = process::ProcessFailure::Start { program: "sh".into(), folder: "/".into(), source: system() };
            assert!(start.is_passing());
            let begun = process::ProcessFailure::Begun { doing: "watching a script".into(), source: system() };
            assert!(!begun.is_passing());
            assert!(session::SessionFailure::Tmux(tmux::TmuxFailure::Start(system())).is_passing());
            let unread = TaskFileError::Unreadable { path: "TASK.md".into(), source: system() };
            assert!(unread.is_passing());
        }
        let git = GitError::Failed { what: "git gc".into(), said: "fatal: Out of memory, malloc failed".into() };
        assert_eq!(git.family(), GitErrorFamily::Unavailable);
    }

    #[test]
    fn what_would_fail_again_does_not_pass() {
        for other in [Errno::NOENT, Errno::ACCESS, Errno::NOEXEC, Errno::TOOBIG] {
            assert!(!io::Error::from(other).is_passing(), "{other:?}");
            assert!(!tells_of_shortage(&io::Error::from(other).to_string()), "{other:?}");
        }
        let refused = GitError::Push { remote: "origin".into(), what: "main".into(), said: "non-fast-forward".into() };
        assert!(!refused.is_passing());
        let full = GitError::Push {
            remote: "origin".into(),
            what: "main".into(),
            said: "remote: fatal: write error: No space left on device; error: remote unpack failed: No space left on device"
                .into(),
        };
        assert!(!full.is_passing());
        let missing = GitError::NoProgram { program: "git".into(), source: io::ErrorKind::NotFound.into() };
        assert!(!missing.is_passing());
    }

    #[test]
    fn what_may_never_be_over_does_not_pass_and_another_at_work_does() {
        let limit = std::time::Duration::from_secs(1);
        let (folder, lock) = (PathBuf::from("/w"), PathBuf::from("/w/index.lock"));
        for lasting in [
            GitError::Late { what: "`git push`".into(), limit },
            GitError::Locked { lock, folder: folder.clone() },
            GitError::Changing { folder },
        ] {
            assert!(!lasting.is_passing(), "{lasting}");
            // A person who asked may ask again.
            assert_eq!(lasting.family(), GitErrorFamily::Unavailable);
        }
        assert!(GitError::Busy { what: "the pool".into(), pid: "7".into() }.is_passing());
        assert!(GitError::Moved { branch: "main".into() }.is_passing());
        let ours = GitError::Push {
            remote: "origin".into(),
            what: "main".into(),
            said: "error: cannot create thread: Resource temporarily unavailable; error: failed to push".into(),
        };
        assert!(ours.is_passing());
    }
}
