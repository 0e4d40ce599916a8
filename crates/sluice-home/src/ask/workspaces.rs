//! Worktrees, and work that was put away.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::SystemTime;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::project::{Project, ProjectChange};
use sluice_api::task::TaskAnswer;
use sluice_api::workspace::{AdoptStray, Kept, Restore, Workspace, WorkspaceList};
use sluice_core::event_name::EventName;
use sluice_os::workspace::{KeepKind, KeepRef, RestoreTarget, WorkspaceHead, WorkspaceName, WorkspacePool};

use super::{Requester, Service};
use crate::ask::strays;
use crate::home::{pool_names, setup};
use crate::read::tasks::had;
use crate::settings::clock::written;
use crate::settings::projects::git;
use crate::undone::{PerformError, described};

/// Why a worktree that is not there, as far as git knows, is worth a look.
fn missing(path: &str, is_lent: bool) -> Option<String> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Some("git does not know this worktree any more; what is in it stays, and is moved aside later".into()),
        Err(_) if is_lent => Some("its folder is gone".into()),
        Err(_) => None,
    }
}

impl Service {
    /// Every worktree of these projects, and what was put away.
    pub fn workspaces(&self, project: Option<&str>) -> Result<WorkspaceList, Problem> {
        let mut list = WorkspaceList::default();
        for project in self.some_projects(project)? {
            // A repository that is gone hides no other.
            let Ok(pool) = self.home.projects.pool(&project) else { continue };
            self.list_pool(&project, &pool, &mut list)?;
        }
        list.strays = strays::find(&self.home)?;
        Ok(list)
    }

    fn some_projects(&self, name: Option<&str>) -> Result<Vec<Project>, Problem> {
        match name {
            Some(name) => Ok(vec![self.home.projects.get(name)?]),
            None => Ok(self.home.projects.list()),
        }
    }

    fn list_pool(&self, project: &Project, pool: &WorkspacePool, list: &mut WorkspaceList) -> Result<(), Problem> {
        let open = self.home.tasks.open();
        let mut names = pool_names(project.pool_size);
        let others = pool.names().map_err(|error| git(&error))?;
        names.extend(others.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        for name in names {
            let path = pool.folder(&name).display().to_string();
            let (state, unseen) = match pool.status(&name) {
                Ok(state) => (state, None),
                Err(error) => (None, Some(described(&error))),
            };
            let task = open.iter().find(|seen| had(&seen.state.workspace) == Some(&path)).map(|seen| seen.id.clone());
            let branch = state.as_ref().and_then(|state| match &state.head {
                WorkspaceHead::Branch(branch) | WorkspaceHead::Rebasing(branch) => Some(branch.clone()),
                WorkspaceHead::Detached => None,
            });
            let doubt = unseen.or_else(|| match &state {
                Some(state) => strays::doubt(&self.home, state, task.as_deref()),
                None => missing(&path, task.is_some()),
            });
            list.workspaces.push(Workspace {
                name: format!("{}/{name}", project.name),
                project: project.name.clone(),
                path,
                branch,
                dirty: state.as_ref().is_some_and(|state| state.dirty),
                doubt,
                exists: state.is_some(),
                task,
            });
        }
        list.workspaces.extend(pool.lost().into_iter().map(|path| Workspace {
            name: format!("{}/aside/{}", project.name, path.file_name().unwrap_or_default().to_string_lossy()),
            project: project.name.clone(),
            path: path.display().to_string(),
            branch: None,
            dirty: true,
            doubt: Some(
                "it stood where a worktree was made, and git did not know it; look at it, then remove it".into(),
            ),
            exists: true,
            task: None,
        }));
        let kept = pool.kept().map_err(|error| git(&error))?;
        list.kept.extend(kept.iter().map(|kept| shown(project, kept)));
        Ok(())
    }

    pub fn init_workspaces(
        &self,
        who: &Requester,
        project: Option<&str>,
        cwd: Option<&str>,
    ) -> Result<WorkspaceList, Problem> {
        who.must_be_person("making worktrees")?;
        let project = crate::start::project(&self.home, project, cwd)?;
        let pool = self.home.projects.pool(&project)?;
        pool.init(&pool_names(project.pool_size)).map_err(|error| git(&error))?;
        self.workspaces(Some(&project.name))
    }

    /// Removes worktrees that no task has. What is in them is kept first.
    pub fn collect_workspaces(&self, who: &Requester, project: Option<&str>) -> Result<WorkspaceList, Problem> {
        who.must_be_person("clearing worktrees")?;
        let mut failed = None;
        for project in self.some_projects(project)? {
            let Ok(pool) = self.home.projects.pool(&project) else { continue };
            let stays = RefCell::new(None);
            let removal = |name: &WorkspaceName| {
                let held = self.home.reservations.removal(&self.home, &pool, name)?;
                let torn = setup::tear_down(&self.home, pool.repository().folder(), &pool.folder(name));
                let refusal = |undone: PerformError| stays.replace(Some(undone.refusal("teardown_failed")));
                torn.map_err(refusal).is_ok().then_some(held)
            };
            // One that cannot be removed is in the way of no other.
            let problem = match pool.gc(removal, None) {
                Ok(swept) => swept.removed.iter().find_map(|swept| swept.outcome.as_ref().err()).map(git),
                Err(error) => Some(git(&error)),
            };
            failed = failed.or(problem).or(stays.into_inner());
        }
        self.home.tasks.stir();
        failed.map_or_else(|| self.workspaces(project), Err)
    }

    /// Ends a living session that nobody knows. Its worktree is free then, and what is in it is kept when it is lent.
    pub fn end_stray(&self, who: &Requester, session: &str) -> Result<WorkspaceList, Problem> {
        who.must_be_person("ending a session")?;
        strays::end(&self.home, session)?;
        self.home.tasks.stir();
        self.workspaces(None)
    }

    /// Gives a living session that no task and no run knows a task: the one that it was.
    pub fn adopt_stray(&self, who: &Requester, wanted: &AdoptStray) -> Result<TaskAnswer, Problem> {
        who.must_be_person("adopting a session")?;
        let (task, recorded) = strays::adopt(&self.home, wanted)?;
        self.settled(who, &task, recorded)
    }

    /// Brings back work that was put away, into a new folder.
    pub fn restore_work(&self, who: &Requester, wanted: &Restore) -> Result<PathBuf, Problem> {
        who.must_be_person("restoring work")?;
        let mut known = Vec::new();
        for project in self.home.projects.list() {
            let Ok(pool) = self.home.projects.pool(&project) else { continue };
            let kept = pool.kept().map_err(|error| git(&error))?;
            known.extend(kept.into_iter().filter(|it| it.task.starts_with(&wanted.task)).map(|it| (pool.clone(), it)));
        }
        let fits = |kept: &KeepRef| wanted.number.is_none_or(|number| kept.number == number);
        let newest = known.into_iter().filter(|(_, kept)| fits(kept)).max_by_key(|(_, kept)| (kept.time, kept.number));
        let Some((pool, kept)) = newest else {
            let number = wanted.number.map(|number| format!(" with the number {number}")).unwrap_or_default();
            return Err(Problem::not_found(format!("nothing{number} is kept for `{}`", wanted.task))
                .hint("`sluice workspace list` shows what is kept, with its numbers"));
        };
        let target = RestoreTarget::Folder(PathBuf::from(&wanted.into));
        let restored = pool.restore(&kept.task, kept.number, &target).map_err(|error| git(&error))?;
        Ok(restored.folder.unwrap_or_else(|| PathBuf::from(&wanted.into)))
    }

    pub fn add_project(&self, who: &Requester, wanted: ProjectChange) -> Result<Project, Problem> {
        who.must_be_person("adding a project")?;
        let project = self.home.projects.add(wanted)?;
        self.project_changed(who, EventName::ProjectAdded, &project);
        Ok(project)
    }

    /// Changes a project. Its name stays while it has open tasks, which know it by that.
    pub fn update_project(&self, who: &Requester, name: &str, wanted: ProjectChange) -> Result<Project, Problem> {
        who.must_be_person("changing a project")?;
        if wanted.name.as_deref().is_some_and(|new| new != name) || wanted.path.is_some() {
            self.must_have_no_tasks(name)?;
        }
        let project = self.home.projects.update(name, wanted)?;
        self.project_changed(who, EventName::ProjectChanged, &project);
        self.home.tasks.stir();
        Ok(project)
    }

    /// Forgets a project without open tasks.
    pub fn remove_project(&self, who: &Requester, name: &str) -> Result<Project, Problem> {
        who.must_be_person("removing a project")?;
        self.must_have_no_tasks(name)?;
        let project = self.home.projects.remove(name)?;
        self.project_changed(who, EventName::ProjectRemoved, &project);
        Ok(project)
    }

    pub fn import_projects(&self, who: &Requester, document: &serde_json::Value) -> Result<Vec<Project>, Problem> {
        who.must_be_person("importing projects")?;
        let projects = self.home.projects.import(document)?;
        projects.iter().for_each(|project| self.project_changed(who, EventName::ProjectAdded, project));
        Ok(projects)
    }

    fn project_changed(&self, who: &Requester, name: EventName, project: &Project) {
        self.access_changed(name, &who.label(), &project.name, project);
    }

    fn must_have_no_tasks(&self, project: &str) -> Result<(), Problem> {
        let open = self.home.tasks.open();
        let ids: Vec<&str> =
            open.iter().filter(|seen| seen.state.about.project == project).map(|seen| seen.id.as_str()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let message = format!("the project has open tasks: {}", ids.join(", "));
        Err(Problem::new(ProblemStatus::Refused, "has_tasks", message).hint("merge or cancel them first"))
    }
}

fn shown(project: &Project, kept: &KeepRef) -> Kept {
    let since = kept.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Kept {
        project: project.name.clone(),
        task: kept.task.clone(),
        number: kept.number,
        reference: kept.reference.clone(),
        what: what(kept),
        at: written(i64::try_from(since.as_millis()).unwrap_or(0)),
    }
}

pub(super) fn what(kept: &KeepRef) -> String {
    let word = |kind: &KeepKind| match kind {
        KeepKind::Staged => "staged changes",
        KeepKind::Unstaged => "changes",
        KeepKind::Untracked => "new files",
        KeepKind::Conflict => "conflicts",
        KeepKind::Commits => "commits",
        KeepKind::Repository => "a repository inside",
        KeepKind::Branch => "a branch",
        KeepKind::Ignored => "ignored files",
    };
    kept.what.iter().map(word).collect::<Vec<_>>().join(", ")
}
