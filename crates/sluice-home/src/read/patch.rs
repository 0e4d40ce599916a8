//! A patch of git, taken apart for screens: files, hunks, and lines with their numbers. What is too much is left out, and the
//! answer says so. No character of it is a command to a terminal.

use sluice_api::changes::{
    CHANGED_LINE_BYTES, CHANGED_LINES, ChangePart, ChangedFile, FileChange, Hunk, HunkLine, LineChange,
};
use sluice_os::git::{DiffRead, DiffedFile};

/// A difference, as screens show it. The files of its list and of its patch come in the same order.
pub(crate) fn part(read: DiffRead) -> ChangePart {
    let DiffRead { files, count, patch, is_cut } = read;
    let mut sections = PatchReader::default().sections(&patch).into_iter();
    let mut left_out = is_cut || count > files.len();
    let sum = |of: fn(&DiffedFile) -> Option<u64>| files.iter().filter_map(of).sum();
    let (added, removed) = (sum(|file| file.added), sum(|file| file.removed));
    let file = |it: DiffedFile| {
        let section = sections.next();
        // A file without a section stands behind the end of a patch that was cut.
        let cut = section.as_ref().map_or(is_cut, |section| section.is_cut);
        let section = section.unwrap_or_default();
        let DiffedFile { path, before, added, removed } = it;
        let change = match section.change {
            FileChange::Changed if before.is_some() => FileChange::Renamed,
            change => change,
        };
        ChangedFile {
            path: plain(&path),
            before: before.as_deref().map(plain),
            change,
            added,
            removed,
            hunks: section.hunks,
            cut,
        }
    };
    let files: Vec<ChangedFile> = files.into_iter().map(file).collect();
    left_out |= files.iter().any(|file| file.cut);
    ChangePart { files, count, added, removed, cut: left_out }
}

/// What a patch says of one file.
struct PatchSection {
    change: FileChange,
    hunks: Vec<Hunk>,
    is_cut: bool,
}

impl Default for PatchSection {
    fn default() -> PatchSection {
        PatchSection { change: FileChange::Changed, hunks: Vec::new(), is_cut: false }
    }
}

/// Where a reader of a patch stands.
#[derive(Default)]
struct PatchReader {
    sections: Vec<PatchSection>,
    /// Lines of all hunks.
    lines: usize,
    /// Lines of the present hunk that are still to come, and the numbers of the next, in the old and the new file.
    old: (u32, u32),
    new: (u32, u32),
}

impl PatchReader {
    fn sections(mut self, patch: &str) -> Vec<PatchSection> {
        for line in patch.split('\n') {
            if self.old.0 > 0 || self.new.0 > 0 {
                self.line(line);
            } else if line.strip_prefix("diff ").is_some_and(|rest| rest.starts_with("--git ")) {
                self.sections.push(PatchSection::default());
            } else if let Some(hunk) = line.strip_prefix("@@ ").and_then(read_hunk) {
                (self.old, self.new) = ((hunk.old_lines, hunk.old_start), (hunk.new_lines, hunk.new_start));
                self.sections.last_mut().into_iter().for_each(|section| section.hunks.push(hunk.clone()));
            } else if let Some(section) = self.sections.last_mut() {
                section.change = change(line).unwrap_or(section.change);
            }
        }
        // The end of a patch that was cut is in the middle of a hunk.
        if self.old.0 > 0 || self.new.0 > 0 {
            self.sections.last_mut().into_iter().for_each(|section| section.is_cut = true);
        }
        self.sections
    }

    fn line(&mut self, line: &str) {
        let (first, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
        let change = match first {
            "+" => LineChange::Added,
            "-" => LineChange::Removed,
            // `\ No newline at end of file` is no line of either file.
            "\\" => return,
            _ => LineChange::Same,
        };
        let old = (change != LineChange::Added).then(|| next(&mut self.old));
        let new = (change != LineChange::Removed).then(|| next(&mut self.new));
        let Some(section) = self.sections.last_mut() else { return };
        self.lines += 1;
        if self.lines > CHANGED_LINES {
            section.is_cut = true;
            return;
        }
        let (text, is_cut) = shortened(rest);
        section.is_cut |= is_cut;
        section
            .hunks
            .last_mut()
            .into_iter()
            .for_each(|hunk| hunk.lines.push(HunkLine { change, old, new, text: text.clone() }));
    }
}

/// The number of the next line, which is one of those still to come.
fn next((left, number): &mut (u32, u32)) -> u32 {
    *left = left.saturating_sub(1);
    let this = *number;
    *number = number.saturating_add(1);
    this
}

/// `-12,5 +12,7 @@ fn main() {`
fn read_hunk(text: &str) -> Option<Hunk> {
    let (ranges, heading) = text.split_once(" @@")?;
    let (old, new) = ranges.split_once(' ')?;
    let range = |text: &str, sign: char| {
        let text = text.strip_prefix(sign)?;
        let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, lines.parse().ok()?))
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (range(old, '-')?, range(new, '+')?);
    let heading = shortened(heading.trim()).0;
    Some(Hunk { old_start, old_lines, new_start, new_lines, heading, lines: Vec::new() })
}

fn change(line: &str) -> Option<FileChange> {
    let begins = [
        ("new file mode ", FileChange::Added),
        ("deleted file mode ", FileChange::Removed),
        ("rename from ", FileChange::Renamed),
        ("copy from ", FileChange::Copied),
    ];
    begins.into_iter().find(|(begin, _)| line.starts_with(begin)).map(|(_, change)| change)
}

/// A line that fits, and whether it is not all of it.
fn shortened(text: &str) -> (String, bool) {
    let end = text.floor_char_boundary(CHANGED_LINE_BYTES);
    let shown = plain(&text[..end]);
    if end < text.len() { (format!("{shown}…"), true) } else { (shown, false) }
}

/// A text in which what would steer a terminal, or turn the direction of writing, is a picture.
pub(crate) fn plain(text: &str) -> String {
    let picture = |it: char| match it {
        '\t' => it,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + it as u32).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        it => it,
    };
    text.chars().map(picture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> DiffedFile {
        DiffedFile { path: path.into(), before: None, added: Some(1), removed: Some(1) }
    }

    #[test]
    fn lines_have_their_numbers_in_both_files() {
        let patch = "diff --git a/one b/one\nindex 1..2 100644\n--- a/one\n+++ b/one\n@@ -3,3 +3,4 @@ fn main() {\n same\n\
                     --- looks like a header\n+++ so does this\n+new\n last\n@@ -20 +21 @@\n-old\n\\ No newline at end of file\n\
                     +now\ndiff --git a/two b/two\nnew file mode 100644\n--- /dev/null\n+++ b/two\n@@ -0,0 +1 @@\n+\u{1b}[31mred\u{202e}\r\n";
        let files = vec![file("one"), file("two")];
        let read = DiffRead { files, count: 2, patch: patch.into(), is_cut: false };
        let mut seen = String::new();
        for file in part(read).files {
            seen.push_str(&format!("{} {} {}\n", file.path, file.change, file.cut));
            for hunk in file.hunks {
                seen.push_str(&format!("@ {:?}\n", hunk.heading));
                for HunkLine { change, old, new, text } in hunk.lines {
                    let number = |it: Option<u32>| it.map_or("-".to_owned(), |it| it.to_string());
                    seen.push_str(&format!("{} {} {change} {text}\n", number(old), number(new)));
                }
            }
        }
        let expected = "one changed false\n@ \"fn main() {\"\n3 3 same same\n4 - removed -- looks like a header\n\
                        - 4 added ++ so does this\n- 5 added new\n5 6 same last\n@ \"\"\n20 - removed old\n- 21 added now\n\
                        two added false\n@ \"\"\n- 1 added ␛[31mred\u{fffd}␍\n";
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_too_much_is_left_out_and_said_to_be() {
        let long = "x".repeat(CHANGED_LINE_BYTES + 1);
        let many = "+y\n".repeat(CHANGED_LINES + 5);
        let count = CHANGED_LINES + 6;
        let patch =
            format!("diff --git a/a b/a\n@@ -0,0 +1,{count} @@\n+{long}\n{many}diff --git a/b b/b\n@@ -1 +1 @@\n-z\n");
        let read = DiffRead { files: vec![file("a"), file("b"), file("c")], count: 3, patch, is_cut: true };
        let part = part(read);
        let lines: usize = part.files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.lines.len()).sum();
        assert_eq!((part.cut, lines), (true, CHANGED_LINES));
        assert!(part.files.iter().all(|file| file.cut), "the third file stands behind the end of the patch");
        assert!(part.files[0].hunks[0].lines[0].text.ends_with('…'));
    }
}
