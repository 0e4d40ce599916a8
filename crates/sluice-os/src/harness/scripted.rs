//! How a program is made to ask a scripted model on this machine in place of its own: variables, and files in a scratch
//! home. `sluice harness check` uses it; work never does.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Deserialize;

use super::Harness;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HarnessScriptedModel {
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    files: Vec<ScriptedFile>,
    /// It asks no model, and says the sentence by itself.
    #[serde(default)]
    alone: bool,
    /// It gives its model no tools.
    #[serde(default)]
    no_tools: bool,
}

/// A file below the scratch home.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedFile {
    path: String,
    content: String,
}

impl Harness {
    /// How it is led to a scripted model; `None` if that is not known.
    pub fn scripted(&self) -> Option<&HarnessScriptedModel> {
        self.scripted.as_ref()
    }
}

impl HarnessScriptedModel {
    /// The variables for a model at this address that says this sentence.
    pub fn variables(&self, model: &str, sentence: &str) -> BTreeMap<String, String> {
        let filled = |value: &String| value.replace("{model}", model).replace("{sentence}", sentence);
        self.set.iter().map(|(name, value)| (name.clone(), filled(value))).collect()
    }

    pub fn has_tools(&self) -> bool {
        !self.no_tools
    }

    pub fn asks_model(&self) -> bool {
        !self.alone
    }

    /// Writes the files for a model at this address into a scratch home.
    pub fn write(&self, home: &Path, model: &str) -> io::Result<()> {
        for file in &self.files {
            let path = home.join(&file.path);
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(path, file.content.trim_start().replace("{model}", model))?;
        }
        Ok(())
    }
}
