//! Work at risk, times what can be done to it: kept first, and brought back byte for byte.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sluice_os::lock::FileLock;
use sluice_os::workspace::{
    BranchDeletion, KeepKind, KeepRef, LeftoverKind, RestoreTarget, WorkspacePool, leftovers, remove_leftover,
};

use crate::ground::{Ground, binding, name};

/// What an agent leaves behind, and what is kept of it.
const CASES: &[(&str, &str, &str)] = &[
    ("nothing", "true", ""),
    ("only ignored files", "mkdir ignored; echo x > ignored/x; echo y > y.log", ""),
    ("only commits on the branch", "echo x > x; git add x; git commit -qm x", ""),
    ("a change", "echo four >> a.txt", "Unstaged"),
    ("a staged change", "echo four >> a.txt; git add a.txt", "Staged"),
    ("staged and changed again", "echo four >> a.txt; git add a.txt; echo five >> a.txt", "Staged Unstaged"),
    ("staged and undone on disk", "echo four >> a.txt; git add a.txt; git show HEAD:a.txt > a.txt", "Staged Unstaged"),
    ("a removed file", "rm a.txt", "Unstaged"),
    ("a staged removal", "git rm -q a.txt dir/b.txt", "Staged"),
    ("removed from the index only", "git rm -q --cached a.txt", "Staged Untracked"),
    ("a staged rename", "git mv a.txt renamed.txt; echo more >> renamed.txt", "Staged Unstaged"),
    ("untracked files", "echo x > x; mkdir -p new/deep; echo y > new/deep/y; : > empty", "Untracked"),
    ("intent to add", "echo x > x; git add -N x", "Unstaged"),
    (
        "modes",
        "chmod 755 a.txt; chmod 644 run.sh; echo s > secret; chmod 600 secret; echo r > ro; chmod 444 ro",
        "Unstaged Untracked",
    ),
    (
        "symlinks",
        "rm link; ln -s dir/b.txt link; ln -s nowhere dangling; ln -s dir folder-link; rm a.txt; ln -s /dev/null a.txt",
        "Unstaged Untracked",
    ),
    ("a symlink becomes a file", "rm link; echo file > link", "Unstaged"),
    ("a file becomes a folder", "rm a.txt; mkdir a.txt; echo x > a.txt/x", "Unstaged Untracked"),
    ("a folder becomes a file", "rm -r dir; echo x > dir", "Unstaged Untracked"),
    ("a staged file becomes a folder", "git rm -q a.txt; mkdir a.txt; echo x > a.txt/x; git add a.txt", "Staged"),
    (
        "bytes",
        "printf '\\000\\377\\r\\n\\r' > bytes; printf '\\001' >> image.bin; printf 'no newline' > a.txt",
        "Unstaged Untracked",
    ),
    (
        "hostile names",
        r#"
        for n in "new
line" 'quo"te' "apo'stroph" 'back\slash' 'tab	tab' '-rf' ' space ' '$(touch pwned)' ';' '*' 'käse' '日本' '.hidden' "$(printf 'carriage\r')" "$(printf 'latin\344')" 'a => b' '"both"'; do
            echo "$n" > "./$n"; mkdir -p "in/$n"; echo "$n" > "in/$n/$n"; ln -s "$n" "./to $n"
        done
        git add -- '-rf' 'in/*'"#,
        "Staged Untracked",
    ),
    (
        "CRLF converted",
        r#"
        git config core.autocrlf true; rm $(git rev-parse --git-path index); git reset -q --hard
        printf 'a\r\nb\r\n' > crlf.txt; git add crlf.txt; git commit -qm crlf; rm crlf.txt; git checkout -q crlf.txt
        printf 'mixed\r\nlines\n' > mixed.txt; printf 'lf\nonly\n' > lf.txt; printf 'x\r\ny\n' >> crlf.txt; git add lf.txt"#,
        "Staged Unstaged Untracked",
    ),
    (
        "attributes and filters",
        r#"
        printf '*.up filter=up\n*.eol text eol=crlf\n' > .gitattributes
        git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'
        printf 'lower\n' > f.up; printf 'x\r\n' > f.eol; git add -A; git commit -qm filters
        printf 'MiXeD\n' > f.up; printf 'y\n' >> f.eol; printf 'New\n' > g.up"#,
        "Unstaged Untracked",
    ),
    ("a detached commit", "git checkout -q --detach; echo x > x; git add x; git commit -qm x", "Commits"),
    (
        "a detached commit and changes",
        "git checkout -q --detach; echo x > x; git add x; git commit -qm x; echo y > y; echo z >> x",
        "Unstaged Untracked Commits",
    ),
    (
        "a detached commit that was left",
        "git checkout -q --detach; echo x > x; git add x; git commit -qm x; git checkout -q task",
        "Commits",
    ),
    (
        "a renamed branch and changes",
        "git branch -m better; echo x > x; git add x; git commit -qm x; echo y >> x",
        "Unstaged",
    ),
    (
        "a deleted branch",
        "echo x > x; git add x; git commit -qm x; git checkout -q --detach; git branch -qD task",
        "Commits",
    ),
    (
        "a merge in conflict",
        r#"
        git checkout -q -b other; echo theirs > a.txt; echo new > theirs; git add -A; git commit -qm theirs
        git checkout -q task; echo ours > a.txt; git commit -qam ours; ! git merge -q other
        echo resolving >> a.txt; echo note > note"#,
        "Staged Untracked Conflict",
    ),
    (
        "one side removed",
        r#"
        git checkout -q -b other; git rm -q a.txt; git commit -qm theirs
        git checkout -q task; echo ours > a.txt; git commit -qam ours; ! git merge -q other"#,
        "Conflict",
    ),
    (
        "a merge that is resolved and not committed",
        r#"
        git checkout -q -b other; echo theirs > a.txt; git commit -qam theirs
        git checkout -q task; echo ours > a.txt; git commit -qam ours; ! git merge -q other; echo both > a.txt; git add a.txt"#,
        "Staged",
    ),
    (
        "a rebase in conflict",
        r#"
        git checkout -q -b other; echo theirs > a.txt; git commit -qam theirs
        git checkout -q task; echo x > x; git add x; git commit -qm first; echo ours > a.txt; git commit -qam ours
        ! git rebase -q other; echo resolving >> a.txt"#,
        "Conflict Commits",
    ),
    (
        "a rebase with changes put away",
        r#"
        git checkout -q -b other; echo theirs > a.txt; git commit -qam theirs
        git checkout -q task; echo ours > a.txt; git commit -qam ours; echo away >> dir/b.txt
        ! git rebase -q --autostash other"#,
        "Conflict Commits",
    ),
    (
        "a cherry-pick in conflict",
        r#"
        git checkout -q -b other; echo theirs > a.txt; git commit -qam theirs
        git checkout -q task; echo ours > a.txt; git commit -qam ours; ! git cherry-pick other"#,
        "Conflict",
    ),
    (
        "a revert in conflict",
        r#"
        echo one > a.txt; git commit -qam one; echo two > a.txt; git commit -qam two; ! git revert --no-edit HEAD~1"#,
        "Conflict",
    ),
    (
        "a stash that conflicts",
        r#"
        echo stashed > a.txt; git stash -q; echo ours > a.txt; git commit -qam ours; ! git stash pop -q"#,
        "Conflict",
    ),
    (
        "a branch without history",
        "git checkout -q --orphan fresh; git rm -qf a.txt; echo new > new; git add new; echo x > x",
        "Staged Untracked",
    ),
    ("no index", "rm $(git rev-parse --git-path index); echo x > x", "Staged Untracked"),
    (
        "a bisect",
        "echo x > x; git add x; git commit -qm x; git bisect start -q HEAD HEAD~1 >/dev/null 2>&1; echo y > y",
        "Untracked",
    ),
    (
        "ignored by rules that nobody committed",
        "echo '*.txt2' >> .gitignore; echo work > work.txt2; mkdir sub; echo more > sub/more.txt2",
        "Unstaged",
    ),
    (
        "another repository inside",
        r#"
        git init -q nested; cd nested; git config user.name N; git config user.email n@localhost
        echo n > n; git add n; git commit -qm n; echo dirty >> n"#,
        "Repository",
    ),
    (
        "another repository inside that was added",
        r#"
        git init -q nested; cd nested; git config user.name N; git config user.email n@localhost
        echo n > n; git add n; git commit -qm n; cd ..; git add nested 2>/dev/null"#,
        "Staged Repository",
    ),
    (
        "another repository inside that was committed",
        r#"
        git init -q nested; cd nested; git config user.name N; git config user.email n@localhost
        echo n > n; git add n; git commit -qm n; cd ..; git add -A 2>/dev/null; git commit -qm link"#,
        "Repository",
    ),
    (
        "another repository inside that was committed and went on",
        r#"
        git init -q nested; cd nested; git config user.name N; git config user.email n@localhost
        echo n > n; git add n; git commit -qm n; cd ..; git add -A 2>/dev/null; git commit -qm link
        cd nested; echo more > more; git add more; git commit -qm more; echo dirty >> n; echo loose > loose"#,
        "Repository",
    ),
    (
        "files where git takes a folder for another repository",
        r#"
        git init -q nested; cd nested; git config user.name N; git config user.email n@localhost
        echo n > n; git add n; git commit -qm n; cd ..; git add -A 2>/dev/null; git commit -qm link; rm -rf nested/.git"#,
        "Repository",
    ),
    (
        "files that only the branch ignores",
        r#"
        printf 'secret/\n*.key\n' >> .gitignore; git commit -qam rules
        mkdir -p secret dir/deep; echo s > secret/s; echo k > dir/deep/a.key; echo k > b.key"#,
        "Ignored",
    ),
    (
        "a file that the branch ignores and the default branch has",
        r#"
        git rm -q --cached a.txt dir/b.txt; printf '/a.txt\n/dir\n' >> .gitignore; git commit -qam untracked
        echo mine > a.txt; rm -r dir; echo mine > dir"#,
        "Ignored",
    ),
    (
        "files that only the branch ignores, and changes",
        r#"
        printf 'secret/\n' >> .gitignore; git commit -qam rules; mkdir secret; echo s > secret/s; echo four >> a.txt"#,
        "Unstaged",
    ),
    (
        "an old lock of a killed git",
        "echo x > x; f=$(git rev-parse --git-path index.lock); : > $f; touch -d '1 minute ago' $f",
        "Untracked",
    ),
    ("many files", "i=0; while [ $i -lt 200 ]; do echo $i > file-$i; i=$((i+1)); done", "Untracked"),
];

fn run(
    case: &(&str, &str, &str),
    act: impl Fn(&WorkspacePool) -> Option<KeepRef>,
    after: impl Fn(&Ground, &WorkspacePool, &Path, &str),
) {
    let (title, script, expected) = case;
    let ground = Ground::new();
    let pool = ground.pool();
    let acquired = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap();
    fs::write(acquired.folder.join("TASK.md"), "---\nid: t-1\n---\n").unwrap();
    ground.sh(&acquired.folder, script);
    let branches = ground.sh(&ground.repository_folder(), "git for-each-ref refs/heads refs/tags refs/stash");
    let before = ground.picture(&acquired.folder);
    let kept = act(&pool);
    let what = kept.iter().flat_map(|it| &it.what).map(|it| format!("{it:?}")).collect::<Vec<_>>().join(" ");
    assert_eq!(&what, expected, "{title}");
    let now = ground.sh(&ground.repository_folder(), "git for-each-ref refs/heads refs/tags refs/stash");
    assert_eq!(now, branches, "{title}: no branch is touched");
    if let Some(kept) = kept {
        let folder = ground.path("restored");
        pool.restore("t-1", kept.number, &RestoreTarget::Folder(folder.clone()))
            .unwrap_or_else(|error| panic!("{title}: {error}"));
        let restored = ground.picture(&folder);
        // The file of a task goes along with changes; it is in the home anyway.
        let before = if what == "Ignored" { without_task_file(&before) } else { before };
        assert!(restored == before, "{title}: before\n{before}\nafter\n{restored}");
    }
    ground.sh(&ground.repository_folder(), "git fsck --connectivity-only 2>&1");
    after(&ground, &pool, &acquired.folder, title);
}

fn without_task_file(picture: &str) -> String {
    picture.lines().filter(|line| !line.starts_with("TASK.md")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn released_work_comes_back() {
    for case in CASES {
        run(
            case,
            |pool| pool.release(&name("1"), "t-1").unwrap(),
            |ground, pool, folder, title| {
                let mut state = pool.status(&name("1")).unwrap().unwrap();
                assert!(!state.dirty && state.binding.is_none(), "{title}: {state:?}");
                assert_eq!(state.commit, Some(ground.sh(&ground.repository_folder(), "git rev-parse main")), "{title}");
                assert!(!folder.join("TASK.md").exists(), "{title}");
                assert_eq!(folder.join("ignored").exists(), title == "only ignored files", "{title}");
                // The workspace can be lent again, and so can the branch.
                let branch = state.commit.take().map(|_| "next").unwrap();
                pool.acquire(&name("1"), &binding("t-2", branch), None)
                    .unwrap_or_else(|error| panic!("{title}: {error}"));
                assert_eq!(pool.release(&name("1"), "t-2").unwrap(), None, "{title}");
            },
        );
    }
}

#[test]
fn work_of_destroyed_workspaces_comes_back() {
    for case in CASES {
        run(
            case,
            |pool| pool.destroy(&name("1"), "t-1").unwrap(),
            |_, pool, folder, title| {
                assert!(!folder.exists(), "{title}");
                assert_eq!(pool.names().unwrap(), [], "{title}");
                assert_eq!(pool.destroy(&name("1"), "t-1").unwrap(), None, "{title}");
            },
        );
    }
}

#[test]
fn swept_work_comes_back() {
    for case in CASES {
        let sweep = |pool: &WorkspacePool| {
            assert_eq!(pool.made().unwrap(), [name("1")]);
            let at_risk = pool.at_risk(&name("1")).unwrap();
            let kept = pool.collect(&name("1")).unwrap();
            let what = kept.iter().flat_map(|kept| kept.what.clone()).filter(|it| *it != KeepKind::Ignored);
            assert_eq!(at_risk, what.collect::<Vec<_>>());
            kept
        };
        run(case, sweep, |_, pool, folder, title| {
            assert!(!folder.exists(), "{title}");
            assert!(pool.made().unwrap().is_empty(), "{title}");
        });
    }
}

#[test]
fn changes_that_git_was_told_not_to_see_come_back() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        for how in ["release", "destroy", "collect"] {
            let ground = Ground::new();
            let pool = ground.pool();
            let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
            ground
                .sh(&folder, &format!("git update-index {flag} a.txt run.sh image.bin; echo mine > a.txt; rm run.sh"));
            assert_eq!(ground.sh(&folder, "git status --porcelain"), "", "{flag}: git sees nothing");
            let kept = match how {
                "release" => pool.release(&name("1"), "t-1").unwrap(),
                "destroy" => pool.destroy(&name("1"), "t-1").unwrap(),
                _ => pool.collect(&name("1")).unwrap(),
            };
            let restored = ground.path("restored");
            pool.restore("t-1", kept.unwrap().number, &RestoreTarget::Folder(restored.clone())).unwrap();
            assert_eq!(fs::read_to_string(restored.join("a.txt")).unwrap(), "mine\n", "{flag}, {how}");
            // The next task starts from what is committed, and git sees what it does.
            let next = pool.acquire(&name("1"), &binding("t-2", "next"), None).unwrap().folder;
            assert_eq!(fs::read_to_string(next.join("a.txt")).unwrap(), "one\ntwo\nthree\n", "{flag}, {how}");
            assert!(next.join("run.sh").exists(), "{flag}, {how}");
            assert_eq!(ground.sh(&next, "echo x >> a.txt; git status --porcelain"), " M a.txt", "{flag}, {how}");
        }
    }
}

#[test]
fn a_task_md_of_the_project_stays_the_projects() {
    let ground = Ground::new();
    ground.sh(&ground.repository_folder(), "echo project > TASK.md; git add TASK.md; git commit -qm theirs");
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    let file = sluice_os::workspace::task_file(&folder);
    assert_eq!(file, folder.join(".sluice-task.md"));
    fs::write(&file, "the task's").unwrap();
    assert!(!pool.status(&name("1")).unwrap().unwrap().dirty);
    // What is done to the project's file is work.
    fs::write(folder.join("TASK.md"), "changed").unwrap();
    assert!(pool.status(&name("1")).unwrap().unwrap().dirty);
    let kept = pool.release(&name("1"), "t-1").unwrap().unwrap();
    assert!(!file.exists() && fs::read_to_string(folder.join("TASK.md")).unwrap() == "project\n");
    let restored = ground.path("restored");
    pool.restore("t-1", kept.number, &RestoreTarget::Folder(restored.clone())).unwrap();
    assert_eq!(fs::read_to_string(restored.join("TASK.md")).unwrap(), "changed");
    ground.sh(&ground.repository_folder(), "git rm -q TASK.md; git commit -qm gone");
    pool.acquire(&name("1"), &binding("t-2", "next"), None).unwrap();
    assert_eq!(sluice_os::workspace::task_file(&folder), folder.join("TASK.md"));
}

#[test]
fn a_removed_folder_loses_what_was_in_it_and_nothing_else() {
    // The files are gone with the folder; commits and what was staged are not.
    for (title, script, expected) in [
        ("commits", "git checkout -q --detach; echo x > x; git add x; git commit -qm x", "Commits"),
        ("staged", "echo x > x; git add x; echo four >> a.txt; git add a.txt; git rm -q dir/b.txt", "Staged"),
        ("nothing", "echo lost > lost", ""),
    ] {
        for how in ["release", "destroy", "collect", "acquire"] {
            let ground = Ground::new();
            let pool = ground.pool();
            let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
            ground.sh(&folder, script);
            let before = ground.picture(&folder);
            fs::remove_dir_all(&folder).unwrap();
            let kept = match how {
                "release" => pool.release(&name("1"), "t-1").unwrap(),
                "destroy" => pool.destroy(&name("1"), "t-1").unwrap(),
                "collect" => pool.collect(&name("1")).unwrap(),
                _ => pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().kept,
            };
            let what = kept.iter().flat_map(|it| &it.what).map(|it| format!("{it:?}")).collect::<Vec<_>>().join(" ");
            assert_eq!(what, expected, "{title}, {how}");
            if let Some(kept) = kept {
                let restored = ground.path("restored");
                pool.restore("t-1", kept.number, &RestoreTarget::Folder(restored.clone())).unwrap();
                assert_eq!(ground.picture(&restored), before, "{title}, {how}");
            }
            assert_eq!(pool.names().unwrap().len(), usize::from(how == "acquire"), "{title}, {how}");
        }
    }
}

#[test]
fn deleted_branches_come_back() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    let refused = pool.delete_branch("task", "t-1").unwrap_err().to_string();
    assert!(refused.contains("is checked out in") && refused.contains("switch"), "{refused}");
    let tip = ground.sh(&folder, "echo x > x; git add x; git commit -qm x; git rev-parse HEAD");
    pool.release(&name("1"), "t-1").unwrap();
    let BranchDeletion::Kept(kept) = pool.delete_branch("task", "t-1").unwrap() else { panic!("not kept") };
    assert_eq!((kept.branch.as_deref(), kept.head.as_deref()), (Some("task"), Some(tip.as_str())));
    assert_eq!(pool.delete_branch("task", "t-1").unwrap(), BranchDeletion::NotThere);
    let restored = pool.restore("t-1", kept.number, &RestoreTarget::Branch("task".to_owned())).unwrap();
    assert_eq!(restored.commit, Some(tip.clone()));
    assert_eq!(ground.sh(&ground.repository_folder(), "git rev-parse task"), tip);
    // Reachable from elsewhere: nothing to keep. The same tip again: the keep that is there.
    ground.sh(&ground.repository_folder(), "git branch copy task");
    assert_eq!(pool.delete_branch("task", "t-1").unwrap(), BranchDeletion::Deleted);
    let BranchDeletion::Kept(copy) = pool.delete_branch("copy", "t-1").unwrap() else { panic!("not kept") };
    assert_eq!(copy, kept);
    assert_eq!(pool.kept().unwrap(), [kept]);
    for refused in ["main", "-D", "--all", "no such", ""] {
        let error = pool.delete_branch(refused, "t-1").unwrap_err().to_string();
        assert!(error.contains("default branch") || error.contains("cannot be the name"), "{error}");
    }
}

#[test]
fn a_release_that_was_broken_off_is_finished_by_the_next() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    ground.sh(&folder, "echo x > x; echo y > y; echo four >> a.txt; git add x");
    let before = ground.picture(&folder);
    // Killed after keeping: the same state is kept once.
    let first = pool.release(&name("1"), "t-1").unwrap().unwrap();
    let again = ground.path("again");
    pool.restore("t-1", first.number, &RestoreTarget::Folder(again.clone())).unwrap();
    assert_eq!(ground.picture(&again), before);
    pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap();
    ground.sh(&folder, "echo x > x; echo y > y; echo four >> a.txt; git add x");
    let second = pool.release(&name("1"), "t-1").unwrap().unwrap();
    assert_eq!(second, first);
    // Killed while removing files: what is left is kept too, and the first keep has everything.
    pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap();
    ground.sh(&folder, "echo y > y");
    let third = pool.release(&name("1"), "t-1").unwrap().unwrap();
    assert_eq!((third.number, pool.kept().unwrap().len()), (2, 2));
    // Killed while the folder was being removed.
    fs::create_dir_all(pool.root().join(".removed-7/dir")).unwrap();
    fs::write(pool.root().join("8.lock"), "").unwrap();
    fs::create_dir_all(pool.root().join("aside/t-9")).unwrap();
    let left = leftovers(pool.root());
    let kinds: Vec<LeftoverKind> = left.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [LeftoverKind::Removed, LeftoverKind::Lock, LeftoverKind::Empty], "{left:?}");
    // A process that is about to make the worktree has the lock.
    let held = FileLock::take(&pool.root().join("8.lock")).unwrap();
    assert!(!remove_leftover(pool.root(), &left[1]).unwrap());
    drop(held);
    assert!(left.iter().all(|it| remove_leftover(pool.root(), it).unwrap() && !it.path.exists()));
    assert!(leftovers(pool.root()).is_empty() && folder.exists());
}

#[test]
fn keeps_go_only_when_asked_and_old_enough() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t-1", "task"), None).unwrap().folder;
    ground.sh(&folder, "echo x > x");
    let kept = pool.release(&name("1"), "t-1").unwrap().unwrap();
    assert!(pool.repository().kept_bytes().unwrap() > 0);
    let prune = |age| pool.repository().prune_keeps(age, &[pool.root().to_owned()]).unwrap().len();
    assert_eq!(prune(Duration::from_secs(3600)), 0);
    assert_eq!(prune(Duration::ZERO), 1);
    assert_eq!(pool.repository().kept_bytes().unwrap(), 0);
    assert!(pool.kept().unwrap().is_empty());
    let error = pool.restore("t-1", kept.number, &RestoreTarget::Branch("b".to_owned())).unwrap_err();
    assert_eq!(error.to_string(), "nothing is kept as t-1/1; `sluice workspace list` shows what is kept");
}
