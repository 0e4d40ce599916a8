//! Takes bytes all the way: read, checked, reported in every format, drawn in every format.
//!
//! The fuzz targets in `fuzz/` and the bounded run in the normal tests share this, so that what the one finds the
//! other can keep.

use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::report::{self, ReportStyle};
use sluice_dialect::{Definition, DefinitionFile, DefinitionPin, Sources, load};

/// Panics if anything about `bytes`, as the file `path`, breaks a promise.
pub(crate) fn exercise(path: &str, bytes: &[u8]) {
    let mut sources = Sources::new();
    let source = DefinitionFile { path, bytes };
    let loaded = load(&source, &mut NoPrompts, &mut sources);
    for problem in &loaded.problems {
        let text = sources.text(problem.span.file);
        assert!(text.get(problem.span.range()).is_some(), "a place outside the file: {problem:?}");
        let position = sources.position(problem.span);
        assert!(position.line >= 1 && position.column >= 1, "{position:?}");
        assert!((position.line, position.column) <= (position.end_line, position.end_column), "{position:?}");
        assert!(!problem.message.contains('\n'), "a message of several lines: {problem:?}");
    }
    let text = report::text(&sources, &loaded.problems, ReportStyle::Plain);
    assert!(!text.contains('\u{1b}'), "an escape sequence reaches the terminal");
    report::json(&sources, &loaded.problems);
    report::sarif(&sources, &loaded.problems, &|_| None);
    assert_eq!(!loaded.is_usable(), loaded.problems.iter().any(|it| it.severity().word() == "error"));
    let pinned = DefinitionPin::of(&source, &loaded);
    assert_eq!(pinned.is_some(), loaded.definition.is_some(), "what can be made can be pinned");
    if let (Some(definition), Some(pinned)) = (&loaded.definition, pinned) {
        draw(definition);
        let again = DefinitionPin::from_bytes(&pinned.to_bytes()).expect("what was stored can be read");
        assert_eq!(again.load().definition.as_ref(), Some(definition), "it is the same when it is loaded again");
    }
}

fn draw(definition: &Definition) {
    let graph = match definition {
        Definition::Lifecycle(lifecycle) => sluice_draw::Graph::of_lifecycle(lifecycle),
        Definition::Recipe(recipe) => sluice_draw::Graph::of_recipe(recipe),
    };
    sluice_draw::text(&graph, &sluice_draw::TextStyle::default());
    sluice_draw::mermaid(&graph);
    sluice_draw::dot(&graph);
    let _ = sluice_draw::svg(&graph);
}
