//! Lending a workspace on: only one in which everything is in a commit of the task's branch, and then without a keep.

use crate::ground::{Ground, binding, name};

#[test]
fn what_is_not_all_in_a_commit_of_the_branch_is_not_lent_on() {
    let ground = Ground::new();
    let pool = ground.pool();
    let (one, task) = (name("1"), binding("t-1", "task"));
    let folder = pool.acquire(&one, &task, None).unwrap().folder;
    ground.sh(&folder, "echo work > work; git add work; git commit -qm work; echo mine > TASK.md");
    assert!(pool.is_spotless(&one, &task).unwrap());
    for (mess, clean) in [
        ("echo x > x", "rm x"),
        ("echo x >> work", "git checkout -q work"),
        ("rm work", "git checkout -q work"),
        ("echo x >> work; git add work", "git reset -q --hard"),
        (
            "git update-index --skip-worktree work; echo x >> work",
            "git update-index --no-skip-worktree work; git checkout -q work",
        ),
        ("git checkout -q --detach", "git checkout -q task"),
        ("git checkout -q -b other", "git checkout -q task; git branch -qD other"),
        (
            "git checkout -q --detach; echo y > y; git add y; git commit -qm lost; git checkout -q task",
            "git tag found HEAD@{1}",
        ),
        ("git init -q in; echo x > in/x", "rm -rf in"),
        ("git bisect start -q", "git bisect reset"),
        (": > \"$(git rev-parse --git-dir)/index.lock\"", "rm \"$(git rev-parse --git-dir)/index.lock\""),
        ("echo hidden > .gitignore; git add .gitignore; git commit -qm rules; echo x > hidden", "rm hidden"),
    ] {
        ground.sh(&folder, mess);
        let before = ground.picture(&folder);
        assert!(!pool.is_spotless(&one, &task).unwrap_or(false), "{mess}");
        assert!(!pool.hand_on(&one, &task).unwrap_or(false), "{mess}");
        assert!(ground.picture(&folder) == before, "{mess}");
        ground.sh(&folder, clean);
        assert!(pool.is_spotless(&one, &task).unwrap(), "{clean}");
    }
    // Nor is one that another task has.
    assert!(!pool.is_spotless(&one, &binding("t-2", "task")).unwrap());
    assert!(!pool.hand_on(&one, &binding("t-2", "task")).unwrap());
}

#[test]
fn what_is_lent_on_leaves_no_keep_and_is_taken_up_at_the_same_commit() {
    let ground = Ground::new();
    let pool = ground.pool();
    let (one, first, second) = (name("1"), binding("t-1", "first"), binding("t-2", "second"));
    let folder = pool.acquire(&one, &first, None).unwrap().folder;
    let commit = ground
        .sh(&folder, "echo work > work; git add work; git commit -qm work; echo mine > TASK.md; git rev-parse HEAD");
    assert!(pool.hand_on(&one, &first).unwrap());
    assert!(pool.kept().unwrap().is_empty());
    assert!(!folder.join("TASK.md").exists());
    // Asked again it has nothing to give back.
    assert!(!pool.hand_on(&one, &first).unwrap());
    pool.acquire(&one, &second, None).unwrap();
    assert!(!folder.join("work").exists());
    assert!(pool.hand_on(&one, &second).unwrap());
    ground.sh(&ground.repository_folder(), "git branch -qD first");
    let again = pool.acquire(&one, &first, Some(&commit)).unwrap();
    assert_eq!(
        (again.commit, ground.sh(&folder, "git branch --show-current; cat work")),
        (commit, "first\nwork".to_owned())
    );
}
