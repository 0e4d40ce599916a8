//! What is started for each harness, and how any prompt reaches it whole.

use std::ffi::OsString;
use std::path::Path;

use sluice_os::harness::{Harness, HarnessInvocation, HarnessMode, HarnessPermissions, HarnessRequest, Harnesses};

fn environment(name: &str) -> Option<OsString> {
    (name == "HOME").then(|| OsString::from("/home/ada"))
}

fn request<'a>(
    mode: HarnessMode,
    permissions: HarnessPermissions,
    prompt: &'a str,
    private: &'a Path,
) -> HarnessRequest<'a> {
    HarnessRequest {
        mode,
        permissions,
        prompt,
        workspace: Path::new("/work tree"),
        private,
        sluice: Path::new("/bin/sluice"),
        session: None,
        environment: &environment,
    }
}

fn invoke(harness: &Harness, mode: HarnessMode, permissions: HarnessPermissions, prompt: &str) -> HarnessInvocation {
    harness.invocation(&request(mode, permissions, prompt, Path::new("/private"))).unwrap()
}

fn show(made: &HarnessInvocation) -> String {
    let mut lines: Vec<String> =
        vec![format!("  {}", made.argv.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" "))];
    lines.extend(made.env_set.iter().map(|(name, value)| format!("  {name}={}", value.to_string_lossy())));
    lines.extend(made.stdin.iter().map(|text| format!("  stdin: {}", String::from_utf8_lossy(text))));
    lines.extend(made.typed.iter().map(|text| format!("  typed: {text}")));
    lines.extend(made.files.iter().map(|file| format!("  file: {}", file.path.display())));
    lines.extend(made.links.iter().map(|link| format!("  link: {} -> {}", link.path.display(), link.target.display())));
    lines.extend(made.warnings.iter().map(|warning| format!("  warning: {warning}")));
    lines.join("\n")
}

#[test]
fn every_harness_as_it_is_started() {
    let all = Harnesses::builtin();
    let mut page = String::new();
    for harness in all.iter() {
        for mode in [HarnessMode::Interactive, HarnessMode::Headless] {
            for permissions in [HarnessPermissions::Full, HarnessPermissions::Reduced] {
                let made = invoke(harness, mode, permissions, "PROMPT");
                page.push_str(&format!("{} {mode:?} {permissions:?}\n{}\n\n", harness.name, show(&made)));
            }
        }
    }
    insta::assert_snapshot!(page);
}

#[test]
fn every_harness_can_be_asked_for_its_version_and_is_where_the_brief_says() {
    let all = Harnesses::builtin();
    let names: Vec<&str> = all.iter().map(|harness| harness.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "agy",
            "aider",
            "amp",
            "claude",
            "codex",
            "copilot",
            "cursor-agent",
            "demo",
            "gemini",
            "goose",
            "opencode",
            "pi",
            "qwen"
        ]
    );
    for harness in all.iter() {
        let version = harness.version_command("/bin/sluice").unwrap();
        let program = harness.program().unwrap().replace("{sluice}", "/bin/sluice");
        assert_eq!(version, [program.as_str(), "--version"], "{}", harness.name);
    }
}

#[test]
fn hostile_prompts_reach_every_agent_whole() {
    let long = format!("{} the end", "x".repeat(200_000));
    let prompts =
        ["quotes \" ' ` $(rm -rf /) ; \n {prompt} {workspace} ünï 🦀", "--version", "-", "", "nul \0 byte", &long];
    for harness in Harnesses::builtin().iter() {
        for mode in [HarnessMode::Interactive, HarnessMode::Headless] {
            for prompt in prompts {
                let made = invoke(harness, mode, HarnessPermissions::Full, prompt);
                let ways = [
                    made.argv.iter().any(|word| word.to_str().unwrap().ends_with(prompt)),
                    made.stdin.as_deref() == Some(prompt.as_bytes()),
                    made.typed.as_deref() == Some(prompt),
                    made.files.iter().any(|file| file.content == prompt.as_bytes()),
                ];
                assert!(ways.contains(&true), "{} {mode:?}: {made:?}", harness.name);
                for word in &made.argv {
                    let word = word.to_str().unwrap();
                    assert!(word.len() < 128 * 1024 && !word.contains('\0'), "{}", harness.name);
                    assert!(!prompt.starts_with("--") || word != prompt, "{} takes it for an option", harness.name);
                }
                if let Some(file) = made.files.first() {
                    let path = file.path.to_str().unwrap();
                    assert!(made.argv.iter().any(|word| word.to_str().unwrap().contains(path)), "{}", harness.name);
                }
            }
        }
    }
}

#[test]
fn what_is_filled_in_is_not_filled_again() {
    let all = Harnesses::builtin();
    let made = invoke(
        all.get("claude").unwrap(),
        HarnessMode::Interactive,
        HarnessPermissions::Full,
        "{workspace} {prompt} {x",
    );
    assert_eq!(made.argv.last().unwrap(), "{workspace} {prompt} {x");
}

#[test]
fn signs_that_an_agent_runs_inside_another_are_taken_away() {
    for harness in Harnesses::builtin().iter() {
        let made = invoke(harness, HarnessMode::Headless, HarnessPermissions::Full, "p");
        assert!(made.env_unset.iter().any(|name| name == "CLAUDECODE"), "{}", harness.name);
    }
}

#[test]
fn files_and_links_are_made_once_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir_all(home.join(".codex")).unwrap();
    std::fs::write(home.join(".codex/auth.json"), "secret").unwrap();
    let private = folder.path().join("private");
    let environment = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
    let all = Harnesses::builtin();
    let long = "y".repeat(200_000);
    let mut asked = request(HarnessMode::Interactive, HarnessPermissions::Full, &long, &private);
    asked.environment = &environment;
    let made = all.get("codex").unwrap().invocation(&asked).unwrap();
    for _ in 0..2 {
        made.prepare().unwrap();
        assert_eq!(std::fs::read_to_string(private.join("prompt.md")).unwrap(), long);
        assert_eq!(std::fs::read_to_string(private.join("codex/auth.json")).unwrap(), "secret");
        assert!(!private.join("codex/config.toml").exists(), "nothing to link to");
    }
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(private.join("prompt.md")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_folder_that_the_person_chose_is_the_one_that_is_shared() {
    let chosen = |name: &str| match name {
        "CODEX_HOME" => Some(OsString::from("/elsewhere")),
        _ => Some(OsString::from("/home/ada")),
    };
    let mut asked = request(HarnessMode::Headless, HarnessPermissions::Full, "p", Path::new("/private"));
    asked.environment = &chosen;
    let made = Harnesses::builtin().get("codex").unwrap().invocation(&asked).unwrap();
    assert_eq!(made.links[0].target, Path::new("/elsewhere/auth.json"));
}
