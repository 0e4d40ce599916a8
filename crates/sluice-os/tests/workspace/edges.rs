//! Repositories that are unlike others: empty, bare, with submodules, with hooks, with locks held by others.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sluice_os::git::{Git, GitError, GitErrorFamily, Repository};
use sluice_os::passing::PassingError;
use sluice_os::workspace::{RestoreTarget, WorkspacePool};

use crate::ground::{Ground, binding, name};

#[test]
fn what_is_no_repository_or_has_no_commit_is_refused_with_the_way_out() {
    let ground = Ground::new();
    fs::create_dir(ground.path("plain")).unwrap();
    let error = Repository::open(ground.git(), &ground.path("plain"), None).unwrap_err();
    assert!(matches!(error, GitError::NoRepository { .. }) && error.to_string().contains("git init"), "{error}");
    assert_eq!(error.family(), GitErrorFamily::Refused);
    let error = Repository::open(ground.git(), &ground.path("nowhere"), None).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    let error = Repository::open(Git::default().with_program(Path::new("no-such-git")), &ground.path("plain"), None);
    assert!(matches!(error, Err(GitError::NoProgram { .. })));
    ground.sh(&ground.path("plain"), "git init -q -b main .");
    let repository = Repository::open(ground.git(), &ground.path("plain"), None).unwrap();
    let pool = WorkspacePool::new(repository, &ground.path("home"), "empty").unwrap();
    let error = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap_err();
    assert!(error.to_string().contains("make a first commit"), "{error}");
}

#[test]
fn a_git_that_cannot_look_has_not_said_that_there_is_no_repository() {
    let ground = Ground::new();
    let wrapper = ground.path("git");
    for (does, passes) in
        [("echo 'fatal: cannot open config: Too many open files' >&2; exit 128", true), ("kill -9 $$", false)]
    {
        ground.program(&wrapper, &format!("#!/bin/sh\n{does}\n"));
        let opened = Repository::open(ground.git().with_program(&wrapper), &ground.repository_folder(), None);
        let error = opened.unwrap_err();
        assert!(matches!(error, GitError::Failed { .. }), "{error}");
        assert_eq!(error.is_passing(), passes, "{error}");
    }
}

#[test]
fn a_bare_repository_and_a_folder_inside_one_will_do() {
    let ground = Ground::new();
    ground.sh(&ground.repository_folder(), "git clone -q --bare . ../bare.git; git config user.name x");
    let repository = Repository::open(ground.git(), &ground.path("bare.git"), None).unwrap();
    let pool = WorkspacePool::new(repository, &ground.path("home"), "bare").unwrap();
    let folder = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap().folder;
    ground.sh(&folder, "echo x > x");
    let before = ground.picture(&folder);
    let kept = pool.release(&name("1"), "t").unwrap().unwrap();
    pool.restore("t", kept.number, &RestoreTarget::Folder(ground.path("restored"))).unwrap();
    assert_eq!(ground.picture(&ground.path("restored")), before);
    let inside = Repository::open(ground.git(), &ground.repository_folder().join("dir"), None).unwrap();
    assert_eq!(inside.folder(), ground.repository_folder());
    let linked = Repository::open(ground.git(), &pool.folder(&name("1")), None).unwrap();
    assert_eq!(linked.common(), ground.path("bare.git"));
}

#[test]
fn the_default_branch_is_found() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    let found = |given| Repository::open(ground.git(), &folder, given).map(|it| it.default_branch().to_owned());
    assert_eq!(found(None).unwrap(), "main");
    ground.sh(&folder, "git branch -m trunk");
    assert_eq!(found(None).unwrap(), "trunk");
    ground.sh(&folder, "git branch release; git clone -q --bare . ../remote.git; git remote add origin ../remote.git; git fetch -q; git remote set-head origin release");
    assert_eq!(found(None).unwrap(), "release");
    assert_eq!(found(Some("trunk")).unwrap(), "trunk");
    assert!(found(Some("--all")).is_err());
}

#[test]
fn hooks_settings_and_the_environment_of_others_stay_outside() {
    let ground = Ground::new();
    // A hook that would spoil everything, signatures that cannot be made, a user without a name.
    ground.sh(
        &ground.repository_folder(),
        "mkdir -p .git/hooks
         for hook in pre-commit post-checkout reference-transaction post-index-change commit-msg; do
             printf '#!/bin/sh\ntouch %s/hook-ran\nexit 1\n' \"$PWD/..\" > .git/hooks/$hook; chmod +x .git/hooks/$hook
         done
         git config commit.gpgSign true; git config gpg.program false; git config --unset user.name; git config --unset user.email
         git config user.useConfigOnly true; git config core.autocrlf input; git config status.showUntrackedFiles no
         git config diff.renames copies; git config core.safecrlf true; git config status.relativePaths false",
    );
    let git = ground.git().with_environment("LANGUAGE", "de").with_environment("LC_ALL", "C");
    let repository = Repository::open(git, &ground.repository_folder(), None).unwrap();
    let pool = WorkspacePool::new(repository, &ground.path("home"), "coffee").unwrap();
    let folder = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap().folder;
    fs::write(folder.join("mixed"), "a\r\nb\n").unwrap();
    let kept = pool.release(&name("1"), "t").unwrap().unwrap();
    pool.restore("t", kept.number, &RestoreTarget::Branch("kept".to_owned())).unwrap();
    assert!(!ground.path("hook-ran").exists());
    assert_eq!(
        ground.sh(&ground.repository_folder(), "git show kept:mixed | od -c | head -1"),
        "0000000   a  \\r  \\n   b  \\n"
    );
    let name = ground.sh(&ground.repository_folder(), "git log -1 --format='%an <%ae>' kept");
    assert_eq!(name, "Sluice <sluice@localhost>");
}

#[test]
fn a_submodule_with_changes_keeps_everything_where_it_is() {
    let ground = Ground::new();
    ground.sh(
        &ground.repository_folder(),
        "git -c protocol.file.allow=always submodule --quiet add \"$PWD\" module; git commit -qm module",
    );
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap().folder;
    assert_eq!(pool.release(&name("1"), "t").unwrap(), None);
    pool.acquire(&name("1"), &binding("t", "task"), None).unwrap();
    ground.sh(
        &folder,
        "git -c protocol.file.allow=always submodule --quiet update --init; echo x >> module/a.txt; echo y > y",
    );
    for error in [pool.release(&name("1"), "t").unwrap_err(), pool.destroy(&name("1"), "t").unwrap_err()] {
        assert!(error.to_string().contains("the submodule module in"), "{error}");
    }
    assert_eq!(ground.sh(&folder, "tail -1 module/a.txt; cat y"), "x\ny");
    ground.sh(&folder, "git -C module checkout -q .");
    assert!(pool.release(&name("1"), "t").unwrap().is_some());
    // The repository of the submodule may have commits of its own; it is set aside, not deleted.
    assert_eq!(pool.destroy(&name("1"), "t").unwrap(), None);
    assert!(ground.repository_folder().join(".git/sluice/modules-coffee-1/module/HEAD").exists());
}

#[test]
fn files_that_cannot_be_read_or_never_stand_still_are_not_removed() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap().folder;
    // A filter that runs while git looks writes a file each time: what is kept is never what lies there.
    ground.sh(&folder, "git config filter.restless.clean 'cat; date +%N >> restless-log-of-changes'; echo '*.r filter=restless' > .gitattributes; echo x > x.r; git add .gitattributes x.r; echo y > x.r");
    let error = pool.release(&name("1"), "t").unwrap_err();
    assert!(matches!(error, GitError::Changing { .. }), "{error}");
    assert_eq!(error.family(), GitErrorFamily::Unavailable);
    assert_eq!(fs::read_to_string(folder.join("x.r")).unwrap(), "y\n");
    ground.sh(&folder, "git config --unset filter.restless.clean");
    assert!(pool.release(&name("1"), "t").unwrap().is_some());
}

#[test]
fn a_lock_that_another_git_holds_is_waited_for() {
    let ground = Ground::new();
    let pool = ground.pool();
    pool.init(&[name("1")]).unwrap();
    ground.sh(&ground.repository_folder(), "git clone -q --bare . ../remote.git; git -C ../remote.git branch theirs; git remote add origin ../remote.git; git fetch -q");
    // Setting the upstream writes the settings, which another holds: until the first try has failed.
    let lock = ground.repository_folder().join(".git/config.lock");
    fs::write(&lock, "").unwrap();
    let wrapper = ground.path("git");
    let script = r#"#!/bin/sh
case "$*" in *set-upstream-to*) if [ -e "LOCK" ]; then git "$@"; code=$?; rm "LOCK"; exit $code; fi ;; esac
exec git "$@"
"#;
    ground.program(&wrapper, &script.replace("LOCK", &lock.display().to_string()));
    let repository = Repository::open(ground.git().with_program(&wrapper), &ground.repository_folder(), None).unwrap();
    let pool = WorkspacePool::new(repository, &ground.path("home"), "coffee").unwrap();
    pool.acquire(&name("1"), &binding("t", "theirs"), None).unwrap();
    assert!(!lock.exists());
    assert_eq!(ground.sh(&pool.folder(&name("1")), "git rev-parse --abbrev-ref '@{upstream}'"), "origin/theirs");
}

#[test]
fn a_program_that_hangs_is_ended() {
    let ground = Ground::new();
    ground.sh(
        &ground.repository_folder(),
        "git remote add origin 'ext::sleep 600'; git config protocol.ext.allow always; git branch task",
    );
    let git = ground.git().with_limits(Duration::from_secs(60), Duration::from_millis(500));
    let repository = Repository::open(git, &ground.repository_folder(), None).unwrap();
    let error = repository.push_branch("task").unwrap_err();
    assert!(matches!(error, GitError::Late { .. }), "{error}");
    assert!(error.to_string().contains("did not end within"), "{error}");
}

#[test]
fn restoring_never_touches_what_is_there() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap().folder;
    ground.sh(&folder, "echo x > x; echo four >> a.txt; rm dir/b.txt");
    let kept = pool.release(&name("1"), "t").unwrap().unwrap();
    let restore = |target| pool.restore("t", kept.number, &target);
    let there = ground.path("there");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("precious"), "").unwrap();
    assert!(matches!(restore(RestoreTarget::Folder(there)).unwrap_err(), GitError::FolderThere { .. }));
    assert!(matches!(restore(RestoreTarget::Branch("main".into())).unwrap_err(), GitError::BranchThere { .. }));
    assert!(matches!(restore(RestoreTarget::Branch("-D".into())).unwrap_err(), GitError::BranchName { .. }));
    assert!(matches!(pool.restore("t", 99, &RestoreTarget::Branch("b".into())).unwrap_err(), GitError::NoKeep { .. }));
    // Twice is fine: the keep stays.
    for number in 0..2 {
        let restored =
            restore(RestoreTarget::FolderOnBranch(ground.path(&format!("r{number}")), format!("b{number}"))).unwrap();
        assert_eq!(ground.sh(&restored.folder.unwrap(), "git status --short"), " M a.txt\n D dir/b.txt\n?? x");
    }
    let restored = restore(RestoreTarget::Branch("all".into())).unwrap();
    assert_eq!(
        ground.sh(&ground.repository_folder(), "git show --format=%s --name-status all"),
        "Work kept for t\n\nM\ta.txt\nD\tdir/b.txt\nA\tx"
    );
    assert_eq!(restored.kept.task, "t");
}

#[test]
fn a_repository_with_longer_ids_will_do_and_a_pool_may_lie_anywhere() {
    let ground = Ground::new();
    let folder = ground.path("sha256");
    fs::create_dir(&folder).unwrap();
    ground.sh(
        &folder,
        "git init -q -b main --object-format=sha256 .; git config user.name t; git config user.email t@t
         echo a > a; echo b > b; git add -A; git commit -qm start",
    );
    let repository = Repository::open(ground.git(), &folder, None).unwrap();
    let pool = WorkspacePool::at(repository, &ground.path("runs")).unwrap();
    let run = name("0192f0c8-3b1e-7c3a-9d55-1f2e3d4c5b6a");
    let folder = pool.acquire(&run, &binding("r", "sluice/run-1"), None).unwrap().folder;
    ground.sh(
        &folder,
        "git checkout -q --detach; rm a; echo c >> b; git add b; git commit -qm c; echo d > d; echo e >> b",
    );
    let before = ground.picture(&folder);
    let kept = pool.destroy(&run, "r").unwrap().unwrap();
    pool.restore("r", kept.number, &RestoreTarget::Folder(ground.path("restored"))).unwrap();
    assert_eq!(ground.picture(&ground.path("restored")), before);
}

#[test]
fn a_repository_that_has_a_task_file_of_its_own_keeps_it() {
    let ground = Ground::new();
    ground.sh(&ground.repository_folder(), "echo theirs > TASK.md; git add -f TASK.md; git commit -qm theirs; git branch old; echo newer > TASK.md; git commit -qam newer");
    let pool = ground.pool();
    for (task, branch) in [("t-1", "task"), ("t-2", "old"), ("t-3", "task")] {
        let folder = pool.acquire(&name("1"), &binding(task, branch), None).unwrap().folder;
        let file = sluice_os::workspace::task_file(&folder);
        assert_eq!(file, folder.join(".sluice-task.md"));
        fs::write(&file, "the engine's").unwrap();
        assert!(!pool.status(&name("1")).unwrap().unwrap().dirty);
        assert_eq!(pool.release(&name("1"), task).unwrap(), None);
        assert_eq!(ground.sh(&folder, "cat TASK.md; git status --porcelain"), "newer");
        assert!(!file.exists());
    }
}

#[test]
fn what_is_lent_to_another_by_now_is_left_alone() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-2", "task"), None).unwrap().folder;
    ground.sh(&folder, "echo x > x");
    let before = ground.picture(&folder);
    assert_eq!(pool.release(&name("1"), "t-1").unwrap(), None);
    assert!(matches!(pool.destroy(&name("1"), "t-1").unwrap_err(), GitError::Bound { .. }));
    assert_eq!(ground.picture(&folder), before);
    assert_eq!(pool.release(&name("7"), "t-1").unwrap(), None);
    // A folder that is no worktree is not removed.
    fs::create_dir(pool.root().join("8")).unwrap();
    assert_eq!(pool.made().unwrap(), [name("1")]);
    assert_eq!(pool.collect(&name("8")).unwrap(), None);
    assert!(pool.root().join("8").exists());
}

#[test]
fn a_repository_made_over_the_workspace_is_moved_away() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap().folder;
    ground.sh(&folder, "rm .git; git init -q; echo x > x; git add x; git -c user.name=t -c user.email=t@t commit -qm mine; echo y >> a.txt");
    let kept = pool.release(&name("1"), "t").unwrap().unwrap();
    assert_eq!(format!("{:?}", kept.what), "[Unstaged, Untracked]");
    assert_eq!(ground.sh(&pool.root().join("aside/git-1"), "git log --format=%s"), "mine");
    assert!(!pool.status(&name("1")).unwrap().unwrap().dirty);
}

/// git waits for a writer of a pipe; in the place of a file that every checkout is known by, that would hold up all tasks.
#[test]
fn a_pipe_in_the_place_of_a_head_holds_up_nobody() {
    let ground = Ground::new();
    let folder = ground.repository_folder();
    ground.sh(
        &folder,
        "git worktree add -q --detach ../beside; mv .git/worktrees/beside/HEAD kept; mkfifo .git/worktrees/beside/HEAD",
    );
    let error = Repository::open(ground.git(), &folder, None).unwrap_err();
    assert!(error.to_string().contains("worktrees/beside/HEAD"), "{error}");
}
