//! The definitions that come with Sluice, as the bytes of their files.

#[derive(Debug)]
pub struct BuiltInDefinition {
    pub file: &'static str,
    pub text: &'static str,
}

macro_rules! built_in {
    ($($file:literal),+ $(,)?) => {
        &[$(BuiltInDefinition { file: $file, text: include_str!(concat!("../builtin/", $file)) },)+]
    };
}

/// All of them: lifecycles first, then recipes.
pub const ALL: &[BuiltInDefinition] = built_in![
    "default.yml",
    "minimal.yml",
    "reviewed.yml",
    "persistent.yml",
    "dev-task.toml",
    "spec-to-beads.yml",
    "implement-bead.yml",
    "review-loop.yml",
    "prepare-pr.yml",
    "supervisor-patrol.toml",
    "worker-execute.toml",
    "verify-pipeline.toml",
    "qa-merge.toml",
];
