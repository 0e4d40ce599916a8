//! Bringing back what is kept, byte for byte: commits as commits, the index as the index, the rest as it lay on disk.
//!
//! It never touches what is there: a folder and a branch must be new. The keep stays until it is pruned.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::keep::{self, KeepKind, KeepNote, KeepRef};
use super::place;
use super::risk::WorkspaceRisk;
use super::site::{WorktreeSite, gone};
use super::unsynced::sync_around;
use super::{WorkspaceName, WorkspacePool};
use crate::git::run::{CommandTrouble, run};
use crate::git::{GitError, Repository, path_of, remove_empty_folders, said, unquote};

/// How many files are read from git at a time.
const BATCH: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreTarget {
    /// A new worktree without a branch, with changes as changes.
    Folder(PathBuf),
    /// A new worktree on a new branch, with changes as changes.
    FolderOnBranch(PathBuf, String),
    /// A new branch, with changes as a commit on top.
    Branch(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredKeep {
    pub kept: KeepRef,
    pub folder: Option<PathBuf>,
    pub branch: Option<String>,
    /// The commit that is checked out, or that the branch is at; none before the first one.
    pub commit: Option<String>,
}

impl WorkspacePool {
    pub fn restore(&self, task: &str, number: u32, target: &RestoreTarget) -> Result<RestoredKeep, GitError> {
        let none = || GitError::NoKeep { task: task.to_owned(), number };
        let mut all = keep::stored(self.repository(), Some(task))?.into_iter();
        let found = all.find(|it| it.kept.number == number).ok_or_else(none)?;
        let (kept, note) = (found.kept, found.note.ok_or_else(none)?);
        // What git cannot hold is put aside after the rest is kept: until then it is not whole.
        let name = note.workspace.as_deref().and_then(|name| WorkspaceName::new(name).ok());
        let Some(name) = name else { return self.restore_found(kept, &note, target) };
        let _lock = self.lock(&name)?;
        self.restore_found(kept, &note, target)
    }

    fn restore_found(&self, kept: KeepRef, note: &KeepNote, target: &RestoreTarget) -> Result<RestoredKeep, GitError> {
        let (folder, branch) = match target {
            RestoreTarget::Folder(folder) => (Some(folder), None),
            RestoreTarget::FolderOnBranch(folder, branch) => (Some(folder), Some(branch)),
            RestoreTarget::Branch(branch) => (None, Some(branch)),
        };
        if let Some(branch) = branch
            && self.repository().branch_commit(branch)?.is_some()
        {
            return Err(GitError::BranchThere { branch: branch.clone() });
        }
        let Some(folder) = folder else { return self.restore_branch(kept, note, branch) };
        let folder = new_folder(folder)?;
        let draft = draft_of(&folder);
        self.clear_draft(&draft)?;
        let done = self.restore_folder(&kept, note, &draft, branch.map(String::as_str)).and_then(|site| {
            // Where it has its name, it is whole.
            sync_around(&site.folder);
            // An empty one may stand there.
            gone(fs::remove_dir(&folder)).map_err(GitError::file("cannot replace", &folder))?;
            site.renamed(folder.clone())
        });
        if done.is_err() {
            drop(self.clear_draft(&draft));
        }
        let site = done?;
        site.mend_link()?;
        let commit = site.head()?;
        if let (Some(branch), Some(commit)) = (branch, &commit) {
            let (reference, nothing) = (format!("refs/heads/{branch}"), "0".repeat(commit.len()));
            let call = self.repository().call().durable();
            call.args(["update-ref", "-m", "sluice: restore", &reference, commit, &nothing]).run()?;
            site.call().args(["symbolic-ref", "HEAD", &reference]).run()?;
        }
        // It is the person's from now on, and no power cut takes anything of it.
        if sync_around(&site.folder) && sync_around(&site.admin) {
            site.forget_unsynced();
        }
        Ok(RestoredKeep { kept, folder: Some(folder), branch: branch.cloned(), commit })
    }

    /// Removes what a restore that was broken off has made beside the folder. Only what is in the keep is in it.
    fn clear_draft(&self, draft: &Path) -> Result<(), GitError> {
        if let Some(site) = WorktreeSite::find(self.repository(), draft)? {
            place::unregister(&site)?;
        }
        gone(place::remove_tree(draft)).map_err(GitError::file("cannot remove", draft))
    }

    /// Brings repositories that lie inside a workspace, and so are in no keep, from where they are: they are set aside when the
    /// workspace goes, and until then they are in it.
    fn bring_repositories(&self, note: &KeepNote, folder: &Path) -> Result<(), GitError> {
        let name = note.workspace.as_deref().and_then(|name| WorkspaceName::new(name).ok());
        let Some(name) = name.filter(|_| note.what.contains(&KeepKind::Repository)) else { return Ok(()) };
        let Some(site) = self.known(&name)?.filter(WorktreeSite::is_present) else { return Ok(()) };
        if site.binding()?.is_none_or(|bound| bound.task != note.task) {
            return Ok(());
        }
        for path in &WorkspaceRisk::glance(&site)?.0.changes.nested {
            let (from, to) = (path_of(&site.folder, path), path_of(folder, path));
            fs::create_dir_all(&to).map_err(GitError::file("cannot make", &to))?;
            bring_back(self.repository(), &from, &to)?;
        }
        Ok(())
    }

    fn restore_branch(
        &self,
        kept: KeepRef,
        note: &KeepNote,
        branch: Option<&String>,
    ) -> Result<RestoredKeep, GitError> {
        let repository = self.repository();
        let all = repository.tree(&kept.commit)?;
        let commit = match &note.head {
            Some(head) if repository.tree(head)? == all => head.clone(),
            head => {
                let message = format!("Work kept for {}\n", note.task);
                let parents: Vec<&str> = head.iter().map(String::as_str).collect();
                crate::merge::commit_tree(repository, &all, &parents, &message)?
            }
        };
        if let Some(branch) = branch {
            let nothing = "0".repeat(commit.len());
            let reference = format!("refs/heads/{branch}");
            let call = repository.call().durable();
            call.args(["update-ref", "-m", "sluice: restore", &reference, &commit, &nothing]).run()?;
        }
        Ok(RestoredKeep { kept, folder: None, branch: branch.cloned(), commit: Some(commit) })
    }

    fn restore_folder(
        &self,
        kept: &KeepRef,
        note: &KeepNote,
        folder: &Path,
        branch: Option<&str>,
    ) -> Result<WorktreeSite, GitError> {
        let repository = self.repository();
        let start = note.head.as_ref().unwrap_or(&kept.commit);
        let site = WorktreeSite::create(repository, folder, start)?;
        let _writes = site.begin_writing()?;
        site.fill(start)?;
        restore_index(&site, note)?;
        for from in [Some(start), note.index.as_ref()].into_iter().flatten() {
            remove_missing(&site, from, &kept.commit)?;
        }
        write_files(&site, note)?;
        let intended: Vec<Vec<u8>> = note.intended.iter().filter_map(|path| unquote(path)).collect();
        if !intended.is_empty() {
            let call = site.call().option("--literal-pathspecs").args(["add", "--intent-to-add", "--force"]);
            call.args(["--pathspec-from-file=-", "--pathspec-file-nul"]).input(intended.join(&0)).run()?;
        }
        let aside = self.aside(kept);
        if aside.is_dir() {
            bring_back(repository, &aside, folder)?;
        } else {
            self.bring_repositories(note, folder)?;
        }
        for (name, commits) in &note.marks {
            let path = site.admin.join(name);
            fs::write(&path, commits.join("\n") + "\n").map_err(GitError::file("cannot write", &path))?;
        }
        if note.head.is_none() {
            let name = branch
                .map_or_else(|| format!("restored/{}-{}", crate::git::slug(&kept.task), kept.number), str::to_owned);
            site.call().args(["symbolic-ref", "HEAD", &format!("refs/heads/{name}")]).run()?;
        }
        // So that `git status` need not read every file again; it says by its exit code that there are changes.
        site.call().args(["update-index", "-q", "--refresh"]).answer()?;
        Ok(site)
    }
}

/// Where a folder is made before it is whole: beside it, with a name that tells what it is.
fn draft_of(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.sluice-restoring"))
}

/// The folder with its real path; it must be new, or empty.
fn new_folder(folder: &Path) -> Result<PathBuf, GitError> {
    fs::create_dir_all(folder).map_err(|error| match fs::symlink_metadata(folder) {
        Ok(_) => GitError::FolderThere { folder: folder.to_owned() },
        Err(_) => GitError::file("cannot make", folder)(error),
    })?;
    let real = fs::canonicalize(folder).map_err(GitError::file("cannot find", folder))?;
    let mut entries = fs::read_dir(&real).map_err(GitError::file("cannot read", &real))?;
    if entries.next().is_some() { Err(GitError::FolderThere { folder: folder.to_owned() }) } else { Ok(real) }
}

/// Removes files that the commit has and the kept worktree had not.
fn remove_missing(site: &WorktreeSite, from: &str, to: &str) -> Result<(), GitError> {
    let call = site.call().args(["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=D", "--name-only", from, to]);
    let bytes = call.bytes()?;
    for path in bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let full = path_of(&site.folder, path);
        // A folder may stand where the file was, or a file where its folder was.
        if fs::symlink_metadata(&full).is_ok_and(|it| !it.is_dir()) {
            fs::remove_file(&full).map_err(GitError::file("cannot remove", &full))?;
        }
        remove_empty_folders(&full, &site.folder);
    }
    Ok(())
}

/// The index as it was, and the files as it has them; what differed on disk is written over that.
fn restore_index(site: &WorktreeSite, note: &KeepNote) -> Result<(), GitError> {
    match (&note.index, &note.head) {
        (Some(index), _) => {
            site.call().args(["read-tree", index]).run()?;
            site.call().args(["checkout-index", "--all", "--force", "--quiet"]).run()?;
        }
        (None, Some(_)) => {}
        (None, None) => site.call().args(["read-tree", "--empty"]).run()?,
    }
    let Some(sides) = &note.sides else { return Ok(()) };
    let (mut removals, mut entries) = (Vec::new(), Vec::new());
    for (mode, id, path) in keep::list_tree(&site.repository, sides)? {
        let (Some(stage), Some(path)) = (path.first(), path.get(2..)) else { continue };
        removals.extend(super::risk::entry("0", &"0".repeat(id.len()), path));
        entries.extend(format!("{mode} {id} {}\t", char::from(*stage)).bytes());
        entries.extend(path);
        entries.push(0);
    }
    removals.extend(entries);
    site.call().args(["update-index", "-z", "--index-info"]).input(removals).run()
}

fn write_files(site: &WorktreeSite, note: &KeepNote) -> Result<(), GitError> {
    let Some(files) = &note.files else { return Ok(()) };
    let files = keep::list_tree(&site.repository, files)?;
    for batch in files.chunks(BATCH) {
        let ids: Vec<&str> = batch.iter().map(|(_, id, _)| id.as_str()).collect();
        let contents = site.repository.blobs(&ids, |at| format!("the blob {} cannot be read", ids[at]))?;
        for ((mode, _, path), content) in batch.iter().zip(contents) {
            let full = path_of(&site.folder, path);
            write_file(&full, mode, &content).map_err(GitError::file("cannot write", &full))?;
        }
    }
    for (path, permissions) in &note.permissions {
        let Some(path) = unquote(path) else { continue };
        let full = path_of(&site.folder, &path);
        let set = fs::set_permissions(&full, fs::Permissions::from_mode(*permissions));
        set.map_err(GitError::file("cannot set the permissions of", &full))?;
    }
    Ok(())
}

fn write_file(path: &Path, mode: &str, content: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    gone(fs::remove_file(path))?;
    if mode == "120000" {
        return symlink(std::ffi::OsStr::from_bytes(content), path);
    }
    let bits = if mode == "100755" { 0o755 } else { 0o644 };
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(bits).open(path)?;
    file.write_all(content)?;
    // The mode at opening is cut by the process's mask.
    file.set_permissions(fs::Permissions::from_mode(bits))
}

/// Copies what was set aside back to where it was; a keep can be brought back more than once.
fn bring_back(repository: &Repository, from: &Path, to: &Path) -> Result<(), GitError> {
    let mut command = Command::new("cp");
    command.args(["-a", "--"]).arg(from.join(".")).arg(to);
    let what = || format!("`cp` from {} to {}", from.display(), to.display());
    let ended = run(command, b"", repository.git().local).map_err(|trouble| match trouble {
        CommandTrouble::Start(source) => GitError::NoProgram { program: "cp".to_owned(), source },
        CommandTrouble::Late(limit) => GitError::Late { what: what(), limit },
    })?;
    if ended.code == Some(0) { Ok(()) } else { Err(GitError::Failed { what: what(), said: said(&ended) }) }
}
