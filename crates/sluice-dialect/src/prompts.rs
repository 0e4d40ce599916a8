//! Prompt files: found below their root, never outside it, and read with the same care as definitions.
//!
//! [`PromptSource`] says where their bytes come from: [`PromptRoots`] opens files, [`HeldPrompts`] asks whoever holds them,
//! a pinned definition has its own.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sluice_core::recipe::draft::PromptFileDraft;
use sluice_core::span::{FileId, SourceText, Span, TextRun};

use crate::source::{Sources, decode, offset};

const MOST_BYTES: usize = 1 << 20;
/// The most bytes of all prompt files of one definition together.
pub const MOST_BYTES_TOGETHER: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptLookup {
    File {
        shown: String,
        /// What is in it; of one that is too large, enough to see that.
        bytes: Vec<u8>,
    },
    /// Nothing that can be read, for this reason.
    Missing(String),
    /// A way out of the root, for this reason.
    Outside(String),
}

pub trait PromptSource {
    /// The file that a definition calls `written`. Asked once for each.
    fn find(&mut self, written: &str) -> PromptLookup;
}

#[derive(Clone, Copy, Debug)]
pub struct NoPrompts;

impl PromptSource for NoPrompts {
    fn find(&mut self, _: &str) -> PromptLookup {
        PromptLookup::Missing("this definition has no prompts' root".into())
    }
}

/// The folders that a definition's prompt files are looked for in, in this order.
#[derive(Clone, Debug, Default)]
pub struct PromptRoots(pub Vec<PathBuf>);

impl PromptRoots {
    /// The roots of the definition at `path`. In a collection (`DIR/workflows/x.toml`) they are `DIR/prompts` and then
    /// `DIR` itself, so that it finds `DIR/do/plan.md`; elsewhere `prompts` beside the definition, then its own folder.
    pub fn of(path: &Path) -> Self {
        let here = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let in_collection =
            here.file_name().is_some_and(|name| name == "workflows" || name == "grimoires" || name == "templates");
        match here.parent().filter(|_| in_collection) {
            Some(above) => {
                let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
                PromptRoots(vec![above.join("prompts"), above.to_owned()])
            }
            None => PromptRoots(vec![here.join("prompts"), here.to_owned()]),
        }
    }

    /// The real path of a file below a root, and the path to show for it. The real one is the one to open: a link
    /// that is turned round after the look must not lead out.
    fn locate(&self, written: &str) -> Result<(PathBuf, PathBuf), PromptLookup> {
        let path = inside(written)?;
        for root in &self.0 {
            let candidate = root.join(path);
            let (Ok(real), Ok(real_root)) = (candidate.canonicalize(), root.canonicalize()) else { continue };
            return match real.starts_with(&real_root) {
                true => Ok((real, candidate)),
                false => Err(PromptLookup::Outside("a link leads out of it".into())),
            };
        }
        Err(match self.0.first() {
            Some(_) => PromptLookup::Missing(format!("it is not in {}", shown(&self.0))),
            None => NoPrompts.find(written),
        })
    }
}

impl PromptSource for PromptRoots {
    fn find(&mut self, written: &str) -> PromptLookup {
        let (real, candidate) = match self.locate(written) {
            Ok(found) => found,
            Err(found) => return found,
        };
        match read_at_most(&real, MOST_BYTES as u64) {
            Ok(bytes) => PromptLookup::File { shown: candidate.display().to_string(), bytes },
            Err(error) => PromptLookup::Missing(error.to_string()),
        }
    }
}

/// Prompt files that something else than a folder holds: a commit, say. `read` gives what is at a path, if something is.
pub struct HeldPrompts<F> {
    roots: PromptRoots,
    read: F,
}

impl<F: FnMut(&Path) -> std::io::Result<Option<Vec<u8>>>> HeldPrompts<F> {
    /// Those of the definition that is held at `path`.
    pub fn of(path: &Path, read: F) -> Self {
        HeldPrompts { roots: PromptRoots::of(path), read }
    }
}

impl<F: FnMut(&Path) -> std::io::Result<Option<Vec<u8>>>> PromptSource for HeldPrompts<F> {
    fn find(&mut self, written: &str) -> PromptLookup {
        let path = match inside(written) {
            Ok(path) => path,
            Err(found) => return found,
        };
        for root in &self.roots.0 {
            let joined = root.join(path);
            let plain: PathBuf = joined.components().filter(|part| *part != Component::CurDir).collect();
            match (self.read)(&plain) {
                Ok(Some(bytes)) => return PromptLookup::File { shown: plain.display().to_string(), bytes },
                Ok(None) => {}
                Err(error) => return PromptLookup::Missing(error.to_string()),
            }
        }
        PromptLookup::Missing(format!("it is not in {}", shown(&self.roots.0)))
    }
}

/// A path that leads to nothing above or beside its root.
fn inside(written: &str) -> Result<&Path, PromptLookup> {
    if written.is_empty() || written.contains('\0') {
        return Err(PromptLookup::Missing("that is not a path".into()));
    }
    let path = Path::new(written);
    for part in path.components() {
        match part {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return Err(PromptLookup::Outside("it contains `..`".into())),
            Component::RootDir | Component::Prefix(_) => return Err(PromptLookup::Outside("it is absolute".into())),
        }
    }
    Ok(path)
}

fn shown(roots: &[PathBuf]) -> String {
    let names: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
    names.join(" or ")
}

/// Reads the prompt files of one definition, and keeps their texts for reports.
pub struct PromptReader<'a> {
    from: &'a mut dyn PromptSource,
    sources: &'a mut Sources,
    /// What was read already: several steps may share a file.
    known: BTreeMap<String, PromptFileDraft>,
    read: Vec<(String, Vec<u8>)>,
    bytes: usize,
    is_full: bool,
}

impl<'a> PromptReader<'a> {
    /// A reader of the files in `from` that adds what it reads to `sources`.
    pub fn new(from: &'a mut dyn PromptSource, sources: &'a mut Sources) -> Self {
        PromptReader { from, sources, known: BTreeMap::new(), read: Vec::new(), bytes: 0, is_full: false }
    }

    pub fn read(&mut self, written: &str) -> PromptFileDraft {
        if let Some(found) = self.known.get(written) {
            return found.clone();
        }
        let found = match self.look_for(written) {
            PromptLookup::File { shown, bytes } => self.file(written, shown, bytes),
            PromptLookup::Missing(reason) => PromptFileDraft::Missing(reason),
            PromptLookup::Outside(reason) => PromptFileDraft::Outside(reason),
        };
        self.known.insert(written.to_owned(), found.clone());
        found
    }

    /// Once there is too much, nothing more is opened.
    fn look_for(&mut self, written: &str) -> PromptLookup {
        match self.is_full {
            true => PromptLookup::Missing(too_much()),
            false => self.from.find(written),
        }
    }

    /// The files that could be read, each once, in the order of the definition.
    pub fn finish(self) -> Vec<(String, Vec<u8>)> {
        self.read
    }

    fn file(&mut self, written: &str, shown: String, bytes: Vec<u8>) -> PromptFileDraft {
        if bytes.len() > MOST_BYTES {
            return PromptFileDraft::Missing(format!("it is larger than {} KiB", MOST_BYTES >> 10));
        }
        if self.bytes + bytes.len() > MOST_BYTES_TOGETHER {
            self.is_full = true;
            return PromptFileDraft::Missing(too_much());
        }
        let decoded = decode(FileId(0), &bytes);
        if let Some(problem) = decoded.problem {
            return PromptFileDraft::Missing(problem.message);
        }
        self.bytes += bytes.len();
        self.read.push((written.to_owned(), bytes));
        let value = decoded.text;
        let file = self.sources.add(shown, value.clone());
        PromptFileDraft::Read(Arc::new(SourceText {
            span: Span::new(file, 0..value.len()),
            runs: vec![TextRun { text: 0, file: 0, len: offset(value.len()) }],
            value,
        }))
    }
}

fn too_much() -> String {
    format!("the prompt files of this definition have more than {} MiB together", MOST_BYTES_TOGETHER >> 20)
}

/// The first `most` bytes of a regular file, and one more if there are more.
pub fn read_at_most(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many files as one wants, each of these bytes.
    struct Always(Vec<u8>);

    impl PromptSource for Always {
        fn find(&mut self, written: &str) -> PromptLookup {
            PromptLookup::File { shown: written.into(), bytes: self.0.clone() }
        }
    }

    fn read(bytes: &[u8]) -> Result<String, String> {
        let (mut from, mut sources) = (Always(bytes.to_vec()), Sources::new());
        match PromptReader::new(&mut from, &mut sources).read("a.md") {
            PromptFileDraft::Read(text) => Ok(text.value.clone()),
            PromptFileDraft::Missing(reason) | PromptFileDraft::Outside(reason) => Err(reason),
        }
    }

    #[test]
    fn files_are_decoded_as_definitions_are() {
        assert_eq!(read("\u{FEFF}do it".as_bytes()), Ok("do it".into()));
        assert_eq!(read(b"do\0it"), Err("there is a NUL byte in the file".into()));
        assert_eq!(read(b"do \xFF it"), Err("the byte 0xFF is not UTF-8 here".into()));
        assert_eq!(read(&vec![b'a'; MOST_BYTES + 1]), Err("it is larger than 1024 KiB".into()));
    }

    #[test]
    fn all_files_together_have_a_limit_and_each_counts_once() {
        let (mut from, mut sources) = (Always(vec![b'a'; MOST_BYTES]), Sources::new());
        let mut reader = PromptReader::new(&mut from, &mut sources);
        for turn in 0..3 {
            for file in 0..17 {
                let found = reader.read(&format!("{file}.md"));
                assert_eq!(matches!(found, PromptFileDraft::Read(_)), file < 16, "{file} in turn {turn}");
            }
        }
        assert_eq!(reader.finish().len(), 16);
    }
}
