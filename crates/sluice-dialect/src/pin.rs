//! A definition as it is kept with what was started by it: its file and its prompt files, as they were then.
//!
//! What is at work goes on with these bytes, whatever becomes of the files. It never keeps a checked definition: the
//! check is done again on loading, and a stricter one only adds findings.

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::load::{DefinitionFile, LoadedDefinition, load};
use crate::prompts::{PromptLookup, PromptSource};
use crate::source::Sources;

/// The version of the stored form. One that is not known is refused, never guessed at.
const VERSION: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionPin {
    /// The name of its file, without folders: where it lay does not matter.
    name: String,
    text: String,
    /// The prompt files, as written, in the order of the definition.
    prompts: Vec<(String, String)>,
}

/// Why stored bytes are not a pinned definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinError {
    /// They are not what [`DefinitionPin::to_bytes`] writes.
    Malformed(&'static str),
    Version(u64),
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinError::Malformed(what) => write!(f, "a pinned definition is damaged: {what}"),
            PinError::Version(version) => {
                write!(f, "a pinned definition has version {version}; this Sluice reads version {VERSION}")
            }
        }
    }
}

impl std::error::Error for PinError {}

impl DefinitionPin {
    /// What `source` was when it became `loaded`; `None` if no definition came of it.
    pub fn of(source: &DefinitionFile<'_>, loaded: &LoadedDefinition) -> Option<DefinitionPin> {
        loaded.definition.as_ref()?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let name = source.path.rsplit(['/', '\\']).next().unwrap_or(source.path);
        let prompts = loaded.prompts.iter().map(|(path, bytes)| Some((path.clone(), text(bytes)?)));
        Some(DefinitionPin {
            name: name.to_owned(),
            text: text(source.bytes)?,
            prompts: prompts.collect::<Option<_>>()?,
        })
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Loads it again, without any file. The definition is there if it can be made, whatever a stricter check finds.
    pub fn load(&self) -> LoadedDefinition {
        let source = DefinitionFile { path: &self.name, bytes: self.text.as_bytes() };
        load(&source, &mut PinnedPrompts(&self.prompts), &mut Sources::new())
    }

    /// The stored form: one line of JSON, the same for the same definition.
    pub fn to_bytes(&self) -> Vec<u8> {
        let prompts: Vec<Value> =
            self.prompts.iter().map(|(path, text)| json!({ "path": path, "text": text })).collect();
        json!({ "version": VERSION, "name": self.name, "text": self.text, "prompts": prompts }).to_string().into_bytes()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<DefinitionPin, PinError> {
        let Ok(Value::Object(stored)) = serde_json::from_slice(bytes) else {
            return Err(PinError::Malformed("it is not a JSON object"));
        };
        match stored.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => return Err(PinError::Version(other)),
            None => return Err(PinError::Malformed("it has no `version`")),
        }
        let text = |from: &Map<String, Value>, key: &str| from.get(key).and_then(Value::as_str).map(str::to_owned);
        let prompt = |prompt: &Value| Some((text(prompt.as_object()?, "path")?, text(prompt.as_object()?, "text")?));
        let prompts = stored.get("prompts").and_then(Value::as_array);
        let prompts = prompts.and_then(|prompts| prompts.iter().map(prompt).collect());
        Ok(DefinitionPin {
            name: text(&stored, "name").ok_or(PinError::Malformed("it has no `name`"))?,
            text: text(&stored, "text").ok_or(PinError::Malformed("it has no `text`"))?,
            prompts: prompts.ok_or(PinError::Malformed("its `prompts` cannot be read"))?,
        })
    }

    /// SHA-256 of the stored form, in hexadecimal: the same for the same definition, wherever its files lay.
    pub fn digest(&self) -> String {
        Sha256::digest(self.to_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

struct PinnedPrompts<'a>(&'a [(String, String)]);

impl PromptSource for PinnedPrompts<'_> {
    fn find(&mut self, written: &str) -> PromptLookup {
        match self.0.iter().find(|(path, _)| path == written) {
            Some((path, text)) => PromptLookup::File { shown: path.clone(), bytes: text.clone().into_bytes() },
            None => PromptLookup::Missing("it was missing when the definition was pinned".into()),
        }
    }
}
