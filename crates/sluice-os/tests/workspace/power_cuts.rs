//! The power goes at any moment of what is done with worktrees, and the disk has lost what was not brought to it. The next
//! engine finds everything that was reported, and leaves nothing behind that was not there before.
//!
//! `./test` lets it go at a few moments of each life; `cargo xtask power` at every one, with every kind of loss.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sluice_os::workspace::{
    BoundWorktree, RestoreTarget, SPARE, SetupTraces, WorkspacePool, WorkspaceRemoval, leftovers, remove_leftover,
};

use crate::ground::{Ground, binding, name};
use crate::interrupted::WORK;
use crate::machine::{FileLoss, LOSSES, LivedLife, life, live, lose, say};

/// So many moments of each life are enough for `./test`.
const MOMENTS: u64 = 8;
/// The test that lives the lives.
const LIVES: &str = "power_cuts::a_life_in_a_process_of_its_own";

/// What is done on a ground, what stands there before, and what must be true after the power has gone.
struct PoweredLife {
    title: &'static str,
    before: fn(&Ground),
    life: fn(&Ground),
    after: fn(&Ground, &LivedLife),
}

const ALL: [PoweredLife; 7] = [
    PoweredLife { title: "runs", before: two_commits, life: runs, after: runs_are_done_again },
    PoweredLife { title: "given back", before: a_run_with_work, life: give_back, after: all_is_kept },
    PoweredLife { title: "lent on", before: a_task_that_waits, life: lend_on, after: the_task_takes_it_up },
    PoweredLife { title: "committed", before: a_run_with_changes, life: commit, after: the_commit_is_there },
    PoweredLife { title: "set up", before: a_run, life: set_up, after: nothing_of_the_set_up_is_work },
    PoweredLife { title: "collected", before: runs_that_are_over, life: collect, after: all_is_collected },
    PoweredLife { title: "restored", before: work_that_is_kept, life: restore, after: it_is_restored },
];

/// Nothing, unless the process was started to live one.
#[test]
fn a_life_in_a_process_of_its_own() {
    if let Some((title, ground)) = life() {
        (ALL.iter().find(|it| it.title == title).unwrap().life)(&ground);
    }
}

#[test]
fn runs_that_follow_each_other() {
    some_moments("runs");
}

#[test]
fn a_run_that_gives_its_work_back() {
    some_moments("given back");
}

#[test]
fn tasks_that_lend_their_worktree_on() {
    some_moments("lent on");
}

#[test]
fn a_step_that_is_committed() {
    some_moments("committed");
}

#[test]
fn a_worktree_that_is_set_up() {
    some_moments("set up");
}

#[test]
fn worktrees_that_are_collected() {
    some_moments("collected");
}

#[test]
fn work_that_is_brought_back() {
    some_moments("restored");
}

/// Every moment of every life, or of the one that `POWER_TITLE` names, with every loss.
#[test]
#[ignore = "it takes many minutes: `cargo xtask power`"]
fn at_every_moment_that_there_is() {
    let wanted = std::env::var("POWER_TITLE").ok();
    let first = std::env::var("POWER_FROM").ok().map_or(0, |it| it.parse().unwrap());
    let step = std::env::var("POWER_STEP").ok().map_or(1, |it| it.parse().unwrap());
    for it in ALL.iter().filter(|it| wanted.as_deref().is_none_or(|wanted| wanted == it.title)) {
        let all = length(it);
        for at in (first..all).step_by(step) {
            LOSSES.iter().for_each(|loss| cut(it, at, *loss));
        }
        eprintln!("{}: {all} moments", it.title);
    }
}

fn some_moments(title: &str) {
    let it = ALL.iter().find(|it| it.title == title).unwrap();
    let all = length(it);
    assert!(all > MOMENTS, "{all}");
    for moment in 0..MOMENTS {
        // Never the same ones in all lives, and the last one among them.
        let at = all - 1 - moment * all / MOMENTS;
        cut(it, at, LOSSES[usize::try_from(moment).unwrap() % LOSSES.len()]);
    }
}

/// How many changes a life makes, and that nothing is wrong with it while the power stays.
fn length(it: &PoweredLife) -> u64 {
    let ground = prepared(it);
    let lived = live(&ground, LIVES, it.title, None);
    (it.after)(&ground, &lived);
    lived.changes
}

fn cut(it: &PoweredLife, at: u64, loss: FileLoss) {
    let ground = prepared(it);
    let lived = live(&ground, LIVES, it.title, Some(at));
    let lost = lose(&ground, loss);
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (it.after)(&ground, &lived)));
    if let Err(panic) = seen {
        eprintln!("{}: cut at {at}, {loss:?}; it had said {:?} and lost:\n{}", it.title, lived.said, lost.join("\n"));
        if std::env::var_os("POWER_KEEP").is_some() {
            eprintln!("kept in {}", ground.keep().display());
        }
        std::panic::resume_unwind(panic);
    }
}

/// A ground on which what stands before the life has stood for long: the disk has all of it, and nothing notes otherwise.
fn prepared(it: &PoweredLife) -> Ground {
    let ground = Ground::new();
    (it.before)(&ground);
    ground.sh(&ground.repository_folder(), "find .git/worktrees -name sluice-unsynced -delete 2>/dev/null || true");
    ground
}

fn base(ground: &Ground, branch: &str) -> String {
    ground.sh(&ground.repository_folder(), &format!("git rev-parse {branch}"))
}

fn lend(pool: &WorkspacePool, run: &str, base: &str) {
    pool.lend(None, &name(run), &binding(run, &format!("sluice/run-{run}")), base)
        .unwrap_or_else(|failure| panic!("{run}: {}", failure.error));
}

/// A repository is as it was: no worktree, no branch, no folder of ours, no lock; what is there can be read.
#[track_caller]
fn nothing_is_left(ground: &Ground, pool: &WorkspacePool) {
    sweep(pool);
    let known = "git worktree list --porcelain | grep ^worktree | tail -n +2; git for-each-ref --format='%(refname)' \
                 refs/heads refs/sluice | grep -v -e ^refs/heads/main$ -e ^refs/heads/task$ || true; \
                 find .git -name '*.lock' -o -name '*.sluice-*' | grep -v sluice/exclude.lock || true; \
                 ls .git/sluice/worktrees 2>/dev/null || true";
    let entries = fs::read_dir(pool.root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders: Vec<String> = entries.filter(|name| name != ".lock").collect();
    assert_eq!(format!("{}{}", ground.sh(&ground.repository_folder(), known), folders.join(" ")), "");
    is_readable(ground);
}

/// All that a branch or a keep leads to is there.
#[track_caller]
fn is_readable(ground: &Ground) {
    ground.sh(&ground.repository_folder(), "git rev-list --objects --all --quiet; git status --porcelain");
}

/// What an engine does when it starts, and from time to time: spares of an earlier one go, and what is left of removals.
fn sweep(pool: &WorkspacePool) {
    for entry in fs::read_dir(pool.root()).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with(SPARE) {
            pool.discard_left(&entry.path()).unwrap_or_else(|error| panic!("{}: {error}", entry.path().display()));
        }
    }
    for leftover in leftovers(pool.root()) {
        remove_leftover(pool.root(), &leftover).unwrap();
    }
}

fn two_commits(ground: &Ground) {
    ground.sh(&ground.repository_folder(), "echo new > a.txt; git rm -q dir/b.txt; git commit -qam new");
}

fn runs(ground: &Ground) {
    let pool = ground.pool();
    let (first, second) = (base(ground, "main~1"), base(ground, "main"));
    let park = |run: &str, base: &str| {
        pool.park(&name(run), &binding(run, &format!("sluice/run-{run}")), base).unwrap().unwrap()
    };
    let spare = pool.make_spare(&first).unwrap();
    pool.lend(Some(spare), &name("a"), &binding("a", "sluice/run-a"), &first).unwrap();
    say("lent a");
    let spare = park("a", &first);
    pool.lend(Some(spare), &name("b"), &binding("b", "sluice/run-b"), &second).unwrap();
    say("lent b");
    pool.discard(park("b", &second)).unwrap();
}

/// Each run is lent its worktree, as if it had none, works on what it should, and gives it back.
fn runs_are_done_again(ground: &Ground, _: &LivedLife) {
    let pool = ground.pool();
    sweep(&pool);
    for (run, base) in [("a", base(ground, "main~1")), ("b", base(ground, "main"))] {
        lend(&pool, run, &base);
        let folder = pool.folder(&name(run));
        let seen = ground.sh(&folder, "git status --porcelain; git rev-parse HEAD; cat a.txt run.sh");
        let content = ground.sh(&folder, &format!("git show {base}:a.txt {base}:run.sh"));
        assert_eq!(seen, format!("{base}\n{content}"), "{run}");
        // One that was being given back may be on its branch no longer.
        let on = ground.sh(&folder, "git rev-parse --symbolic-full-name HEAD");
        assert!(on == "HEAD" || on == format!("refs/heads/sluice/run-{run}"), "{on}");
        let spare = pool.park(&name(run), &binding(run, &format!("sluice/run-{run}")), &base).unwrap().unwrap();
        pool.discard(spare).unwrap();
    }
    nothing_is_left(ground, &pool);
}

fn a_run(ground: &Ground) {
    lend(&ground.pool(), "a", &base(ground, "main"));
}

fn a_run_with_work(ground: &Ground) {
    a_run(ground);
    let folder = ground.pool().folder(&name("a"));
    ground.sh(&folder, &WORK.replace("checkout -q task", "checkout -q sluice/run-a"));
    fs::write(ground.beside("picture"), ground.picture(&folder)).unwrap();
}

fn give_back(ground: &Ground) {
    let pool = ground.pool();
    let kept = pool.keep(&name("a"), "a").unwrap().unwrap();
    say(&format!("kept {}", kept.number));
    pool.destroy(&name("a"), "a").unwrap();
    say("removed");
}

fn all_is_kept(ground: &Ground, lived: &LivedLife) {
    let pool = ground.pool();
    let before = fs::read_to_string(ground.beside("picture")).unwrap();
    if lived.said.iter().any(|it| it == "kept 1") {
        is_in_keep(ground, &pool, "a", &before, "at-once");
    }
    // The engine does it again.
    pool.keep(&name("a"), "a").unwrap();
    pool.destroy(&name("a"), "a").unwrap();
    is_in_keep(ground, &pool, "a", &before, "again");
    assert!(!pool.folder(&name("a")).exists());
    pool.delete_branch("sluice/run-a", "a").unwrap();
    ground.sh(&ground.repository_folder(), "git branch -q -D other");
    pool.repository().prune_keeps(Duration::ZERO, &[pool.root().to_owned()]).unwrap();
    nothing_is_left(ground, &pool);
}

#[track_caller]
fn is_in_keep(ground: &Ground, pool: &WorkspacePool, owner: &str, before: &str, into: &str) {
    let place = ground.path(into);
    pool.restore(owner, 1, &RestoreTarget::Folder(place.clone())).unwrap();
    let after = ground.picture(&place);
    assert!(after == before, "{after}\n--- was\n{before}");
    ground.sh(&ground.repository_folder(), &format!("git worktree remove --force '{}'", place.display()));
}

fn a_task_that_waits(ground: &Ground) {
    let folder = ground.pool().acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    ground.sh(&folder, "echo x > x; git add x; git commit -qm x");
}

fn lend_on(ground: &Ground) {
    let pool = ground.pool();
    assert!(pool.hand_on(&name("1"), &binding("t-1", "task")).unwrap());
    say("handed on");
    pool.acquire(&name("1"), &binding("t-2", "second"), None).unwrap();
    say("lent");
    assert!(pool.hand_on(&name("1"), &binding("t-2", "second")).unwrap());
    pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap();
    say("taken up");
}

/// The first task goes on, whichever of the two has the worktree now, and what the second had was nothing.
fn the_task_takes_it_up(ground: &Ground, lived: &LivedLife) {
    let pool = ground.pool();
    // The task that has it is not at work there, and the file of a task that has begun to give it back is gone.
    let lent = pool.lent_to(&name("1")).unwrap();
    if let Some(lent) = lent.filter(|_| !lived.said.iter().any(|it| it == "taken up")) {
        pool.release(&name("1"), &lent.task).unwrap();
    }
    let tip = base(ground, "task");
    let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    let seen = ground.sh(&folder, "git status --porcelain; git rev-parse HEAD; git symbolic-ref HEAD; cat x a.txt");
    assert_eq!(seen, format!("{tip}\nrefs/heads/task\nx\none\ntwo\nthree"));
    pool.release(&name("1"), "t-1").unwrap();
    pool.collect(&name("1")).unwrap();
    pool.delete_branch("second", "t-2").unwrap();
    // A checkout that was half-way between two branches is kept as it lay.
    pool.repository().prune_keeps(Duration::ZERO, &[pool.root().to_owned()]).unwrap();
    nothing_is_left(ground, &pool);
}

fn a_run_with_changes(ground: &Ground) {
    a_run(ground);
    ground.sh(&ground.pool().folder(&name("a")), "echo changed > a.txt; git rm -q dir/b.txt; mkdir n; echo n > n/n");
}

fn commit(ground: &Ground) {
    let pool = ground.pool();
    let bound = BoundWorktree::at(pool.repository(), &pool.folder(&name("a")), Some("sluice/run-a")).unwrap();
    say(&bound.commit_all("a step").unwrap().unwrap());
}

fn the_commit_is_there(ground: &Ground, lived: &LivedLife) {
    let pool = ground.pool();
    if let Some(commit) = lived.said.first() {
        is_readable(ground);
        assert_eq!(&base(ground, "sluice/run-a"), commit);
    }
    lend(&pool, "a", &base(ground, "main"));
    let bound = BoundWorktree::at(pool.repository(), &pool.folder(&name("a")), Some("sluice/run-a")).unwrap();
    bound.commit_all("a step").unwrap();
    let seen = ground.sh(
        &ground.repository_folder(),
        "git log --format=%s main..sluice/run-a; git ls-tree -r --name-only sluice/run-a; git show sluice/run-a:a.txt \
         sluice/run-a:n/n",
    );
    assert_eq!(seen, "a step\n.gitignore\na.txt\nimage.bin\nlink\nn/n\nrun.sh\nchanged\nn");
    pool.destroy(&name("a"), "a").unwrap();
    ground.sh(&ground.repository_folder(), "git branch -q -D sluice/run-a");
    pool.repository().prune_keeps(Duration::ZERO, &[pool.root().to_owned()]).unwrap();
    nothing_is_left(ground, &pool);
}

/// What a project's command does.
const SET_UP: &str = "echo built > built; mkdir lib; echo 1 > lib/one; echo 2 > lib/two";

fn set_up(ground: &Ground) {
    let pool = ground.pool();
    let folder = pool.folder(&name("a"));
    let traces = SetupTraces::before(pool.repository(), &folder).unwrap().unwrap();
    ground.sh(&folder, SET_UP);
    traces.note().unwrap();
}

/// It is set up again, or never; nothing of it is kept as if it were work.
fn nothing_of_the_set_up_is_work(ground: &Ground, _: &LivedLife) {
    let pool = ground.pool();
    let folder = pool.folder(&name("a"));
    assert_eq!(pool.at_risk(&name("a")).unwrap(), [], "as it is");
    let traces = SetupTraces::before(pool.repository(), &folder).unwrap().unwrap();
    ground.sh(&folder, &SET_UP.replace("mkdir", "mkdir -p"));
    traces.note().unwrap();
    assert_eq!(pool.destroy(&name("a"), "a").unwrap(), None);
    pool.delete_branch("sluice/run-a", "a").unwrap();
    nothing_is_left(ground, &pool);
}

fn runs_that_are_over(ground: &Ground) {
    a_run_with_work(ground);
    lend(&ground.pool(), "b", &base(ground, "main"));
}

fn collect(ground: &Ground) {
    let pool = ground.pool();
    for run in ["a", "b"] {
        let gone = pool.destroy_if(&name(run), run, || true).unwrap();
        assert!(matches!(gone, WorkspaceRemoval::Gone(_)));
        say(run);
        pool.delete_branch(&format!("sluice/run-{run}"), run).unwrap();
    }
}

fn all_is_collected(ground: &Ground, lived: &LivedLife) {
    let pool = ground.pool();
    let before = fs::read_to_string(ground.beside("picture")).unwrap();
    if !lived.said.is_empty() {
        is_in_keep(ground, &pool, "a", &before, "at-once");
    }
    for run in ["a", "b"] {
        pool.destroy_if(&name(run), run, || true).unwrap();
        pool.delete_branch(&format!("sluice/run-{run}"), run).unwrap();
    }
    is_in_keep(ground, &pool, "a", &before, "again");
    assert!(pool.kept().unwrap().iter().all(|kept| kept.task == "a"), "{:?}", pool.kept().unwrap());
    ground.sh(&ground.repository_folder(), "git branch -q -D other");
    pool.repository().prune_keeps(Duration::ZERO, &[pool.root().to_owned()]).unwrap();
    nothing_is_left(ground, &pool);
}

fn work_that_is_kept(ground: &Ground) {
    a_run_with_work(ground);
    ground.pool().destroy(&name("a"), "a").unwrap();
}

fn target(ground: &Ground) -> RestoreTarget {
    RestoreTarget::FolderOnBranch(ground.path("restored"), "back".to_owned())
}

fn restore(ground: &Ground) {
    ground.pool().restore("a", 1, &target(ground)).unwrap();
    say("restored");
}

/// What was said to be there is; otherwise it can be brought back, to another place if something stands in this one.
fn it_is_restored(ground: &Ground, lived: &LivedLife) {
    let pool = ground.pool();
    let before = fs::read_to_string(ground.beside("picture")).unwrap();
    let place = ground.path("restored");
    if !lived.said.is_empty() {
        assert!(ground.picture(&place) == before, "{}", ground.picture(&place));
    } else if !has_files(&place) {
        pool.restore("a", 1, &target(ground)).unwrap();
        assert!(ground.picture(&place) == before, "{}", ground.picture(&place));
    }
    is_in_keep(ground, &pool, "a", &before, "again");
    let left: Vec<_> = fs::read_dir(ground.path("")).unwrap().map(|it| it.unwrap().file_name()).collect();
    let is_draft = |name: &std::ffi::OsString| name.to_string_lossy().contains("restoring");
    assert!(!left.iter().any(is_draft), "{left:?}");
}

fn has_files(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}
