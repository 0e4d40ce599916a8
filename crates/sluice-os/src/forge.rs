//! Pull requests, through GitHub's own command line.
//!
//! It is called as a program with arguments and answers in JSON. Nothing is asked on a terminal, and no token passes
//! through here.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::git::run::{CommandEnd, CommandTrouble, run};
use crate::git::{Git, GitError, Repository, said};

const LONGEST_TITLE: usize = 256;

#[derive(Clone, Debug)]
pub struct Forge {
    program: PathBuf,
    git: Git,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequestState {
    Open,
    Merged,
    /// It was closed without being merged.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub url: String,
    pub state: PullRequestState,
    /// The newest commit it has, or had when it was merged.
    pub head: String,
    pub base: String,
}

#[derive(Clone, Debug)]
pub struct PullRequestProposal<'a> {
    /// Its title; the first line counts.
    pub title: &'a str,
    pub body: &'a str,
    pub branch: &'a str,
    /// The branch to merge into; the default branch if none is given.
    pub base: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForgeAnswer {
    url: String,
    state: String,
    head_ref_oid: String,
    head_ref_name: String,
    base_ref_name: String,
    #[serde(default)]
    is_cross_repository: bool,
}

impl Forge {
    pub fn new(program: &Path, git: Git) -> Forge {
        Forge { program: program.to_owned(), git }
    }

    /// Looks for `gh` in the folders of a `PATH`.
    pub fn find(path: &OsStr, git: Git) -> Result<Forge, GitError> {
        let is_program =
            |it: &PathBuf| it.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
        let found = std::env::split_paths(path).map(|folder| folder.join("gh")).find(is_program);
        found.map(|program| Forge::new(&program, git)).ok_or(GitError::NoForge)
    }

    /// The pull request of a branch: one that is open, else the newest that is merged into the default branch, else the
    /// newest that is merged elsewhere, else the newest.
    pub fn pull_request(&self, repository: &Repository, branch: &str) -> Result<Option<PullRequest>, GitError> {
        repository.check_branch(branch)?;
        let what = "list pull requests";
        let fields = "--json=url,state,headRefOid,headRefName,baseRefName,isCrossRepository";
        let head = format!("--head={branch}");
        let arguments = ["pr", "list", &head, "--state=all", "--limit=50", fields];
        let ended = self.call(repository, &arguments, "")?;
        if ended.code != Some(0) {
            return Err(GitError::Forge { what, said: said(&ended) });
        }
        let odd = |error: String| GitError::Answer { what: "`gh pr list`".to_owned(), said: error };
        let answers: Vec<ForgeAnswer> =
            serde_json::from_slice(&ended.stdout).map_err(|error| odd(error.to_string()))?;
        let mut found = Vec::new();
        // A fork may have a branch of the same name.
        for answer in answers.into_iter().filter(|it| it.head_ref_name == branch && !it.is_cross_repository) {
            let (rank, state) = match answer.state.as_str() {
                "OPEN" => (0, PullRequestState::Open),
                "MERGED" if answer.base_ref_name == repository.default_branch() => (1, PullRequestState::Merged),
                "MERGED" => (2, PullRequestState::Merged),
                "CLOSED" => (3, PullRequestState::Closed),
                other => return Err(odd(format!("the state {other:?}"))),
            };
            let (url, head, base) = (answer.url, answer.head_ref_oid, answer.base_ref_name);
            found.push((rank, PullRequest { url, state, head, base }));
        }
        // The newest comes first, and a sort keeps that order.
        found.sort_by_key(|(rank, _)| *rank);
        Ok(found.into_iter().next().map(|(_, found)| found))
    }

    /// Pushes the branch and makes a pull request of it. One that is open already is given back.
    pub fn create(&self, repository: &Repository, proposal: &PullRequestProposal<'_>) -> Result<PullRequest, GitError> {
        let branch = proposal.branch;
        let head = repository.branch_commit(branch)?.ok_or_else(|| GitError::NoBranch { branch: branch.to_owned() })?;
        let base = proposal.base.unwrap_or(repository.default_branch());
        repository.check_branch(base)?;
        repository.push_branch(branch)?;
        if let Some(open) = self.open(repository, branch)? {
            return Ok(open);
        }
        let title: String =
            proposal.title.lines().next().unwrap_or_default().trim().chars().take(LONGEST_TITLE).collect();
        let title = format!("--title={}", if title.is_empty() { branch } else { &title });
        let (head_flag, base_flag) = (format!("--head={branch}"), format!("--base={base}"));
        let arguments = ["pr", "create", &title, &head_flag, &base_flag, "--body-file=-"];
        // An empty input would leave it without one.
        let body = if proposal.body.is_empty() { "\n" } else { proposal.body };
        let ended = self.call(repository, &arguments, body)?;
        if ended.code != Some(0) {
            // Someone else may have been quicker.
            let there = self.open(repository, branch)?;
            return there.ok_or_else(|| GitError::Forge { what: "make a pull request", said: said(&ended) });
        }
        let output = String::from_utf8_lossy(&ended.stdout).into_owned();
        let url = output.lines().rev().map(str::trim).find(|line| line.contains("://"));
        let odd = || GitError::Answer { what: "`gh pr create`".to_owned(), said: output.clone() };
        let (url, base) = (url.ok_or_else(odd)?.to_owned(), base.to_owned());
        Ok(PullRequest { url, state: PullRequestState::Open, head, base })
    }

    fn open(&self, repository: &Repository, branch: &str) -> Result<Option<PullRequest>, GitError> {
        Ok(self.pull_request(repository, branch)?.filter(|it| it.state == PullRequestState::Open))
    }

    fn call(&self, repository: &Repository, arguments: &[&str], input: &str) -> Result<CommandEnd, GitError> {
        let mut command = Command::new(&self.program);
        command.current_dir(repository.folder()).args(arguments);
        self.git.surround(&mut command);
        command.env("GH_PROMPT_DISABLED", "1").env("GH_NO_UPDATE_NOTIFIER", "1").env("NO_COLOR", "1");
        run(command, input.as_bytes(), self.git.network).map_err(|trouble| match trouble {
            CommandTrouble::Start(_) => GitError::NoForge,
            CommandTrouble::Late(limit) => GitError::Late { what: "`gh`".to_owned(), limit },
        })
    }
}
