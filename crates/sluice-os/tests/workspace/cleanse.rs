//! A workspace that is given back: nothing that its task put into git's folder for it comes to the next, and what is damaged
//! there blocks no one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::ground::{Ground, binding, name};

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
