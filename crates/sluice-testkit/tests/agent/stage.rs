//! A repository with a worktree, a `sluice` that writes down how it was called, and the prompts of the built-in files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Notes each call with its token, answers with what `answer` says, and refuses the status that `refuse` names.
const SLUICE: &str = r#"#!/bin/sh
echo "$* token=${SLUICE_TOKEN:-none}" >> "$(dirname "$0")/calls"
if [ -f "$(dirname "$0")/refuse" ]; then
    read -r word < "$(dirname "$0")/refuse"
    case " $* " in *" $word "*) echo "refused: $word" >&2; exit 4 ;; esac
fi
echo "moved"
"#;

pub(crate) const FRONT: &str =
    "---\nid: t1\nproject: coffee\nstatus: STATUS\nreview_round: 0\nsummary: Brew better coffee\n---\n";

pub(crate) struct Stage {
    pub(crate) folder: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let stage = Stage { folder: tempfile::tempdir().unwrap() };
        let main = stage.path("main");
        std::fs::create_dir(&main).unwrap();
        stage.git(&main, &["init", "--quiet", "-b", "main"]);
        stage.git(&main, &["commit", "--quiet", "--allow-empty", "-m", "begin"]);
        stage.git(&main, &["worktree", "add", "--quiet", "-b", "brew", stage.path("work").to_str().unwrap()]);
        let exclude = main.join(".git/info/exclude");
        std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
        std::fs::write(exclude, "/TASK.md\n").unwrap();
        std::fs::write(stage.path("sluice"), SLUICE).unwrap();
        std::fs::set_permissions(stage.path("sluice"), std::fs::Permissions::from_mode(0o755)).unwrap();
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn git(&self, folder: &Path, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(words).current_dir(folder);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for (name, value) in [("NAME", "Ada"), ("EMAIL", "ada@example.invalid")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn task(&self, status: &str, body: &str) {
        std::fs::write(self.work().join("TASK.md"), format!("{}{body}", FRONT.replace("STATUS", status))).unwrap();
    }

    pub(crate) fn task_text(&self) -> String {
        std::fs::read_to_string(self.work().join("TASK.md")).unwrap()
    }

    pub(crate) fn refuse(&self, word: &str) {
        std::fs::write(self.path("refuse"), format!("{word}\n")).unwrap();
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(|line| line.trim_end_matches(" token=secret").to_owned()).collect()
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        path
    }

    pub(crate) fn agent(&self, role: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demo-agent"));
        command.args(words).current_dir(self.work()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("SLUICE_BIN", self.path("sluice"));
        command.env("SLUICE_TASK", "t1").env("SLUICE_TOKEN", "secret").env("SLUICE_ROLE", role);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, role: &str, words: &[&str]) -> Output {
        self.agent(role, words).output().unwrap()
    }

    /// Starts it with a script, for tests that end it themselves.
    pub(crate) fn start(&self, script: &str) -> Running {
        Running(self.agent("worker", &["prompt"]).env("SLUICE_DEMO", script).spawn().unwrap())
    }

    pub(crate) fn commits(&self, folder: &str) -> usize {
        self.git(&self.path(folder), &["rev-list", "--count", "HEAD"]).parse().unwrap()
    }
}

/// A process that is gone when the test is over, however it ends.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A prompt of a built-in lifecycle, or of one of the first documents.
pub(crate) fn prompt(file: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sluice-dialect").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().skip_while(|line| *line != format!("  {name}: |")).skip(1);
    let block: Vec<&str> = lines
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| line.get(4..).unwrap_or(""))
        .collect();
    assert!(!block.is_empty(), "{file} has no prompt {name}");
    let filled = block.join("\n").replace("{summary}", "Brew better coffee").replace("{project}", "coffee");
    filled.replace("{branch}", "brew").replace("{review_round}", "1").replace("{status}", "working")
}
