//! What was merged elsewhere: whether a pull request has merged the work, and whether one stands in the way of a merge here.

use super::{MergeRequest, is_work};
use crate::forge::{PullRequest, PullRequestState};
use crate::git::{GitError, Repository};

/// The pull request that has merged the work, if one has. One that stands in the way of a merge here is an error.
pub(super) fn elsewhere(
    repository: &Repository,
    request: &MergeRequest<'_>,
    remote: Option<&str>,
    work: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Option<PullRequest>, GitError> {
    let known = request.pull_request;
    let forge = match (request.forge, known) {
        (Some(forge), Some(_)) => forge,
        (Some(forge), None) if remote.is_some() => forge,
        (_, None) => return Ok(None),
        (None, Some(_)) => return Err(GitError::NoForge),
    };
    let found = match forge.pull_request(repository, request.branch) {
        // Perhaps the remote is no forge at all. What was merged there comes in with the default branch.
        Err(error) if known.is_none() => {
            notes.push(format!("no pull request could be looked for: {error}"));
            return Ok(None);
        }
        found => found?,
    };
    let stays = |url: &str, why: String| Err(GitError::PrElsewhere { url: url.to_owned(), why });
    let Some(found) = found else {
        let unknown = format!("is not among those of `{}`", request.branch);
        return known.map_or(Ok(None), |url| stays(url, unknown));
    };
    let (into, is_known) = (repository.default_branch(), known == Some(found.url.as_str()));
    match found.state {
        PullRequestState::Open => Err(GitError::PrOpen { url: found.url }),
        PullRequestState::Closed => stays(&found.url, "was closed without being merged".to_owned()),
        PullRequestState::Merged if found.base != into => {
            stays(&found.url, format!("was merged into `{}`, not into `{into}`", found.base))
        }
        PullRequestState::Merged if covers(repository, &found, (request.branch, work), remote, is_known)? => {
            Ok(Some(found))
        }
        // An earlier branch of the same name, long gone.
        PullRequestState::Merged if !is_known && !continues(repository, &found, work)? => {
            notes.push(format!("{} merged an earlier branch `{}`", found.url, request.branch));
            Ok(None)
        }
        PullRequestState::Merged => {
            let short = |commit: &str| commit.get(..12).unwrap_or(commit).to_owned();
            let newest = work.map_or("this work".to_owned(), short);
            match repository.commit(&found.head)? {
                Some(_) => stays(&found.url, format!("was merged without {newest}")),
                None => {
                    let why = format!("was merged at {}, which cannot be fetched", short(&found.head));
                    stays(&found.url, format!("{why}: whether it holds {newest} cannot be told"))
                }
            }
        }
    }
}

/// Whether all that is to be merged is in what the pull request merged. A colleague may have added a commit there that this
/// repository does not have. One that is not known as this task's may be of an earlier branch of the same name: it merged no
/// work of this one if this one has none, or is gone.
fn covers(
    repository: &Repository,
    found: &PullRequest,
    (branch, work): (&str, Option<&str>),
    remote: Option<&str>,
    is_known: bool,
) -> Result<bool, GitError> {
    let Some(work) = work else { return Ok(is_known) };
    let head = head(repository, found, remote)?;
    let is_in_head = |head: &String| repository.is_ancestor(work, head);
    if let (true, Some(head)) = (is_known, &head) {
        return is_in_head(head);
    }
    let tip = tip(repository, remote)?;
    let is_in = tip.as_ref().map_or(Ok(false), |tip| repository.is_ancestor(work, tip))?;
    let has_work = is_in && tip.as_ref().map_or(Ok(false), |tip| is_work(repository, branch, work, tip))?;
    match &head {
        Some(_) if is_in && !has_work => Ok(false),
        Some(head) => is_in_head(head),
        None => Ok(has_work),
    }
}

/// The default branch as the remote has it, as far as that is known; without a remote, as it is here.
fn tip(repository: &Repository, remote: Option<&str>) -> Result<Option<String>, GitError> {
    let default = repository.default_branch();
    let Some(remote) = remote else { return repository.branch_commit(default) };
    repository.refresh(remote, default)?;
    repository.commit(&format!("refs/remotes/{remote}/{default}"))
}

/// The newest commit of a pull request, if it is here or can be had.
fn head(repository: &Repository, found: &PullRequest, remote: Option<&str>) -> Result<Option<String>, GitError> {
    if let (None, Some(remote)) = (repository.commit(&found.head)?, remote) {
        let call = repository.call().network();
        call.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", remote, &found.head]).answer()?;
    }
    repository.commit(&found.head)
}

fn continues(repository: &Repository, found: &PullRequest, work: Option<&str>) -> Result<bool, GitError> {
    let Some(work) = work else { return Ok(true) };
    Ok(work != found.head && repository.commit(&found.head)?.is_some() && repository.is_ancestor(&found.head, work)?)
}
