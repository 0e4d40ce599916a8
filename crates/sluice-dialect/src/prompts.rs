//! Prompt files: found below their root, never outside it, and read with the same care as definitions.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use sluice_core::recipe::draft::PromptFile;
use sluice_core::span::{Run, Span, Text};

use crate::source::Sources;

/// The largest prompt file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The folders that a definition's prompt files are looked for in, in this order.
#[derive(Clone, Debug, Default)]
pub struct PromptRoots(pub Vec<PathBuf>);

impl PromptRoots {
    /// The roots of the definition at `path`: a folder `prompts` beside the definition's folder, then what holds
    /// that folder (so that `DIR/workflows/x.toml` finds `DIR/do/plan.md`), then the definition's own folder.
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

    fn find(&self, written: &str) -> Result<PathBuf, PromptFile> {
        let path = Path::new(written);
        if written.is_empty() || written.contains('\0') {
            return Err(PromptFile::Missing("that is not a path".into()));
        }
        for part in path.components() {
            match part {
                Component::Normal(_) | Component::CurDir => {}
                Component::ParentDir => return Err(PromptFile::Outside("it contains `..`".into())),
                Component::RootDir | Component::Prefix(_) => return Err(PromptFile::Outside("it is absolute".into())),
            }
        }
        for root in &self.0 {
            let candidate = root.join(path);
            let (Ok(real), Ok(real_root)) = (candidate.canonicalize(), root.canonicalize()) else { continue };
            return match real.starts_with(&real_root) {
                true => Ok(candidate),
                false => Err(PromptFile::Outside("a link leads out of it".into())),
            };
        }
        Err(PromptFile::Missing(match self.0.first() {
            Some(_) => format!("it is not in {}", shown(&self.0)),
            None => "this definition has no prompts' root".into(),
        }))
    }
}

fn shown(roots: &[PathBuf]) -> String {
    let names: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
    names.join(" or ")
}

/// Reads the prompt files of one definition, and keeps their texts for reports.
pub struct PromptReader<'a> {
    roots: &'a PromptRoots,
    sources: &'a mut Sources,
    /// What was read already: several steps may share a file.
    known: Vec<(String, PromptFile)>,
}

impl<'a> PromptReader<'a> {
    /// A reader below `roots` that adds what it reads to `sources`.
    pub fn new(roots: &'a PromptRoots, sources: &'a mut Sources) -> Self {
        PromptReader { roots, sources, known: Vec::new() }
    }

    /// What stands in the file `written`.
    pub fn read(&mut self, written: &str) -> PromptFile {
        if let Some((_, found)) = self.known.iter().find(|(path, _)| path == written) {
            return found.clone();
        }
        let found = self.read_new(written);
        self.known.push((written.to_owned(), found.clone()));
        found
    }

    fn read_new(&mut self, written: &str) -> PromptFile {
        let path = match self.roots.find(written) {
            Ok(path) => path,
            Err(found) => return found,
        };
        let bytes = match read_at_most(&path, MOST_BYTES) {
            Ok(bytes) if bytes.len() as u64 > MOST_BYTES => {
                return PromptFile::Missing(format!("it is larger than {} KiB", MOST_BYTES >> 10));
            }
            Ok(bytes) => bytes,
            Err(error) => return PromptFile::Missing(error.to_string()),
        };
        let Ok(value) = String::from_utf8(bytes) else {
            return PromptFile::Missing("it is not UTF-8 text".into());
        };
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        let file = self.sources.add(path.display().to_string(), value.clone());
        PromptFile::Read(Text {
            span: Span::new(file, 0..value.len()),
            runs: vec![Run { text: 0, file: 0, len }],
            value,
        })
    }
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
