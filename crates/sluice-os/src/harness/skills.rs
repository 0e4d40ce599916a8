//! The skills that come with Sluice: pages that teach an agent program how to work with it.

use std::path::{Path, PathBuf};

use super::Harness;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarnessSkill {
    /// Its name, and that of its folder.
    pub name: &'static str,
    pub text: &'static str,
}

pub const SKILLS: [HarnessSkill; 2] = [
    HarnessSkill { name: "sluice-agent", text: include_str!("../../../../skills/sluice-agent/SKILL.md") },
    HarnessSkill { name: "sluice-orchestrator", text: include_str!("../../../../skills/sluice-orchestrator/SKILL.md") },
];

impl Harness {
    /// Where this program looks for `skill`, below the person's `home`; `None` if it knows no skills.
    pub fn skill_path(&self, home: &Path, skill: &HarnessSkill) -> Option<PathBuf> {
        Some(home.join(self.skills_folder.as_deref()?).join(skill.name).join("SKILL.md"))
    }
}
