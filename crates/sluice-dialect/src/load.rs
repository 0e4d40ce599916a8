//! From the bytes of a file to a checked definition, with everything that was found on the way.
//!
//! It opens nothing: the bytes of prompt files are asked of a [`PromptSource`], so that a definition can be loaded
//! again, the same, from what was stored of it.

use std::path::Path;

use sluice_core::check;
use sluice_core::findings::CheckFindings;
use sluice_core::lifecycle::Lifecycle;
use sluice_core::problem::{Code, Diagnosis, Severity};
use sluice_core::recipe::Recipe;
use sluice_core::span::{FileId, Span};

use crate::format::{self, DefinitionFormat};
use crate::prompts::{PromptReader, PromptSource};
use crate::read::{FileSyntax, read};
use crate::shape::conform;
use crate::source::{Sources, decode};
use crate::tree::Node;

#[derive(Clone, Copy, Debug)]
pub struct DefinitionFile<'a> {
    /// The path to show for it; its end says which language it is written in.
    pub path: &'a str,
    pub bytes: &'a [u8],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// A state machine for tasks.
    Lifecycle(Lifecycle),
    /// A graph of steps for runs.
    Recipe(Recipe),
}

#[derive(Debug, Default)]
pub struct LoadedDefinition {
    pub file: FileId,
    pub format: Option<DefinitionFormat>,
    /// The name it gives itself, even if it cannot be used.
    pub name: Option<String>,
    pub description: String,
    /// The definition, whenever one can be made. With an error it must not be started; see [`LoadedDefinition::is_usable`].
    pub definition: Option<Definition>,
    /// The prompt files that were read, as written, each once.
    pub prompts: Vec<(String, Vec<u8>)>,
    pub problems: Vec<Diagnosis>,
}

impl LoadedDefinition {
    /// A file of which only this can be said.
    pub(crate) fn broken(file: FileId, problem: Diagnosis) -> Self {
        LoadedDefinition { file, problems: vec![problem], ..LoadedDefinition::default() }
    }

    /// Whether tasks and runs may be started with it: there is a definition, and no error.
    pub fn is_usable(&self) -> bool {
        self.definition.is_some() && self.count(Severity::Error) == 0
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity() == severity).count()
    }
}

/// Loads the definition in `source`; its prompt files are those of `prompts`.
pub fn load(source: &DefinitionFile<'_>, prompts: &mut dyn PromptSource, sources: &mut Sources) -> LoadedDefinition {
    let decoded = decode(sources.next_id(), source.bytes);
    let file = sources.add(source.path, decoded.text);
    if let Some(problem) = decoded.problem {
        return LoadedDefinition::broken(file, problem);
    }
    let syntax = FileSyntax::of(Path::new(source.path), sources.text(file));
    let reading = read(file, sources.text(file), syntax);
    let mut findings = CheckFindings::new();
    reading.problems.into_iter().for_each(|problem| findings.hole(problem));
    let mut loaded = LoadedDefinition { file, ..LoadedDefinition::default() };
    match reading.node {
        Some(node) => lower(&node, prompts, sources, &mut loaded, &mut findings),
        None if findings.count() == 0 => findings.hole(
            Diagnosis::new(Code::UnknownFormat, Span::new(file, 0..0), "the file is empty")
                .help("see `sluice workflow list` for examples"),
        ),
        None => {}
    }
    loaded.problems = findings.finish();
    loaded
}

/// Compares the tree with its format's shape, and checks what it says, as far as it says anything.
fn lower(
    node: &Node,
    prompts: &mut dyn PromptSource,
    sources: &mut Sources,
    loaded: &mut LoadedDefinition,
    findings: &mut CheckFindings,
) {
    let format = match DefinitionFormat::recognise(node) {
        Ok(format) => format,
        Err(problem) => return findings.hole(*problem),
    };
    loaded.format = Some(format);
    conform(node, format.shape(), findings);
    match format {
        DefinitionFormat::Lifecycle => {
            let draft = format::lifecycle::lower(node, findings);
            loaded.name = draft.name.as_ref().map(|name| name.value.clone());
            let description = node.get("description").and_then(Node::as_text).map(|text| text.value.clone());
            loaded.description = description.unwrap_or_default();
            // Without states every name leads nowhere, which says nothing new.
            if !draft.states.is_empty() {
                loaded.definition = check::lifecycle::check(draft, findings).map(Definition::Lifecycle);
            }
        }
        DefinitionFormat::Recipe(dialect) => {
            let mut reader = PromptReader::new(prompts, sources);
            let draft = format::lower_recipe(node, dialect, &mut reader, findings);
            loaded.prompts = reader.finish();
            loaded.name = draft.name.as_ref().map(|name| name.value.clone());
            loaded.description.clone_from(&draft.description);
            loaded.definition = check::recipe::check(&draft, findings).map(Definition::Recipe);
        }
    }
}
