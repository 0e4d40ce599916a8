//! The engine's commits in a worktree that it lent: they come to the branch of the worktree, whatever its agent has put in the
//! way, and nothing else moves.

use std::fs;
use std::path::PathBuf;

use sluice_os::git::GitError;
use sluice_os::workspace::{BoundWorktree, WorkspacePool};

use crate::ground::{Ground, binding, name};

/// A person on `feature`, with a file that is not committed; and a worktree on `run-a`, in which a step has committed `early`.
fn lent(ground: &Ground, pool: &WorkspacePool) -> PathBuf {
    let person = ground.repository_folder();
    ground.sh(&person, "git switch -qc feature; echo private > private.txt");
    let base = ground.sh(&person, "git rev-parse main");
    pool.lend(None, &name("a"), &binding("a", "run-a"), &base).map_err(|it| it.error).unwrap();
    let folder = pool.folder(&name("a"));
    ground.sh(&folder, "echo early > early.txt; git add .; git commit -qm early");
    folder
}

fn other(ground: &Ground) -> PathBuf {
    let other = ground.path("other");
    fs::create_dir(&other).unwrap();
    let made = "git init -qb main .; git config user.name T; git config user.email t@localhost; \
                echo x > x; git add .; git commit -qm x; echo private > private.txt";
    ground.sh(&other, made);
    other
}

fn commit(pool: &WorkspacePool, folder: &std::path::Path) -> Result<Option<String>, GitError> {
    BoundWorktree::at(pool.repository(), folder, Some("run-a"))?.commit_all("x: a")
}

const REFS: &str = "git for-each-ref --format='%(refname) %(objectname)' refs/heads | grep -v refs/heads/run-a; \
                    git status --porcelain; git diff --cached --name-only";

#[test]
fn a_commit_comes_to_the_branch_of_the_worktree_whatever_is_in_the_way() {
    for (title, script) in [
        ("nothing", "true"),
        ("the default branch", "git checkout -q main"),
        ("the default branch by name only", "git symbolic-ref HEAD refs/heads/main; git reset -q"),
        ("the branch of a person", "git symbolic-ref HEAD refs/heads/feature; git reset -q"),
        ("a tag", "git tag v1; git symbolic-ref HEAD refs/tags/v1"),
        ("no branch", "git checkout -q --detach"),
        ("no branch, at an earlier commit", "git checkout -q --detach HEAD~1"),
        ("another name of the default branch", "git symbolic-ref refs/heads/run-a refs/heads/main; git reset -q"),
        ("another repository", "echo \"gitdir: $OTHER/.git\" > .git"),
        ("another repository's folder", "rm .git; cp -r $OTHER/.git .git"),
        ("another common folder", "echo $OTHER/.git > $(git rev-parse --git-dir)/commondir"),
        ("another folder", "git config extensions.worktreeConfig true; git config --worktree core.worktree $OTHER"),
        ("another index", "g=$(git rev-parse --git-dir); ln -sf $OTHER/.git/index $g/index; git read-tree HEAD"),
        ("another HEAD", "g=$(git rev-parse --git-dir); ln -sf $OTHER/.git/HEAD $g/HEAD"),
        (
            "a note of a merge elsewhere",
            "d=$(git rev-parse --git-dir)/sluice; mkdir -p $d; printf \
            '{\"version\":1,\"branch\":\"main\",\"old\":null,\"from\":\"%s\",\"new\":\"%s\",\"checkout\":[\"%s\",\"%s\"]}' \
            $(git rev-parse HEAD) $(git rev-parse HEAD~1) $OTHER $OTHER/.git > $d/merge.json",
        ),
    ] {
        let (ground, pool) = {
            let ground = Ground::new();
            let pool = ground.pool();
            (ground, pool)
        };
        let (folder, other) = (lent(&ground, &pool), other(&ground));
        let person = ground.repository_folder();
        if title == "another index" {
            // What git itself writes through the link is the agent's doing.
            ground.sh(&other, "cp .git/index .git/index.before");
        }
        ground.sh(&folder, &format!("OTHER={}; {script}; echo work > work.txt", other.display()));
        if title == "another index" {
            ground.sh(&other, "cp .git/index.before .git/index");
        }
        let (before, elsewhere) = (ground.sh(&person, REFS), ground.sh(&other, REFS));
        commit(&pool, &folder).unwrap_or_else(|error| panic!("{title}: {error}"));
        assert_eq!(ground.sh(&person, REFS), before, "{title}");
        assert_eq!(ground.sh(&other, REFS), elsewhere, "{title}");
        let brought = ground.sh(&person, "git log --format=%s main..run-a; git show run-a:work.txt");
        let wanted = if title == "another name of the default branch" { "x: a\nwork" } else { "x: a\nearly\nwork" };
        assert_eq!(brought, wanted, "{title}");
        // The worktree is on its branch again, with all of it.
        let stands = "git symbolic-ref HEAD; git status --porcelain; cat work.txt";
        assert_eq!(ground.sh(&folder, stands), "refs/heads/run-a\nwork", "{title}");
        assert_eq!(commit(&pool, &folder).unwrap(), None, "{title}");
    }
}

#[test]
fn in_a_folder_that_is_not_the_worktree_nothing_is_committed() {
    let ground = Ground::new();
    let pool = ground.pool();
    let (folder, other) = (lent(&ground, &pool), other(&ground));
    let elsewhere = ground.sh(&other, REFS);
    fs::rename(&folder, ground.path("moved")).unwrap();
    assert!(matches!(commit(&pool, &folder), Err(GitError::NotOurs { .. })));
    std::os::unix::fs::symlink(&other, &folder).unwrap();
    let error = commit(&pool, &folder).unwrap_err();
    assert!(matches!(&error, GitError::NotOurs { .. }), "{error}");
    assert!(error.to_string().contains("a link stands in its place"), "{error}");
    assert_eq!(ground.sh(&other, REFS), elsewhere);
}

#[test]
fn work_on_a_branch_that_was_made_there_is_committed_there() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = lent(&ground, &pool);
    ground.sh(&folder, "git checkout -qb mine; echo work > work.txt");
    commit(&pool, &folder).unwrap().unwrap();
    assert_eq!(
        ground.sh(&folder, "git log --format=%s main..mine; git log --format=%s main..run-a"),
        "x: a\nearly\nearly"
    );
    // One that a person checks out meanwhile is theirs.
    ground.sh(&ground.repository_folder(), "git switch -qc theirs");
    ground.sh(&folder, "git symbolic-ref HEAD refs/heads/theirs; git reset -q; echo more > more.txt");
    commit(&pool, &folder).unwrap().unwrap();
    assert_eq!(ground.sh(&folder, "git log --format=%s main..theirs; git show run-a:more.txt"), "more");
}

#[test]
fn work_that_cannot_be_brought_to_the_branch_is_kept() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = lent(&ground, &pool);
    ground.sh(&folder, "echo ours > a.txt; git commit -qam ours; git checkout -q main; echo theirs > a.txt");
    let main = ground.sh(&folder, "git rev-parse main run-a");
    let error = commit(&pool, &folder).unwrap_err();
    assert!(matches!(&error, GitError::OffBranch { .. }), "{error}");
    assert!(
        error.to_string().contains("it is on `main`, and they conflict in a.txt; it is kept as refs/sluice/keep/a/1"),
        "{error}"
    );
    assert_eq!(
        ground.sh(&folder, "git rev-parse main run-a; git show refs/sluice/keep/a/1:a.txt"),
        format!("{main}\ntheirs")
    );
}
