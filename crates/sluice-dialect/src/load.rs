//! From the bytes of a file to a checked definition, with everything that was found on the way.

use std::path::Path;

use sluice_core::check::{self, Checked};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::problem::{Code, Problem, Severity};
use sluice_core::recipe::Recipe;
use sluice_core::span::{FileId, Span};

use crate::format::{self, Format};
use crate::prompts::{PromptReader, PromptRoots};
use crate::read::{Syntax, read};
use crate::shape::conform;
use crate::source::{Sources, decode};
use crate::tree::Node;

/// A definition of either kind.
#[derive(Clone, Debug)]
pub enum Definition {
    /// A state machine for tasks.
    Lifecycle(Lifecycle),
    /// A graph of steps for runs.
    Recipe(Recipe),
}

/// What became of a file.
#[derive(Debug)]
pub struct Loaded {
    /// Where its text lies.
    pub file: FileId,
    /// The format it was recognised as.
    pub format: Option<Format>,
    /// The name it gives itself, even if it cannot be used.
    pub name: Option<String>,
    /// What it says it is for.
    pub description: String,
    /// The definition, unless there is an error.
    pub definition: Option<Definition>,
    /// Everything found.
    pub problems: Vec<Problem>,
}

impl Loaded {
    /// How many findings of a severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity() == severity).count()
    }
}

/// Loads the definition in `bytes`, which is shown as `path`; its prompt files lie below `roots`.
pub fn load(path: &str, bytes: &[u8], roots: &PromptRoots, sources: &mut Sources) -> Loaded {
    let next = FileId(u32::try_from(sources.len()).unwrap_or(u32::MAX));
    let decoded = decode(next, bytes);
    let file = sources.add(path, decoded.text);
    let mut loaded =
        Loaded { file, format: None, name: None, description: String::new(), definition: None, problems: Vec::new() };
    if let Some(problem) = decoded.problem {
        loaded.problems.push(problem);
        return loaded;
    }
    let syntax = Syntax::of(Path::new(path), sources.text(file));
    let reading = read(file, sources.text(file), syntax);
    loaded.problems.extend(reading.problems);
    match reading.node {
        Some(node) => lower(&node, roots, sources, &mut loaded),
        None if loaded.problems.is_empty() => {
            let span = Span::new(file, 0..0);
            loaded.problems.push(
                Problem::new(Code::UnknownFormat, span, "the file is empty")
                    .help("see `sluice workflow list` for examples"),
            );
        }
        None => {}
    }
    loaded
}

/// Compares the tree with its format's shape, and checks what it says, as far as it says anything.
fn lower(node: &Node, roots: &PromptRoots, sources: &mut Sources, loaded: &mut Loaded) {
    let format = match Format::recognise(node) {
        Ok(format) => format,
        Err(problem) => return loaded.problems.push(*problem),
    };
    loaded.format = Some(format);
    conform(node, format.shape(), &mut loaded.problems);
    let problems = &mut loaded.problems;
    let (name, description, checked) = match format {
        Format::Lifecycle => {
            let draft = format::lifecycle::lower(node, problems);
            let name = draft.name.clone();
            // Without states every name leads nowhere, which says nothing new.
            let checked = if draft.states.is_empty() { nothing() } else { check::lifecycle(draft) };
            let description = node.get("description").and_then(Node::as_text).map(|text| text.value.clone());
            (name, description.unwrap_or_default(), wrap(checked, Definition::Lifecycle))
        }
        Format::Recipe(dialect) => {
            let mut prompts = PromptReader::new(roots, sources);
            let draft = format::lower_recipe(node, dialect, &mut prompts, problems);
            (draft.name.clone(), draft.description.clone(), wrap(check::recipe(&draft), Definition::Recipe))
        }
    };
    loaded.name = name.map(|name| name.value);
    loaded.description = description;
    loaded.problems.extend(checked.problems);
    let broken = loaded.count(Severity::Error) > 0;
    loaded.definition = checked.definition.filter(|_| !broken);
}

fn nothing<T>() -> Checked<T> {
    Checked { definition: None, problems: Vec::new() }
}

fn wrap<T>(checked: Checked<T>, kind: fn(T) -> Definition) -> Checked<Definition> {
    Checked { definition: checked.definition.map(kind), problems: checked.problems }
}
