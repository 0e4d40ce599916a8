//! The workers of a project: a group of their own, whose repository is the remote of the project's. Nothing of it is
//! stored; a project has it for as long as it is there.

use std::path::Path;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::project::Project;
use sluice_api::work::{PROJECT_GROUP, project_group};
use sluice_core::recipe::{Recipe, Step, StepWork};

use super::Home;
use crate::settings::projects::{git, open};

/// The code of the refusal of a recipe that workers cannot do.
pub(crate) const NOT_FOR_WORKERS: &str = "not_for_workers";

/// The project whose workers a group is, if it is one.
pub(crate) fn project(home: &Home, group: &str) -> Option<Result<Project, Problem>> {
    group.strip_prefix(PROJECT_GROUP).map(|name| home.projects.get(name))
}

/// Where workers find the repository: its remote, or the repository itself where it has none.
pub(crate) fn repository(project: &Project) -> Result<String, Problem> {
    let address = open(Path::new(&project.path), None)?.remote_address().map_err(|error| git(&error))?;
    Ok(address.unwrap_or_else(|| project.path.clone()))
}

/// Refuses a recipe with a step that only the engine's machine can do: one that creates a task, or acts for a person. What such
/// a step may do its worker could do as well, and an agent beside it.
pub(crate) fn must_be_for_workers(recipe: &Recipe) -> Result<(), Problem> {
    let why = |step: &Step| match (&step.work, step.acts_as_person) {
        (StepWork::Task(_), _) => Some("creates a task, which workers cannot do"),
        (_, true) => Some("says `acts_as: person`, and a worker cannot be given a person's rights"),
        (_, false) => None,
    };
    match recipe.steps.iter().find_map(|step| why(step).map(|why| (step, why))) {
        None => Ok(()),
        Some((step, why)) => {
            let message = format!("step `{}` {why}", step.name);
            Err(Problem::new(ProblemStatus::Refused, NOT_FOR_WORKERS, message)
                .hint("start the recipe on the engine's machine, without workers"))
        }
    }
}

/// The group that does the steps of a run which is started here, and the commit that the run begins at, if it needs
/// one.
pub(crate) fn chosen(home: &Home, root: &Path, recipe: &Recipe) -> Result<(String, String), Problem> {
    let project = home.projects.around(root).ok_or_else(|| {
        Problem::not_found(format!("{} is in no project, and only a project has workers", root.display())).hint(
            "`sluice project add` adds the repository; `sluice start RECIPE --project NAME --workers` names another",
        )
    })?;
    if !recipe.has_worktree() {
        return Ok((project_group(&project.name), String::new()));
    }
    let repository = open(root, None)?;
    let remotes = repository.remotes().map_err(|error| git(&error))?;
    if remotes.len() > 1 && !remotes.iter().any(|name| name == "origin") {
        let message = format!("the project has the remotes {}, and none is called `origin`", remotes.join(", "));
        return Err(Problem::new(ProblemStatus::Refused, "no_remote", message)
            .hint("`git remote rename NAME origin` says from which of them workers begin"));
    }
    let commit = repository.commit("HEAD").map_err(|error| git(&error))?;
    let commit = commit.map_or_else(|| repository.default_commit().map_err(|error| git(&error)), Ok)?;
    if let Some(remote) = repository.remote().map_err(|error| git(&error))?
        && !repository.is_pushed_to(&remote, &commit).map_err(|error| git(&error))?
    {
        let short = commit.get(..12).unwrap_or(&commit);
        let message = format!("commit {short} is not on the remote `{remote}`, from which workers begin");
        return Err(Problem::new(ProblemStatus::Refused, "not_pushed", message)
            .hint(format!("`git push {remote} HEAD` brings it there")));
    }
    Ok((project_group(&project.name), commit))
}
