//! Starting a session, at most once however often it is asked for.

use std::process::{Command, Stdio};

use super::folder::{SHIM_LOG, SessionFolder};
use super::record::{KeeperTerm, SessionPlace, SessionSpec, SessionWindow};
use super::standing::{EndedSession, SessionEnding, SessionLook, SessionStanding, await_start, look};
use super::{SessionFailure, Sessions, reading, system};
use crate::process::{KEPT, LONGEST_ARGUMENT, ProcessIdentity, stat};
use crate::tmux::Tmux;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStart {
    /// Whether a shim was sent now; otherwise there was one before, which is adopted.
    pub fresh: bool,
    pub standing: SessionStanding,
}

impl Sessions {
    /// Starts a session, or adopts the one that was started under this name before.
    pub fn start(&self, spec: &SessionSpec) -> Result<SessionStart, SessionFailure> {
        check(spec)?;
        let id = &spec.id;
        let folder = self.folder(id);
        folder.create().map_err(|source| reading(id, source))?;
        let mut fresh = false;
        if let SessionLook::Unclaimed = look(&folder).map_err(|source| reading(id, source))? {
            if let Some(keeper) = &spec.keeper {
                let kept = KeeperTerm { until_ms: keeper.until_ms, ..KeeperTerm::default() };
                folder.write_kept(kept).map_err(|source| reading(id, source))?;
            }
            folder.write_spec(spec).map_err(|source| reading(id, source))?;
            // The agent may ask for something before its start is heard of here.
            self.watcher.expect(id, &folder);
            let shim = self.send_shim(spec, &folder)?;
            fresh = true;
            // Another shim may be at it, from an engine that died: then ours is gone already, and the other is waited
            // for. If none is, the next look says so.
            await_start(id, &folder, &shim)?;
            if let SessionLook::Unclaimed = look(&folder).map_err(|source| reading(id, source))? {
                return Err(SessionFailure::Start { id: id.clone(), why: last_words(&folder) });
            }
        }
        let standing = self.adopt(id)?;
        if let SessionStanding::Gone(EndedSession { how: SessionEnding::Exited(exit), asked: None }) = &standing
            && let Some(why) = exit.shortage()
        {
            // Nothing ran, and what was missing comes back: the next start under this name begins anew.
            self.forget(id)?;
            return Err(SessionFailure::Start { id: id.clone(), why: why.to_owned() });
        }
        Ok(SessionStart { fresh, standing })
    }

    fn send_shim(&self, spec: &SessionSpec, folder: &SessionFolder) -> Result<ProcessIdentity, SessionFailure> {
        let mut line = self.config.program.clone();
        line.push(folder.path().into());
        let pid = match (&spec.place, &self.config.tmux) {
            (SessionPlace::Terminal { window: Some(window), .. }, Some(tmux)) => send_to_window(tmux, window, &line)?,
            (SessionPlace::Terminal { .. } | SessionPlace::Headless { .. }, _) => {
                let program = line.first().cloned().unwrap_or_default();
                let mut command = Command::new(program);
                command.args(line.iter().skip(1)).env_clear().env(KEPT.0, KEPT.1).current_dir("/");
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                let child = command.spawn().map_err(|source| system("starting a shim", source))?;
                child.id().cast_signed()
            }
        };
        // One that has ended already is no error yet: it may have found another shim at work.
        let gone = || ProcessIdentity { pid, start: 0, boot: String::new() };
        Ok(stat(pid).map_or_else(gone, |stat| stat.identity()))
    }
}

fn send_to_window(tmux: &Tmux, window: &SessionWindow, line: &[std::ffi::OsString]) -> Result<i32, SessionFailure> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if window.key.is_empty() || !window.key.chars().all(fits) {
        let why = format!("`{}` cannot be the key of a tmux session: use letters, digits, `-`, `_`", window.key);
        return Err(SessionFailure::Refused(why));
    }
    Ok(tmux.open(window, line)?.pid)
}

fn check(spec: &SessionSpec) -> Result<(), SessionFailure> {
    let refused = |why: String| Err(SessionFailure::Refused(format!("session {} cannot be started: {why}", spec.id)));
    if spec.arguments.first().is_none_or(String::is_empty) {
        return refused("it has no program".to_owned());
    }
    if !spec.folder.is_absolute() {
        return refused(format!("its folder {} is not an absolute path", spec.folder.display()));
    }
    let arguments = spec.arguments.iter().map(|text| ("an argument", text.len(), text.contains('\0')));
    let variables = spec.environment.iter().map(|(name, value)| {
        let bad_name = name.is_empty() || name.contains(['=', '\0']);
        ("a variable", name.len() + value.len(), bad_name || value.contains('\0'))
    });
    for (what, length, unfit) in arguments.chain(variables) {
        if unfit {
            return refused(format!("{what} holds a character that no program can be given"));
        }
        if length >= LONGEST_ARGUMENT {
            let limit = format!("a program can be given {LONGEST_ARGUMENT}");
            return refused(format!("{what} has {length} bytes and {limit}: pass it in a file or as input"));
        }
    }
    Ok(())
}

/// What a shim wrote down before it went away.
fn last_words(folder: &SessionFolder) -> String {
    let words = std::fs::read_to_string(folder.path().join(SHIM_LOG)).unwrap_or_default();
    match words.lines().last() {
        Some(line) => format!("its shim says: {line}"),
        None => "its shim went away without a word".to_owned(),
    }
}
