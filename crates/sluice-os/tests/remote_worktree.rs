//! Burrows: two machines work on one mission, one after the other and by mistake at once, and nothing is lost.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::{Path, PathBuf};
use std::process::Command;

use sluice_os::git::{Git, GitError};
use sluice_os::remote_worktree::{RemoteWorktree, RemoteWorktreeRequest};

const BRANCH: &str = "sluice/run-m1";

struct World {
    folder: tempfile::TempDir,
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(folder).args(identity).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl World {
    /// A remote with one commit.
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let remote = folder.path().join("remote.git");
        git(folder.path(), &["init", "--quiet", "--bare", "--initial-branch=main", "remote.git"]);
        git(folder.path(), &["clone", "--quiet", remote.to_str().unwrap(), "first"]);
        let first = folder.path().join("first");
        std::fs::write(first.join("README"), "coffee\n").unwrap();
        git(&first, &["add", "."]);
        git(&first, &["commit", "--quiet", "-m", "begin"]);
        git(&first, &["push", "--quiet", "origin", "HEAD:main"]);
        World { folder }
    }

    fn remote(&self) -> PathBuf {
        self.folder.path().join("remote.git")
    }

    fn tip(&self) -> String {
        git(&self.remote(), &["rev-parse", BRANCH])
    }

    /// The burrow of one step of the mission on one of the machines.
    fn own(&self, machine: &str, own: &str, commit: Option<&str>) -> RemoteWorktree {
        let (root, remote) = (self.folder.path().join(machine), self.remote());
        std::fs::create_dir_all(&root).unwrap();
        let (remote, goes_on) = (remote.to_str(), false);
        let wanted = RemoteWorktreeRequest {
            root: &root,
            run: "m1",
            branch: BRANCH,
            own,
            is_own: true,
            remote,
            commit,
            goes_on,
        };
        RemoteWorktree::open(&Git::default(), &wanted).unwrap()
    }

    /// The burrow of the mission on one of the machines.
    fn open(&self, machine: &str, commit: Option<&str>, goes_on: bool) -> RemoteWorktree {
        let (root, remote) = (self.folder.path().join(machine), self.remote());
        std::fs::create_dir_all(&root).unwrap();
        let remote = remote.to_str();
        let wanted = RemoteWorktreeRequest {
            root: &root,
            run: "m1",
            branch: BRANCH,
            own: "m1-0",
            is_own: false,
            remote,
            commit,
            goes_on,
        };
        RemoteWorktree::open(&Git::default(), &wanted).unwrap()
    }
}

/// Commits, and brings it to the remote.
fn save(burrow: &RemoteWorktree, message: &str, is_ours: impl FnOnce() -> bool) -> Result<Option<String>, GitError> {
    let Some(commit) = burrow.commit(message)? else { return Ok(None) };
    burrow.bring(&commit, None, message, is_ours)
}

fn write(burrow: &RemoteWorktree, name: &str) {
    std::fs::write(burrow.folder.join(name), name).unwrap();
}

fn holds(burrow: &RemoteWorktree, name: &str) -> bool {
    burrow.folder.join(name).is_file()
}

#[test]
fn the_next_step_starts_on_another_machine_where_this_one_ended() {
    let world = World::new();
    let one = world.open("one", None, false);
    assert!(holds(&one, "README"));
    write(&one, "plan");
    let commit = save(&one, "plan", || panic!("there was no other push")).unwrap().unwrap();
    assert_eq!(world.tip(), commit);

    let two = world.open("two", Some(&commit), false);
    assert!(holds(&two, "plan"));
    write(&two, "code");
    let next = save(&two, "implement", || panic!("there was no other push")).unwrap().unwrap();

    let one = world.open("one", Some(&next), false);
    assert!(holds(&one, "plan") && holds(&one, "code"));
    assert_eq!(
        save(&one, "review", || panic!("there was no other push")).unwrap().unwrap(),
        next,
        "nothing was changed"
    );
}

#[test]
fn what_a_lost_attempt_left_is_kept_and_what_goes_on_is_not_touched() {
    let world = World::new();
    let one = world.open("one", None, false);
    write(&one, "half");
    let same = world.open("one", None, true);
    assert!(holds(&same, "half"), "somebody is at work there");
    let anew = world.open("one", None, false);
    assert!(!holds(&anew, "half"));
    let kept = git(&anew.folder, &["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    assert_eq!(git(&anew.folder, &["show", &format!("{kept}:half")]), "half");
}

#[test]
fn whoever_is_late_does_not_replace_what_counts_and_what_counts_replaces_it() {
    let world = World::new();
    let (late, current) = (world.open("one", None, false), world.open("two", None, false));
    write(&current, "right");
    let counts = save(&current, "right", || panic!("there was no other push")).unwrap().unwrap();
    write(&late, "wrong");
    assert!(save(&late, "wrong", || false).is_err());
    assert_eq!(world.tip(), counts);

    let (late, current) = (world.open("one", Some(&counts), false), world.open("two", Some(&counts), false));
    write(&late, "wrong");
    let wrong = save(&late, "wrong", || panic!("there was no other push")).unwrap().unwrap();
    write(&current, "right again");
    let counts = save(&current, "right again", || true).unwrap().unwrap();
    assert_eq!(world.tip(), counts);
    assert_eq!(git(&current.folder, &["show", &format!("{wrong}:wrong")]), "wrong", "it is kept");
}

#[test]
fn without_a_repository_it_is_a_plain_folder() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = RemoteWorktreeRequest {
        root: folder.path(),
        run: "m1",
        branch: BRANCH,
        own: "m1-0",
        is_own: false,
        remote: None,
        commit: None,
        goes_on: false,
    };
    let burrow = RemoteWorktree::open(&Git::default(), &wanted).unwrap();
    write(&burrow, "x");
    assert_eq!(save(&burrow, "x", || true).unwrap(), None);
    assert!(holds(&burrow, "x"));
}

#[test]
fn what_a_lost_attempt_had_brought_there_is_kept_when_another_begins_before_it() {
    let world = World::new();
    let lost = world.open("one", None, false);
    write(&lost, "lost");
    let wrong = save(&lost, "lost", || panic!("there was no other push")).unwrap().unwrap();
    let current = world.open("two", None, false);
    write(&current, "right");
    let counts = save(&current, "right", || panic!("nobody pushed meanwhile")).unwrap().unwrap();
    assert_eq!(world.tip(), counts);
    let kept = git(&current.folder, &["for-each-ref", "--format=%(objectname)", "refs/sluice/keep"]);
    assert_eq!(kept, wrong, "it stays reachable here");
}

#[test]
fn an_old_burrow_is_removed_only_if_the_remote_has_all_of_it() {
    let world = World::new();
    let root = world.folder.path().join("one");
    let burrow = world.open("one", None, false);
    let forget = |is_old: bool| sluice_os::remote_worktree::forget(&Git::default(), &root, |_| is_old);
    write(&burrow, "work");
    assert!(forget(true).is_empty(), "it is not committed");
    git(&burrow.folder, &["add", "."]);
    git(&burrow.folder, &["commit", "--quiet", "-m", "work"]);
    assert!(forget(true).is_empty(), "it is not pushed");
    let commit = save(&burrow, "work", || panic!("there was no other push")).unwrap().unwrap();
    assert!(forget(false).is_empty(), "it is not old");
    assert_eq!(forget(true), std::slice::from_ref(&burrow.folder));
    assert!(!burrow.folder.exists());
    let again = world.open("one", Some(&commit), false);
    assert!(holds(&again, "work"), "it is made again when it is needed");
}

/// What other runs ask the remote for makes the mirror forget where the remote has this one's branch.
#[test]
fn an_old_burrow_goes_although_other_runs_came_after_it() {
    let world = World::new();
    let root = world.folder.path().join("one");
    let burrow = world.open("one", None, false);
    write(&burrow, "work");
    save(&burrow, "work", || panic!("there was no other push")).unwrap().unwrap();
    let remote = world.remote();
    let other = RemoteWorktreeRequest {
        root: &root,
        run: "m2",
        branch: "sluice/run-m2",
        own: "m2-0",
        is_own: false,
        remote: remote.to_str(),
        commit: None,
        goes_on: false,
    };
    RemoteWorktree::open(&Git::default(), &other).unwrap();
    let is_first = |folder: &Path| folder == burrow.folder;
    let gone = sluice_os::remote_worktree::forget(&Git::default(), &root, is_first);
    assert_eq!(gone, std::slice::from_ref(&burrow.folder));
}

/// Its worktrees lead to the mirror of the home that it is a copy of.
#[test]
fn a_home_that_was_copied_works_in_worktrees_of_its_own() {
    let world = World::new();
    let one = world.open("one", None, false);
    write(&one, "plan");
    let commit = save(&one, "plan", || panic!("there was no other push")).unwrap().unwrap();
    let (from, to) = (world.folder.path().join("one"), world.folder.path().join("two"));
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
    write(&one, "more");
    let two = world.open("two", Some(&commit), false);
    assert!(holds(&two, "plan") && !holds(&two, "more"));
    write(&two, "code");
    save(&two, "implement", || panic!("there was no other push")).unwrap().unwrap();
    assert!(holds(&one, "more") && !holds(&one, "code"), "the other home is as it was");
}

/// What git does not show is work as well: what only the branch ignores, what the index was told not to look at, and
/// repositories inside, known to git or not.
#[test]
fn what_git_does_not_show_of_a_lost_attempt_is_kept_too() {
    let world = World::new();
    let one = world.open("one", None, false);
    let hidden = "printf '*.log\\n' > .gitignore; git add .gitignore; git commit -qm rules; echo log > own.log; \
         git update-index --assume-unchanged README; echo more >> README; \
         for i in in link; do git init -q $i; (cd $i; echo $i > f; git add f; git commit -qm $i); done; git add link";
    let mut shell = Command::new("sh");
    for (name, value) in [("NAME", "Test"), ("EMAIL", "test@localhost")] {
        shell.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    assert!(shell.current_dir(&one.folder).args(["-ec", hidden]).status().unwrap().success());
    let forget = || sluice_os::remote_worktree::forget(&Git::default(), &world.folder.path().join("one"), |_| true);
    assert!(forget().is_empty());
    let anew = world.open("one", None, false);
    assert_eq!(git(&anew.folder, &["status", "--porcelain", "--ignored"]), "");
    assert_eq!(std::fs::read_to_string(anew.folder.join("README")).unwrap(), "coffee\n");
    let aside = anew.folder.parent().unwrap().join("aside/m1/1");
    for file in ["own.log", "in/f", "in/.git/HEAD", "link/f", "link/.git/HEAD"] {
        assert!(aside.join(file).exists(), "{file}");
    }
    let kept = git(&anew.folder, &["for-each-ref", "--format=%(refname)", "refs/sluice/keep/m1/1"]);
    assert_eq!(git(&anew.folder, &["show", &format!("{kept}:README")]), "coffee\nmore");
    assert_eq!(git(&anew.folder, &["show", &format!("{kept}:.gitignore")]), "*.log");
}

#[test]
fn steps_that_write_at_the_same_time_come_together_or_stay_apart() {
    let world = World::new();
    let start = git(&world.remote(), &["rev-parse", "main"]);
    let (one, two) = (world.own("one", "m1-0-item-0", None), world.own("two", "m1-0-item-1", None));
    let third = world.own("one", "m1-0-item-2", Some(&start));
    assert_ne!(one.folder, third.folder, "each has a worktree of its own on one machine");
    let ours = || panic!("it is its turn");
    write(&one, "a");
    let first = one.bring(&one.commit("a").unwrap().unwrap(), None, "a", ours).unwrap().unwrap();
    write(&two, "b");
    let work = two.commit("b").unwrap().unwrap();
    let second = two.bring(&work, Some(&first), "b", || true).unwrap().unwrap();
    assert_eq!(world.tip(), second);
    assert_eq!(git(&world.remote(), &["ls-tree", "--name-only", &second]), "README\na\nb");
    let parents = git(&world.remote(), &["rev-list", "--parents", "-1", &second]);
    assert_eq!(parents, format!("{second} {first} {work}"));
    // What is in conflict changes nothing, and is where it can be found.
    std::fs::write(third.folder.join("a"), "other").unwrap();
    let work = third.commit("c").unwrap().unwrap();
    let refused = third.bring(&work, Some(&second), "c", || true).unwrap_err();
    assert!(matches!(refused, GitError::Conflict { .. }), "{refused}");
    assert_eq!(third.put_apart(&work).unwrap().as_deref(), Some("sluice/part-m1-0-item-2"));
    assert_eq!(git(&world.remote(), &["rev-parse", "sluice/part-m1-0-item-2"]), work);
    assert_eq!(world.tip(), second);
    // One that did nothing moves nothing.
    let none = world.own("two", "m1-0-item-3", Some(&first));
    let same = none.bring(&none.commit("d").unwrap().unwrap(), Some(&second), "d", || true).unwrap();
    assert_eq!(same.as_ref(), Some(&second));
    let folder = third.folder.clone();
    third.discard().unwrap();
    assert!(!folder.exists());
}
