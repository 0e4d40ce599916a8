//! What an agent does outside its workspace is seen, and what it does inside is not taken for it.

use sluice_os::leak::CheckoutSnapshot;

use crate::ground::{Ground, binding, name};

#[test]
fn what_changes_in_the_main_checkout_is_told() {
    for (script, expected) in [
        ("true", ""),
        ("touch a.txt; git status -s", ""),
        ("echo x > x", "files of the main checkout changed: x"),
        ("echo more >> dirty", "files of the main checkout changed: dirty"),
        ("echo x >> a.txt", "files of the main checkout changed: a.txt"),
        (
            "echo x >> a.txt; git add a.txt",
            "the index of the main checkout changed|files of the main checkout changed: a.txt",
        ),
        ("echo x >> a.txt; git stash -q", "the list of stashes went from 0 to 1 entries"),
        ("git checkout -q -b other", "the main checkout went from `main` to `other`"),
        ("git checkout -q --detach", "the main checkout went from `main` to no branch"),
        (
            "i=0; while [ $i -lt 12 ]; do echo > n-$i; i=$((i+1)); done",
            "files of the main checkout changed: n-0, n-1, n-10, n-11, n-2, n-3, n-4, n-5, n-6, n-7 and 2 more",
        ),
    ] {
        let ground = Ground::new();
        ground.sh(&ground.repository_folder(), "echo dirty > dirty");
        let repository = ground.repository();
        let before = CheckoutSnapshot::take(&repository);
        ground.sh(&ground.repository_folder(), script);
        assert_eq!(before.difference(&CheckoutSnapshot::take(&repository)).join("|"), expected, "{script}");
    }
    let ground = Ground::new();
    let before = CheckoutSnapshot::take(&ground.repository());
    ground.sh(&ground.repository_folder(), "echo x >> a.txt; git commit -qam x");
    let found = before.difference(&CheckoutSnapshot::take(&ground.repository()));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("HEAD of the main checkout went from "), "{found:?}");
}

#[test]
fn work_in_a_workspace_is_no_leak_and_nothing_ever_fails() {
    let ground = Ground::new();
    let pool = ground.pool();
    let repository = ground.repository();
    let before = CheckoutSnapshot::take(&repository);
    let folder = pool.acquire(&name("1"), &binding("t", "task"), None).unwrap().folder;
    ground.sh(&folder, "echo x > x; git add x; git commit -qm x; echo y > y");
    pool.release(&name("1"), "t").unwrap();
    assert_eq!(before.difference(&CheckoutSnapshot::take(&repository)), [""; 0]);
    std::fs::remove_dir_all(ground.repository_folder()).unwrap();
    let after = CheckoutSnapshot::take(&repository);
    assert_eq!(after.difference(&after), [""; 0]);
    // What cannot be looked at says nothing about who wrote there.
    assert_eq!(before.difference(&after), [""; 0]);
}
