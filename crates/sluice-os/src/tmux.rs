//! tmux as a place where people look and type: a server of our own, told what to do by its command line.
//!
//! Nothing is learnt from tmux about how an agent fares; that stands in the session's folder. Programs are given to it
//! as arguments, never as a text for a shell, and what people named is never a text that tmux would expand.
//!
//! A window closes when its program ends (`remain-on-exit` stays off): what there was to see is in the session's log,
//! a dead window would keep the name from the next one, and an empty server would never go away. tmux's own settings
//! are not read (`-f /dev/null`), so that a server behaves the same for everyone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::git::run::{CommandTrouble, run};
use crate::process::{KEPT, within};
use crate::session::SessionWindow;

/// Lines that a window can be scrolled back.
const HISTORY: &str = "20000";
/// How long tmux may take for one thing. It takes milliseconds, unless its server hangs.
const LIMIT: Duration = Duration::from_secs(10);
/// How often a window is tried to open in a server that is just going away.
const MOST_TRIES: usize = 5;
/// How many names are tried when a session's name is taken.
const MOST_NAMES: usize = 100;
/// What is asked about a pane, in the order of [`TmuxPane`].
const PANE: &str = "#{session_id} #{pane_id} #{pane_pid} #{?@sluice,#{@sluice},-} #{window_name} #{session_name}";

/// A tmux server of ours, whether it runs or not.
#[derive(Debug)]
pub struct Tmux {
    program: OsString,
    socket: PathBuf,
    /// Held while a window is opened.
    opening: Mutex<()>,
    /// When a thread last began to wait for a server that does not answer.
    silent: Mutex<Option<Instant>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxPane {
    /// The tmux session, `$1`.
    pub session: String,
    pub pane: String,
    /// The process in it: a shim.
    pub pid: i32,
    /// The key that the tmux session was opened with.
    pub key: String,
    pub name: String,
    pub session_name: String,
}

/// Why tmux did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum TmuxFailure {
    #[error("tmux cannot be started")]
    Start(#[source] io::Error),
    #[error("tmux could not {doing}: {said}")]
    Said { doing: String, said: String },
    #[error("tmux could not {doing}: its server at {} has not answered for {} seconds. End that process, and look into `sluice doctor`", socket.display(), limit.as_secs())]
    Hangs { doing: String, socket: PathBuf, limit: Duration },
}

/// What stands on the screen of a pane.
#[derive(Debug)]
pub(crate) struct TmuxScreen {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
    pub(crate) text: String,
    /// Line and column of the cursor, if it is to be seen.
    pub(crate) cursor: Option<(u16, u16)>,
}

impl Tmux {
    pub fn new(program: impl Into<OsString>, socket: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), socket: socket.into(), opening: Mutex::default(), silent: Mutex::default() }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What tmux calls itself; an error where there is none.
    pub fn version(&self) -> Result<String, TmuxFailure> {
        let mut command = Command::new(&self.program);
        command.arg("-V");
        let ended = run(command, b"", LIMIT).map_err(|trouble| self.trouble("say its version", trouble))?;
        Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned())
    }

    /// Opens a window that runs a program: beside the others of its key, or in a new tmux session.
    pub fn open(&self, window: &SessionWindow, program: &[OsString]) -> Result<TmuxPane, TmuxFailure> {
        // No thread waits behind one that waits for a server that hangs.
        let finds_out = self.finds_out()?;
        // Two at once would each find no session of the key, and make one.
        let _one_at_a_time = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that waited behind one that got no answer would not get one either.
        if !finds_out && self.silent().is_some() {
            return Err(self.hangs("open a window"));
        }
        let opened = self.open_soon(window, program);
        *self.silent() = matches!(opened, Err(TmuxFailure::Hangs { .. })).then(Instant::now);
        opened
    }

    /// Whether it is upon whoever asks now to find out if a server that did not answer does so again. The others do not
    /// wait for that.
    fn finds_out(&self) -> Result<bool, TmuxFailure> {
        let mut silent = self.silent();
        match *silent {
            Some(since) if since.elapsed() < LIMIT => Err(self.hangs("open a window")),
            Some(_) => {
                *silent = Some(Instant::now());
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn silent(&self) -> MutexGuard<'_, Option<Instant>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_soon(&self, window: &SessionWindow, program: &[OsString]) -> Result<TmuxPane, TmuxFailure> {
        for _ in 1..MOST_TRIES {
            match self.open_once(window, program) {
                // The session, or the whole server, went away with its last window while we spoke to it.
                Err(TmuxFailure::Said { said, .. }) if is_absent(&said) => {}
                result => return result,
            }
        }
        self.open_once(window, program)
    }

    fn open_once(&self, window: &SessionWindow, program: &[OsString]) -> Result<TmuxPane, TmuxFailure> {
        if let Some(beside) = self.shows(&window.key)? {
            let target = format!("{}:", beside.session);
            let mut words = words(&["new-window", "-d", "-P", "-F", PANE, "-t", &target, "-n"]);
            words.push(literal(&window.name));
            words.extend(program.iter().map(|argument| quoted(argument)));
            return self.opened(&words);
        }
        let pane = self.open_session(window, program)?;
        let named = self.tell("name a session", &words(&["set-option", "-t", &pane.session, "@sluice", &window.key]));
        // If it is gone already, with its program, then it was opened all the same.
        named.or_else(|failure| match failure {
            TmuxFailure::Said { said, .. } if is_absent(&said) => Ok(String::new()),
            TmuxFailure::Said { .. } | TmuxFailure::Start(_) | TmuxFailure::Hangs { .. } => Err(failure),
        })?;
        Ok(TmuxPane { key: window.key.clone(), ..pane })
    }

    fn open_session(&self, window: &SessionWindow, program: &[OsString]) -> Result<TmuxPane, TmuxFailure> {
        for count in 1..=MOST_NAMES {
            let name = if count == 1 { window.session.clone() } else { format!("{}~{count}", window.session) };
            let mut words = words(&["start-server", ";", "set-option", "-g", "history-limit", HISTORY, ";"]);
            words.extend(self::words(&["set-option", "-s", "escape-time", "10", ";"]));
            words.extend(self::words(&["new-session", "-d", "-P", "-F", PANE, "-x", "200", "-y", "50", "-s"]));
            words.push(literal(&name));
            words.push("-n".into());
            words.push(literal(&window.name));
            words.extend(program.iter().map(|argument| quoted(argument)));
            match self.opened(&words) {
                Err(TmuxFailure::Said { said, .. }) if said.contains("duplicate session") => {}
                result => return result,
            }
        }
        let said = format!("{MOST_NAMES} sessions are called {} already", window.session);
        Err(TmuxFailure::Said { doing: "open a session".to_owned(), said })
    }

    fn opened(&self, words: &[OsString]) -> Result<TmuxPane, TmuxFailure> {
        let said = self.tell("open a window", words)?;
        let unread = || TmuxFailure::Said { doing: "say which window it opened".to_owned(), said: said.clone() };
        said.lines().next().and_then(pane).ok_or_else(unread)
    }

    /// Every pane of the server; none if it does not run.
    pub fn list(&self) -> Result<Vec<TmuxPane>, TmuxFailure> {
        match self.tell("list its windows", &words(&["list-panes", "-a", "-F", PANE])) {
            Ok(said) => Ok(said.lines().filter_map(pane).collect()),
            Err(TmuxFailure::Said { said, .. }) if is_absent(&said) => Ok(Vec::new()),
            Err(failure) => Err(failure),
        }
    }

    /// What stands on the screen of a pane now, a line for each of its rows.
    pub(crate) fn screen(&self, pane: &str) -> Result<String, TmuxFailure> {
        self.tell("show a window", &words(&["capture-pane", "-p", "-t", pane]))
    }

    /// The same with the size of the pane and its cursor.
    pub(crate) fn look(&self, pane: &str) -> Result<TmuxScreen, TmuxFailure> {
        let form = "#{pane_height} #{pane_width} #{cursor_flag} #{cursor_y} #{cursor_x}";
        let told = self.tell("show a window", &words(&["display-message", "-p", "-t", pane, form]))?;
        let numbers: Vec<u16> = told.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let text = self.screen(pane)?;
        let [rows, columns] = numbers.first_chunk::<2>().copied().unwrap_or_default();
        let cursor = if let [_, _, 1, row, column] = numbers[..] { Some((row, column)) } else { None };
        Ok(TmuxScreen { rows, columns, text, cursor })
    }

    fn shows(&self, key: &str) -> Result<Option<TmuxPane>, TmuxFailure> {
        Ok(self.list()?.into_iter().find(|pane| pane.key == key))
    }

    /// The command by which a person looks at a window, to be run in place of this process.
    pub fn attach_command(&self, pane: &str) -> Vec<OsString> {
        let mut command = self.command_line();
        command.extend(words(&["attach-session", "-t", pane]));
        command
    }

    /// Gives the tmux session of a key another name, if there is one.
    pub fn rename_key(&self, key: &str, name: &str) -> Result<(), TmuxFailure> {
        let Some(pane) = self.shows(key)?.filter(|pane| pane.session_name != name) else { return Ok(()) };
        let mut words = words(&["rename-session", "-t", &pane.session]);
        words.push(literal(name));
        self.tell("rename a session", &words).map(drop)
    }

    /// Closes the tmux session of a key with all its windows, if there is one.
    pub fn kill_key(&self, key: &str) -> Result<(), TmuxFailure> {
        self.shows(key)?.map_or(Ok(()), |pane| self.close(&pane.session, key))
    }

    /// Closes a tmux session if it still is that of this key. A server that has ended with its last window counts from `$0` again:
    /// the next one may have given the number to the session of another task, so that the server itself compares.
    fn close(&self, session: &str, key: &str) -> Result<(), TmuxFailure> {
        let is_its = format!("#{{==:#{{@sluice}},{key}}}");
        let close = format!("kill-session -t '{session}'");
        match self.tell("close a session", &words(&["if-shell", "-F", "-t", &format!("{session}:"), &is_its, &close])) {
            Err(TmuxFailure::Said { said, .. }) if is_absent(&said) => Ok(()),
            told => told.map(drop),
        }
    }

    fn command_line(&self) -> Vec<OsString> {
        let socket = self.socket.clone().into_os_string();
        vec![self.program.clone(), "-u".into(), "-f".into(), "/dev/null".into(), "-S".into(), socket]
    }

    fn tell(&self, doing: &str, words: &[OsString]) -> Result<String, TmuxFailure> {
        let line = self.command_line();
        let mut command = Command::new(&self.program);
        command.args(line.iter().skip(1)).args(words);
        // A server keeps the environment of the process that started it, for everything that ever runs in it.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"SLUICE_")) {
            command.env_remove(name);
        }
        command.env(KEPT.0, KEPT.1).env_remove("TMUX").env_remove("TMUX_PANE").envs(within());
        let ended = run(command, b"", LIMIT).map_err(|trouble| self.trouble(doing, trouble))?;
        if ended.code == Some(0) {
            return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        Err(TmuxFailure::Said { doing: doing.to_owned(), said })
    }

    fn trouble(&self, doing: &str, trouble: CommandTrouble) -> TmuxFailure {
        match trouble {
            CommandTrouble::Start(error) => TmuxFailure::Start(error),
            CommandTrouble::Late(_) => self.hangs(doing),
        }
    }

    fn hangs(&self, doing: &str) -> TmuxFailure {
        TmuxFailure::Hangs { doing: doing.to_owned(), socket: self.socket.clone(), limit: LIMIT }
    }
}

/// Whether tmux says that what it should act on is not there.
fn is_absent(said: &str) -> bool {
    let absences = ["no server running", "error connecting", "can't find", "no such", "no sessions"];
    let endings = ["no current", "server exited", "lost server"];
    absences.iter().chain(&endings).any(|absence| said.contains(absence))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

/// An argument that tmux takes as it is: a `;` at the end would begin another command.
fn quoted(argument: &OsStr) -> OsString {
    match argument.as_bytes().strip_suffix(b";") {
        Some(rest) => OsString::from_iter([OsStr::from_bytes(rest), OsStr::new("\\;")]),
        None => argument.to_owned(),
    }
}

/// A name that tmux takes as it is: it expands `#{…}`, and would run `#(…)` in a shell.
fn literal(name: &str) -> OsString {
    quoted(OsStr::new(&name.replace('#', "##")))
}

fn pane(line: &str) -> Option<TmuxPane> {
    let mut fields = line.splitn(6, ' ');
    let mut next = || fields.next().map(str::to_owned);
    Some(TmuxPane {
        session: next()?,
        pane: next()?,
        pid: next()?.parse().ok()?,
        key: next()?,
        name: next()?,
        session_name: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that begins anew gives the numbers of the one before to others.
    #[test]
    fn a_session_that_has_the_number_of_another_is_not_closed_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let tmux = Tmux::new("tmux", folder.path().join("tmux.sock"));
        let window = SessionWindow { key: "mocha".into(), session: "coffee/mocha".into(), name: "worker".into() };
        let pane = tmux.open(&window, &["cat".into()]).unwrap();
        tmux.close(&pane.session, "latte").unwrap();
        assert_eq!(tmux.list().unwrap().len(), 1);
        tmux.close(&pane.session, "mocha").unwrap();
        assert!(tmux.list().unwrap().is_empty());
        tmux.kill_key("mocha").unwrap();
    }
}
