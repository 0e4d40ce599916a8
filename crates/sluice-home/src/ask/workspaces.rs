//! Worktrees, and work that was put away.

use std::path::{Path, PathBuf};

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::project::{Project, ProjectChange};
use sluice_api::task::TaskAnswer;
use sluice_api::work::project_group;
use sluice_api::workspace::{AdoptStray, CollectWorkspaces, DropKept, DroppedKept, Restore, Workspace, WorkspaceList};
use sluice_core::event_name::EventName;
use sluice_os::workspace::{RestoreTarget, WorkspacePool};

use super::page::PageQuery;
use super::{Requester, Service};
use crate::ask::{checkouts, collect, strays};
use crate::definitions::{self, committed::DefinitionSite};
use crate::home::worktrees::NO_WORKSPACE;
use crate::home::{pool_names, room};
use crate::read::tasks::had;
use crate::settings::projects::git;
use crate::undone::described;

/// Why a worktree that is not there, as far as git knows, is worth a look.
fn missing(path: &str, is_lent: bool) -> Option<String> {
    let is_empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    match std::fs::symlink_metadata(path) {
        Ok(_) if !is_lent && is_empty() => Some("it is empty; `sluice workspace gc` removes it".into()),
        Ok(_) => Some("git does not know this worktree any more; what is in it stays, and is moved aside later".into()),
        Err(_) if is_lent => Some("its folder is not there".into()),
        Err(_) => None,
    }
}

fn nothing_kept(task: &str, number: Option<u32>) -> Problem {
    let number = number.map(|number| format!(" with the number {number}")).unwrap_or_default();
    Problem::not_found(format!("nothing{number} is kept for `{task}`"))
        .hint("`sluice workspace list` shows what is kept, with its numbers")
}

impl Service {
    /// Every worktree of these projects and of runs, what was put away, and what is left over.
    pub fn workspaces(&self, project: Option<&str>) -> Result<WorkspaceList, Problem> {
        let mut list = WorkspaceList::default();
        for project in self.some_projects(project)? {
            // A repository that is gone hides no other.
            match self.home.projects.pool(&project) {
                Ok(pool) => self.list_pool(&project, &pool, &mut list)?,
                Err(problem) => {
                    list.leftovers.extend(checkouts::unopened(&self.home.projects.workspaces(&project), &problem));
                }
            }
        }
        checkouts::list(&self.home, project, &mut list)?;
        list.strays = strays::find(&self.home)?;
        Ok(list)
    }

    /// The same, with how much room everything takes on the disk.
    pub fn measured_workspaces(&self, project: Option<&str>) -> Result<WorkspaceList, Problem> {
        let mut list = self.workspaces(project)?;
        checkouts::measure(&self.home, &mut list);
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
            let branch = state.as_ref().and_then(checkouts::branch);
            let doubt = unseen.or_else(|| match &state {
                Some(state) => strays::doubt(&self.home, state, task.as_ref()),
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
                task: task.map(String::from),
                size_bytes: None,
                size_over_bytes: None,
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
            size_bytes: None,
            size_over_bytes: None,
        }));
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
        let names = pool_names(project.pool_size);
        for name in &names {
            room::must_be_there(&self.home, &pool.folder(name)).map_err(|undone| undone.refusal(NO_WORKSPACE))?;
        }
        pool.init(&names).map_err(|error| git(&error))?;
        self.workspaces(Some(&project.name))
    }

    /// Removes what may go now: worktrees that no task has, checkouts of runs that are over, leftovers. What is in them is kept
    /// first. A dry run only says what that would be.
    pub fn collect_workspaces(&self, who: &Requester, wanted: &CollectWorkspaces) -> Result<WorkspaceList, Problem> {
        who.must_be_person("clearing worktrees")?;
        let collected = collect::collect(&self.home, wanted)?;
        if !wanted.dry_run {
            self.home.tasks.stir();
        }
        Ok(WorkspaceList { collected: Some(collected), ..self.workspaces(wanted.project.as_deref())? })
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
        let Some((known, kept)) = checkouts::find_kept(&self.home, &wanted.task, wanted.number)? else {
            return Err(nothing_kept(&wanted.task, wanted.number));
        };
        let folder = match wanted.into.as_str() {
            "" => self.home.context.places.restored().join(format!("{}-{}", kept.task, kept.number)),
            into => PathBuf::from(into),
        };
        let pool = known.pool_of(&kept)?;
        let target = RestoreTarget::Folder(folder.clone());
        let restored = pool.restore(&kept.task, kept.number, &target).map_err(|error| git(&error))?;
        Ok(restored.folder.unwrap_or(folder))
    }

    /// Drops kept work for good. Of several copies the number must be said.
    pub fn drop_work(&self, who: &Requester, wanted: &DropKept) -> Result<DroppedKept, Problem> {
        who.must_be_person("dropping kept work")?;
        let Some((known, kept)) = checkouts::find_kept(&self.home, &wanted.task, wanted.number)? else {
            return Err(nothing_kept(&wanted.task, wanted.number));
        };
        if wanted.number.is_none() {
            let all = known.repository.kept().map_err(|error| git(&error))?;
            let numbers: Vec<String> =
                all.iter().filter(|it| it.task == kept.task).map(|it| it.number.to_string()).collect();
            if numbers.len() > 1 {
                let message = format!("{} copies are kept for `{}`", numbers.len(), kept.task);
                return Err(Problem::bad_request(message).hint(format!("`number` is one of: {}", numbers.join(", "))));
            }
        }
        let pool = known.pool_of(&kept)?;
        pool.drop_kept(&kept).map_err(|error| git(&error))?;
        let dropped = DroppedKept { dropped: checkouts::shown(&known, &kept), commit: kept.commit.clone() };
        self.access_changed(EventName::KeptDropped, &who.label(), &kept.task, &dropped);
        Ok(dropped)
    }

    pub fn add_project(&self, who: &Requester, wanted: ProjectChange) -> Result<Project, Problem> {
        who.must_be_person("adding a project")?;
        self.must_know_workflow(wanted.workflow.as_deref(), wanted.path.as_deref())?;
        let project = self.home.projects.add(wanted)?;
        self.project_changed(who, EventName::ProjectAdded, &project);
        Ok(project)
    }

    /// Changes a project. Its name stays while it has open tasks, which know it by that.
    pub fn update_project(&self, who: &Requester, name: &str, wanted: ProjectChange) -> Result<Project, Problem> {
        who.must_be_person("changing a project")?;
        if wanted.name.as_deref().is_some_and(|new| new != name) || wanted.path.is_some() {
            self.must_be_at_rest(name)?;
        }
        let path = wanted.path.clone().map_or_else(|| self.home.projects.get(name).map(|it| it.path), Ok)?;
        self.must_know_workflow(wanted.workflow.as_deref(), Some(&path))?;
        let project = self.home.projects.update(name, wanted)?;
        if project.name != name {
            self.revoke_worker_tokens(who, name)?;
        }
        self.project_changed(who, EventName::ProjectChanged, &project);
        self.home.tasks.stir();
        Ok(project)
    }

    /// Refuses a lifecycle that is not there: otherwise each task of the project would be refused, and the mistake was made here.
    fn must_know_workflow(&self, workflow: Option<&str>, path: Option<&str>) -> Result<(), Problem> {
        let (Some(workflow), Some(path)) = (workflow, path) else { return Ok(()) };
        definitions::lifecycle(&self.home, workflow, Path::new(path), DefinitionSite::Checkout).map(drop)
    }

    /// Forgets a project without open tasks.
    pub fn remove_project(&self, who: &Requester, name: &str) -> Result<Project, Problem> {
        who.must_be_person("removing a project")?;
        self.must_be_at_rest(name)?;
        let project = self.home.projects.remove(name)?;
        self.revoke_worker_tokens(who, name)?;
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

    /// Refuses while the project has open tasks, or runs that its workers do: both know it by its name.
    fn must_be_at_rest(&self, project: &str) -> Result<(), Problem> {
        let open = self.home.tasks.open();
        let ids: Vec<&str> =
            open.iter().filter(|seen| seen.state.about.project == project).map(|seen| seen.id.as_str()).collect();
        if !ids.is_empty() {
            let message = format!("the project has open tasks: {}", ids.join(", "));
            return Err(Problem::new(ProblemStatus::Refused, "has_tasks", message).hint("merge or cancel them first"));
        }
        let group = project_group(project);
        let runs = self.list_runs(None, false, &PageQuery::default())?.items;
        let ids: Vec<&str> = runs.iter().filter(|seen| seen.group() == group).map(|seen| seen.id.as_str()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let message = format!("the project has open runs that its workers do: {}", ids.join(", "));
        Err(Problem::new(ProblemStatus::Refused, "has_runs", message).hint("wait for them, or cancel them first"))
    }

    /// Another project may get the name, and its work is none of theirs.
    fn revoke_worker_tokens(&self, who: &Requester, project: &str) -> Result<(), Problem> {
        for id in self.tokens.of_group(&project_group(project)) {
            self.revoke_token(who, &id)?;
        }
        Ok(())
    }
}
