//! Where everything of a home stands.

use std::env;
use std::path::{Path, PathBuf};

/// Longer paths cannot be bound as a socket: the kernel keeps 108 bytes, the last of them NUL.
const LONGEST_SOCKET: usize = 107;

/// The folders and files of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    home: PathBuf,
}

impl Places {
    /// The home at this path.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Places { home: home.into() }
    }

    /// `$SLUICE_HOME`, else `~/.sluice`.
    pub fn of_environment() -> Option<Self> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = set("SLUICE_HOME").or_else(|| set("HOME").map(|home| home.join(".sluice")))?;
        // A session of this home may stand in another folder than whoever started it.
        Some(Places::new(std::path::absolute(&home).unwrap_or(home)))
    }

    /// The home itself.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The address of the store, unless another was given.
    pub fn store(&self) -> String {
        format!("sqlite:{}", self.home.join("store.db").display())
    }

    /// What the engine holds while it runs.
    pub fn lock(&self) -> PathBuf {
        self.home.join("engine.lock")
    }

    /// What a command holds while it starts an engine.
    pub fn start_lock(&self) -> PathBuf {
        self.home.join("start.lock")
    }

    /// Where the engine listens.
    pub fn socket(&self) -> PathBuf {
        self.short("engine.sock")
    }

    /// Where tmux listens.
    pub fn tmux_socket(&self) -> PathBuf {
        self.short("tmux.sock")
    }

    /// What the engine writes about itself.
    pub fn log(&self) -> PathBuf {
        self.home.join("logs/engine.log")
    }

    /// The settings.
    pub fn config(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    /// The projects.
    pub fn projects(&self) -> PathBuf {
        self.home.join("projects.json")
    }

    /// The worktrees that are lent to tasks.
    pub fn workspaces(&self) -> PathBuf {
        self.home.join("workspaces")
    }

    /// The folder of a task.
    pub fn task(&self, project_slug: &str, id: &str) -> PathBuf {
        self.home.join("tasks").join(project_slug).join(id)
    }

    /// What is known of sessions.
    pub fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// What scripts of runs printed, where it is longer than a run keeps.
    pub fn printed(&self) -> PathBuf {
        self.sessions().join("printed")
    }

    /// Programs that every session finds: `sluice`, and the names it also answers to.
    pub fn programs(&self) -> PathBuf {
        self.home.join("bin")
    }

    /// A socket in the home or, where that path is too long, in the folder for such things, under a name that belongs
    /// to this home alone.
    fn short(&self, name: &str) -> PathBuf {
        let here = self.home.join(name);
        if here.as_os_str().len() <= LONGEST_SOCKET {
            return here;
        }
        let runtime = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
        runtime.join(format!("sluice-{:016x}-{name}", mark(self.home.as_os_str().as_encoded_bytes())))
    }
}

/// A number for a path, always the same (FNV-1a).
fn mark(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_is_never_too_long() {
        let deep = Places::new(format!("/{}", "x".repeat(200)));
        assert!(deep.socket().as_os_str().len() <= LONGEST_SOCKET, "{:?}", deep.socket());
        assert_ne!(deep.socket(), Places::new(format!("/{}", "y".repeat(200))).socket());
        assert_eq!(Places::new("/h").socket(), Path::new("/h/engine.sock"));
    }
}
