//! The repositories that a home knows: those of its projects, and those in which runs were started.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sluice_api::Problem;
use sluice_api::project::Project;
use sluice_os::git::Repository;
use sluice_os::workspace::{KeepRef, WorkspacePool};
use sluice_store::Query;

use crate::home::Home;
use crate::read::runs;
use crate::settings::projects::{git, open};

/// So many cards are read at a time.
const CARDS_AT_A_TIME: usize = 500;

pub(crate) struct KnownRepository {
    /// The project that it belongs to; none: only runs were started in it.
    pub(crate) project: Option<Project>,
    pub(crate) repository: Repository,
    /// The folders with the worktrees of its tasks and runs.
    pub(crate) pools: Vec<PathBuf>,
}

impl KnownRepository {
    /// The pool to which a keep belongs: the one that has what git cannot hold of it.
    pub(crate) fn pool_of(&self, kept: &KeepRef) -> Result<WorkspacePool, Problem> {
        let mut pools = Vec::new();
        for root in &self.pools {
            pools.push(WorkspacePool::at(self.repository.clone(), root).map_err(|error| git(&error))?);
        }
        let at = pools.iter().position(|pool| pool.has_aside(kept)).unwrap_or(0);
        Ok(pools.swap_remove(at))
    }
}

/// Every repository that is there. One that is gone, or cannot be opened, hides no other.
pub(crate) fn known(home: &Home) -> Vec<KnownRepository> {
    let of_runs = || home.context.places.runs();
    let mut found: Vec<KnownRepository> = Vec::new();
    for project in home.projects.list() {
        let Ok(repository) = open(Path::new(&project.path), Some(&project.default_branch)) else { continue };
        let pools = vec![home.projects.workspaces(&project), of_runs()];
        found.push(KnownRepository { project: Some(project), repository, pools });
    }
    let mut there: BTreeSet<PathBuf> = found.iter().map(|it| it.repository.common().to_owned()).collect();
    for root in home.repositories.list() {
        // A plain folder that a repository lies around is not one in which a run got a worktree.
        let Some(repository) = Some(root).filter(|root| root.join(".git").exists()).and_then(|it| open(&it, None).ok())
        else {
            continue;
        };
        if there.insert(repository.common().to_owned()) {
            found.push(KnownRepository { project: None, repository, pools: vec![of_runs()] });
        }
    }
    found
}

/// Writes down the repositories of the runs that the store knows, in a home of an earlier version.
pub(crate) fn learn(home: &Home) -> Result<(), Problem> {
    if home.repositories.are_known() {
        return Ok(());
    }
    let mut roots = BTreeSet::new();
    let query = Query { kind: Some("run".into()), limit: CARDS_AT_A_TIME, ..Query::default() };
    home.tasks.walk(query, |summary| {
        // A run that cannot be read is told of elsewhere.
        let seen = runs::id_of(&summary.stream).and_then(|id| home.tasks.load_run(&id).ok().flatten());
        let origin = seen.map(|seen| seen.state.given.origin.clone()).filter(|origin| !origin.base.is_empty());
        roots.extend(origin.map(|origin| origin.root));
        Ok(true)
    })?;
    home.repositories.remember(roots.iter().map(String::as_str));
    Ok(())
}
