//! Where everything of a home stands.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{env, io};

use sluice_core::id::{RunId, TaskId};
use sluice_os::git::slug;

/// Longer paths cannot be bound as a socket: the kernel keeps 108 bytes, the last of them NUL.
const LONGEST_SOCKET: usize = 107;
/// Bytes of the longest name of a socket.
const LONGEST_NAME: usize = "engine.sock".len();
/// The link to the folder of the sockets, in a home that is too deep for them.
const SOCKETS: &str = "sockets";

/// Bytes of the name of a folder.
const LONGEST_FOLDER: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomePaths {
    home: PathBuf,
    prompts: Option<PathBuf>,
}

impl HomePaths {
    pub fn new(home: impl Into<PathBuf>) -> Self {
        HomePaths { home: home.into(), prompts: None }
    }

    pub fn with_prompts(self, folder: Option<PathBuf>) -> Self {
        HomePaths { prompts: folder, ..self }
    }

    /// The folder that `sluice serve --prompts` names: `workflows/*.toml`, and the files their prompts are in.
    pub fn prompts(&self) -> Option<&Path> {
        self.prompts.as_deref()
    }

    pub fn of_environment() -> Option<Self> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = set("SLUICE_HOME").or_else(|| set("HOME").map(|home| home.join(".sluice")))?;
        // A session of this home may stand in another folder than whoever started it.
        Some(HomePaths::new(std::path::absolute(&home).unwrap_or(home)))
    }

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

    pub fn socket(&self) -> PathBuf {
        self.short("engine.sock")
    }

    pub fn tmux_socket(&self) -> PathBuf {
        self.short("tmux.sock")
    }

    pub fn log(&self) -> PathBuf {
        self.home.join("logs/engine.log")
    }

    pub fn config(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    pub fn projects(&self) -> PathBuf {
        self.home.join("projects.json")
    }

    pub fn tokens(&self) -> PathBuf {
        self.home.join("tokens.json")
    }

    /// Where the page was last, so that an open browser finds the next engine: the port, and the name of the host.
    pub fn page(&self) -> PathBuf {
        self.home.join("page.json")
    }

    /// What is private to a session: the digest of its secret, and what its agent program needs.
    pub fn attempt(&self, session: &str) -> PathBuf {
        self.attempts().join(session)
    }

    /// What is private to sessions, a folder for each.
    pub fn attempts(&self) -> PathBuf {
        self.sessions().join("attempts")
    }

    /// The scratch folder of a run: its steps with `workspace: none` work there, outside git.
    pub fn scratch(&self, run: &RunId) -> PathBuf {
        self.scratches().join(run.as_str())
    }

    /// The scratch folders of all runs.
    pub fn scratches(&self) -> PathBuf {
        self.home.join("scratch")
    }

    pub fn workspaces(&self) -> PathBuf {
        self.home.join("workspaces")
    }

    /// The folder of a task, below one with its project's own name. Only what cannot be a folder's name is written in
    /// another way.
    pub fn task(&self, project: &str, id: &TaskId) -> PathBuf {
        let is_plain = |it: char| it != '/' && !it.is_control();
        let fits = (1..=LONGEST_FOLDER).contains(&project.len()) && project.chars().all(is_plain);
        // `.` and `..` are other folders.
        let folder = if fits && !project.starts_with('.') { project.to_owned() } else { slug(project) };
        self.home.join("tasks").join(folder).join(id.as_str())
    }

    /// Which ports each worktree has, a link for each.
    pub fn ports(&self) -> PathBuf {
        self.home.join("ports")
    }

    pub fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// Where it is said until when sessions and scripts may go on, if another engine can own the store.
    pub fn fence(&self) -> PathBuf {
        self.sessions().join("fence")
    }

    /// What scripts of runs printed, where it is longer than a run keeps.
    pub fn printed(&self) -> PathBuf {
        self.sessions().join("printed")
    }

    /// What the steps of runs produced.
    pub fn evidence(&self) -> PathBuf {
        self.home.join("evidence")
    }

    /// The views of the board that a person has saved.
    pub fn views(&self) -> PathBuf {
        self.home.join("views.json")
    }

    /// Where kept work is brought back to, unless a person names another folder.
    pub fn restored(&self) -> PathBuf {
        self.home.join("restored")
    }

    /// The worktrees of runs, and of their parts.
    pub fn runs(&self) -> PathBuf {
        self.home.join("runs")
    }

    /// The repositories in which runs were started.
    pub fn repositories(&self) -> PathBuf {
        self.home.join("repositories.json")
    }

    /// How far the log has been followed.
    pub fn followed(&self) -> PathBuf {
        self.home.join("followed")
    }

    /// Which store the home has.
    pub fn attached(&self) -> PathBuf {
        self.home.join("store.json")
    }

    /// Programs that every session finds: `sluice`, and the names it also answers to.
    pub fn programs(&self) -> PathBuf {
        self.home.join("bin")
    }

    /// Makes the folder for sockets where they cannot stand in the home itself. No other user may enter it.
    pub fn make_sockets(&self) -> io::Result<()> {
        let link = self.home.join(SOCKETS);
        if self.holds_sockets() || link.is_dir() {
            return Ok(());
        }
        let folder = self.runtime();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let owner = |path: &Path| path.symlink_metadata().map(|about| about.uid());
        if owner(&folder)? != owner(&self.home)? {
            return Err(io::Error::other(format!("{} belongs to another user", folder.display())));
        }
        // The folder may have been cleared away since.
        let _ = std::fs::remove_file(&link);
        match std::os::unix::fs::symlink(&folder, &link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn holds_sockets(&self) -> bool {
        self.home.as_os_str().len() < LONGEST_SOCKET - LONGEST_NAME
    }

    /// A socket in the home or, where that path is too long, in the folder that the home links to: it is found from
    /// every shell, whatever that calls its folder for such things.
    fn short(&self, name: &str) -> PathBuf {
        if self.holds_sockets() {
            return self.home.join(name);
        }
        let linked = std::fs::read_link(self.home.join(SOCKETS)).ok().filter(|folder| folder.is_dir());
        linked.unwrap_or_else(|| self.runtime()).join(name)
    }

    /// The folder for the sockets of a deep home, under a name that belongs to this home alone.
    fn runtime(&self) -> PathBuf {
        let folder = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
        folder.join(format!("sluice-{:016x}", mark(self.home.as_os_str().as_encoded_bytes())))
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
    fn a_task_is_below_its_projects_own_name() {
        let folder =
            |project: &str| HomePaths::new("/h").task(project, &"k3f9".parse().expect("an id")).display().to_string();
        for plain in ["coffee", "My.App", "my repo", "café", "tmp.Xq1"] {
            assert_eq!(folder(plain), format!("/h/tasks/{plain}/k3f9"));
        }
        for other in ["", ".", "..", "../../etc", "a/b", "a\nb", &"x".repeat(256)] {
            let path = folder(other);
            assert!(!path.contains("..") && path.matches('/').count() == 4 && path.len() < 200, "{other:?}: {path}");
        }
    }

    #[test]
    fn a_socket_path_is_never_too_long() {
        let deep = HomePaths::new(format!("/{}", "x".repeat(200)));
        assert!(deep.socket().as_os_str().len() <= LONGEST_SOCKET, "{:?}", deep.socket());
        assert_ne!(deep.socket(), HomePaths::new(format!("/{}", "y".repeat(200))).socket());
        assert_eq!(HomePaths::new("/h").socket(), Path::new("/h/engine.sock"));
    }
}
