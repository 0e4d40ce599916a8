//! Lending workspaces: where the branch comes from, what stays as it is, what is mended, what is refused.

use std::collections::BTreeSet;
use std::fs;

use sluice_os::git::{GitError, Repository};
use sluice_os::workspace::{
    BranchDistance, RestoreTarget, WorkspaceHead, WorkspaceName, WorkspaceOrigin, WorkspacePool,
};

use crate::ground::{Ground, binding, name};

#[test]
fn a_branch_comes_from_here_from_the_remote_or_from_the_base() {
    let ground = Ground::new();
    ground.sh(
        &ground.repository_folder(),
        "git branch local; echo more > more; git add more; git commit -qm more; git tag base HEAD~1
         git clone -q --bare . ../remote.git; git remote add origin ../remote.git
         git -C ../remote.git branch theirs main; git fetch -q; git remote set-head origin main",
    );
    let pool = ground.pool();
    let main = ground.sh(&ground.repository_folder(), "git rev-parse main");
    let base = ground.sh(&ground.repository_folder(), "git rev-parse base");
    for (workspace, branch, from, origin, commit) in [
        ("1", "local", None, WorkspaceOrigin::Local, &base),
        ("2", "theirs", None, WorkspaceOrigin::Remote, &main),
        ("3", "new", None, WorkspaceOrigin::New, &main),
        ("4", "newer", Some("base"), WorkspaceOrigin::New, &base),
    ] {
        let acquired = pool.acquire(&name(workspace), &binding("t", branch), from).unwrap();
        assert_eq!((acquired.origin, &acquired.commit), (origin, commit), "{branch}");
        assert_eq!(ground.sh(&acquired.folder, "git branch --show-current"), branch);
        assert_eq!(acquired.folder, pool.root().join(workspace));
    }
    let upstream = pool.status(&name("2")).unwrap().unwrap().upstream;
    assert_eq!(upstream, Some(BranchDistance { from: "origin/theirs".into(), ahead: 0, behind: 0 }));
    // The remote's default branch is enough where there is no local one.
    ground.sh(&ground.repository_folder(), "git checkout -q --detach; git branch -qD main");
    assert_eq!(pool.acquire(&name("5"), &binding("t", "five"), None).unwrap().commit, main);
}

#[test]
fn asked_again_it_changes_nothing() {
    let ground = Ground::new();
    let pool = ground.pool();
    let same = binding("t-1", "task");
    let folder = pool.acquire(&name("1"), &same, None).unwrap().folder;
    for (title, script) in [
        ("changes", "echo x > x; echo y >> a.txt; git add x"),
        ("a commit", "git commit -qam work"),
        ("without a branch", "git checkout -q --detach; echo z > z"),
        (
            "back, and a rebase in conflict",
            "git checkout -q task; rm z; git checkout -q -b other HEAD~1; echo o > a.txt; git commit -qam o; git checkout -q task; ! git rebase -q other",
        ),
    ] {
        ground.sh(&folder, script);
        let before = ground.picture(&folder);
        let again = pool.acquire(&name("1"), &same, None).unwrap();
        assert_eq!((again.origin, again.kept), (WorkspaceOrigin::Bound, None), "{title}");
        assert_eq!(ground.picture(&folder), before, "{title}");
    }
    assert_eq!(pool.status(&name("1")).unwrap().unwrap().head, WorkspaceHead::Rebasing("task".to_owned()));
    let other = pool.acquire(&name("1"), &binding("t-2", "another"), None).unwrap_err();
    assert_eq!(other.to_string(), "the workspace 1 is bound to `task` of t-1; release it first");
    // TASK.md is excluded, once.
    pool.init(&[name("1"), name("2")]).unwrap();
    let exclude = fs::read_to_string(ground.repository_folder().join(".git/info/exclude")).unwrap();
    assert_eq!(exclude.lines().filter(|line| *line == "/TASK.md").count(), 1);
    fs::write(folder.join("TASK.md"), "x").unwrap();
    assert_eq!(ground.sh(&folder, "git status --porcelain TASK.md"), "");
}

#[test]
fn a_branch_that_the_agent_renamed_is_found() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-1", "sluice/t-1"), None).unwrap().folder;
    ground.sh(&folder, "git branch -m meaningful; echo x > x; git add x; git commit -qm x; echo y > y");
    assert_eq!(pool.branch(&name("1")).unwrap().as_deref(), Some("meaningful"));
    let state = pool.status(&name("1")).unwrap().unwrap();
    assert_eq!(state.default, Some(BranchDistance { from: "main".into(), ahead: 1, behind: 0 }));
    assert!(state.dirty);
    let again = pool.acquire(&name("1"), &binding("t-1", "meaningful"), None).unwrap();
    assert_eq!(again.origin, WorkspaceOrigin::Bound);
    assert_eq!(pool.status(&name("1")).unwrap().unwrap().binding, Some(binding("t-1", "meaningful")));
    assert!(folder.join("y").exists());
    let tree = pool.tree(&name("1")).unwrap();
    assert_eq!((tree.id, tree.changed), (ground.sh(&folder, "git rev-parse HEAD^{tree}"), vec!["y".to_owned()]));
    assert_eq!(tree.head, WorkspaceHead::Branch("meaningful".into()));
    assert!(matches!(pool.tree(&name("9")).unwrap_err(), GitError::NoWorkspace { .. }));
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_refused_with_the_way_out() {
    let ground = Ground::new();
    let pool = ground.pool();
    ground.sh(&ground.repository_folder(), "git checkout -q -b mine; git worktree add -q ../other -b theirs");
    for (branch, folder) in [("mine", ground.repository_folder()), ("theirs", ground.path("other"))] {
        let error = pool.acquire(&name("1"), &binding("t-1", branch), None).unwrap_err().to_string();
        let expected = format!(
            "the branch `{branch}` is checked out in {}; switch that checkout to another branch (`git switch --detach`), or, if the folder is gone, run `git worktree prune`",
            folder.display()
        );
        assert_eq!(error, expected);
    }
    pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap();
    ground.sh(&pool.folder(&name("1")), "git checkout -q -b x; echo x > a.txt; git commit -qam x; git checkout -q task; echo y > a.txt; git commit -qam y; ! git rebase -q x");
    let error = pool.acquire(&name("2"), &binding("t-2", "task"), None).unwrap_err();
    assert!(
        matches!(&error, GitError::BranchElsewhere { folder, .. } if *folder == pool.folder(&name("1"))),
        "{error}"
    );
    // Refused, and free for another.
    pool.acquire(&name("2"), &binding("t-2", "task-2"), None).unwrap();
}

#[test]
fn hostile_branches_are_refused_or_are_just_branches() {
    let ground = Ground::new();
    let pool = ground.pool();
    let long = "x".repeat(300);
    let id = ground.sh(&ground.repository_folder(), "git rev-parse HEAD");
    for branch in [
        "",
        "-",
        "-b",
        "--force",
        "--upload-pack=touch pwned",
        "a b",
        "a..b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        "a.lock",
        ".a",
        "a.",
        "@",
        "@{-1}",
        "a@{1}",
        "HEAD",
        "refs/heads/x",
        "a\nb",
        "a\0b",
        "a\x07",
        &long,
    ] {
        let error = pool.acquire(&name("1"), &binding("t", branch), None).unwrap_err();
        assert!(matches!(error, GitError::BranchName { .. }), "{branch:?}: {error}");
    }
    for (index, branch) in
        ["$(touch${IFS}pwned)", "`id`", "quo\"te", "apo'stroph", "käse/日本", "a;b", "a|b", "a&b", "%s", "main2"]
            .iter()
            .enumerate()
    {
        let workspace = WorkspaceName::numbered(u32::try_from(index).unwrap());
        let acquired = pool.acquire(&workspace, &binding("t", branch), None).unwrap();
        let head = ground.sh(&acquired.folder, "git symbolic-ref HEAD");
        assert_eq!(head, format!("refs/heads/{branch}"));
        assert_eq!(pool.release(&workspace, branch).unwrap(), None);
    }
    // A name that git could take for a commit.
    let odd = pool.acquire(&name("90"), &binding("t", &id), None);
    assert!(odd.is_err() || ground.sh(&pool.folder(&name("90")), "git symbolic-ref HEAD").ends_with(&id));
    // A branch below another, and a base that is none.
    let error = pool.acquire(&name("91"), &binding("t", "main/sub"), None).unwrap_err();
    assert!(error.to_string().contains("main"), "{error}");
    let error = pool.acquire(&name("92"), &binding("t", "fine"), Some("--output=pwned")).unwrap_err();
    assert!(matches!(error, GitError::NoCommit { .. }), "{error}");
    for workspace in ["", "..", "a/b", "aside", "-x", ".x", "a b", "1.lock"] {
        assert!(WorkspaceName::new(workspace).is_err(), "{workspace}");
    }
    assert!(!ground.repository_folder().join("pwned").exists());
}

#[test]
fn projects_of_hostile_names_and_tasks_have_their_own_places() {
    let ground = Ground::new();
    let long = "long ".repeat(1000);
    let names = ["coffee", "Coffee", "../../escape", "a/b", "a\"b'c", "new\nline", "日本", "", "$(touch pwned)", &long];
    let mut roots = BTreeSet::new();
    for (index, project) in names.iter().enumerate() {
        let pool = WorkspacePool::new(ground.repository(), &ground.path("home"), project).unwrap();
        assert_eq!(pool.root().parent(), Some(ground.path("home/workspaces").as_path()));
        assert!(roots.insert(pool.root().to_owned()), "{project:?} shares a folder");
        let branch = format!("branch-{index}");
        let folder = pool.acquire(&name("1"), &binding(project, &branch), None).unwrap().folder;
        ground.sh(&folder, "echo x > x");
        let kept = pool.release(&name("1"), project).unwrap().unwrap();
        assert_eq!(&kept.task, project);
        let restored = ground.path(&format!("restored-{index}"));
        pool.restore(
            project,
            kept.number,
            &RestoreTarget::FolderOnBranch(restored.clone(), format!("restored-{index}")),
        )
        .unwrap();
        assert_eq!(ground.sh(&restored, "git branch --show-current; cat x"), format!("restored-{index}\nx"));
    }
    assert_eq!(ground.pool().kept().unwrap().len(), names.len());
}

#[test]
fn what_was_moved_or_removed_by_hand_is_mended() {
    let ground = Ground::new();
    let pool = ground.pool();
    let same = binding("t-1", "task");
    let folder = pool.acquire(&name("1"), &same, None).unwrap().folder;
    ground.sh(&folder, "echo x > x; git add x");
    let before = ground.picture(&folder);
    // The link to the repository is gone, or leads nowhere.
    for script in ["rm .git", "echo 'gitdir: /nowhere/worktrees/1' > .git"] {
        ground.sh(&folder, script);
        assert_eq!(pool.acquire(&name("1"), &same, None).unwrap().origin, WorkspaceOrigin::Bound);
        assert_eq!(ground.picture(&folder), before);
    }
    // The home was moved.
    fs::rename(ground.path("home"), ground.path("house")).unwrap();
    let moved = WorkspacePool::new(ground.repository(), &ground.path("house"), "coffee").unwrap();
    let folder = moved.acquire(&name("1"), &same, None).unwrap().folder;
    assert_eq!(ground.picture(&folder), before);
    // The repository was moved.
    fs::rename(ground.repository_folder(), ground.path("elsewhere")).unwrap();
    let repository = Repository::open(ground.git(), &ground.path("elsewhere"), None).unwrap();
    let pool = WorkspacePool::new(repository, &ground.path("house"), "coffee").unwrap();
    assert_eq!(pool.acquire(&name("1"), &same, None).unwrap().origin, WorkspaceOrigin::Bound);
    assert_eq!(ground.picture(&folder), before);
    // The folder was removed: a new one, and what was staged is kept.
    fs::remove_dir_all(&folder).unwrap();
    let acquired = pool.acquire(&name("1"), &same, None).unwrap();
    assert_eq!((acquired.origin, acquired.kept.unwrap().task.as_str()), (WorkspaceOrigin::Local, "t-1"));
    // Something else is in the way: set aside, not deleted.
    let other = pool.folder(&name("2"));
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("precious"), "work").unwrap();
    let acquired = pool.acquire(&name("2"), &binding("t-2", "task-2"), None).unwrap();
    assert_eq!(fs::read_to_string(acquired.set_aside.unwrap().join("precious")).unwrap(), "work");
    // git forgot the worktree, whose files are still there.
    fs::write(acquired.folder.join("precious"), "more").unwrap();
    fs::remove_dir_all(ground.path("elsewhere").join(".git/worktrees")).unwrap();
    let acquired = pool.acquire(&name("2"), &binding("t-2", "task-2"), None).unwrap();
    assert_eq!(fs::read_to_string(acquired.set_aside.unwrap().join("precious")).unwrap(), "more");
}

#[test]
fn a_workspace_inside_another_repository_never_touches_that() {
    let ground = Ground::new();
    let home = ground.path("home");
    fs::create_dir(&home).unwrap();
    ground.sh(&home, "git init -q .; echo x > dotfile; git add dotfile; git -c user.name=x -c user.email=x@x commit -qm x; echo y >> dotfile; echo z > untracked");
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    ground.sh(&folder, "rm .git; echo w > w");
    let kept = pool.release(&name("1"), "t-1").unwrap().unwrap();
    assert_eq!(format!("{:?}", kept.what), "[Untracked]");
    assert_eq!(ground.sh(&home, "cat dotfile untracked"), "x\ny\nz");
}

#[test]
fn many_at_once_do_not_hinder_each_other() {
    let ground = Ground::new();
    let pool = ground.pool();
    std::thread::scope(|scope| {
        let one = |number: u32| {
            let (pool, ground) = (&pool, &ground);
            move || {
                let workspace = WorkspaceName::numbered(number);
                let task = format!("t-{number}");
                for round in 0..3 {
                    let branch = format!("task-{number}-{round}");
                    let folder = pool.acquire(&workspace, &binding(&task, &branch), None).unwrap().folder;
                    ground.sh(&folder, "echo x > x; git add x; git commit -qm x; echo y > y");
                    assert!(pool.release(&workspace, &task).unwrap().is_some());
                }
                pool.destroy(&workspace, &task).unwrap();
            }
        };
        let threads: Vec<_> = (1..=4).map(|number| scope.spawn(one(number))).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(pool.kept().unwrap().len(), 12);
    assert_eq!(pool.names().unwrap(), []);
}

#[test]
fn two_at_the_same_workspace_take_turns() {
    let ground = Ground::new();
    let pool = ground.pool();
    let results: Vec<bool> = std::thread::scope(|scope| {
        let one = |task: &'static str| {
            let pool = &pool;
            scope.spawn(move || pool.acquire(&name("1"), &binding(task, task), None).is_ok())
        };
        let threads = [one("t-1"), one("t-2")];
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|won| **won).count(), 1);
}
