//! What the work of a task or run has changed, in parts that a screen can show, and a person's comments at its lines.

use std::path::{Path, PathBuf};

use sluice_api::changes::{
    CHANGED_COMMITS, CHANGED_FILES, ChangeCommit, ChangePart, Changes, ChangesSince, LONGEST_COMMENT, LineComment,
    MOST_COMMENTS, RequestChanges,
};
use sluice_api::problem::Problem;
use sluice_api::task::TaskAnswer;
use sluice_os::git::{BranchCommit, DiffLimits, DiffRead, GitError, Repository};
use sluice_worker::names::run_branch;

use super::diff::standing;
use super::{Requester, Service};
use crate::read::patch;
use crate::settings::projects::git;

/// Bytes of a patch that are taken apart.
const LONGEST_PATCH: usize = 4 << 20;
const LIMITS: DiffLimits = DiffLimits { bytes: LONGEST_PATCH, files: CHANGED_FILES };

impl Service {
    /// What a task has changed: its commits, what lies uncommitted, and apart what has come since the last verdict.
    pub fn task_changes(&self, id: &str) -> Result<Changes, Problem> {
        let seen = self.home.tasks.find(id)?;
        let (_, pool) = self.home.pool_of(&seen)?;
        let worktree = seen.state.workspace.bound().map(|bound| PathBuf::from(&bound.0));
        let found = changes(pool.repository(), &seen.state.about.branch, worktree.as_deref());
        let mut found = found.map_err(|error| git(&error))?;
        found.notes.extend(standing(&seen));
        let judged = seen.state.judged.as_ref().and_then(|it| Some((it.verdict, it.work.commit.clone()?.0)));
        let checked = seen.state.checked.as_ref().and_then(|it| Some((it.verdict(), it.work.commit.clone()?.0)));
        if let (Some((verdict, at)), Some(now)) = (judged.or(checked), found.commit.as_deref()) {
            let since = since(pool.repository(), &at, now).map_err(|error| git(&error))?;
            let verdict = Some(verdict.word().to_owned());
            found.since_verdict = since.map(|since| ChangesSince { verdict, ..since });
        }
        Ok(found)
    }

    /// The same of a run.
    pub fn run_changes(&self, id: &str) -> Result<Changes, Problem> {
        let seen = self.run(id)?;
        let repository = self.repository_of(&seen)?;
        let folder = Path::new(&seen.state.given.workspace);
        changes(&repository, &run_branch(&seen.id), Some(folder)).map_err(|error| git(&error))
    }

    /// Sends a task back to its worker with a text, with comments at lines, or with both.
    pub fn request_changes(&self, who: &Requester, id: &str, wanted: &RequestChanges) -> Result<TaskAnswer, Problem> {
        self.send_back(who, id, feedback(wanted)?)
    }
}

fn changes(repository: &Repository, branch: &str, worktree: Option<&Path>) -> Result<Changes, GitError> {
    let commit = repository.branch_commit(branch)?;
    let base = commit.as_deref().map_or(Ok(None), |commit| repository.fork_point(commit))?;
    let (committed, commits) = match (&base, &commit) {
        (Some(base), Some(commit)) => between(repository, base, commit)?,
        (_, _) => (DiffRead::default(), Vec::new()),
    };
    let uncommitted = worktree.map_or(Ok(None), |folder| repository.uncommitted_diff(folder, LIMITS))?;
    let (committed, uncommitted) = (patch::part(committed), uncommitted.map(patch::part));
    let mut notes = Vec::new();
    match (&base, &commit) {
        (_, None) => notes.push(format!("there is no branch `{branch}`")),
        (None, Some(_)) => notes.push(format!("`{branch}` and the default branch have no commit in common")),
        (Some(base), Some(commit)) if committed.cut => {
            let root = repository.folder().display();
            notes.push(format!("not all of it is shown; `git -C {root} diff {base} {commit}` shows the rest"));
        }
        (Some(_), Some(_)) => {}
    }
    if let (Some(folder), Some(ChangePart { cut: true, .. })) = (worktree, &uncommitted) {
        let folder = folder.display();
        notes.push(format!("not all that is uncommitted is shown; `git -C {folder} diff HEAD` shows the rest"));
    }
    Ok(Changes {
        branch: branch.to_owned(),
        default_branch: repository.default_branch().to_owned(),
        base,
        commit,
        commits,
        committed,
        uncommitted,
        since_verdict: None,
        notes,
    })
}

fn between(repository: &Repository, from: &str, to: &str) -> Result<(DiffRead, Vec<ChangeCommit>), GitError> {
    let commits = repository.commits(from, to, CHANGED_COMMITS)?;
    let shown = |it: BranchCommit| {
        let BranchCommit { id, subject, author, at } = it;
        ChangeCommit { id, subject: patch::plain(&subject), author: patch::plain(&author), at }
    };
    Ok((repository.committed_diff(from, to, LIMITS)?, commits.into_iter().map(shown).collect()))
}

/// What has come since a commit; nothing where git does not have it any more.
fn since(repository: &Repository, at: &str, now: &str) -> Result<Option<ChangesSince>, GitError> {
    if !repository.has_commit(at)? {
        return Ok(None);
    }
    let (committed, commits) = between(repository, at, now)?;
    let (verdict_commit, committed) = (at.to_owned(), patch::part(committed));
    Ok(Some(ChangesSince { verdict_commit, verdict: None, commits, committed }))
}

/// What TASK.md says as feedback: the text, and then each comment with its place.
fn feedback(wanted: &RequestChanges) -> Result<String, Problem> {
    let RequestChanges { message, comments } = wanted;
    if comments.len() > MOST_COMMENTS {
        let message = format!("a request has at most {MOST_COMMENTS} comments, and this one has {}", comments.len());
        return Err(Problem::bad_request(message).hint("send some of them later, or say it in one text"));
    }
    let written = comments.iter().map(comment).collect::<Result<Vec<_>, _>>()?;
    let parts = [message.trim_end().to_owned(), written.join("\n")];
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.trim().is_empty()).collect();
    if parts.is_empty() {
        let problem = Problem::bad_request("say what is to be changed");
        return Err(problem.hint("`message=TEXT` says it; `comments` say it of single lines"));
    }
    Ok(parts.join("\n\n"))
}

fn comment(it: &LineComment) -> Result<String, Problem> {
    let LineComment { file, line, removed, part, text } = it;
    let refuse = |why: String| Err(Problem::bad_request(why).hint("a comment has a file, and a text about it"));
    if file.trim().is_empty() || text.trim().is_empty() {
        return refuse("a comment names no file, or says nothing".to_owned());
    }
    if file.len() + text.len() > LONGEST_COMMENT {
        return refuse(format!("a comment has at most {LONGEST_COMMENT} bytes, with the name of its file"));
    }
    let part = part.map(|part| format!(" ({})", part.spoken())).unwrap_or_default();
    let place = match (line, removed) {
        (Some(line), false) => format!("`{}` line {line}{part}", patch::plain(file)),
        (Some(line), true) => format!("`{}` removed line {line}{part}", patch::plain(file)),
        (None, _) => format!("`{}`{part}", patch::plain(file)),
    };
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    // Indented, so that it stays one point of the list whatever it says.
    let rest: String = lines.map(|line| format!("\n  {line}")).collect();
    Ok(format!("- {place}: {first}{rest}"))
}

#[cfg(test)]
mod tests {
    use sluice_api::changes::CommentedPart;

    use super::*;

    fn at(file: &str, line: Option<u32>, removed: bool, text: &str) -> LineComment {
        LineComment { file: file.into(), line, removed, part: None, text: text.into() }
    }

    #[test]
    fn comments_stand_below_the_text_in_their_order() {
        let comments = vec![
            at("src/a.rs", Some(12), false, "too long\n\nsplit it"),
            at("src/a.rs", Some(3), true, "why?"),
            at("b", None, false, "## odd"),
            LineComment { part: Some(CommentedPart::Uncommitted), ..at("b", Some(1), true, "and here?") },
        ];
        let wanted = RequestChanges { message: "Almost.\n".into(), comments };
        let expected = "Almost.\n\n- `src/a.rs` line 12: too long\n  \n  split it\n- `src/a.rs` removed line 3: why?\n\
                        - `b`: ## odd\n- `b` removed line 1 (not committed): and here?";
        assert_eq!(feedback(&wanted).expect("a text"), expected);
    }

    #[test]
    fn a_request_says_something_and_not_too_much() {
        let refused = |wanted: RequestChanges| feedback(&wanted).expect_err("refused").message;
        assert_eq!(refused(RequestChanges::default()), "say what is to be changed");
        let one = |comment| RequestChanges { comments: vec![comment], ..RequestChanges::default() };
        assert_eq!(refused(one(at("a", None, false, " "))), "a comment names no file, or says nothing");
        let long = at("a", None, false, &"x".repeat(LONGEST_COMMENT));
        assert!(refused(one(long)).starts_with("a comment has at most 8192 bytes"));
        let many = vec![at("a", None, false, "x"); MOST_COMMENTS + 1];
        let many = RequestChanges { comments: many, ..RequestChanges::default() };
        assert!(refused(many).starts_with("a request has at most 200 comments"));
    }
}
