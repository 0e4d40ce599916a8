//! The changes of a task as the page shows them: a tree of files, lines with the words that differ marked, and places for
//! comments at lines, which become one request for changes.

use std::collections::BTreeSet;

use similar::{ChangeTag, TextDiff};
use sluice_api::changes::{ChangePart, ChangedFile, Changes, CommentedPart, Hunk, HunkLine, LineChange, LineComment};

use super::wording::{address, counted, cut, escape};

/// The most lines of one page; the rest of the files is listed without lines.
const MOST_LINES: usize = 6000;
/// The longest lines whose words are compared, in bytes.
const LONGEST_COMPARED: usize = 1000;
/// The most places for comments that an address opens.
const MOST_PLACES: usize = 50;

pub(super) struct ChangesShown {
    pub(super) branch: String,
    pub(super) default_branch: String,
    pub(super) commits: Vec<(String, String, String)>,
    /// How many commits, in words.
    pub(super) count: String,
    pub(super) parts: Vec<PartShown>,
    pub(super) notes: Vec<String>,
    pub(super) may_review: bool,
    pub(super) is_empty: bool,
}

/// Committed, uncommitted, or since the last verdict.
pub(super) struct PartShown {
    pub(super) title: String,
    pub(super) word: &'static str,
    pub(super) size: String,
    pub(super) files: Vec<FileShown>,
    pub(super) is_open: bool,
}

pub(super) struct FileShown {
    pub(super) anchor: String,
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) change: &'static str,
    pub(super) added: String,
    pub(super) removed: String,
    pub(super) hunks: Vec<HunkShown>,
    pub(super) note: &'static str,
    /// What the browser keeps a mark of a viewed file by.
    pub(super) spot: String,
    /// What the file says, as a word: one that changes is not viewed any more.
    pub(super) mark: String,
}

pub(super) struct HunkShown {
    pub(super) heading: String,
    pub(super) lines: Vec<LineShown>,
}

pub(super) struct LineShown {
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) old: String,
    pub(super) new: String,
    pub(super) pieces: Vec<(bool, String)>,
    /// The place of a comment here, as [`CommentPlace`] reads it.
    pub(super) at: String,
    /// The same in words.
    pub(super) place: String,
    /// The address that opens a place for a comment here, for browsers without script.
    pub(super) link: String,
    pub(super) is_commented: bool,
}

/// A line of one side of one file in one part of the changes. As a text it is `PART:SIDE:LINE:PATH`.
pub(super) struct CommentPlace<'a> {
    part: CommentedPart,
    is_old: bool,
    line: u32,
    path: &'a str,
}

impl<'a> CommentPlace<'a> {
    pub(super) fn read(text: &'a str) -> Option<CommentPlace<'a>> {
        let mut pieces = text.splitn(4, ':');
        let (part, side, line) = (pieces.next()?, pieces.next()?, pieces.next()?.parse().ok()?);
        let part = CommentedPart::ALL.into_iter().find(|it| it.word() == part)?;
        let is_old = match side {
            "new" => false,
            "old" => true,
            _ => return None,
        };
        Some(CommentPlace { part, is_old, line, path: pieces.next()? })
    }

    fn of(part: CommentedPart, path: &'a str, line: &HunkLine) -> Option<CommentPlace<'a>> {
        let (line, is_old) = line.new.map(|new| (new, false)).or(line.old.map(|old| (old, true)))?;
        Some(CommentPlace { part, is_old, line, path })
    }

    pub(super) fn saying(&self, text: &str) -> LineComment {
        let CommentPlace { part, is_old, line, path } = *self;
        LineComment {
            file: path.to_owned(),
            line: Some(line),
            removed: is_old,
            part: Some(part),
            text: text.to_owned(),
        }
    }

    fn written(&self) -> String {
        let side = if self.is_old { "old" } else { "new" };
        format!("{}:{side}:{}:{}", self.part.word(), self.line, self.path)
    }

    fn spoken(&self) -> String {
        let side = if self.is_old { "removed line" } else { "line" };
        format!("{side} {} of {} ({})", self.line, self.path, self.part.spoken())
    }
}

/// How the lines of a page are counted, and where comments are wanted.
struct LineMaker<'a> {
    left: usize,
    path: &'a str,
    at: BTreeSet<String>,
}

impl ChangesShown {
    pub(super) fn new(changes: Changes, path: &str, at: &[String], may_review: bool) -> ChangesShown {
        let at = at.iter().take(MOST_PLACES).cloned().collect();
        let mut maker = LineMaker { left: MOST_LINES, path, at };
        let mut parts = Vec::new();
        if let Some(since) = changes.since_verdict.as_ref().filter(|since| since.committed.count > 0) {
            let verdict = since.verdict.as_deref().unwrap_or("a verdict");
            let title = format!("Since {verdict} on {}", cut(&since.verdict_commit, 10));
            parts.push(maker.part(title, CommentedPart::SinceVerdict, &since.committed, true));
        }
        let is_again = !parts.is_empty();
        parts.push(maker.part("All commits".to_owned(), CommentedPart::Committed, &changes.committed, !is_again));
        if let Some(uncommitted) = changes.uncommitted.as_ref().filter(|part| part.count > 0) {
            parts.push(maker.part("Not committed".to_owned(), CommentedPart::Uncommitted, uncommitted, true));
        }
        let commit = |commit: &sluice_api::changes::ChangeCommit| {
            (cut(&commit.id, 10).trim_end_matches('…').to_owned(), cut(&commit.subject, 200), commit.author.clone())
        };
        ChangesShown {
            is_empty: parts.iter().all(|part| part.files.is_empty()),
            count: counted(changes.commits.len(), "commit"),
            commits: changes.commits.iter().map(commit).collect(),
            branch: changes.branch,
            default_branch: changes.default_branch,
            notes: changes.notes,
            parts,
            may_review,
        }
    }
}

impl LineMaker<'_> {
    fn part(&mut self, title: String, which: CommentedPart, part: &ChangePart, is_open: bool) -> PartShown {
        let size = format!("+{} −{} in {}", part.added, part.removed, counted(part.count, "file"));
        let files = part.files.iter().enumerate().map(|(place, file)| self.file(which, place, file)).collect();
        PartShown { title, word: which.word(), size, files, is_open }
    }

    fn file(&mut self, part: CommentedPart, place: usize, file: &ChangedFile) -> FileShown {
        let count: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
        let fits = count <= self.left;
        self.left -= if fits { count } else { 0 };
        let note = match (fits, file.hunks.is_empty(), file.added) {
            (false, ..) => "The page has too many lines; look at this file in the worktree.",
            (true, true, None) => "Not a text.",
            (true, true, Some(_)) if file.cut => "Its lines were left out.",
            (true, ..) => "",
        };
        let hunks =
            if fits { file.hunks.iter().map(|hunk| self.hunk(part, &file.path, hunk)).collect() } else { Vec::new() };
        FileShown {
            anchor: format!("{}-{place}", part.word()),
            spot: format!("{}:{}", part.word(), file.path),
            mark: format!("{:016x}", file.mark()),
            path: file.path.clone(),
            before: file.before.clone(),
            change: file.change.word(),
            added: file.added.map(|count| format!("+{count}")).unwrap_or_default(),
            removed: file.removed.map(|count| format!("−{count}")).unwrap_or_default(),
            hunks,
            note,
        }
    }

    fn hunk(&self, part: CommentedPart, file: &str, hunk: &Hunk) -> HunkShown {
        let heading = format!(
            "Lines {} to {} {}",
            hunk.new_start,
            hunk.new_start + hunk.new_lines.saturating_sub(1),
            cut(&hunk.heading, 120)
        );
        let mut lines = Vec::with_capacity(hunk.lines.len());
        // Removed lines and the added ones right behind them are compared in pairs.
        let mut rest = hunk.lines.as_slice();
        while let Some(first) = rest.first() {
            let count =
                |change: LineChange, from: &[HunkLine]| from.iter().take_while(|it| it.change == change).count();
            let removed = count(LineChange::Removed, rest);
            let added = count(LineChange::Added, &rest[removed..]);
            if removed == 0 || added == 0 {
                let together = removed.max(added).max(1);
                let plain = |line: &HunkLine| self.line(part, file, line, vec![(false, line.text.clone())]);
                lines.extend(rest[..together].iter().map(plain));
                rest = &rest[together..];
                let _ = first;
                continue;
            }
            let (old, new) = (&rest[..removed], &rest[removed..removed + added]);
            let pairs: Vec<_> = old.iter().zip(new).map(|(old, new)| compared(&old.text, &new.text)).collect();
            let pieces = |place: usize, line: &HunkLine, is_new: bool| {
                let pair = pairs.get(place).map(|(old, new)| if is_new { new.clone() } else { old.clone() });
                pair.unwrap_or_else(|| vec![(false, line.text.clone())])
            };
            lines.extend(
                old.iter().enumerate().map(|(place, line)| self.line(part, file, line, pieces(place, line, false))),
            );
            lines.extend(
                new.iter().enumerate().map(|(place, line)| self.line(part, file, line, pieces(place, line, true))),
            );
            rest = &rest[removed + added..];
        }
        HunkShown { heading, lines }
    }

    fn line(&self, part: CommentedPart, file: &str, line: &HunkLine, pieces: Vec<(bool, String)>) -> LineShown {
        let (class, sign) = match line.change {
            LineChange::Same => ("same", " "),
            LineChange::Added => ("added", "+"),
            LineChange::Removed => ("removed", "−"),
        };
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let place = CommentPlace::of(part, file, line);
        let at = place.as_ref().map(CommentPlace::written).unwrap_or_default();
        let mut pairs = vec![("tab", "changes")];
        pairs.extend(self.at.iter().map(|at| ("at", at.as_str())));
        pairs.push(("at", &at));
        LineShown {
            class,
            sign,
            old: number(line.old),
            new: number(line.new),
            pieces,
            link: format!("{}#at-{}", address(self.path, &pairs), escape(&at)),
            is_commented: self.at.contains(&at),
            place: place.as_ref().map(CommentPlace::spoken).unwrap_or_default(),
            at,
        }
    }
}

/// The pieces of a line, and whether each is marked: the line that it is compared with has not got it.
type MarkedPieces = Vec<(bool, String)>;

/// The pieces of two lines.
fn compared(old: &str, new: &str) -> (MarkedPieces, MarkedPieces) {
    if old.len() > LONGEST_COMPARED || new.len() > LONGEST_COMPARED {
        return (vec![(false, old.to_owned())], vec![(false, new.to_owned())]);
    }
    let diff = TextDiff::from_words(old, new);
    let (mut before, mut after): (MarkedPieces, MarkedPieces) = (Vec::new(), Vec::new());
    let mut same = 0;
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => {
                same += change.value().trim().len();
                push(&mut before, false, change.value());
                push(&mut after, false, change.value());
            }
            ChangeTag::Delete => push(&mut before, true, change.value()),
            ChangeTag::Insert => push(&mut after, true, change.value()),
        }
    }
    // Lines that have almost nothing in common are not one line that was changed.
    if same * 4 < old.trim().len().min(new.trim().len()) {
        return (vec![(false, old.to_owned())], vec![(false, new.to_owned())]);
    }
    (before, after)
}

fn push(pieces: &mut MarkedPieces, is_marked: bool, text: &str) {
    match pieces.last_mut() {
        Some((marked, piece)) if *marked == is_marked => piece.push_str(text),
        Some(_) | None => pieces.push((is_marked, text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(pieces: &[(bool, String)]) -> String {
        pieces.iter().map(|(is_marked, text)| if *is_marked { format!("[{text}]") } else { text.clone() }).collect()
    }

    #[test]
    fn the_words_that_differ_are_marked() {
        let (old, new) = compared("let name = old_name(user);", "let name = new_name(user, 7);");
        assert_eq!(marks(&old), "let name = [old_name(user);]");
        assert_eq!(marks(&new), "let name = [new_name(user, 7);]");
        let (old, new) = compared("fn main() {", "// nothing like it");
        assert_eq!((marks(&old), marks(&new)), ("fn main() {".into(), "// nothing like it".into()));
    }

    #[test]
    fn a_pair_is_compared_and_the_rest_is_plain() {
        let line = |change, old, new, text: &str| HunkLine { change, old, new, text: text.to_owned() };
        let hunk = Hunk {
            new_start: 1,
            new_lines: 3,
            lines: vec![
                line(LineChange::Same, Some(1), Some(1), "top"),
                line(LineChange::Removed, Some(2), None, "a b c"),
                line(LineChange::Added, None, Some(2), "a b d"),
                line(LineChange::Added, None, Some(3), "new"),
            ],
            ..Hunk::default()
        };
        let maker = LineMaker { left: 10, path: "/tasks/k", at: BTreeSet::from(["committed:new:3:f".to_owned()]) };
        let shown: Vec<String> = maker
            .hunk(CommentedPart::Committed, "f", &hunk)
            .lines
            .iter()
            .map(|line| format!("{}{}{}", line.sign, marks(&line.pieces), if line.is_commented { " <" } else { "" }))
            .collect();
        assert_eq!(shown, [" top", "−a b [c]", "+a b [d]", "+new <"]);
    }

    #[test]
    fn a_place_names_part_side_line_and_file() {
        for text in ["committed:new:7:src/a:b.rs", "uncommitted:old:1:f", "since_verdict:new:3:é"] {
            assert_eq!(CommentPlace::read(text).expect("a place").written(), text);
        }
        for wrong in ["new:7:f", "committed:side:7:f", "committed:new:x:f", "other:new:7:f", "committed:new:7"] {
            assert!(CommentPlace::read(wrong).is_none(), "{wrong}");
        }
        let removed = HunkLine { change: LineChange::Removed, old: Some(2), new: None, text: String::new() };
        let spoken = |part| CommentPlace::of(part, "f", &removed).expect("a place").spoken();
        assert_eq!(spoken(CommentedPart::Committed), "removed line 2 of f (committed)");
        assert_eq!(spoken(CommentedPart::Uncommitted), "removed line 2 of f (not committed)");
    }

    #[test]
    fn a_file_that_changes_has_another_mark() {
        let file = |text: &str| {
            let line = HunkLine { change: LineChange::Added, old: None, new: Some(1), text: text.to_owned() };
            ChangedFile {
                path: "f".to_owned(),
                before: None,
                change: sluice_api::changes::FileChange::Added,
                added: Some(1),
                removed: Some(0),
                hunks: vec![Hunk { lines: vec![line], ..Hunk::default() }],
                cut: false,
            }
        };
        assert_eq!(file("one").mark(), file("one").mark());
        assert_ne!(file("one").mark(), file("two").mark());
        assert_ne!(file("one").mark(), ChangedFile { before: Some("old".to_owned()), ..file("one") }.mark());
    }
}
