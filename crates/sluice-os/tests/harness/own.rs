//! Harnesses from `config.toml`.

use std::path::Path;

use sluice_os::harness::stream::HarnessFormat;
use sluice_os::harness::{HarnessMode, HarnessPermissions, HarnessRequest, Harnesses};

fn read(config: &str) -> Result<Harnesses, String> {
    Harnesses::with_config(&config.parse().unwrap())
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn words(all: &Harnesses, name: &str, mode: HarnessMode, permissions: HarnessPermissions) -> Vec<String> {
    let request = HarnessRequest {
        mode,
        permissions,
        prompt: "do it",
        workspace: Path::new("/w"),
        private: Path::new("/p"),
        sluice: Path::new("/bin/sluice"),
        session: None,
        environment: &|_| None,
    };
    let made = all.get(name).unwrap().invocation(&request).unwrap();
    let mut words: Vec<String> = made.argv.iter().map(|word| word.to_str().unwrap().to_owned()).collect();
    words
        .extend(made.stdin.filter(|text| !text.is_empty()).map(|text| format!("< {}", String::from_utf8_lossy(&text))));
    words.extend(made.typed.map(|text| format!("typed {text}")));
    words.extend((!made.warnings.is_empty()).then(|| "warned".to_owned()));
    words
}

#[test]
fn the_contracts_example() {
    let all = read(
        r#"
        [defaults]
        harness = "mine"
        [harnesses.mine]
        interactive = ["my-agent", "{prompt}"]
        headless    = ["my-agent", "--print"]
        reduced     = ["my-agent", "--read-only"]
        output      = "claude"
        "#,
    )
    .unwrap();
    assert_eq!(words(&all, "mine", HarnessMode::Interactive, HarnessPermissions::Full), ["my-agent", "do it"]);
    assert_eq!(
        words(&all, "mine", HarnessMode::Headless, HarnessPermissions::Full),
        ["my-agent", "--print", "< do it"]
    );
    assert_eq!(
        words(&all, "mine", HarnessMode::Headless, HarnessPermissions::Reduced),
        ["my-agent", "--read-only", "< do it"]
    );
    assert_eq!(
        words(&all, "mine", HarnessMode::Interactive, HarnessPermissions::Reduced),
        ["my-agent", "--read-only", "typed do it"]
    );
    assert_eq!(all.get("mine").unwrap().output, HarnessFormat::Claude);
    assert!(all.get("mine").unwrap().warnings().is_empty());
}

#[test]
fn without_a_reduced_command_the_normal_one_is_used_and_a_warning_given() {
    let all = read("[harnesses.mine]\nheadless = ['a', '--message-file', '{prompt_file}']").unwrap();
    assert_eq!(
        words(&all, "mine", HarnessMode::Headless, HarnessPermissions::Reduced),
        ["a", "--message-file", "/p/prompt.md", "warned"]
    );
    insta::assert_snapshot!(all.get("mine").unwrap().warnings().join("\n"), @"the harness `mine` has no way to reduce the permissions of an arbiter: it runs with full permissions. Choose another harness for it, or give [harnesses.mine] a `reduced` command in config.toml");
}

#[test]
fn a_known_harness_keeps_what_is_not_named() {
    let all = read("[harnesses.claude]\nheadless = ['my-claude', '-p']").unwrap();
    assert_eq!(words(&all, "claude", HarnessMode::Headless, HarnessPermissions::Full), ["my-claude", "-p", "< do it"]);
    assert_eq!(
        words(&all, "claude", HarnessMode::Headless, HarnessPermissions::Reduced),
        ["my-claude", "-p", "< do it", "warned"]
    );
    assert_eq!(words(&all, "claude", HarnessMode::Interactive, HarnessPermissions::Full)[0], "claude");
    assert_eq!(all.get("claude").unwrap().output, HarnessFormat::Claude);
}

#[test]
fn every_mistake_is_named() {
    let config = r#"
        [harnesses]
        alone = "x"
        [harnesses.empty]
        [harnesses.mine]
        headles = ["a"]
        interactive = "a b"
        output = "telepathy"
        [harnesses.words]
        headless = ["{prompt}"]
        reduced = []
        interactive = ["a", 1]
    "#;
    insta::assert_snapshot!(read(config).unwrap_err(), @r#"
    config.toml: [harnesses.alone]: must be a table with the key `interactive` or `headless`
    config.toml: [harnesses.empty]: neither `interactive` nor `headless` says what to start
    config.toml: [harnesses.mine]: unknown key `headles`; a harness has the keys interactive, headless, reduced, output, preflight
    config.toml: [harnesses.mine]: `interactive` must be a list of words, such as ["my-agent", "{prompt}"]
    config.toml: [harnesses.mine]: `output` must be one of text, claude, codex, gemini, opencode, goose, cursor, amp, pi, copilot, qwen, agy, aider, not telepathy
    config.toml: [harnesses.words]: `interactive` must be a list of words, such as ["my-agent", "{prompt}"]
    config.toml: [harnesses.words]: `headless` must begin with the program to start
    config.toml: [harnesses.words]: `reduced` is empty; its first word is the program to start
    "#);
    insta::assert_snapshot!(read("harnesses = 1").unwrap_err(), @"config.toml: `harnesses` must be a table: write [harnesses.NAME]");
}

#[test]
fn a_name_that_is_not_there_and_a_command_that_is_missing() {
    let all = read("[harnesses.mine]\nheadless = ['a']").unwrap();
    insta::assert_snapshot!(all.get("clod").unwrap_err(), @"no harness is called `clod`; there are: agy, aider, amp, claude, codex, copilot, cursor-agent, demo, gemini, goose, mine, opencode, pi, qwen. Add your own as [harnesses.clod] in config.toml");
    let request = HarnessRequest {
        mode: HarnessMode::Interactive,
        permissions: HarnessPermissions::Full,
        prompt: "",
        workspace: Path::new("/w"),
        private: Path::new("/p"),
        sluice: Path::new("/bin/sluice"),
        session: None,
        environment: &|_| None,
    };
    let refused = all.get("mine").unwrap().invocation(&request).unwrap_err();
    insta::assert_snapshot!(refused, @"the harness `mine` has no `interactive` command; give it one under [harnesses.mine] in config.toml");
}

#[test]
fn a_program_of_ones_own_is_never_asked_for_its_version() {
    let config = r#"
        [harnesses.mine]
        headless = ["my-agent", "--print"]

        [harnesses.claude]
        headless = ["my-claude"]

        [harnesses.codex]
        headless = ["codex", "exec", "--json", "-"]
    "#;
    let all = read(config).unwrap();
    let asked = |name: &str| all.get(name).unwrap().version_command("/bin/sluice");
    assert_eq!((asked("mine"), asked("claude")), (None, None));
    assert_eq!(asked("codex").unwrap(), ["codex", "--version"], "it is the same program");
}
