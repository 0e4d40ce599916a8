//! One worktree of the pool: its folder, and the folder inside the repository that git keeps for it.
//!
//! Each call names both, so that git never looks for a repository by itself: a workspace whose `.git` an agent removed
//! may lie inside another repository, and that one must never be reset.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{OTHER_TASK_FILE, TASK_FILE};
use crate::file::{Durability, write_atomically};
use crate::git::{GitCall, GitError, Repository, path_of, remove_file};

/// The note of what a worktree is lent for.
pub(super) const BINDING: &str = "sluice-binding";
/// The note that TASK.md of this worktree is a file of the project.
const TAKEN: &str = "sluice-task-file-taken";

/// The variable by which git is told which repository a worktree belongs to.
const COMMON: &str = "GIT_COMMON_DIR";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceBinding {
    /// The task or run, by its id.
    pub task: String,
    pub branch: String,
}

/// The same as it is noted.
#[derive(Serialize, Deserialize)]
struct BindingNote {
    task: String,
    branch: String,
    /// The commit at which it was lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct WorktreeSite {
    pub(crate) repository: Repository,
    pub(crate) folder: PathBuf,
    /// What git keeps for this worktree: HEAD, index, what is under way.
    pub(crate) admin: PathBuf,
}

impl WorktreeSite {
    /// The worktree of this folder, whether or not the folder is still there. Where it is, its own link tells which it is;
    /// only for one that is gone all of them are looked through.
    pub(crate) fn find(repository: &Repository, folder: &Path) -> Result<Option<WorktreeSite>, GitError> {
        let linked = fs::read(folder.join(".git")).ok().and_then(|link| link_target(&link));
        let is_its = |admin: &PathBuf| is_folder(admin) && target(admin).as_deref() == Some(folder);
        let own =
            linked.filter(|admin| admin.parent() == Some(&repository.common().join("worktrees")) && is_its(admin));
        let admin = match own {
            Some(admin) => Some(admin),
            None => admins(repository)?.into_iter().find(is_its),
        };
        let found =
            admin.map(|admin| WorktreeSite { repository: repository.clone(), folder: folder.to_owned(), admin });
        found.map(WorktreeSite::with_own_files).transpose()
    }

    /// The same, when nothing that git keeps for it leads elsewhere. An agent can put a link in the place of the index, and git
    /// would write through it into a checkout that is not ours.
    fn with_own_files(self) -> Result<WorktreeSite, GitError> {
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
        for folder in [self.admin.clone(), self.admin.join("logs")] {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
            for path in entries.filter(|path| is_link(path)) {
                replace_link(&path).map_err(GitError::file("cannot write", &path))?;
            }
        }
        let commondir = self.admin.join("commondir");
        let named = fs::read(&commondir).map(|text| path_of(&self.admin, text.strip_suffix(b"\n").unwrap_or(&text)));
        let is_right = named.is_ok_and(|named| is_same(&named, self.repository.common()));
        if !is_right && self.admin.is_dir() {
            let written = write_atomically(&commondir, b"../..\n", Durability::Cached);
            written.map_err(GitError::file("cannot write", &commondir))?;
        }
        Ok(self)
    }

    /// The worktree that this folder was before it or the repository was moved. Its two links are made right again.
    pub(crate) fn reunite(repository: &Repository, folder: &Path) -> Result<Option<WorktreeSite>, GitError> {
        let is_link = fs::symlink_metadata(folder).is_ok_and(|it| it.is_symlink());
        let named = || fs::read(folder.join(".git")).ok().and_then(|link| link_target(&link));
        let Some(named) = Some(named).filter(|_| !is_link).and_then(|named| named()) else { return Ok(None) };
        // A link that leads into another living repository is that one's business.
        let elsewhere = named.is_dir() && !named.starts_with(repository.common());
        let Some(id) = named.file_name().filter(|_| !elsewhere) else { return Ok(None) };
        let admin = repository.common().join("worktrees").join(id);
        if !is_folder(&admin) || target(&admin).is_some_and(|target| target != folder && target.exists()) {
            return Ok(None);
        }
        let site = WorktreeSite { repository: repository.clone(), folder: folder.to_owned(), admin };
        let site = site.with_own_files()?;
        site.register()?;
        site.mend_link()?;
        Ok(Some(site))
    }

    /// Tells git where the folder is.
    fn register(&self) -> Result<(), GitError> {
        let back = self.admin.join("gitdir");
        let line = [self.folder.join(".git").as_os_str().as_bytes(), b"\n"].concat();
        write_atomically(&back, &line, Durability::Cached).map_err(GitError::file("cannot write", &back))
    }

    /// The same worktree under another name. Killed in between, it is found again by [`WorktreeSite::reunite`].
    pub(crate) fn renamed(mut self, folder: PathBuf) -> Result<WorktreeSite, GitError> {
        fs::rename(&self.folder, &folder).map_err(GitError::file("cannot move", &self.folder))?;
        self.folder = folder;
        self.register()?;
        Ok(self)
    }

    pub(crate) fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Makes the folder's link to the repository right, if it is not.
    pub(crate) fn mend_link(&self) -> Result<(), GitError> {
        let link = self.folder.join(".git");
        let right = fs::canonicalize(&self.admin).ok();
        let named = fs::read(&link).ok().and_then(|link| link_target(&link)).map(|named| self.folder.join(named));
        if right.is_some() && named.and_then(|named| fs::canonicalize(named).ok()) == right {
            return Ok(());
        }
        let line = [b"gitdir: ", self.admin.as_os_str().as_bytes(), b"\n"].concat();
        // An agent may have made a repository of its own here; that is moved away as it is.
        if let Some(pool) = self.folder.parent().filter(|_| link.is_dir()) {
            super::release::move_to(&link, &pool.join("aside").join(format!("git-{}", self.name())))?;
        }
        fs::write(&link, line).map_err(GitError::file("cannot write", &link))
    }

    /// Whether the folder is there. A link to another folder is not it: whatever is done here would be done there.
    pub(crate) fn is_present(&self) -> bool {
        is_folder(&self.folder)
    }

    /// A call for this worktree; it works for a folder that is gone too, as far as no files are asked for. A call that does ask
    /// for files fails then: without a folder of its own, git would take the one that it is called in, a person's checkout, and
    /// write there.
    pub(crate) fn call(&self) -> GitCall {
        let option = |name: &str, path: &Path| {
            let mut option = std::ffi::OsString::from(name);
            option.push(path);
            option
        };
        let git_dir = option("--git-dir=", &self.admin);
        // Given like this, what the worktree itself says of another repository or folder does not count.
        let common = self.repository.common();
        if !self.is_present() {
            let nowhere = option("--work-tree=", &self.admin.join("no-such-folder"));
            return self.repository.call().env(COMMON, common).option(git_dir).option(nowhere);
        }
        let call = self.repository.git().at(&self.folder).env(COMMON, common);
        call.option(git_dir).option(option("--work-tree=", &self.folder))
    }

    /// Notes that its files are still to be written: no task has had it yet, so nothing in it can be work.
    pub(crate) fn begin(&self) -> Result<(), GitError> {
        let path = self.admin.join("sluice-unfinished");
        fs::write(&path, "").map_err(GitError::file("cannot write", &path))
    }

    pub(crate) fn finish(&self) -> Result<(), GitError> {
        remove_file(&self.admin.join("sluice-unfinished"))
    }

    pub(crate) fn is_unfinished(&self) -> Result<bool, GitError> {
        let begun = self.admin.join("sluice-unfinished").exists() && !self.admin.join("index").exists();
        Ok(begun && self.binding()?.is_none())
    }

    pub(crate) fn binding(&self) -> Result<Option<WorkspaceBinding>, GitError> {
        let path = self.binding_path();
        match fs::read(&path) {
            // A broken note is no reason to refuse: everything at risk is kept whoever it belongs to.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(GitError::file("cannot read", &path)(error)),
        }
    }

    /// Notes for what it is lent, and at which commit.
    pub(crate) fn bind(&self, binding: &WorkspaceBinding, commit: Option<&str>) -> Result<(), GitError> {
        let path = self.binding_path();
        let WorkspaceBinding { task, branch } = binding.clone();
        let note = BindingNote { task, branch, commit: commit.map(str::to_owned) };
        let text = serde_json::to_vec(&note).map_err(|error| GitError::file("cannot write", &path)(error.into()))?;
        write_atomically(&path, &text, Durability::Synced).map_err(GitError::file("cannot write", &path))
    }

    /// The commit at which it was lent, if it is.
    pub(super) fn lent_at(&self) -> Option<String> {
        let note: BindingNote = serde_json::from_slice(&fs::read(self.binding_path()).ok()?).ok()?;
        note.commit
    }

    pub(crate) fn unbind(&self) -> Result<(), GitError> {
        remove_file(&self.binding_path())
    }

    pub(crate) fn task_file(&self) -> &'static [u8] {
        task_file_name(&self.admin)
    }

    /// Chooses the name of the task's file: a file of the project that is called TASK.md stays the project's.
    pub(crate) fn choose_task_file(&self) -> Result<(), GitError> {
        let call = self.call().option("--literal-pathspecs").args(["ls-files", "-z", "--"]);
        let is_taken = !call.arg(std::ffi::OsStr::from_bytes(TASK_FILE)).bytes()?.is_empty();
        let mark = self.admin.join(TAKEN);
        if is_taken {
            return fs::write(&mark, "").map_err(GitError::file("cannot write", &mark));
        }
        remove_file(&mark)
    }

    fn binding_path(&self) -> PathBuf {
        self.admin.join(BINDING)
    }

    /// The commit that is checked out; none before the first one.
    pub(crate) fn head(&self) -> Result<Option<String>, GitError> {
        self.call().args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).maybe()
    }

    /// The branch that is checked out, or is being rebased.
    pub(crate) fn branch(&self) -> Result<Option<String>, GitError> {
        let head = self.call().args(["symbolic-ref", "--quiet", "HEAD"]).maybe()?;
        let branch = head.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
        Ok(branch.or_else(|| self.rebased()))
    }

    pub(crate) fn rebased(&self) -> Option<String> {
        let names =
            ["rebase-merge/head-name", "rebase-apply/head-name"].map(|it| fs::read_to_string(self.admin.join(it)));
        let mut names = names.into_iter().flatten();
        names.find_map(|name| name.trim_end().strip_prefix("refs/heads/").map(str::to_owned))
    }

    /// What is under way: a rebase, a series of picks, a bisect. It is in the way of the next.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let names = ["rebase-merge", "rebase-apply", "sequencer", "BISECT_START"];
        names.into_iter().map(|name| self.admin.join(name)).filter(|path| path.exists())
    }
}

/// The file of the task that has this worktree, whether or not it is there: TASK.md at its root, or a file of another
/// name where the project has one of that name.
pub fn task_file(folder: &Path) -> PathBuf {
    match linked_admin(folder) {
        Some(admin) => path_of(folder, task_file_name(&admin)),
        // Without its link a worktree cannot say it, but a file can be there.
        None => [OTHER_TASK_FILE, TASK_FILE]
            .map(|name| path_of(folder, name))
            .into_iter()
            .find(|path| path.exists())
            .unwrap_or_else(|| path_of(folder, TASK_FILE)),
    }
}

/// Where the `.git` of a worktree leads to, whatever is there.
fn linked_admin(folder: &Path) -> Option<PathBuf> {
    fs::read(folder.join(".git")).ok().and_then(|link| link_target(&link)).map(|admin| folder.join(admin))
}

/// The folder that git keeps for the worktree at this place; nothing where there is none. No list of worktrees is read for it.
pub(super) fn admin_of(folder: &Path) -> Option<PathBuf> {
    linked_admin(folder).filter(|admin| admin.is_dir())
}

fn task_file_name(admin: &Path) -> &'static [u8] {
    if admin.join(TAKEN).exists() { OTHER_TASK_FILE } else { TASK_FILE }
}

/// The folders that git keeps for worktrees.
fn admins(repository: &Repository) -> Result<Vec<PathBuf>, GitError> {
    let path = repository.common().join("worktrees");
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(GitError::file("cannot read", &path)(error)),
    };
    let found = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut found: Vec<PathBuf> = found.filter(|admin| is_folder(admin)).collect();
    found.sort();
    Ok(found)
}

/// Whether a folder is there, and no link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// Puts a copy of the file in the place of a link to it; a link to anything else goes.
fn replace_link(link: &Path) -> std::io::Result<()> {
    if fs::metadata(link).is_ok_and(|it| it.is_file()) {
        let copy = link.with_extension("sluice-copy");
        return fs::copy(link, &copy).and_then(|_| fs::rename(&copy, link));
    }
    gone(fs::remove_file(link))
}

/// The folder that this one is kept for.
pub(crate) fn target(admin: &Path) -> Option<PathBuf> {
    let text = fs::read(admin.join("gitdir")).ok()?;
    let link = path_of(admin, text.strip_suffix(b"\n").unwrap_or(&text));
    // A power cut may have left nothing of it, or the beginning.
    let folder = link.parent().filter(|_| link.file_name().is_some_and(|name| name == ".git"))?;
    // Newer versions of git may write a relative path.
    if text.starts_with(b"..") { fs::canonicalize(folder).ok() } else { Some(folder.to_owned()) }
}

/// Where the `.git` of a worktree leads to.
pub(crate) fn link_target(link: &[u8]) -> Option<PathBuf> {
    let named = link.strip_prefix(b"gitdir: ")?;
    Some(path_of(Path::new(""), named.strip_suffix(b"\n").unwrap_or(named)))
}

/// What is not there needs no removing.
pub(crate) fn gone(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
