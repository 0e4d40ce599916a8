//! What can be seen of a workspace: its branch, its commit, whether there are changes, how far it is from others.
//!
//! It only looks.

use std::path::PathBuf;

use super::furnish;
use super::listed::IndexListing;
use super::place::LOST;
use super::risk;
use super::site::{WorkspaceBinding, WorktreeSite};
use super::{WorkspaceName, WorkspacePool};
use crate::git::{CheckoutChanges, GitError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceHead {
    /// This branch. It may have been renamed since the workspace was lent.
    Branch(String),
    Rebasing(String),
    Detached,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchDistance {
    pub from: String,
    /// Commits that only this one has.
    pub ahead: u64,
    /// Commits that only the other has.
    pub behind: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceState {
    pub name: WorkspaceName,
    pub folder: PathBuf,
    pub binding: Option<WorkspaceBinding>,
    pub head: WorkspaceHead,
    /// The commit that is checked out; none before the first one.
    pub commit: Option<String>,
    /// Whether there are changes that no commit has, untracked files included.
    pub dirty: bool,
    pub conflict: bool,
    /// The distance from the default branch.
    pub default: Option<BranchDistance>,
    /// The distance from the branch on the remote, as last seen.
    pub upstream: Option<BranchDistance>,
}

/// The content that a verdict is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceTree {
    /// The tree of the commit that is checked out.
    pub id: String,
    pub commit: String,
    pub head: WorkspaceHead,
    /// The files that differ from it, untracked ones included.
    pub changed: Vec<String>,
}

impl WorkspacePool {
    /// How a workspace stands; nothing if it has not been made.
    pub fn status(&self, name: &WorkspaceName) -> Result<Option<WorkspaceState>, GitError> {
        let Some(site) = self.known(name)?.filter(WorktreeSite::is_present) else { return Ok(None) };
        let changes = changes(&site)?;
        let commit = changes.head.clone();
        let head = head(&site, &changes);
        let repository = self.repository();
        let from_default =
            |commit: &String| self.distance(commit, repository.default_branch(), &repository.default_commit()?);
        let default = commit.as_ref().map_or(Ok(None), from_default)?;
        let upstream = match (&commit, &head) {
            (Some(commit), WorkspaceHead::Branch(branch)) => self.upstream(commit, branch)?,
            (Some(_) | None, WorkspaceHead::Branch(_) | WorkspaceHead::Rebasing(_) | WorkspaceHead::Detached) => None,
        };
        Ok(Some(WorkspaceState {
            name: name.clone(),
            folder: site.folder.clone(),
            binding: site.binding()?,
            head,
            commit,
            dirty: !changes.is_empty(),
            conflict: !changes.unmerged.is_empty(),
            default,
            upstream,
        }))
    }

    /// Makes the link of a workspace to its repository right, if it is not.
    pub fn mend(&self, name: &WorkspaceName) -> Result<(), GitError> {
        self.present(name)?.mend_link()
    }

    /// What a workspace is lent for, if it has been made and is lent.
    pub fn lent_to(&self, name: &WorkspaceName) -> Result<Option<WorkspaceBinding>, GitError> {
        self.known(name)?.filter(WorktreeSite::is_present).map_or(Ok(None), |site| site.binding())
    }

    /// The branch that is checked out in a workspace, or is being rebased there; the agent may have renamed it.
    pub fn branch(&self, name: &WorkspaceName) -> Result<Option<String>, GitError> {
        self.known(name)?.map_or(Ok(None), |site| site.branch())
    }

    /// What a workspace holds, to bind a verdict to: one look, so that its parts belong together.
    pub fn tree(&self, name: &WorkspaceName) -> Result<WorkspaceTree, GitError> {
        let site = self.present(name)?;
        let none = || GitError::NoCommit { missing: format!("a commit in the workspace {name}") };
        // What git was told not to see is work beside the commit too.
        let changes = risk::changes(&site, &IndexListing::of(&site)?)?;
        let commit = changes.head.clone().ok_or_else(none)?;
        let id = site.repository.tree(&commit)?;
        Ok(WorkspaceTree { id, commit, head: head(&site, &changes), changed: changes.names() })
    }

    /// The names of all workspaces that have been made, or whose folders someone has removed by hand.
    pub fn names(&self) -> Result<Vec<WorkspaceName>, GitError> {
        let folders = std::fs::read_dir(self.root()).map_err(GitError::file("cannot read", self.root()))?;
        let folders = folders.filter_map(|it| it.ok().filter(|it| it.path().is_dir()).map(|it| it.path()));
        let registered = self.repository().registered()?.into_iter().map(|it| it.folder);
        let own = folders.chain(registered).filter(|it| it.parent() == Some(self.root()));
        let mut names: Vec<WorkspaceName> =
            own.filter_map(|it| WorkspaceName::new(it.file_name()?.to_str()?).ok()).collect();
        // 2 before 10.
        names.sort_by(|one, other| (one.0.len(), &one.0).cmp(&(other.0.len(), &other.0)));
        names.dedup();
        Ok(names)
    }

    /// What stood where worktrees were to be, and was moved away.
    pub fn lost(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.root().join("aside")).into_iter().flatten().flatten();
        let is_lost = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LOST));
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_lost).collect();
        found.sort();
        found
    }

    pub fn list(&self) -> Result<Vec<WorkspaceState>, GitError> {
        let mut states = Vec::new();
        for name in self.names()? {
            states.extend(self.status(&name)?);
        }
        Ok(states)
    }

    fn upstream(&self, commit: &str, branch: &str) -> Result<Option<BranchDistance>, GitError> {
        let format = "--format=%(upstream)";
        let named = self.repository().call().args(["for-each-ref", format, &format!("refs/heads/{branch}")]).text()?;
        let reference = match named.lines().next().filter(|it| !it.is_empty()) {
            Some(reference) => Some(reference.to_owned()),
            None => self.repository().tracking(branch)?.map(|(_, reference)| reference),
        };
        let Some(reference) = reference else { return Ok(None) };
        let Some(other) = self.repository().commit(&reference)? else { return Ok(None) };
        self.distance(commit, reference.trim_start_matches("refs/remotes/"), &other)
    }

    fn distance(&self, commit: &str, from: &str, other: &str) -> Result<Option<BranchDistance>, GitError> {
        let range = format!("{commit}...{other}");
        let text = self.repository().call().args(["rev-list", "--left-right", "--count", &range]).text()?;
        let counts = text.split_once('\t').and_then(|(left, right)| Some((left.parse().ok()?, right.parse().ok()?)));
        Ok(counts.map(|(ahead, behind)| BranchDistance { from: from.to_owned(), ahead, behind }))
    }
}

fn head(site: &WorktreeSite, changes: &CheckoutChanges) -> WorkspaceHead {
    match (changes.branch.clone(), site.rebased()) {
        (Some(branch), _) => WorkspaceHead::Branch(branch),
        (None, Some(branch)) => WorkspaceHead::Rebasing(branch),
        (None, None) => WorkspaceHead::Detached,
    }
}

fn changes(site: &WorktreeSite) -> Result<CheckoutChanges, GitError> {
    let mut changes = CheckoutChanges::of(site.call())?;
    changes.forget(site.task_file());
    furnish::forget(site, &mut changes)?;
    Ok(changes)
}
