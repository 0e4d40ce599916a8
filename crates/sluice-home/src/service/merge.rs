//! Merging a task's branch, and pull requests for it.

use sluice_api::problem::{Problem, Status};
use sluice_api::task::{MergeTask, TaskAnswer};
use sluice_core::task::Input;
use sluice_core::task::input::Update;
use sluice_worker::forge::Forge;
use sluice_worker::git::{Family, Git};
use sluice_worker::merge::{How, Pushed, Request, Strategy, merge};

use super::{Service, Who, ask};
use crate::hands;
use crate::projects::{described, git};

impl Service {
    /// Merges a task's branch into the default branch, and closes the task. The merge is a fact once it is done: if the
    /// engine dies before it knows, merging again finds that out.
    pub fn merge(&self, who: &Who, id: &str, wanted: &MergeTask) -> Result<TaskAnswer, Problem> {
        who.must_be_person("merging")?;
        let seen = self.ground.tasks.find(id)?;
        let strategy = match wanted.strategy.as_deref() {
            None => Strategy::Auto,
            Some("ff") => Strategy::FastForward,
            Some("merge") => Strategy::MergeCommit,
            Some(other) => {
                return Err(Problem::bad_request(format!("`{other}` is no way to merge")).hint("say ff or merge"));
            }
        };
        let by = who.to(&seen.id);
        let evidence = self.ground.evidence(&seen)?;
        ask(&self.ground, &seen.id, Input::Merge { by, force: wanted.force, evidence: evidence.clone() })?;
        let (_, pool) = self.ground.pool_of(&seen)?;
        let about = &seen.state.about;
        let message = match about.summary.trim() {
            "" => format!("Merge branch '{}'", about.branch),
            summary => format!("{summary}\n\nMerge branch '{}' (task {})", about.branch, seen.id),
        };
        // Without `gh` there is no pull request to ask about.
        let forge = Forge::find(&std::env::var_os("PATH").unwrap_or_default(), Git::default()).ok();
        let request = Request {
            branch: &about.branch,
            strategy,
            local: wanted.local,
            message: Some(&message),
            forge: forge.as_ref(),
        };
        let merged = merge(pool.repository(), &request).map_err(|error| match error.family() {
            Family::Refused => git(&error),
            Family::Unavailable => Problem::unavailable(described(&error)),
            Family::Fault => Problem::fault(described(&error)),
        })?;
        let push_failed = match &merged.pushed {
            Pushed::Failed(why) => Some(why.clone()),
            Pushed::NoRemote | Pushed::Done => None,
        };
        let recorded = ask(&self.ground, &seen.id, Input::Merged { by, push_failed, evidence })?;
        let mut answer = self.settled(who, &seen.id, recorded)?;
        answer.notes.push(match &merged.how {
            How::Already => format!("the branch was merged already, at {}", merged.commit),
            How::PullRequest(found) => format!("merged by {}", found.url),
            How::FastForward => format!("fast-forward to {}", merged.commit),
            How::MergeCommit => format!("merge commit {}", merged.commit),
        });
        answer.notes.extend(merged.notes);
        Ok(answer)
    }

    /// Pushes a task's branch and opens a pull request, or finds the one there is.
    pub fn create_pr(&self, who: &Who, id: &str) -> Result<TaskAnswer, Problem> {
        who.must_be_person("opening a pull request")?;
        let seen = self.ground.tasks.find(id)?;
        let url = hands::create_pr(&self.ground, &seen)
            .map_err(|why| Problem::new(Status::Refused, "no_pull_request", why))?;
        let update = Update::PullRequest(url);
        let recorded = ask(&self.ground, &seen.id, Input::Update { by: who.to(&seen.id), update })?;
        self.settled(who, &seen.id, recorded)
    }
}
