//! A workspace that is given back: nothing that its task put into git's folder for it comes to the next, and what is damaged
//! there blocks no one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sluice_os::workspace::{RestoreTarget, WorktreeFurniture};

use crate::ground::{Ground, binding, name};

const OWN: &str = "git config extensions.worktreeConfig true; git config --worktree user.name Mallory; \
    git config --worktree core.hooksPath $PWD; \
    g=$(git rev-parse --absolute-git-dir); mkdir -p $g/hooks $g/info; echo x > $g/hooks/pre-commit; echo x > $g/info/attributes; \
    git update-ref refs/worktree/mine HEAD; echo x > $g/unknown; git sparse-checkout set --no-cone '/dir/'";

#[test]
fn settings_of_one_task_are_not_those_of_the_next() {
    for hands_on in [false, true] {
        let ground = Ground::new();
        let pool = ground.pool();
        let (one, first, second) = (name("1"), binding("t1", "t1"), binding("t2", "t2"));
        let folder = pool.acquire(&one, &first, None).unwrap().folder;
        let admin = ground.sh(&folder, "git rev-parse --absolute-git-dir");
        let entries = || {
            let entries = fs::read_dir(&admin).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
            let mut entries: Vec<String> = entries.collect();
            entries.sort();
            entries.retain(|name| !["ORIG_HEAD", "sluice"].contains(&name.as_str()));
            entries
        };
        let (before, files) = (entries(), ground.picture(&folder));
        ground.sh(&folder, OWN);
        if hands_on {
            assert!(pool.hand_on(&one, &first).unwrap());
        } else {
            pool.release(&one, "t1").unwrap();
        }
        pool.acquire(&one, &second, None).unwrap();
        assert_eq!(entries(), before);
        assert_eq!(ground.picture(&folder), files);
        let own = "git config user.name; git for-each-ref refs/worktree; git sparse-checkout list 2>&1 || true";
        assert_eq!(ground.sh(&folder, own).lines().next(), Some("Tester"), "{}", ground.sh(&folder, own));
        assert!(!ground.sh(&folder, own).contains("refs/worktree"));
    }
}

#[test]
fn a_damaged_index_or_head_blocks_no_workspace_and_loses_nothing() {
    for damage in ["echo garbage > $g/index", "echo garbage > $g/HEAD", "echo x > $g/index; : > $g/HEAD"] {
        let ground = Ground::new();
        let pool = ground.pool();
        let one = name("1");
        let folder = pool.acquire(&one, &binding("t1", "t1"), None).unwrap().folder;
        let made = "echo c > c.txt; git add c.txt; git commit -qm c; echo work > work.txt; echo more >> a.txt";
        ground.sh(&folder, &format!("{made}; g=$(git rev-parse --absolute-git-dir); {damage}"));
        let kept = pool.release(&one, "t1").unwrap().expect("what is not committed is kept");
        let show = format!("git show {0}:work.txt; git show {0}:a.txt | tail -1; git show t1:c.txt", kept.reference);
        assert_eq!(ground.sh(&ground.repository_folder(), &show), "work\nmore\nc", "{damage}");
        let next = pool.acquire(&one, &binding("t2", "t2"), None).unwrap();
        assert_eq!(
            ground.sh(&next.folder, "git status --porcelain; git branch --show-current; ls"),
            "t2\na.txt\ndir\nimage.bin\nlink\nrun.sh",
            "{damage}"
        );
    }
}

#[test]
fn commits_that_a_branch_of_ours_was_reset_from_are_kept_when_it_goes() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("r", "sluice/run-r"), None).unwrap().folder;
    ground.sh(
        &folder,
        "echo a > n; git add n; git commit -qm gone; git commit -q --amend -m amended; git reset -q --hard HEAD~1",
    );
    pool.destroy(&name("1"), "r").unwrap();
    pool.delete_branch("sluice/run-r", "r").unwrap();
    let kept = pool.kept().unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let show = format!("git show {0}:n; git log -1 --format=%s {0}^", kept[0].reference);
    assert_eq!(ground.sh(&ground.repository_folder(), &show), "a\namended");
    // Of one that only went on, nothing is kept.
    let folder = pool.acquire(&name("1"), &binding("s", "sluice/run-s"), None).unwrap().folder;
    ground.sh(&folder, "echo a > m; git add m; git commit -qm one; git commit -q --amend -m two; git switch -q --detach; git branch -f keeper sluice/run-s");
    pool.destroy(&name("1"), "s").unwrap();
    pool.delete_branch("sluice/run-s", "s").unwrap();
    assert_eq!(pool.kept().unwrap().len(), 1);
}

#[test]
fn folders_that_were_made_read_only_go_with_the_workspace() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t", "t"), None).unwrap().folder;
    ground.sh(&folder, "mkdir -p ignored/mod/cache; echo x > ignored/mod/cache/x; chmod -R a-w ignored; chmod 555 dir");
    pool.destroy(&name("1"), "t").unwrap();
    assert!(!folder.exists());
    // What an earlier removal could not remove goes later.
    let left = pool.root().join(".removed-1");
    fs::create_dir_all(left.join("cache")).unwrap();
    fs::write(left.join("cache/x"), "x").unwrap();
    fs::set_permissions(left.join("cache"), fs::Permissions::from_mode(0o555)).unwrap();
    for leftover in sluice_os::workspace::leftovers(pool.root()) {
        sluice_os::workspace::remove_leftover(pool.root(), &leftover).unwrap();
    }
    assert!(!left.exists());
}

#[test]
fn a_repository_inside_comes_back_from_a_checkout_that_stands() {
    let ground = Ground::new();
    let pool = ground.pool();
    let folder = pool.acquire(&name("1"), &binding("t", "t"), None).unwrap().folder;
    let made = "git init -q sub; cd sub; echo work > work.txt; git add .; \
                git -c user.name=T -c user.email=t@localhost commit -qm work; echo more > more.txt";
    ground.sh(&folder, made);
    let kept = pool.keep(&name("1"), "t").unwrap().unwrap();
    for _ in 0..2 {
        let place = ground.path("restored");
        pool.restore("t", kept.number, &RestoreTarget::Folder(place.clone())).unwrap();
        assert_eq!(ground.sh(&place.join("sub"), "cat work.txt more.txt; git log --format=%s"), "work\nmore\nwork");
        // It comes from where it was set aside, when the checkout is gone.
        ground.sh(&ground.repository_folder(), &format!("git worktree remove --force --force {}", place.display()));
        pool.release(&name("1"), "t").unwrap();
    }
}

#[test]
fn a_link_that_leads_out_in_place_of_a_copy_is_not_the_next_ones() {
    let ground = Ground::new();
    let pool = ground.pool();
    ground.sh(&ground.repository_folder(), "mkdir ignored; echo secret > ignored/env; echo s > ignored/other");
    let furniture = WorktreeFurniture { copy: vec!["ignored/env".to_owned()], link: vec!["ignored/other".to_owned()] };
    let folder = pool.acquire(&name("1"), &binding("t1", "t1"), None).unwrap().folder;
    furniture.bring(pool.repository(), &folder).unwrap();
    fs::write(ground.path("elsewhere"), "elsewhere").unwrap();
    ground.sh(&folder, &format!("rm ignored/env; ln -s {} ignored/env", ground.path("elsewhere").display()));
    pool.release(&name("1"), "t1").unwrap();
    let folder = pool.acquire(&name("1"), &binding("t2", "t2"), None).unwrap().folder;
    furniture.bring(pool.repository(), &folder).unwrap();
    assert_eq!(
        ground.sh(&folder, "test ! -L ignored/env; cat ignored/env; readlink ignored/other | xargs cat"),
        "secret\ns"
    );
}
