//! Which start of an agent this is, counted in git's own folder of the worktree: nobody looks there, and it goes with it.

use std::path::PathBuf;

use super::{DemoAgent, DemoStop};

impl DemoAgent {
    /// Counts this start and says which it is. Without git the engine's own count serves.
    pub(super) fn count_attempt(&self) -> Result<u32, DemoStop> {
        let Some(folder) = self.notes_folder() else {
            return Ok(self.variable("SLUICE_ATTEMPT").and_then(|text| text.parse().ok()).unwrap_or(1));
        };
        let whose = ["SLUICE_TASK", "SLUICE_RUN", "SLUICE_STEP"].into_iter().filter_map(|name| self.variable(name));
        let name: Vec<String> = whose.chain([self.role.clone()]).collect();
        let is_harmless = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name: String = name.join("-").chars().map(|c| if is_harmless(c) { c } else { '_' }).collect();
        let file = folder.join(format!("{name}.attempts"));
        let before = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let attempt = before.unwrap_or(0).saturating_add(1);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, format!("{attempt}\n")))
            .map_err(|error| DemoStop::error(&file.display().to_string(), error))?;
        Ok(attempt)
    }

    /// Where the agent keeps its notes; `None` outside a git worktree.
    pub(super) fn notes_folder(&self) -> Option<PathBuf> {
        let folder = self.ask_git(&["rev-parse", "--absolute-git-dir"])?;
        Some(PathBuf::from(folder).join("sluice-demo"))
    }
}
