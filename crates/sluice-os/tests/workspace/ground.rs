//! A repository and a home in a temporary folder, scripts that do what agents do, and listings to compare.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sluice_os::git::{Git, Repository};
use sluice_os::workspace::{WorkspaceBinding, WorkspaceName, WorkspacePool};
use tempfile::TempDir;

/// What the repository of every test starts with.
const START: &str = r#"
git init --quiet -b main .
git config user.name Tester
git config user.email tester@localhost
printf 'one\ntwo\nthree\n' > a.txt
mkdir -p dir
printf 'b\n' > dir/b.txt
printf '#!/bin/sh\necho run\n' > run.sh && chmod 755 run.sh
printf '\000\001\377binary' > image.bin
ln -s a.txt link
printf 'ignored/\n*.log\n' > .gitignore
git add -A
git commit --quiet -m start
"#;

pub(crate) struct Ground {
    folder: PathBuf,
    /// Removed when the test is over.
    own: Option<TempDir>,
}

impl Ground {
    pub(crate) fn new() -> Ground {
        let own = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(own.path()).unwrap().join("ground");
        let ground = Ground { folder, own: Some(own) };
        fs::create_dir_all(ground.repository_folder()).unwrap();
        fs::write(ground.path("gitconfig"), "").unwrap();
        ground.sh(&ground.repository_folder(), START);
        ground
    }

    /// One that another process has made.
    pub(crate) fn at(folder: PathBuf) -> Ground {
        Ground { folder, own: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Leaves it behind to be looked at: where it is.
    pub(crate) fn keep(self) -> PathBuf {
        self.own.map(TempDir::keep);
        self.folder
    }

    /// A file that is not part of it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.with_file_name(name)
    }

    pub(crate) fn repository_folder(&self) -> PathBuf {
        self.path("repository")
    }

    pub(crate) fn git(&self) -> Git {
        Git::default()
            .with_environment("GIT_CONFIG_GLOBAL", self.path("gitconfig"))
            .with_environment("GIT_CONFIG_NOSYSTEM", "1")
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::open(self.git(), &self.repository_folder(), None).unwrap()
    }

    pub(crate) fn pool(&self) -> WorkspacePool {
        WorkspacePool::new(self.repository(), &self.path("home"), "coffee").unwrap()
    }

    /// A script as an agent would run it; what it prints.
    pub(crate) fn sh(&self, folder: &Path, script: &str) -> String {
        let output = self.command(folder, script).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{stderr}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// A program from a script. Another process writes it: a thread that forks while this one has it open for writing
    /// would keep it from being run.
    pub(crate) fn program(&self, path: &Path, script: &str) {
        let text = path.with_extension("text");
        fs::write(&text, script).unwrap();
        let done =
            Command::new("sh").args(["-ec", "cp \"$1\" \"$2\"; chmod 755 \"$2\"", "sh"]).arg(&text).arg(path).status();
        assert!(done.unwrap().success());
    }

    fn command(&self, folder: &Path, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(folder);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command.env("GIT_CONFIG_GLOBAL", self.path("gitconfig")).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_EDITOR", ":");
        command
    }

    /// All that can be seen of a checkout: files with bytes and modes, index, status, commit.
    pub(crate) fn picture(&self, folder: &Path) -> String {
        let mut files = BTreeMap::new();
        list(folder, folder, &mut files);
        let files: String = files.into_iter().map(|(path, file)| format!("{path}  {file}\n")).collect();
        let index = self.sh(folder, "git ls-files --stage");
        let status = self.sh(folder, "git status --porcelain=v2 --untracked-files=all");
        let head = self.sh(folder, "git rev-parse --verify --quiet HEAD || echo unborn");
        format!("{files}\nindex:\n{index}\nstatus:\n{status}\nhead: {head}\n")
    }
}

fn list(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().escape_ascii().to_string();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if name == ".git" || name == "ignored" || name.ends_with(".log") {
            continue;
        }
        if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            files.insert(name, format!("-> {}", target.as_os_str().as_bytes().escape_ascii()));
        } else if metadata.is_dir() {
            list(root, &path, files);
        } else {
            let mode = metadata.permissions().mode() & 0o7777;
            files.insert(name, format!("{mode:o} {}", fs::read(&path).unwrap().escape_ascii()));
        }
    }
}

pub(crate) fn name(text: &str) -> WorkspaceName {
    WorkspaceName::new(text).unwrap()
}

pub(crate) fn binding(task: &str, branch: &str) -> WorkspaceBinding {
    WorkspaceBinding { task: task.to_owned(), branch: branch.to_owned() }
}
