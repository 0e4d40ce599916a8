//! What is looked at before a start: files and variables in, yes, no or unknown out.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sluice_os::harness::{HarnessMode, HarnessScene, Harnesses, repository_of};

/// A person's home, a repository and a worktree of it, with programs that are no scripts.
struct Ground(tempfile::TempDir);

impl Ground {
    fn new() -> Ground {
        let ground = Ground(tempfile::tempdir().unwrap());
        for folder in ["home", "bin", "coffee/.git/worktrees/1", "worktree"] {
            std::fs::create_dir_all(ground.path(folder)).unwrap();
        }
        let git = format!("gitdir: {}\n", ground.path("coffee/.git/worktrees/1").display());
        std::fs::write(ground.path("worktree/.git"), git).unwrap();
        for name in ["claude", "codex", "gemini", "copilot", "opencode"] {
            symlink("/bin/sh", ground.path("bin").join(name)).unwrap();
        }
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("{ground}", self.path("").display().to_string().trim_end_matches('/')))
            .unwrap();
    }

    /// `look answer` for each look at a start in the worktree.
    fn looks(&self, name: &str, mode: HarnessMode, variables: &[(&str, &str)]) -> String {
        let harnesses = Harnesses::builtin();
        let harness = harnesses.get(name).unwrap();
        let mut environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        environment.insert("PATH".into(), self.path("bin").display().to_string());
        environment.insert("HOME".into(), self.path("home").display().to_string());
        environment.entry("IS_SANDBOX".into()).or_insert("1".into());
        let workspace = self.path("worktree");
        let arguments = harness.words(mode).unwrap();
        let scene = HarnessScene { mode, arguments, environment: &environment, workspace: &workspace };
        let looks = harness.looks(&scene).into_iter().map(|it| format!("{} {}", it.look.word(), it.answer.word()));
        looks.collect::<Vec<_>>().join(", ")
    }
}

const KEY: [(&str, &str); 1] = [("ANTHROPIC_AUTH_TOKEN", "x")];

/// As the superuser it works without permissions only where the machine is said to be a sandbox.
#[test]
fn claude_is_not_started_without_permissions_as_root() {
    let looks = Ground::new().looks("claude", HarnessMode::Headless, &[KEY[0], ("IS_SANDBOX", "0")]);
    let user = if rustix::process::geteuid().is_root() { "no" } else { "yes" };
    assert_eq!(looks, format!("installed yes, user {user}, login yes"));
}

#[test]
fn claude_is_looked_at_where_it_looks_itself() {
    let ground = Ground::new();
    let headless = |variables: &[(&str, &str)]| ground.looks("claude", HarnessMode::Headless, variables);
    let terminal = |variables: &[(&str, &str)]| ground.looks("claude", HarnessMode::Interactive, variables);
    if !cfg!(target_os = "macos") {
        assert_eq!(headless(&[]), "installed yes, user yes, login no");
    }
    assert_eq!(headless(&KEY), "installed yes, user yes, login yes");
    // Another service may have its own ways.
    assert_eq!(headless(&[("CLAUDE_CODE_USE_BEDROCK", "1")]), "installed yes, user yes, login unknown");
    let fresh = "installed yes, user yes, login yes, dialogs no, dialogs yes, dialogs no, trust no";
    assert_eq!(terminal(&KEY), fresh);
    ground.write("home/.claude/settings.json", r#"{"skipDangerousModePermissionPrompt": true}"#);
    let trusts = |folder: &str| {
        let projects = format!(r#"{{"{{ground}}/{folder}": {{"hasTrustDialogAccepted": true}}}}"#);
        ground.write("home/.claude.json", &format!(r#"{{"hasCompletedOnboarding": true, "projects": {projects}}}"#));
        terminal(&KEY)
    };
    let known = |trust: &str| {
        format!("installed yes, user yes, login yes, dialogs yes, dialogs yes, dialogs yes, trust {trust}")
    };
    assert_eq!(trusts("coffee"), known("yes"));
    assert_eq!(trusts("worktree"), known("yes"));
    assert_eq!(trusts("elsewhere"), known("no"));
    // Versions differ about what is above.
    ground.write(
        "home/.claude.json",
        r#"{"hasCompletedOnboarding": true, "projects": {"/": {"hasTrustDialogAccepted": true}}}"#,
    );
    assert_eq!(terminal(&KEY), known("unknown"));
    // What cannot be understood is unknown.
    ground.write("home/.claude.json", "{ not json");
    assert_eq!(
        terminal(&KEY),
        "installed yes, user yes, login yes, dialogs unknown, dialogs yes, dialogs yes, trust unknown"
    );
}

#[test]
fn a_key_that_claude_would_ask_about_is_known_by_its_end() {
    let ground = Ground::new();
    let key = [("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdefghijklmnopqrst")];
    let third = |key| ground.looks("claude", HarnessMode::Interactive, key).split(", ").nth(4).unwrap().to_owned();
    assert_eq!(third(&key), "dialogs no");
    ground.write("home/.claude.json", r#"{"customApiKeyResponses": {"approved": ["abcdefghijklmnopqrst"]}}"#);
    assert_eq!(third(&key), "dialogs yes");
}

#[test]
fn codex_gemini_and_copilot_are_looked_at_and_what_may_work_is_unknown() {
    let ground = Ground::new();
    let headless = |name: &str, variables: &[(&str, &str)]| ground.looks(name, HarnessMode::Headless, variables);
    assert_eq!(headless("codex", &[]), "installed yes, login no");
    assert_eq!(headless("codex", &[("OPENAI_API_KEY", "x")]), "installed yes, login unknown");
    ground.write("home/.codex/config.toml", "model_provider = \"mine\"\n");
    assert_eq!(headless("codex", &[]), "installed yes, login unknown");
    ground.write("home/.codex/auth.json", "{}");
    assert_eq!(headless("codex", &[]), "installed yes, login yes");
    assert_eq!(headless("codex", &[("CODEX_HOME", "/nowhere")]), "installed yes, login no");

    assert_eq!(headless("gemini", &[]), "installed yes, login no");
    ground.write("coffee/.env", "GEMINI_API_KEY=x\n");
    assert_eq!(headless("gemini", &[]), "installed yes, login unknown");
    ground.write("home/.gemini/settings.json", r#"{"security": {"auth": {"selectedType": "oauth-personal"}}}"#);
    assert_eq!(headless("gemini", &[]), "installed yes, login yes");

    let copilot = || ground.looks("copilot", HarnessMode::Interactive, &[]);
    assert_eq!(copilot(), "installed yes, login unknown, trust no");
    ground.write("home/.copilot/config.json", "// managed\n{\"trustedFolders\": [\"{ground}\"]}");
    assert_eq!(copilot(), "installed yes, login unknown, trust yes");
    assert_eq!(headless("opencode", &[]), "installed yes, login unknown");
}

#[test]
fn a_script_may_set_up_what_is_missing_and_a_program_that_is_not_there_is_refused() {
    let ground = Ground::new();
    let codex = ground.path("bin/codex");
    std::fs::remove_file(&codex).unwrap();
    assert_eq!(ground.looks("codex", HarnessMode::Headless, &[]), "installed no, login no");
    std::fs::write(&codex, "#!/bin/sh\nCODEX_API_KEY=x exec real-codex\n").unwrap();
    assert_eq!(ground.looks("codex", HarnessMode::Headless, &[]), "installed no, login no");
    std::fs::set_permissions(&codex, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(ground.looks("codex", HarnessMode::Headless, &[]), "installed yes, login unknown");
}

#[test]
fn the_main_checkout_of_a_worktree_is_found_from_its_files() {
    let ground = Ground::new();
    let found = |folder: &Path| repository_of(folder);
    assert_eq!(found(&ground.path("worktree")), Some(ground.path("coffee")));
    assert_eq!(found(&ground.path("coffee")), Some(ground.path("coffee")));
    assert_eq!(found(&ground.path("home")), None);
}
