//! Pull requests with a scripted `gh`: what it is asked, and what is made of its answers.

use std::fs;
use std::path::PathBuf;

use sluice_os::forge::{Forge, PullRequestProposal, PullRequestState};
use sluice_os::git::GitError;
use sluice_os::merge::{MergeMethod, MergePush, MergeRequest, merge};

use crate::ground::Ground;

/// A `gh` that notes its arguments and its input, and answers with the files `list` and `created`.
const GH: &str = r#"#!/bin/sh
here=$(dirname "$0")
for word in "$@"; do printf '[%s] ' "$word" >> "$here/asked"; done; echo >> "$here/asked"
case "$2" in
list) cat "$here/list" ;;
create) cat > "$here/body"; cat "$here/created" 2>/dev/null || { echo "HTTP 401: Bad credentials" >&2; exit 4; } ;;
esac
"#;

struct Fake {
    ground: Ground,
    folder: PathBuf,
}

impl Fake {
    fn new() -> Fake {
        let ground = Ground::new();
        let folder = ground.path("bin");
        fs::create_dir(&folder).unwrap();
        ground.program(&folder.join("gh"), GH);
        ground.sh(
            &ground.repository_folder(),
            "git clone -q --bare . ../remote.git; git remote add origin ../remote.git; git fetch -q
             git checkout -q -b task; echo x > x; git add x; git commit -qm x; git checkout -q main",
        );
        let fake = Fake { ground, folder };
        fake.list("[]");
        fake
    }

    fn list(&self, answer: &str) {
        fs::write(self.folder.join("list"), answer).unwrap();
    }

    fn listed(&self, state: &str, head: &str) {
        self.list(&format!(
            r#"[{{"url":"https://forge/1","state":"{state}","headRefOid":"{head}","headRefName":"task","baseRefName":"main","isCrossRepository":false,"more":1}}]"#
        ));
    }

    fn forge(&self) -> Forge {
        Forge::find(self.folder.as_os_str(), self.ground.git()).unwrap()
    }

    fn tip(&self) -> String {
        self.ground.sh(&self.ground.repository_folder(), "git rev-parse task")
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.folder.join("asked")).unwrap_or_default()
    }
}

#[test]
fn the_state_of_a_pull_request_is_told() {
    let fake = Fake::new();
    let found = || fake.forge().pull_request(&fake.ground.repository(), "task");
    assert_eq!(found().unwrap(), None);
    for (state, expected) in
        [("OPEN", PullRequestState::Open), ("MERGED", PullRequestState::Merged), ("CLOSED", PullRequestState::Closed)]
    {
        fake.listed(state, "abc");
        let found = found().unwrap().unwrap();
        assert_eq!((found.state, found.url.as_str(), found.head.as_str()), (expected, "https://forge/1", "abc"));
    }
    // An open one wins over an older merged one; a fork's does not count.
    let one = |state: &str, number: u32, fork: bool| {
        format!(
            r#"{{"url":"https://forge/{number}","state":"{state}","headRefOid":"a","headRefName":"task","baseRefName":"main","isCrossRepository":{fork}}}"#
        )
    };
    fake.list(&format!(
        "[{},{},{},{}]",
        one("OPEN", 9, true),
        one("CLOSED", 4, false),
        one("MERGED", 3, false),
        one("OPEN", 2, false)
    ));
    assert_eq!(found().unwrap().unwrap().url, "https://forge/2");
    for odd in ["", "{}", "[{}]", &format!("[{}]", one("STRANGE", 1, false))] {
        fake.list(odd);
        assert!(matches!(found().unwrap_err(), GitError::Answer { .. }), "{odd}");
    }
    assert!(
        fake.asked().starts_with("[pr] [list] [--head=task] [--state=all] [--limit=50] [--json=url,"),
        "{}",
        fake.asked()
    );
}

#[test]
fn a_pull_request_is_made_once_and_hostile_text_is_just_text() {
    let fake = Fake::new();
    let repository = fake.ground.repository();
    let title = "--repo=evil \"quo'tes\" $(touch pwned) `id`; 日本\nsecond line";
    let body = format!("--body\n$(touch pwned)\n{}", "x".repeat(1_000_000));
    let proposal = PullRequestProposal { title, body: &body, branch: "task", base: None };
    let error = fake.forge().create(&repository, &proposal).unwrap_err().to_string();
    assert_eq!(error, "`gh` could not make a pull request: HTTP 401: Bad credentials; look at `gh auth status`");
    fs::write(fake.folder.join("created"), "Creating pull request\nhttps://forge/7\n").unwrap();
    let made = fake.forge().create(&repository, &proposal).unwrap();
    assert_eq!((made.url.as_str(), made.head), ("https://forge/7", fake.tip()));
    assert_eq!(fs::read_to_string(fake.folder.join("body")).unwrap(), body);
    let asked = fake.asked();
    let line = asked.lines().rfind(|line| line.contains("[create]")).unwrap();
    assert_eq!(
        line,
        "[pr] [create] [--title=--repo=evil \"quo'tes\" $(touch pwned) `id`; 日本] [--head=task] [--base=main] [--body-file=-] "
    );
    assert_eq!(fake.ground.sh(&fake.ground.path("remote.git"), "git rev-parse task"), fake.tip());
    assert!(!fake.ground.repository_folder().join("pwned").exists());
    // One that is open is given back.
    fake.listed("OPEN", &fake.tip());
    assert_eq!(fake.forge().create(&repository, &proposal).unwrap().url, "https://forge/1");
    assert_eq!(fake.asked().matches("[create]").count(), asked.matches("[create]").count());
    let none = PullRequestProposal { branch: "none", ..proposal };
    assert!(matches!(fake.forge().create(&repository, &none).unwrap_err(), GitError::NoBranch { .. }));
}

#[test]
fn without_gh_there_is_a_remedy() {
    let fake = Fake::new();
    let empty = fake.ground.path("home");
    let error = Forge::find(empty.as_os_str(), fake.ground.git()).unwrap_err().to_string();
    assert!(error.contains("`gh` is not on the PATH; install it and run `gh auth login`, or merge locally"), "{error}");
    let forge = Forge::new(&empty.join("gh"), fake.ground.git());
    assert!(matches!(forge.pull_request(&fake.ground.repository(), "task").unwrap_err(), GitError::NoForge));
}

#[test]
fn a_merged_pull_request_is_a_merge() {
    let fake = Fake::new();
    let repository = fake.ground.repository();
    let forge = fake.forge();
    let request = MergeRequest { branch: "task", forge: Some(&forge), ..MergeRequest::default() };
    // Squashed on the remote: no commit of the branch is in the default branch.
    fake.ground.sh(&fake.ground.path(""), "git clone -q remote.git theirs; cd theirs; git config user.name t; git config user.email t@t; echo x > x; git add x; git commit -qm squashed; git push -q origin main");
    fake.listed("MERGED", &fake.tip());
    let merged = merge(&repository, &request).unwrap();
    assert!(matches!(&merged.how, MergeMethod::PullRequest(found) if found.url == "https://forge/1"), "{merged:?}");
    assert_eq!(merged.pushed, MergePush::Done);
    assert_eq!(fake.ground.sh(&fake.ground.repository_folder(), "git log --format=%s main"), "squashed\nstart");
    // The branch has a commit that the pull request had not: somebody must say what becomes of it.
    fake.ground.sh(
        &fake.ground.repository_folder(),
        "git checkout -q task; echo y > y; git add y; git commit -qm y; git checkout -q main",
    );
    let error = merge(&repository, &request).unwrap_err().to_string();
    assert!(error.starts_with("the pull request https://forge/1 was merged without "), "{error}");
    let merged = merge(&repository, &MergeRequest { local: true, ..request }).unwrap();
    assert_eq!((merged.how, merged.pushed), (MergeMethod::MergeCommit, MergePush::Done));
}

#[test]
fn a_pull_request_that_is_not_merged_here_is_never_bypassed() {
    let fake = Fake::new();
    let (repository, forge) = (fake.ground.repository(), fake.forge());
    let before = fake.ground.sh(&fake.ground.repository_folder(), "git for-each-ref");
    let one = |state: &str, base: &str| {
        format!(
            r#"[{{"url":"https://forge/1","state":"{state}","headRefOid":"{}","headRefName":"task","baseRefName":"{base}"}}]"#,
            fake.tip()
        )
    };
    let known = Some("https://forge/1");
    let mut said = Vec::new();
    for (list, pull_request, expected) in [
        (one("OPEN", "main"), None, "the pull request https://forge/1 is open; merge or close it there"),
        (one("OPEN", "develop"), None, "the pull request https://forge/1 is open; merge or close it there"),
        (one("CLOSED", "main"), None, "the pull request https://forge/1 was closed without being merged"),
        (one("MERGED", "develop"), None, "the pull request https://forge/1 was merged into `develop`, not into `main`"),
        ("[]".to_owned(), known, "the pull request https://forge/1 is not among those of `task`"),
        ("no JSON".to_owned(), known, "`gh pr list` gave an answer that cannot be understood"),
    ] {
        fake.list(&list);
        let request = MergeRequest { branch: "task", forge: Some(&forge), pull_request, ..MergeRequest::default() };
        let error = merge(&repository, &request).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{list}: {error}");
        said.push(error);
        assert_eq!(fake.ground.sh(&fake.ground.repository_folder(), "git for-each-ref"), before);
    }
    // The pages about it show what is said.
    for page in [
        include_str!("../../../../docs/refusals/pr_open.md"),
        include_str!("../../../../docs/refusals/pr_elsewhere.md"),
    ] {
        assert!(said.iter().any(|error| page.contains(&format!("Merge not allowed: {error}\n"))), "{page}");
    }
    let request = MergeRequest { branch: "task", pull_request: known, ..MergeRequest::default() };
    assert!(matches!(merge(&repository, &request).unwrap_err(), GitError::NoForge));
    assert_eq!(fake.ground.sh(&fake.ground.repository_folder(), "git for-each-ref"), before);
    merge(&repository, &MergeRequest { local: true, ..request }).unwrap();
}

#[test]
fn a_forge_that_fails_is_noted_and_local_does_not_ask() {
    let fake = Fake::new();
    let forge = fake.forge();
    fs::remove_file(fake.folder.join("list")).unwrap();
    let local = MergeRequest { branch: "task", local: true, forge: Some(&forge), ..MergeRequest::default() };
    assert_eq!(merge(&fake.ground.repository(), &local).unwrap().pushed, MergePush::Done);
    assert_eq!(fake.asked(), "");
    let merged = merge(&fake.ground.repository(), &MergeRequest { local: false, ..local }).unwrap();
    assert_eq!((merged.how, merged.pushed), (MergeMethod::Already, MergePush::Done));
    assert!(
        merged.notes[0].starts_with("no pull request could be looked for: `gh` could not list"),
        "{:?}",
        merged.notes
    );
}
