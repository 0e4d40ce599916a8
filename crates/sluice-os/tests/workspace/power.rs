//! A merge that was interrupted in the middle of the user's checkout, as it is found by the next: what it left is made
//! good, and what is the user's own is not touched.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use sluice_os::git::{GitError, Repository};
use sluice_os::merge::{MergeMethod, MergeRequest, make_good, merge};
use sluice_os::passing::PassingError;

use crate::ground::Ground;

/// A branch that changes, adds and removes files, one of them large.
const BRANCH: &str = "git checkout -q -b task; echo changed > a.txt; seq 100000 > large; mkdir new; echo n > new/file; git rm -q dir/b.txt; chmod 644 run.sh; git add -A; git commit -qm work; git checkout -q main";

/// What a merge has written before its first file: the note, and its mark in the lock of the index.
fn begun(ground: &Ground) {
    let folder = ground.repository_folder();
    let (old, new) = (ground.sh(&folder, "git rev-parse main"), ground.sh(&folder, "git rev-parse task"));
    let (place, admin) = (folder.display(), folder.join(".git"));
    let note = format!(
        r#"{{"version":1,"branch":"main","old":"{old}","from":"{old}","new":"{new}","checkout":["\"{place}\"","\"{}\""]}}"#,
        admin.display()
    );
    fs::create_dir_all(admin.join("sluice")).unwrap();
    fs::write(admin.join("sluice/merge.json"), note).unwrap();
    fs::write(admin.join("index.lock"), "sluice merges here: process 1\n").unwrap();
    fs::copy(admin.join("index"), admin.join("sluice-index")).unwrap();
}

#[test]
fn half_written_files_are_put_back_and_the_users_are_not_touched() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, BRANCH);
    let before = ground.picture(&folder);
    begun(&ground);
    // One file is done, one half written, one just removed, one new folder made.
    ground.sh(&folder, "git show task:a.txt > a.txt; git show task:large | head -c 1000 > large; rm dir/b.txt; rmdir dir; mkdir new; : > new/file; chmod 644 run.sh");
    ground.sh(&folder, "printf x > .git/sluice-index.lock; : > .git/HEAD.lock");
    make_good(&ground.repository()).unwrap();
    assert_eq!(ground.picture(&folder), before);
    let left =
        ground.sh(&folder, "cd .git; ls index.lock HEAD.lock sluice-index* sluice/merge.json 2>/dev/null || true");
    assert_eq!(left, "");
    let request = MergeRequest { branch: "task", ..MergeRequest::default() };
    assert_eq!(merge(&ground.repository(), &request).unwrap().how, MergeMethod::FastForward);
    assert_eq!(
        ground.sh(&folder, "git status --porcelain; git rev-parse main"),
        ground.sh(&folder, "git rev-parse task")
    );

    // What a person has written there since is not what the merge was writing.
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, BRANCH);
    begun(&ground);
    ground.sh(
        &folder,
        "echo mine > a.txt; git show task:large > large; echo mine > unknown; mkdir new; echo mine > new/file",
    );
    make_good(&ground.repository()).unwrap();
    let seen = ground.sh(&folder, "cat a.txt unknown new/file; test ! -e large; git status --porcelain");
    assert_eq!(seen, "mine\nmine\nmine\n M a.txt\n?? new/\n?? unknown");
    assert!(matches!(merge(&ground.repository(), &request).unwrap_err(), GitError::Dirty { .. }));
}

#[test]
fn a_branch_that_has_moved_takes_its_checkout_along() {
    for is_index_there in [false, true] {
        let ground = Ground::new();
        let folder = ground.repository_folder();
        ground.sh(&folder, BRANCH);
        begun(&ground);
        ground.sh(
            &folder,
            "GIT_INDEX_FILE=.git/sluice-index git read-tree -m -u main task; git update-ref refs/heads/main task",
        );
        if is_index_there {
            ground.sh(&folder, "mv .git/sluice-index .git/index");
        }
        // The power went before the disk had all of it.
        ground.sh(&folder, ": > large; rm new/file");
        make_good(&ground.repository()).unwrap();
        assert_eq!(ground.sh(&folder, "git status --porcelain"), "");
        assert_eq!(
            ground.sh(&folder, "git rev-parse HEAD; tail -1 large"),
            format!("{}\n100000", ground.sh(&folder, "git rev-parse task"))
        );
        assert!(!folder.join(".git/index.lock").exists());
    }
}

/// The power went after the branch had moved, and spoiled an index: the one of the merge, the user's, or both.
#[test]
fn a_spoiled_index_is_made_anew_for_the_commit_that_the_branch_is_at() {
    let damages = [
        "echo junk > .git/sluice-index",
        ": > .git/sluice-index",
        "rm .git/sluice-index",
        "mv .git/sluice-index .git/index; head -c 40 .git/index > x; mv x .git/index",
        "echo junk > .git/sluice-index; echo junk > .git/index",
        "rm .git/sluice-index .git/index",
    ];
    for damage in damages {
        for has_moved in [true, false] {
            let ground = Ground::new();
            let folder = ground.repository_folder();
            ground.sh(&folder, BRANCH);
            begun(&ground);
            ground.sh(&folder, "GIT_INDEX_FILE=.git/sluice-index git read-tree -m -u main task");
            if has_moved {
                ground.sh(&folder, "git update-ref refs/heads/main task");
            }
            // What a person writes meanwhile stays, in a file of the merge and beside it.
            ground.sh(&folder, "echo mine > a.txt; echo mine > own; seq 500 > large");
            ground.sh(&folder, damage);
            make_good(&ground.repository()).unwrap();
            let seen = ground.sh(&folder, "git status --porcelain; cat a.txt own; git rev-parse HEAD; ls .git/index.lock .git/sluice-index 2>/dev/null || true");
            let at = ground.sh(&folder, if has_moved { "git rev-parse task" } else { "git rev-parse task^" });
            assert_eq!(seen, format!(" M a.txt\n?? own\nmine\nmine\n{at}"), "{damage}, moved: {has_moved}");
        }
    }
}

/// A git without memory, or one that was killed, cannot read the index; that is no spoiled one, and what is staged stays.
#[test]
fn an_index_that_cannot_be_read_now_is_not_made_anew() {
    for does in ["echo 'fatal: mmap failed: Cannot allocate memory' >&2; exit 128", "kill -9 $$"] {
        let ground = Ground::new();
        let folder = ground.repository_folder();
        ground.sh(&folder, BRANCH);
        ground.sh(&folder, "echo mine > own; git add own");
        begun(&ground);
        let wrapper = ground.path("git");
        let script = format!("#!/bin/sh\ncase \"$*\" in *ls-files*) {does} ;; esac\nexec git \"$@\"\n");
        ground.program(&wrapper, &script);
        let short = Repository::open(ground.git().with_program(&wrapper), &folder, None).unwrap();
        make_good(&short).unwrap_err();
        make_good(&ground.repository()).unwrap();
        assert_eq!(ground.sh(&folder, "git status --porcelain"), "A  own", "{does}");
    }
}

/// What git has written of a new file before the disk was full is no file of the user's that is in the way.
#[test]
fn a_disk_that_is_full_blames_nobody() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, BRANCH);
    let before = ground.picture(&folder);
    let full = "git show task:large | head -c 1000 > large; echo 'error: unable to write file large' >&2; exit 128";
    let wrapper = ground.path("git");
    ground.program(&wrapper, &format!("#!/bin/sh\ncase \"$*\" in *read-tree*) {full} ;; esac\nexec git \"$@\"\n"));
    let repository = Repository::open(ground.git().with_program(&wrapper), &folder, None).unwrap();
    let error = merge(&repository, &MergeRequest { branch: "task", ..MergeRequest::default() }).unwrap_err();
    assert!(error.is_passing() && error.to_string().contains("unable to write file large"), "{error}");
    make_good(&ground.repository()).unwrap();
    assert_eq!(ground.picture(&folder), before);
    let merged = merge(&ground.repository(), &MergeRequest { branch: "task", ..MergeRequest::default() });
    assert_eq!(merged.unwrap().how, MergeMethod::FastForward);
}

#[test]
fn a_lock_that_is_not_ours_stays() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, BRANCH);
    fs::write(folder.join(".git/index.lock"), "").unwrap();
    let before = ground.sh(&folder, "git for-each-ref; cat a.txt");
    let error = merge(&ground.repository(), &MergeRequest { branch: "task", ..MergeRequest::default() }).unwrap_err();
    assert!(matches!(error, GitError::Locked { .. }), "{error}");
    assert!(folder.join(".git/index.lock").exists() && !folder.join(".git/sluice/merge.json").exists());
    assert_eq!(ground.sh(&folder, "git for-each-ref; cat a.txt"), before);
    // What we have left ourselves without a note is recognised by its mark.
    fs::write(folder.join(".git/index.lock"), "sluice merges here: process 1\n").unwrap();
    assert_eq!(
        merge(&ground.repository(), &MergeRequest { branch: "task", ..MergeRequest::default() }).unwrap().how,
        MergeMethod::FastForward
    );
}

/// Whoever finds the lock after a power cut at any moment knows whose it is.
#[test]
fn our_lock_is_never_there_without_our_mark() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    let (lock, mark, is_over) =
        (folder.join(".git/index.lock"), folder.join(".git/sluice-mark"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = 0;
            while !is_over.load(Ordering::Relaxed) {
                match fs::read(&lock) {
                    Ok(bytes) if bytes.is_empty() => return None,
                    Ok(_) => seen += 1,
                    Err(_) => {}
                }
            }
            Some(seen)
        });
        for turn in 0..10 {
            let commit = format!("git branch -f task $(git commit-tree -p main -m {turn} main^{{tree}})");
            ground.sh(&folder, &commit);
            merge(&ground.repository(), &MergeRequest { branch: "task", ..MergeRequest::default() }).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(watching.join().unwrap().expect("an empty lock was seen") > 0);
    });
    assert!(!mark.exists());
    // The power went after the mark was written, or linked, or while the lock was written where there are no links.
    for damage in [
        "printf 'sluice mer' > .git/sluice-mark",
        "echo 'sluice merges here: process 1' > .git/sluice-mark; ln .git/sluice-mark .git/index.lock",
        "echo 'sluice merges here: process 1' > .git/sluice-mark; : > .git/index.lock",
        "echo 'sluice merges here: process 1' > .git/sluice-mark; printf 'sluice mer' > .git/index.lock",
    ] {
        ground.sh(&folder, damage);
        make_good(&ground.repository()).unwrap();
        assert!(!mark.exists() && !lock.exists(), "{damage}");
    }
}
