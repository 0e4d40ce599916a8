//! A repository to work on, with so many files; and what git alone costs there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::machine::run;

/// Files in one folder of the repository.
const FILES_OF_A_FOLDER: usize = 100;
/// What each file holds.
const CONTENT: &str = "A line of a file, about as long as lines are.\n";

/// A repository on the disk. It goes with this.
pub struct Repository {
    /// What the project is called that is made of it.
    pub name: String,
    folder: TempDir,
}

impl Repository {
    /// A repository with so many files and these recipes, by name, all committed.
    pub fn new(disk: &Path, files: usize, recipes: &[(&str, String)]) -> Repository {
        let repository = Repository { name: format!("files-{files}"), folder: tempfile::tempdir_in(disk).unwrap() };
        let folder = repository.folder();
        std::fs::create_dir(&folder).unwrap();
        for number in 0..files {
            let part = folder.join(format!("part-{}", number / FILES_OF_A_FOLDER));
            if number % FILES_OF_A_FOLDER == 0 {
                std::fs::create_dir(&part).unwrap();
            }
            std::fs::write(part.join(format!("file-{number}.txt")), format!("{number}\n{}", CONTENT.repeat(8)))
                .unwrap();
        }
        write_recipes(&folder, recipes);
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.git(&["config", "user.name", "Bench"]);
        repository.git(&["config", "user.email", "bench@example.invalid"]);
        repository.git(&["add", "."]);
        repository.git(&["commit", "--quiet", "-m", "begin"]);
        repository
    }

    /// The main checkout.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// Runs git in the main checkout, and gives what it prints.
    pub fn git(&self, arguments: &[&str]) -> String {
        run(command_in(&self.folder(), "git").args(arguments)).unwrap()
    }

    /// How long git alone takes to make a worktree with a branch, and to remove both.
    pub fn worktree(&self) -> (Duration, Duration) {
        let path = self.folder.path().join("bare").display().to_string();
        let began = Instant::now();
        self.git(&["worktree", "add", "--quiet", "-b", "bare", &path]);
        let made = began.elapsed();
        self.git(&["worktree", "remove", "--force", &path]);
        self.git(&["branch", "--quiet", "-D", "bare"]);
        (made, began.elapsed() - made)
    }

    /// Worktrees beside the main checkout, and branches of Sluice's.
    pub fn left(&self) -> (usize, usize) {
        let worktrees =
            self.git(&["worktree", "list", "--porcelain"]).lines().filter(|it| it.starts_with("worktree ")).count();
        let branches = self.git(&["branch", "--list", "sluice/*"]).lines().count();
        (worktrees.saturating_sub(1), branches)
    }
}

/// Writes recipes where a folder has its own.
pub fn write_recipes(folder: &Path, recipes: &[(&str, String)]) {
    let place = folder.join(".sluice/workflows");
    std::fs::create_dir_all(&place).unwrap();
    for (name, text) in recipes {
        std::fs::write(place.join(format!("{name}.yml")), text).unwrap();
    }
}

/// A recipe of so many script steps, one after the other: the first command, then `true`. `more` are further lines of it.
pub fn recipe(name: &str, more: &str, steps: usize, first: &str) -> String {
    let steps: String = (0..steps)
        .map(|number| {
            format!("  - {{name: s{number}, type: script, command: '{}'}}\n", if number == 0 { first } else { "true" })
        })
        .collect();
    format!("name: {name}\n{more}steps:\n{steps}")
}

/// A command in a folder, with an environment that is the same for everyone.
pub fn command_in(folder: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(folder).envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", folder).env("LANG", "C.UTF-8").env("GIT_CONFIG_NOSYSTEM", "1");
    command
}
