//! Worktrees that are lent again: nothing of one life is seen in the next, and what is broken off at any call of git and
//! taken up by another process ends as if nothing had happened.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use sluice_os::git::GitError;
use sluice_os::workspace::{SPARE, SpareWorktree, WorkspacePool, WorkspaceRemoval};

use crate::ground::{Ground, binding, name};
use crate::interrupted::{allow, dying_pool};

fn lend(pool: &WorkspacePool, run: &str, base: &str, spare: Option<SpareWorktree>) -> Result<PathBuf, GitError> {
    pool.lend(spare, &name(run), &binding(run, &format!("run-{run}")), base).map_err(|failure| failure.error)?;
    Ok(pool.folder(&name(run)))
}

fn park(pool: &WorkspacePool, run: &str, base: &str) -> Result<Option<SpareWorktree>, GitError> {
    pool.park(&name(run), &binding(run, &format!("run-{run}")), base)
}

fn spares(pool: &WorkspacePool) -> Vec<PathBuf> {
    let entries = fs::read_dir(pool.root()).unwrap().map(|entry| entry.unwrap());
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(SPARE)).map(|entry| entry.path()).collect()
}

/// What is left of runs: worktrees beside the main one, branches beside `main`, folders.
fn left(ground: &Ground, pool: &WorkspacePool) -> String {
    let known = "git worktree list --porcelain | grep ^worktree | tail -n +2; git branch --format='%(refname:short)' | grep -v ^main$ || true";
    let entries = fs::read_dir(pool.root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders: Vec<String> = entries.filter(|name| name != ".lock").collect();
    format!("{}{}", ground.sh(&ground.repository_folder(), known), folders.join(" "))
}

#[test]
fn one_that_is_as_it_was_is_lent_again_on_another_branch_and_commit() {
    let ground = Ground::new();
    let pool = ground.pool();
    let base = ground.sh(&ground.repository_folder(), "git rev-parse main");
    let folder = lend(&pool, "a", &base, None).unwrap();
    let before = ground.picture(&folder);
    let spare = park(&pool, "a", &base).unwrap().expect("nothing is new in it");
    assert!(!folder.exists());
    ground.sh(&ground.repository_folder(), "echo new > a.txt; git commit -qam new");
    let next = ground.sh(&ground.repository_folder(), "git rev-parse main");
    let folder = lend(&pool, "b", &next, Some(spare)).unwrap();
    assert_eq!(
        ground.sh(&folder, "git branch --show-current; git rev-parse HEAD; git status --porcelain; cat a.txt"),
        format!("run-b\n{next}\nnew")
    );
    let spare = park(&pool, "b", &next).unwrap().expect("nothing is new in it");
    let folder = lend(&pool, "c", &base, Some(spare)).unwrap();
    assert_eq!(ground.picture(&folder).replace("run-c", "run-a"), before);
    let spare = park(&pool, "c", &base).unwrap().expect("nothing is new in it");
    pool.discard(spare).unwrap();
    assert_eq!(left(&ground, &pool), "");
    assert_eq!(pool.kept().unwrap(), []);
}

/// An engine that was killed after it gave a worktree back gives it back once more.
#[test]
fn whatever_is_asked_of_a_worktree_that_is_gone_leaves_no_lock() {
    let ground = Ground::new();
    let (pool, base) = (ground.pool(), ground.sh(&ground.repository_folder(), "git rev-parse main"));
    lend(&pool, "r1", &base, None).unwrap();
    let spare = park(&pool, "r1", &base).unwrap().unwrap();
    pool.discard(spare).unwrap();
    let (gone, bound) = (name("r1"), binding("r1", "run-r1"));
    type Asked<'a> = (&'a str, &'a dyn Fn() -> bool);
    let asked: [Asked; 8] = [
        ("park", &|| park(&pool, "r1", &base).unwrap().is_none()),
        ("keep", &|| pool.keep(&gone, "r1").unwrap().is_none()),
        ("release", &|| pool.release(&gone, "r1").unwrap().is_none()),
        ("destroy", &|| pool.destroy(&gone, "r1").unwrap().is_none()),
        ("destroy_if", &|| pool.destroy_if(&gone, "r1", || true).unwrap() == WorkspaceRemoval::Stays),
        ("collect", &|| pool.collect(&gone).unwrap().is_none()),
        ("is_spotless", &|| !pool.is_spotless(&gone, &bound).unwrap()),
        ("hand_on", &|| !pool.hand_on(&gone, &bound).unwrap()),
    ];
    for (what, ask) in asked {
        assert!(ask(), "{what}");
        assert!(!pool.root().join("r1.lock").exists(), "{what}");
    }
}

#[test]
fn one_with_anything_new_in_it_is_not_lent_again_and_stays_as_it_is() {
    for (title, script) in [
        ("a file", "echo x > x"),
        ("a change", "echo x >> a.txt"),
        ("a staged change that is undone", "echo x >> a.txt; git add a.txt; git show HEAD:a.txt > a.txt"),
        ("an ignored file", "echo '*.o' >> $(git rev-parse --git-path info/exclude); touch x.o"),
        ("a hidden change", "git update-index --assume-unchanged a.txt; echo x >> a.txt"),
        ("a hidden file", "git update-index --skip-worktree a.txt"),
        ("a commit", "git commit -q --allow-empty -m more"),
        (
            "a commit that was left",
            "git checkout -q --detach; git commit -q --allow-empty -m more; git checkout -q run-a",
        ),
        ("a commit that was reset away", "git commit -q --allow-empty -m more; git reset -q --hard HEAD~1"),
        ("another branch", "git checkout -q -b other"),
        ("a repository inside", "git init -q inner; touch inner/x"),
        ("a bisect", "git bisect start -q"),
        ("a setting", "git config extensions.worktreeConfig true; git config --worktree a.b c"),
        ("a reference of its own to a known commit", "git update-ref refs/worktree/mine HEAD"),
        ("a reference of its own", "git update-ref refs/worktree/mine $(git commit-tree -m mine HEAD^{tree})"),
    ] {
        let ground = Ground::new();
        let pool = ground.pool();
        let base = ground.sh(&ground.repository_folder(), "git rev-parse main");
        let folder = lend(&pool, "a", &base, None).unwrap();
        ground.sh(&folder, script);
        let before = ground.picture(&folder);
        assert!(park(&pool, "a", &base).unwrap().is_none(), "{title}");
        assert_eq!(ground.picture(&folder), before, "{title}");
    }
}

#[test]
fn a_life_that_is_broken_off_at_any_call_goes_on_and_leaves_nothing() {
    for calls in 0.. {
        let ground = Ground::new();
        let (base, next) = two_commits(&ground);
        let life = |pool: &WorkspacePool| {
            let spare = pool.make_spare(&base)?;
            lend(pool, "a", &base, Some(spare))?;
            let spare = park(pool, "a", &base)?;
            lend(pool, "b", &next, spare)?;
            park(pool, "b", &next)?.map_or(Ok(()), |spare| pool.discard(spare).map_err(|failure| failure.error))
        };
        let done = life(&dying_pool(&ground, calls));
        // The next process: what was spare goes, and each run is lent its worktree, as if it had none, and gives it back.
        let pool = ground.pool();
        spares(&pool).iter().for_each(|folder| pool.discard_left(folder).unwrap());
        for (run, base) in [("a", &base), ("b", &next)] {
            lend(&pool, run, base, None).unwrap_or_else(|error| panic!("after {calls} calls: {error}"));
            let spare = park(&pool, run, base).unwrap().unwrap_or_else(|| panic!("after {calls} calls"));
            pool.discard(spare).unwrap();
        }
        assert_eq!(left(&ground, &pool), "", "after {calls} calls");
        assert_eq!(pool.kept().unwrap(), [], "after {calls} calls");
        if done.is_ok() {
            assert!(calls > 10, "{calls}");
            return;
        }
    }
}

/// git fails for a while and works again, and the same process asks once more.
#[test]
fn a_lending_that_fails_at_any_call_succeeds_when_it_is_tried_again_and_leaves_no_spare() {
    for calls in 0.. {
        let ground = Ground::new();
        let (base, next) = two_commits(&ground);
        let pool = dying_pool(&ground, 1000);
        let spare = pool.make_spare(&base).unwrap();
        allow(&ground, calls);
        let binding = binding("a", "run-a");
        let failed = pool.lend(Some(spare), &name("a"), &binding, &next);
        allow(&ground, 1000);
        if let Err(failure) = &failed {
            assert!(failure.left.is_some() || spares(&pool).is_empty(), "after {calls} calls: {:?}", failure.error);
        }
        let done = failed.is_ok();
        failed.err().and_then(|failure| failure.left).into_iter().for_each(|left| pool.discard(*left).unwrap());
        let folder = lend(&pool, "a", &next, None).unwrap_or_else(|error| panic!("after {calls} calls: {error}"));
        assert_eq!(ground.sh(&folder, "git branch --show-current; git rev-parse HEAD"), format!("run-a\n{next}"));
        let spare = park(&pool, "a", &next).unwrap().unwrap_or_else(|| panic!("after {calls} calls"));
        pool.discard(spare).unwrap();
        assert_eq!(left(&ground, &pool), "", "after {calls} calls");
        assert_eq!(pool.kept().unwrap(), [], "after {calls} calls");
        if done {
            assert!(calls >= 2, "{calls}");
            return;
        }
    }
}

#[test]
fn a_lending_that_fails_after_git_has_done_its_part_leaves_no_spare() {
    let ground = Ground::new();
    let base = ground.sh(&ground.repository_folder(), "git rev-parse main");
    let pool = ground.pool();
    let spare = pool.make_spare(&base).unwrap();
    // The note of what it is lent for cannot be written.
    ground.sh(&spares(&pool)[0], "mkdir -p $(git rev-parse --git-dir)/sluice-binding/in-the-way");
    let failure = pool.lend(Some(spare), &name("a"), &binding("a", "run-a"), &base).unwrap_err();
    assert!(failure.left.is_none() && spares(&pool).is_empty(), "{:?}", failure.error);
    let folder = lend(&pool, "a", &base, None).unwrap();
    assert_eq!(ground.sh(&folder, "git branch --show-current"), "run-a");
}

/// git that is given no folder of its own takes the one that it is called in.
#[test]
fn a_spare_whose_folder_is_gone_is_not_lent_and_nothing_is_written_into_the_main_checkout() {
    for vanishes in ["rm -rf \"$1\"", "rm -rf \"$1\"; ln -s \"$PWD\" \"$1\""] {
        let ground = Ground::new();
        let (base, next) = two_commits(&ground);
        let pool = ground.pool();
        let spare = pool.make_spare(&base).unwrap();
        let main = ground.repository_folder();
        let before = ground.picture(&main);
        ground.sh(&main, &format!("set -- '{}'; {vanishes}", spares(&pool)[0].display()));
        let folder = lend(&pool, "a", &base, Some(spare)).unwrap();
        assert_eq!(ground.picture(&main), before);
        assert_eq!(ground.sh(&folder, "git branch --show-current; git rev-parse HEAD"), format!("run-a\n{base}"));
        assert_eq!(ground.sh(&main, "git status --porcelain; git rev-parse HEAD"), next);
    }
}

/// The commit before the newest one, and the newest one, in which a file is different.
fn two_commits(ground: &Ground) -> (String, String) {
    let commit = |ground: &Ground| ground.sh(&ground.repository_folder(), "git rev-parse main");
    let base = commit(ground);
    ground.sh(&ground.repository_folder(), "echo new > a.txt; git rm -q dir/b.txt; git commit -qam new");
    (base, commit(ground))
}

#[test]
fn a_folder_that_has_its_name_and_is_not_registered_there_is_found() {
    let ground = Ground::new();
    let pool = ground.pool();
    let base = ground.sh(&ground.repository_folder(), "git rev-parse main");
    pool.make_spare(&base).unwrap();
    // Killed between the two halves of a renaming.
    let spare = spares(&pool).remove(0);
    ground.sh(&spare, "git checkout -q -b run-a");
    fs::rename(&spare, pool.folder(&name("a"))).unwrap();
    let folder = lend(&pool, "a", &base, None).unwrap();
    assert_eq!(ground.sh(&folder, "git branch --show-current"), "run-a");
    let spare = park(&pool, "a", &base).unwrap().expect("nothing is new in it");
    pool.discard(spare).unwrap();
    assert_eq!(left(&ground, &pool), "");
}

/// Git removes the folder of all worktrees with the last of them, also while the next is being made.
#[test]
fn one_is_made_while_git_removes_the_last_other() {
    let ground = Ground::new();
    let pool = ground.pool();
    let base = ground.sh(&ground.repository_folder(), "git rev-parse main");
    let all = ground.repository_folder().join(".git/worktrees");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drop(fs::remove_dir(&all)); // as git does: only if it is empty
            }
        });
        let made = (0..20).try_for_each(|_| pool.discard(pool.make_spare(&base)?).map_err(|failure| failure.error));
        is_over.store(true, Ordering::Relaxed);
        made.unwrap();
    });
    assert_eq!(left(&ground, &pool), "");
}
