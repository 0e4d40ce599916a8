//! What is broken off at any call of git and done again ends as if nothing had happened, and loses nothing on the way.

use std::fs;
use std::path::Path;

use sluice_os::git::{GitError, Repository};
use sluice_os::workspace::{BoundWorktree, RestoreTarget, WorkspacePool};

use crate::ground::{Ground, binding, name};

/// A git that does the first calls and then does nothing any more, as after a kill.
const DYING: &str = r#"#!/bin/sh
left=$(cat "HERE/left")
if [ "$left" -eq 0 ]; then echo killed >&2; exit 137; fi
echo $((left - 1)) > "HERE/left"
exec git "$@"
"#;

pub(crate) const WORK: &str = r#"
git checkout -q -b other; echo theirs > a.txt; git commit -qam theirs; git checkout -q task
echo x > x; git add x; git commit -qm x; git checkout -q --detach; echo y >> x; git commit -qam y
echo ours > a.txt; git commit -qam ours; ! git merge -q other
echo staged > staged; git add staged; echo more >> staged; rm dir/b.txt; mkdir new; echo n > new/n; ln -s n new/link
"#;

pub(crate) fn dying_pool(ground: &Ground, calls: usize) -> WorkspacePool {
    let here = ground.path("");
    fs::write(here.join("left"), "1000").unwrap();
    ground.program(&here.join("git"), &DYING.replace("HERE", here.to_str().unwrap()));
    let git = ground.git().with_program(&here.join("git"));
    let repository = Repository::open(git, &ground.repository_folder(), None).unwrap();
    let pool = WorkspacePool::new(repository, &ground.path("home"), "coffee").unwrap();
    allow(ground, calls);
    pool
}

/// git does so many calls from now on.
pub(crate) fn allow(ground: &Ground, calls: usize) {
    fs::write(ground.path("left"), calls.to_string()).unwrap();
}

/// Breaks off after each number of calls, does it again, and looks at what is there then.
fn at_every_call(act: impl Fn(&WorkspacePool) -> Result<(), GitError>, check: impl Fn(&Ground, &WorkspacePool, &Path)) {
    for calls in 0.. {
        let ground = Ground::new();
        let pool = ground.pool();
        let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
        ground.sh(&folder, WORK);
        let before = ground.picture(&folder);
        let done = act(&dying_pool(&ground, calls));
        act(&pool).unwrap_or_else(|error| panic!("after {calls} calls: {error}"));
        // The first keep has everything: nothing was removed before it stood.
        pool.restore("t-1", 1, &RestoreTarget::Folder(ground.path("restored"))).unwrap();
        assert!(ground.picture(&ground.path("restored")) == before, "after {calls} calls");
        check(&ground, &pool, &folder);
        if done.is_ok() {
            assert!(calls > 10, "{calls}");
            return;
        }
    }
}

#[test]
fn a_restore() {
    for calls in 0.. {
        let ground = Ground::new();
        let pool = ground.pool();
        let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
        ground.sh(&folder, WORK);
        let before = ground.picture(&folder);
        pool.release(&name("1"), "t-1").unwrap();
        let place = ground.path("restored");
        let target = RestoreTarget::FolderOnBranch(place.clone(), "back".to_owned());
        let done = dying_pool(&ground, calls).restore("t-1", 1, &target);
        if done.is_err() {
            // It is whole, or it is not there, and then it is made the next time.
            let is_there = fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_some());
            if !is_there {
                pool.restore("t-1", 1, &target).unwrap_or_else(|error| panic!("after {calls} calls: {error}"));
            }
        }
        assert!(ground.picture(&place) == before, "after {calls} calls");
        let left: Vec<_> = fs::read_dir(ground.path("")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("restoring")), "{left:?}");
        if done.is_ok() {
            assert_eq!(ground.sh(&place, "git branch --show-current"), "back");
            return;
        }
    }
}

#[test]
fn a_release() {
    at_every_call(
        |pool| pool.release(&name("1"), "t-1").map(drop),
        |_, pool, _| {
            let state = pool.status(&name("1")).unwrap().unwrap();
            assert!(!state.dirty && state.binding.is_none(), "{state:?}");
        },
    );
}

#[test]
fn a_removal() {
    at_every_call(
        |pool| pool.destroy(&name("1"), "t-1").map(drop),
        |ground, pool, folder| {
            assert!(!folder.exists());
            assert_eq!(pool.names().unwrap(), []);
            let known = ground.sh(&ground.repository_folder(), "git worktree list --porcelain | grep -c ^worktree");
            assert_eq!(known, "2", "the main checkout and what was restored");
        },
    );
}

#[test]
fn a_lending() {
    for calls in 0.. {
        let ground = Ground::new();
        let dying = dying_pool(&ground, calls);
        let done = dying.acquire(&name("1"), &binding("t-1", "task"), None);
        let pool = ground.pool();
        let acquired = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap();
        assert_eq!(acquired.kept, None, "after {calls} calls");
        let state = pool.status(&name("1")).unwrap().unwrap();
        assert_eq!((state.dirty, state.binding), (false, Some(binding("t-1", "task"))), "after {calls} calls");
        assert_eq!(ground.sh(&acquired.folder, "git branch --show-current"), "task");
        if done.is_ok() {
            assert!(calls > 5, "{calls}");
            return;
        }
    }
}

/// An engine that was killed in the middle of bringing an item's work together finds its note, beside files that
/// somebody has changed since.
#[test]
fn what_was_to_be_brought_does_not_overwrite_what_somebody_wrote() {
    brought_beside_what_somebody_wrote(false);
    brought_beside_what_somebody_wrote(true);
}

/// The note is ours, or that of an earlier version.
fn brought_beside_what_somebody_wrote(is_older: bool) {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    ground.sh(
        &folder,
        "for f in f g h; do echo old > $f; done; git add f g h; git commit -qm old; git switch -qc item; \
         for f in f g h; do echo new > $f; done; git commit -qam new; git switch -q task",
    );
    let admin = ground.sh(&folder, "git rev-parse --absolute-git-dir");
    let commits = ground.sh(&folder, "git rev-parse task item");
    let (old, new) = commits.split_once('\n').unwrap();
    let place = folder.display();
    let note = format!(
        r#"{{"version":1,"branch":"task","old":"{old}","from":"{old}","new":"{new}","checkout":["\"{place}\"","\"{admin}\""]}}"#
    );
    if is_older {
        fs::write(format!("{admin}/sluice-bringing"), format!("{old} {new}")).unwrap();
        fs::write(format!("{admin}/index.lock"), "").unwrap();
    } else {
        fs::create_dir_all(format!("{admin}/sluice")).unwrap();
        fs::write(format!("{admin}/sluice/merge.json"), note).unwrap();
        fs::write(format!("{admin}/index.lock"), "sluice merges here: process 1\n").unwrap();
    }
    // Half of the new is ours, and so is what is not there.
    ground.sh(&folder, "echo 'written meanwhile' > f; printf ne > g; rm h");
    let bound = BoundWorktree::at(pool.repository(), &folder, None).unwrap();
    bound.commit_all("x").unwrap().unwrap();
    assert_eq!(
        ground.sh(&folder, "cat f g h; git show --name-only --format=%s"),
        "written meanwhile\nold\nold\nx\n\nf"
    );
    // What is in conflict with it changes nothing, and what is not is brought there beside what is not committed.
    ground.sh(&folder, "echo more > unrelated");
    let error = bound.merge_in("item", "item").unwrap_err();
    assert!(matches!(&error, GitError::Conflict { files, .. } if files == &["f"]), "{error}");
    ground.sh(&folder, "git revert --no-edit HEAD");
    bound.merge_in("item", "item").unwrap();
    assert_eq!(ground.sh(&folder, "cat f g h; git status --porcelain"), "new\nnew\nnew\n?? unrelated");
}
