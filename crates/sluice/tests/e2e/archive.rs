//! A folder as text, so that a home of a released engine can be kept beside the code and its differences can be read:
//! the files one after another, and a store as the SQL that makes it again.

use std::fmt::Write as _;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// What is not worth keeping: what belongs to a process, what the engine makes anew at its start, the program, and what
/// stands in the store's own file.
const LEFT_OUT: [&str; 6] = ["sluice", "home/engine.lock", "home/start.lock", "home/bin", "home/logs", "home/store.db"];

/// The files below a folder, with their modes, as one text.
pub(crate) fn pack(root: &Path) -> String {
    let mut text = String::new();
    for path in below(root) {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        let about = path.symlink_metadata().unwrap();
        let mode = about.permissions().mode() & 0o777;
        let is_left_out =
            |out: &&str| name.strip_prefix(*out).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
        if LEFT_OUT.iter().any(is_left_out) || name.ends_with(".sample") {
            continue;
        }
        if about.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            writeln!(text, "=== link {name} {}", target.display()).unwrap();
        } else if about.is_dir() {
            writeln!(text, "=== folder {mode:o} {name}").unwrap();
        } else if about.file_type().is_file() {
            let bytes = std::fs::read(&path).unwrap();
            match std::str::from_utf8(&bytes).ok().filter(|it| !it.contains('\0') && !it.contains('\r')) {
                Some(plain) => writeln!(text, "=== text {mode:o} {} {name}\n{plain}", bytes.len()).unwrap(),
                None => writeln!(text, "=== hex {mode:o} {} {name}\n{}", 2 * bytes.len(), hex(&bytes)).unwrap(),
            }
        } else {
            assert!(about.file_type().is_socket() || about.file_type().is_fifo(), "{name} is nothing that can be kept");
        }
    }
    text
}

/// Makes the files of a text anew.
pub(crate) fn unpack(mut text: &str, root: &Path) {
    let mut folders = Vec::new();
    while let Some((head, rest)) = text.split_once('\n') {
        let (form, words) = head.strip_prefix("=== ").unwrap_or_else(|| panic!("{head:?}")).split_once(' ').unwrap();
        text = rest;
        let (first, more) = words.split_once(' ').unwrap();
        let mode = |octal: &str| PermissionsExt::from_mode(u32::from_str_radix(octal, 8).unwrap());
        match form {
            "link" => symlink(more, root.join(first)).unwrap(),
            "folder" => {
                std::fs::create_dir_all(root.join(more)).unwrap();
                folders.push((root.join(more), mode(first)));
            }
            "text" | "hex" => {
                let (length, name) = more.split_once(' ').unwrap();
                let (content, behind) = rest.split_at(length.parse().unwrap());
                let bytes = if form == "hex" { unhex(content) } else { content.as_bytes().to_vec() };
                std::fs::write(root.join(name), bytes).unwrap();
                std::fs::set_permissions(root.join(name), mode(first)).unwrap();
                text = behind.strip_prefix('\n').unwrap();
            }
            other => panic!("`{other}` is nothing that was packed"),
        }
    }
    // A folder that cannot be written could not have been filled.
    folders.into_iter().for_each(|(path, mode)| std::fs::set_permissions(path, mode).unwrap());
}

/// Everything below a folder; a folder comes before what is in it.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.into_iter().fold(Vec::new(), |mut all, path| {
        let is_folder = path.symlink_metadata().unwrap().is_dir();
        all.push(path.clone());
        all.extend(is_folder.then(|| below(&path)).into_iter().flatten());
        all
    })
}

/// A store as the SQL that makes it.
pub(crate) fn dump(file: &Path) -> String {
    let store = Connection::open(file).unwrap();
    let mut text = String::new();
    for pragma in ["application_id", "user_version"] {
        let number: i64 = store.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap();
        writeln!(text, "PRAGMA {pragma} = {number};").unwrap();
    }
    let made = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name";
    let mut made = store.prepare(made).unwrap();
    let mut made = made.query([]).unwrap();
    let mut tables = Vec::new();
    while let Some(row) = made.next().unwrap() {
        let (kind, name, sql): (String, String, String) =
            (row.get(0).unwrap(), row.get(1).unwrap(), row.get(2).unwrap());
        writeln!(text, "{sql};").unwrap();
        tables.extend((kind == "table").then_some(name));
    }
    for table in tables {
        let mut rows = store.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<String> = (0..columns).map(|column| literal(row.get_ref(column).unwrap())).collect();
            writeln!(text, "INSERT INTO {table} VALUES ({});", values.join(", ")).unwrap();
        }
    }
    text
}

/// Makes a store of its SQL.
pub(crate) fn fill(file: &Path, sql: &str) {
    let mut store = Connection::open(file).unwrap();
    let all = store.transaction().unwrap();
    all.execute_batch(sql).unwrap();
    all.commit().unwrap();
}

fn literal(value: ValueRef<'_>) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => quoted(std::str::from_utf8(text).unwrap()),
        ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') && !text.contains('\r') => format!("CAST({} AS BLOB)", quoted(text)),
            Ok(_) | Err(_) => format!("X'{}'", hex(bytes)),
        },
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}
