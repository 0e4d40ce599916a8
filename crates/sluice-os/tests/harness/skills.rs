//! The skills are well-formed, and each agent program has its place for them.

use std::path::Path;

use sluice_os::harness::{Harnesses, SKILLS};
use sluice_os::taskfile::ParsedTaskFile;

#[test]
fn skills_say_their_name_and_when_to_use_them() {
    for skill in SKILLS {
        let page = ParsedTaskFile::parse(skill.text.as_bytes(), &[]);
        assert_eq!(page.value("name").as_deref(), Some(skill.name));
        let description = page.value("description").unwrap();
        assert!(description.len() <= 1024 && description.contains("Use it when"), "{description}");
        assert!(page.body_text().contains("sluice task"));
        assert!(page.body_text().lines().count() < 500);
    }
}

#[test]
fn every_program_looks_for_skills_in_its_own_place() {
    let home = Path::new("/home/ada");
    let places: Vec<String> = Harnesses::builtin()
        .iter()
        .map(|harness| {
            let path = harness.skill_path(home, &SKILLS[0]);
            format!("{}: {}", harness.name, path.map_or("none".to_owned(), |path| path.display().to_string()))
        })
        .collect();
    insta::assert_snapshot!(places.join("\n"), @"
    agy: /home/ada/.gemini/config/skills/sluice-agent/SKILL.md
    aider: none
    amp: /home/ada/.config/agents/skills/sluice-agent/SKILL.md
    claude: /home/ada/.claude/skills/sluice-agent/SKILL.md
    codex: /home/ada/.codex/skills/sluice-agent/SKILL.md
    copilot: /home/ada/.copilot/skills/sluice-agent/SKILL.md
    cursor-agent: /home/ada/.cursor/skills/sluice-agent/SKILL.md
    demo: none
    gemini: /home/ada/.gemini/skills/sluice-agent/SKILL.md
    goose: /home/ada/.config/goose/skills/sluice-agent/SKILL.md
    opencode: /home/ada/.config/opencode/skills/sluice-agent/SKILL.md
    pi: /home/ada/.pi/agent/skills/sluice-agent/SKILL.md
    qwen: /home/ada/.qwen/skills/sluice-agent/SKILL.md
    ");
}
