//! TASK.md on disk.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use sluice_os::taskfile::{LARGEST_FILE, read, write};

fn refusal(path: &Path, folder: &Path) -> String {
    read(path).unwrap_err().to_string().replace(folder.to_str().unwrap(), "")
}

#[test]
fn written_whole_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("TASK.md");
    write(&path, b"one").unwrap();
    assert_eq!(read(&path).unwrap(), b"one");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    write(&path, b"two").unwrap();
    assert_eq!(read(&path).unwrap(), b"two");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["TASK.md"], "no draft is left");
}

#[test]
fn what_is_no_file_of_its_own_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let outside = folder.join("outside");
    std::fs::write(&outside, "secret").unwrap();
    symlink(&outside, folder.join("link")).unwrap();
    std::fs::create_dir(folder.join("folder")).unwrap();
    let fifo = folder.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let large = std::fs::File::create(folder.join("large")).unwrap();
    large.set_len(LARGEST_FILE + 1).unwrap();

    insta::assert_snapshot!(refusal(&folder.join("missing"), folder), @"/missing is not there. The engine writes it anew with the task's next move, from the last body it read");
    insta::assert_snapshot!(refusal(&folder.join("link"), folder), @"/link is a symbolic link, and TASK.md must be a file of its own. Put a copy in its place");
    insta::assert_snapshot!(refusal(&folder.join("folder"), folder), @"/folder is a folder, not a file. Move it away");
    insta::assert_snapshot!(refusal(&fifo, folder), @"/fifo is something else, not a file. Move it away");
    insta::assert_snapshot!(refusal(&folder.join("large"), folder), @"/large is larger than 8 MiB. Shorten it: move what is long into a file of the repository");
    insta::assert_snapshot!(refusal(&outside.join("below"), folder), @"/outside/below cannot be read: Not a directory (os error 20). See that it and its folder belong to you");
    large.set_len(LARGEST_FILE).unwrap();
    assert_eq!(read(&folder.join("large")).unwrap().len() as u64, LARGEST_FILE);
}

#[test]
fn a_link_is_replaced_and_a_folder_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (outside, link) = (folder.path().join("outside"), folder.path().join("TASK.md"));
    std::fs::write(&outside, "theirs").unwrap();
    symlink(&outside, &link).unwrap();
    write(&link, b"ours").unwrap();
    assert_eq!(std::fs::read(&outside).unwrap(), b"theirs");
    assert_eq!(read(&link).unwrap(), b"ours");

    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    assert!(write(&taken, b"x").unwrap_err().to_string().ends_with("is a folder, not a file. Move it away"));
    let nowhere = folder.path().join("nowhere/TASK.md");
    assert!(write(&nowhere, b"x").unwrap_err().to_string().contains("cannot be written"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "no draft is left");
}

#[test]
fn readers_never_see_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("TASK.md");
    let (ones, twos) = (vec![b'1'; 300_000], vec![b'2'; 200_000]);
    write(&path, &ones).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for turn in 0..20 {
                write(&path, if turn % 2 == 0 { &twos } else { &ones }).unwrap();
            }
        });
        while !writer.is_finished() {
            let seen = read(&path).unwrap();
            assert!(seen == ones || seen == twos, "{} bytes", seen.len());
        }
    });
}
