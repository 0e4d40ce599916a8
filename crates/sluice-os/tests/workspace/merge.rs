//! Merging: fast-forward, merge commit, conflict; with the default branch checked out or not; pushed or not.

use std::fs;

use sluice_os::git::{GitError, RemoteBranchDeletion, Repository};
use sluice_os::merge::{CompletedMerge, MergeMethod, MergePush, MergeRequest, MergeStrategy, left, merge};

use crate::ground::Ground;

/// A branch `task` with one commit, made without touching the main checkout.
const BRANCH: &str = "git worktree add -q ../made -b task; cd ../made; echo x > x; git add x; git commit -qm x; cd - >/dev/null; git worktree remove ../made";
/// The default branch goes its own way.
const DIVERGE: &str = "echo main > on-main; git add on-main; git commit -qm main";
const REMOTE: &str = "git clone -q --bare . ../remote.git; git remote add origin ../remote.git; git fetch -q";

fn request(strategy: MergeStrategy, local: bool) -> MergeRequest<'static> {
    MergeRequest { branch: "task", strategy, local, ..MergeRequest::default() }
}

fn log(ground: &Ground) -> String {
    ground.sh(&ground.repository_folder(), "git log --format=%s main")
}

#[test]
fn every_strategy_on_every_shape() {
    for (diverged, strategy, how, expected) in [
        (false, MergeStrategy::Auto, Some(MergeMethod::FastForward), "x\nstart"),
        (false, MergeStrategy::FastForward, Some(MergeMethod::FastForward), "x\nstart"),
        (false, MergeStrategy::MergeCommit, Some(MergeMethod::MergeCommit), "Merge branch 'task'\nx\nstart"),
        (true, MergeStrategy::Auto, Some(MergeMethod::MergeCommit), "Merge branch 'task'\nmain\nx\nstart"),
        (true, MergeStrategy::FastForward, None, "main\nstart"),
        (true, MergeStrategy::MergeCommit, Some(MergeMethod::MergeCommit), "Merge branch 'task'\nmain\nx\nstart"),
    ] {
        for elsewhere in [false, true] {
            let ground = Ground::new();
            let folder = ground.repository_folder();
            ground.sh(&folder, BRANCH);
            if diverged {
                ground.sh(&folder, DIVERGE);
            }
            if elsewhere {
                ground.sh(&folder, "git checkout -q -b mine; echo dirty >> a.txt; git add a.txt; echo new > new");
            }
            let before = ground.picture(&folder);
            let merged = merge(&ground.repository(), &request(strategy, false));
            let title = format!("{strategy:?} diverged: {diverged} elsewhere: {elsewhere}");
            match (merged, &how) {
                (Ok(merged), Some(how)) => {
                    assert_eq!((&merged.how, &merged.pushed), (how, &MergePush::NoRemote), "{title}")
                }
                (Err(error), None) => assert!(matches!(error, GitError::NotFastForward { .. }), "{title}: {error}"),
                (merged, _) => panic!("{title}: {merged:?}"),
            }
            let mut lines: Vec<String> = log(&ground).lines().map(str::to_owned).collect();
            let mut wanted: Vec<&str> = expected.lines().collect();
            lines[1..].sort();
            wanted[1..].sort();
            assert_eq!(lines, wanted, "{title}");
            if elsewhere {
                assert_eq!(ground.picture(&folder), before, "{title}: the main checkout is not touched");
            } else {
                assert_eq!(ground.sh(&folder, "git status --porcelain"), "", "{title}: the main checkout goes along");
                assert_eq!(folder.join("x").exists(), how.is_some(), "{title}");
            }
            if how.is_some() {
                let again = merge(&ground.repository(), &request(strategy, false)).unwrap();
                assert_eq!((again.how, again.notes), (MergeMethod::Already, Vec::new()), "{title}");
            }
        }
    }
}

#[test]
fn a_checkout_with_changes_is_a_refusal() {
    for (script, named) in
        [("echo x >> a.txt", "a.txt"), ("echo x >> a.txt; git add a.txt", "a.txt"), ("rm dir/b.txt", "dir/b.txt")]
    {
        let ground = Ground::new();
        ground.sh(&ground.repository_folder(), &format!("{BRANCH}; {script}"));
        let before = ground.picture(&ground.repository_folder());
        let error = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap_err();
        let folder = ground.repository_folder();
        let expected = format!(
            "`main` is checked out in {} with changes ({named}); commit or stash them, then merge again",
            folder.display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(ground.picture(&folder), before);
    }
    // An untracked file that the merge would overwrite.
    let ground = Ground::new();
    ground.sh(&ground.repository_folder(), &format!("{BRANCH}; echo mine > x"));
    let error = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap_err();
    // What git does not know is neither committed with the rest nor stashed.
    assert!(error.to_string().contains("(x in the way); move or rename what is in the way, then"), "{error}");
    let page = include_str!("../../../../docs/refusals/checkout_changed.md");
    let shown = error.to_string().replace(ground.repository_folder().to_str().unwrap(), "/src/coffee");
    assert!(page.contains(&format!("Merge not allowed: {shown}\n")), "{error}");
    assert_eq!(fs::read_to_string(ground.repository_folder().join("x")).unwrap(), "mine\n");
    assert_eq!(log(&ground), "start");
}

#[test]
fn a_conflict_is_a_refusal_that_names_the_files() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, "git checkout -q -b task; echo t > a.txt; echo t > \"$(printf 'new\\nline')\"; echo same > s; git add -A; git commit -qm t; git checkout -q main; echo m > a.txt; echo m > \"$(printf 'new\\nline')\"; git add -A; git commit -qm m");
    let before = ground.picture(&folder);
    let error = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`task` and `main` conflict in a.txt, \"new\\012line\"; merge `main` into `task` in its workspace, then merge again"
    );
    assert_eq!(ground.picture(&folder), before);
    let error = merge(&ground.repository(), &MergeRequest { branch: "none", ..MergeRequest::default() }).unwrap_err();
    assert_eq!(error.to_string(), "there is no branch `none`; look at `git branch --all`");
}

#[test]
fn the_merge_is_pushed_and_a_push_that_fails_leaves_it() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, &format!("{REMOTE}; {BRANCH}"));
    ground.sh(&folder, "git remote set-url origin ../nowhere.git");
    let merged = merge(&ground.repository(), &request(MergeStrategy::Auto, true)).unwrap();
    assert!(
        matches!(merged, CompletedMerge { how: MergeMethod::FastForward, pushed: MergePush::Failed(_), .. }),
        "{merged:?}"
    );
    let merged = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap();
    let CompletedMerge { how: MergeMethod::Already, pushed: MergePush::Failed(reason), .. } = merged else {
        panic!("{merged:?}")
    };
    assert!(reason.contains("`origin` did not take `main`") && reason.contains("nowhere.git"), "{reason}");
    assert_eq!(log(&ground), "x\nstart");
    // A remote that refuses, then one that takes it.
    ground.sh(&folder, "git remote set-url origin ../remote.git; printf '#!/bin/sh\necho no entry >&2; exit 1\n' > ../remote.git/hooks/pre-receive; chmod +x ../remote.git/hooks/pre-receive");
    let merged = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap();
    assert!(matches!(&merged.pushed, MergePush::Failed(reason) if reason.contains("no entry")), "{merged:?}");
    fs::remove_file(ground.path("remote.git/hooks/pre-receive")).unwrap();
    let merged = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap();
    assert_eq!((merged.how, merged.pushed), (MergeMethod::Already, MergePush::Done));
    assert_eq!(ground.sh(&ground.path("remote.git"), "git log --format=%s main"), "x\nstart");
}

#[test]
fn what_the_remote_has_beyond_comes_in_first() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, &format!("{REMOTE}; {BRANCH}"));
    ground.sh(&ground.path(""), "git clone -q remote.git theirs; cd theirs; git config user.name t; git config user.email t@t; echo t > theirs; git add theirs; git commit -qm theirs; git push -q origin main");
    let merged = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap();
    assert_eq!((merged.how, merged.pushed), (MergeMethod::MergeCommit, MergePush::Done));
    assert_eq!(ground.sh(&folder, "git rev-parse main"), ground.sh(&ground.path("remote.git"), "git rev-parse main"));
    assert!(folder.join("theirs").exists() && folder.join("x").exists());
    // Merged by someone else on the remote: known after a look, and the local branch follows.
    ground.sh(&folder, "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git push -q origin other; git checkout -q main");
    ground.sh(
        &ground.path("theirs"),
        "git pull -q; git merge -q --no-ff -m merged origin/other; git push -q origin main",
    );
    let merged = merge(&ground.repository(), &MergeRequest { branch: "other", ..MergeRequest::default() }).unwrap();
    assert_eq!((merged.how, merged.pushed), (MergeMethod::Already, MergePush::Done));
    assert_eq!(ground.sh(&folder, "git log -1 --format=%s main"), "merged");
}

#[test]
fn branches_on_the_remote_are_deleted_only_if_all_of_them_is_merged() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, BRANCH);
    assert!(matches!(ground.repository().push_branch("task").unwrap_err(), GitError::NoRemote));
    let tip = ground.sh(&folder, "git rev-parse task");
    assert_eq!(
        ground.repository().delete_remote_branch("task", "t", Some(&tip)).unwrap(),
        RemoteBranchDeletion::NotThere
    );
    ground
        .sh(&folder, "git init -q --bare ../remote.git; git remote add origin ../remote.git; git push -q origin main");
    let repository = ground.repository();
    for _ in 0..2 {
        repository.push_branch("task").unwrap();
    }
    assert_eq!(ground.sh(&folder, "git rev-parse --abbrev-ref 'task@{upstream}'"), "origin/task");
    // Not merged at all, then only here, then there by a pull request that squashed it, then in the default branch.
    let stays = |tip: &str| RemoteBranchDeletion::Stays { remote: "origin".to_owned(), tip: tip.to_owned() };
    for merged in [None, Some(tip.as_str())] {
        assert_eq!(repository.delete_remote_branch("task", "t", merged).unwrap(), stays(&tip));
    }
    ground.sh(&ground.path(""), "git clone -q -b main remote.git forge; cd forge; git config user.name t; git config user.email t@t; git merge -q --squash origin/task; git commit -qm squashed; echo y > y; git add y; git commit -qm y; git push -q origin main");
    assert_eq!(repository.delete_remote_branch("task", "t", None).unwrap(), stays(&tip));
    assert_eq!(repository.delete_remote_branch("task", "t", Some(&tip)).unwrap(), RemoteBranchDeletion::Deleted);
    assert_eq!(repository.delete_remote_branch("task", "t", Some(&tip)).unwrap(), RemoteBranchDeletion::NotThere);
    assert!(matches!(repository.delete_remote_branch("main", "t", None).unwrap_err(), GitError::DefaultBranch { .. }));
    repository.push_branch("task").unwrap();
    ground.sh(&folder, "git pull -q --ff-only origin main; git merge -q -m merged task; git push -q origin main");
    assert_eq!(repository.delete_remote_branch("task", "t", None).unwrap(), RemoteBranchDeletion::Deleted);
    assert!(matches!(repository.push_branch("none").unwrap_err(), GitError::NoBranch { .. }));
    // Someone else pushed to it: that stays.
    repository.push_branch("task").unwrap();
    let theirs = ground.sh(&ground.path(""), "git clone -q -b task remote.git theirs; cd theirs; git config user.name t; git config user.email t@t; echo t > theirs; git add theirs; git commit -qm theirs; git push -q origin task; git rev-parse HEAD");
    assert_eq!(repository.delete_remote_branch("task", "t", None).unwrap(), stays(&theirs));
    assert_eq!(repository.delete_remote_branch("task", "t", Some(&tip)).unwrap(), stays(&theirs));
    assert_eq!(ground.sh(&ground.path("remote.git"), "git branch --format='%(refname:short)'"), "main\ntask");
    // A push over another's commits is refused.
    ground.sh(&folder, "git checkout -q task; git commit -q --amend -m other; git checkout -q main");
    let error = repository.push_branch("task").unwrap_err().to_string();
    assert!(error.contains("`origin` did not take `task`") && error.contains("rejected"), "{error}");
}

#[test]
fn a_branch_without_a_commit_of_its_own_is_not_merged() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    // As it was made; moved to what others have done; with a commit that was thrown away again.
    for script in [
        "git branch task",
        "echo m > m; git add m; git commit -qm m; git branch -f task",
        "git checkout -q task; echo t > t; git add t; git commit -qm t; git reset -q --hard main; git checkout -q main",
        "git config core.logAllRefUpdates false; rm -r .git/logs",
    ] {
        ground.sh(&folder, script);
        let error = merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap_err();
        assert!(matches!(error, GitError::NothingToMerge { .. }), "{script}: {error}");
        let page = include_str!("../../../../docs/refusals/nothing_to_merge.md");
        assert!(page.contains(&format!("Merge not allowed: {error}\n")), "{error}");
    }
    // Merged by hand, with a merge commit: that can be seen.
    ground.sh(&folder, &format!("git branch -d task; {BRANCH}; git merge -q --no-ff -m by-hand task"));
    assert_eq!(merge(&ground.repository(), &request(MergeStrategy::Auto, false)).unwrap().how, MergeMethod::Already);
}

#[test]
fn exactly_the_commit_that_was_asked_for_is_merged() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, BRANCH);
    let judged = ground.sh(&folder, "git rev-parse task");
    ground.sh(
        &folder,
        "git checkout -q task; echo later > later; git add later; git commit -qm later; git checkout -q main",
    );
    let asked = MergeRequest { commit: Some(&judged), ..request(MergeStrategy::Auto, false) };
    let merged = merge(&ground.repository(), &asked).unwrap();
    assert_eq!((merged.work.clone(), merged.commit), (Some(judged.clone()), judged));
    let left = left(&ground.repository(), "task", merged.work.as_deref().unwrap_or_default()).unwrap();
    assert_eq!(left.as_deref(), Some("`task` has commits that were not merged (1); they stay there"));
    assert_eq!(log(&ground), "x\nstart");
    assert_eq!(ground.sh(&folder, "git log -1 --format=%s task"), "later");
}

#[test]
fn two_merges_at_once_both_stand() {
    let ground = Ground::new();
    ground.sh(&ground.repository_folder(), "for n in 1 2 3; do git checkout -q -b task-$n main; echo $n > f-$n; git add f-$n; git commit -qm $n; done; git checkout -q --detach main");
    let repository = Repository::open(ground.git(), &ground.repository_folder(), Some("main")).unwrap();
    std::thread::scope(|scope| {
        let one = |branch: &'static str| {
            let repository = &repository;
            scope.spawn(move || merge(repository, &MergeRequest { branch, ..MergeRequest::default() }))
        };
        for thread in [one("task-1"), one("task-2"), one("task-3")] {
            thread.join().unwrap().unwrap();
        }
    });
    assert_eq!(ground.sh(&ground.repository_folder(), "git ls-tree --name-only main | grep f-"), "f-1\nf-2\nf-3");
}

#[test]
fn nothing_in_the_repositorys_own_configuration_decides_what_a_merge_makes() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    let both = "printf '*.txt merge=own\n*.bin merge=union\n' > .gitattributes; printf 'a\n' > list.bin";
    ground.sh(&folder, &format!("{both}; git add -A; git commit -qm both; git checkout -q -b task; sed -i s/one/ONE/ a.txt; echo t >> list.bin; git commit -qam t; git checkout -q main; sed -i s/three/THREE/ a.txt; echo m >> list.bin; git commit -qam m"));
    ground.sh(&folder, "git config merge.own.driver 'echo evil > %A'; git config merge.default own; echo '* merge=own' > .git/info/attributes");
    for strategy in [MergeStrategy::Squash, MergeStrategy::Rebase, MergeStrategy::MergeCommit] {
        let start = ground.sh(&folder, "git rev-parse main");
        let done = merge(&ground.repository(), &request(strategy, false)).unwrap();
        assert_eq!(ground.sh(&folder, "git cat-file -p main:a.txt"), "ONE\ntwo\nTHREE", "{strategy:?}");
        assert_eq!(ground.sh(&folder, "git cat-file -p main:list.bin"), "a\nm\nt", "{strategy:?}");
        assert!(done.notes[0].starts_with("the merge driver `own` stands only in the repository's own"), "{done:?}");
        assert!(!folder.join(".git/sluice/merge.git").exists());
        ground.sh(&folder, &format!("git reset -q --hard {start}"));
    }
    // The person's own configuration counts, also where the repository has another driver of the same name.
    ground.sh(&folder, "git config --global merge.own.driver 'echo person > %A'");
    let done = merge(&ground.repository(), &request(MergeStrategy::MergeCommit, false)).unwrap();
    assert_eq!(ground.sh(&folder, "git cat-file -p main:a.txt"), "person");
    assert_eq!(done.notes, Vec::<String>::new());
}

#[test]
fn a_partial_and_a_shallow_clone_are_merged_too() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(&folder, "git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true; git checkout -q -b task; sed -i s/one/ONE/ a.txt; git commit -qam t; git checkout -q main; sed -i s/three/THREE/ a.txt; git commit -qam m");
    for how in ["--filter=blob:none", "--depth=2"] {
        let clone = ground.path(how.trim_start_matches('-'));
        ground.sh(
            &folder,
            &format!(
                "git clone -q --no-single-branch {how} file://$PWD {0}; git -C {0} branch -q task origin/task",
                clone.display()
            ),
        );
        let repository = Repository::open(ground.git(), &clone, None).unwrap();
        merge(&repository, &MergeRequest { branch: "task", local: true, ..MergeRequest::default() }).unwrap();
        assert_eq!(ground.sh(&clone, "git cat-file -p main:a.txt"), "ONE\ntwo\nTHREE", "{how}");
    }
}
