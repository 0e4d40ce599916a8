//! git as a program: how it is called, and what it must never take from or do to its surroundings.
//!
//! Arguments travel as they are and never through a shell. Nothing of the caller's git environment leaks in, nothing is
//! asked on a terminal, and no hook of the user's runs unless a call says so.

mod diff;
mod error;
mod head;
mod name;
mod pipes;
mod quote;
mod remote;
mod repository;
pub(crate) mod run;
mod status;
mod tree;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use diff::{BranchCommit, DiffLimits, DiffRead, DiffedFile};
pub use error::{GitError, GitErrorFamily};
pub(crate) use head::references_below;
pub use head::{checked_out_commit, has_branch, is_bare};
pub use name::slug;
pub(crate) use quote::{first_of, path_of, quote, shown, unquote};
pub use remote::RemoteBranchDeletion;
pub(crate) use repository::RegisteredCheckout;
pub use repository::Repository;
use run::{CommandEnd, CommandTrouble};
pub(crate) use status::CheckoutChanges;
pub use tree::CommittedFile;

const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// The lock of a reference that is so old is a dead git's.
const DEAD_LOCK: Duration = Duration::from_secs(60);
/// How long a look may take before it is asked why.
const LOOK: Duration = Duration::from_secs(10);
const LONG_LOOK: Duration = Duration::from_secs(60);

/// What every call is told. Housekeeping in the background would outlive the call, and a hook could change what is
/// being kept. References wait for each other's locks. No program says anything about signatures in between.
const SETTINGS: [&str; 15] = [
    "gc.auto=0",
    "maintenance.auto=false",
    "core.fsmonitor=false",
    // A file beside the objects that tells of other commits than these are.
    "core.commitGraph=false",
    "core.filesRefLockTimeout=10000",
    "core.packedRefsTimeout=10000",
    "core.quotePath=true",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "advice.graftFileDeprecated=false",
    "color.ui=false",
    "log.showSignature=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "checkout.defaultRemote=origin",
];

/// What of a caller's `GIT_…` environment a call may see: how to reach others and who one is, never which repository.
const INHERITED: [&str; 16] = [
    "GIT_ASKPASS",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_NO_VERIFY",
];

/// The variables that tie a git to one repository, as `git rev-parse --local-env-vars` names them, and what else a git
/// tells those that it starts about it. In another repository they lead to the first one.
const LOCAL: [&str; 18] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Whether a variable ties a git to one repository: no git that works in another may have it.
pub fn is_local(variable: &str) -> bool {
    LOCAL.contains(&variable)
}

#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    /// How long something may take that stays on this machine.
    pub(crate) local: Duration,
    /// How long something may take that goes over the network.
    pub(crate) network: Duration,
    environment: Vec<(OsString, OsString)>,
}

impl Default for Git {
    fn default() -> Git {
        Git {
            program: PathBuf::from("git"),
            local: Duration::from_secs(600),
            network: Duration::from_secs(120),
            environment: Vec::new(),
        }
    }
}

impl Git {
    pub fn with_program(mut self, program: &Path) -> Git {
        self.program = program.to_owned();
        self
    }

    /// The same with other time limits: for what stays on this machine, and for what goes over the network.
    pub fn with_limits(mut self, local: Duration, network: Duration) -> Git {
        (self.local, self.network) = (local, network);
        self
    }

    pub fn with_environment(mut self, name: &str, value: impl Into<OsString>) -> Git {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub(crate) fn surround(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("GIT_") && !INHERITED.contains(&text.as_ref()) {
                command.env_remove(&name);
            }
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GCM_INTERACTIVE", "never").env("GIT_EDITOR", ":");
        // A process that can write into a repository could tell git of other commits and parents than there are.
        command.env("GIT_GRAFT_FILE", "/dev/null").env("GIT_NO_REPLACE_OBJECTS", "1");
        command.env("LC_ALL", "C").env_remove("LANGUAGE").envs(crate::process::within());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }

    pub(crate) fn at(&self, folder: &Path) -> GitCall {
        GitCall { git: self.clone(), folder: folder.to_owned(), limit: self.local, ..GitCall::default() }
    }
}

/// One call of git, before it is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitCall {
    git: Git,
    folder: PathBuf,
    settings: Vec<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    held: Option<Arc<File>>,
    limit: Duration,
    /// The most bytes of what it says that are kept; all of it where none is given.
    most: Option<u64>,
    hooks: bool,
    only_looks: bool,
}

impl GitCall {
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> GitCall {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> GitCall {
        self.arguments.extend(arguments.into_iter().map(|it| it.as_ref().to_owned()));
        self
    }

    /// An option of git itself, before the command.
    pub(crate) fn option(mut self, option: impl Into<OsString>) -> GitCall {
        self.settings.push(option.into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> GitCall {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> GitCall {
        self.input = input.into();
        self
    }

    /// It keeps this file open until it has ended, in place of an input.
    pub(crate) fn holding(mut self, file: File) -> GitCall {
        self.held = Some(Arc::new(file));
        self
    }

    pub(crate) fn network(mut self) -> GitCall {
        self.limit = self.git.network;
        self
    }

    /// The user's hooks run.
    pub(crate) fn hooks(mut self) -> GitCall {
        self.hooks = true;
        self
    }

    /// What it stores is on the disk when it ends.
    pub(crate) fn durable(self) -> GitCall {
        self.option("-c").option("core.fsync=committed,reference")
    }

    /// The same, with the index. Many new files are brought there together.
    pub(crate) fn durable_with_index(self) -> GitCall {
        let call = self.option("-c").option("core.fsync=committed,reference,index");
        call.option("-c").option("core.fsyncMethod=batch")
    }

    /// No more than so many bytes of what it says are kept.
    pub(crate) fn first(mut self, most: u64) -> GitCall {
        self.most = Some(most);
        self
    }

    /// It only looks, and takes no lock for it. It may be ended and asked again, so it has less time.
    pub(crate) fn looking(mut self) -> GitCall {
        self.only_looks = true;
        self.env("GIT_OPTIONAL_LOCKS", "0")
    }

    /// How it ends, whatever its exit code. Another git's lock is waited for.
    pub(crate) fn answer(&self) -> Result<CommandEnd, GitError> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        let mut pause = Duration::from_millis(5);
        loop {
            let ended = match self.held.as_ref().map(|file| file.try_clone()) {
                Some(held) => {
                    held.map_err(CommandTrouble::Start).and_then(|it| run::run_holding(self.command(), it, self.limit))
                }
                None if self.only_looks => self.look()?,
                None => run::run_first(self.command(), &self.input, self.limit, self.most),
            };
            let ended = ended.map_err(|trouble| self.trouble(trouble))?;
            if ended.code == Some(0) || !is_locked(&ended.stderr) {
                return Ok(ended);
            }
            if is_dead_lock_broken(&ended.stderr) {
                continue;
            }
            if Instant::now() >= deadline {
                return Ok(ended);
            }
            // git does not say when it lets go of a lock, so one asks again.
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(Duration::from_millis(250));
        }
    }

    /// Looks. Who works in a checkout can keep git waiting there: a file that is a pipe is named, and a filter that does not
    /// end gets less time than work that has to be finished.
    fn look(&self) -> Result<Result<CommandEnd, CommandTrouble>, GitError> {
        match run::run_first(self.command(), &self.input, self.limit.min(LOOK), self.most) {
            Err(CommandTrouble::Late(_)) => {}
            ended => return Ok(ended),
        }
        match pipes::find(&self.folder) {
            Some(path) => Err(GitError::Pipe { path }),
            None => Ok(run::run_first(self.command(), &self.input, self.limit.min(LONG_LOOK), self.most)),
        }
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, GitError> {
        let ended = self.answer()?;
        if ended.code == Some(0) { Ok(ended.stdout) } else { Err(self.failed(&ended)) }
    }

    /// What it says as a text without its last line break, if it ends well.
    pub(crate) fn text(&self) -> Result<String, GitError> {
        let bytes = self.bytes()?;
        let text = String::from_utf8(bytes).map_err(|_| self.odd("not UTF-8"))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// What it says as a text, or nothing if it ends with the code 1, by which git says that there is none.
    pub(crate) fn maybe(&self) -> Result<Option<String>, GitError> {
        let ended = self.answer()?;
        match ended.code {
            Some(0) => Ok(Some(String::from_utf8_lossy(&ended.stdout).trim_end_matches('\n').to_owned())),
            Some(1) => Ok(None),
            _ => Err(self.failed(&ended)),
        }
    }

    /// Whether it says yes: git says it by the code 0, and no by the code 1.
    pub(crate) fn says_yes(&self) -> Result<bool, GitError> {
        self.maybe().map(|said| said.is_some())
    }

    pub(crate) fn run(&self) -> Result<(), GitError> {
        self.bytes().map(drop)
    }

    pub(crate) fn failed(&self, ended: &CommandEnd) -> GitError {
        GitError::Failed { what: self.what(), said: said(ended) }
    }

    pub(crate) fn odd(&self, said: impl Into<String>) -> GitError {
        GitError::Answer { what: self.what(), said: said.into() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.git.program);
        command.current_dir(&self.folder);
        self.git.surround(&mut command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if !self.hooks {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command.args(&self.settings).args(&self.arguments);
        command
    }

    fn what(&self) -> String {
        let words: Vec<String> = self.arguments.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        let mut text = words.join(" ");
        if let Some((cut, _)) = text.char_indices().nth(200) {
            text.truncate(cut);
            text.push('…');
        }
        format!("`git {text}` in {}", self.folder.display())
    }

    fn trouble(&self, trouble: CommandTrouble) -> GitError {
        match trouble {
            // A missing folder gives the same error as a missing program.
            CommandTrouble::Start(source) if !self.folder.is_dir() => {
                GitError::File { what: "cannot enter", path: self.folder.clone(), source }
            }
            CommandTrouble::Start(source) => {
                GitError::NoProgram { program: self.git.program.display().to_string(), source }
            }
            CommandTrouble::Late(limit) => GitError::Late { what: self.what(), limit },
        }
    }
}

/// What a program said on its way out, short enough for a message.
pub(crate) fn said(ended: &CommandEnd) -> String {
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let stdout = String::from_utf8_lossy(&ended.stdout);
    let text = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = crate::redact::redacted(&lines.join("; "));
    if text.is_empty() {
        return ended.code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit code {code}"));
    }
    match text.char_indices().nth(1000) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> Result<(), GitError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(GitError::file("cannot remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes the folders above a path that are empty, as far as `up_to`, which stays.
pub(crate) fn remove_empty_folders(above: &Path, up_to: &Path) {
    for folder in above.ancestors().skip(1) {
        if folder == up_to || std::fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

/// Whether it failed because another git is in the middle of something: it holds a lock that it will let go of, or has
/// begun with a worktree whose files are not written yet.
/// Breaks the lock of a reference that git names, if it is so old that its git must be dead: a git that was killed, or whose machine
/// has lost its power, leaves it, and nothing could be kept, committed or given back in the repository any more. Of all locks
/// only these are broken, as git holds them for moments. Whether it was broken.
fn is_dead_lock_broken(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    let named = text.split_once("Unable to create '").and_then(|(_, rest)| rest.split_once("': File exists"));
    let Some(path) = named.map(|(path, _)| Path::new(path)) else { return false };
    let is_of_references = path.file_name().is_some_and(|name| name == "packed-refs.lock")
        || (path.extension().is_some_and(|it| it == "lock") && path.iter().any(|part| part == "refs"));
    is_of_references && break_dead_lock(path)
}

/// Removes a lock that is so old that its git must be dead. Whether there was one.
fn break_dead_lock(path: &Path) -> bool {
    let written = std::fs::metadata(path).and_then(|about| about.modified());
    let is_dead = written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= DEAD_LOCK));
    is_dead && std::fs::remove_file(path).is_ok()
}

fn is_locked(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    let half_made = text.contains("failed to read worktrees/") && text.contains("commondir");
    let locked = text.contains(".lock'") && text.contains("File exists");
    half_made || locked || text.contains("could not lock config file")
}

#[cfg(test)]
mod tests {
    use super::is_locked;

    #[test]
    fn what_passes_is_waited_for_and_what_does_not_is_not() {
        for passes in [
            "fatal: failed to read worktrees/m-0-1-item-26/commondir: Success",
            "error: could not lock config file .git/config: File exists",
            "fatal: Unable to create '/x/.git/index.lock': File exists.",
        ] {
            assert!(is_locked(passes.as_bytes()), "{passes}");
        }
        for stays in ["fatal: not a git repository", "fatal: a branch named 'x' already exists"] {
            assert!(!is_locked(stays.as_bytes()), "{stays}");
        }
    }
}
