//! A diff as a person reads it: which part, which line, which files are done with, and the comments that wait to be sent.

use std::collections::BTreeMap;

use sluice_api::changes::{ChangePart, ChangedFile, Changes, HunkLine, LineChange, LineComment};

/// Which part of the changes is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DiffPart {
    /// Everything that the branch has committed.
    #[default]
    Committed,
    /// What came since the last verdict.
    SinceVerdict,
    /// What no commit has.
    Uncommitted,
}

impl DiffPart {
    pub(crate) const ALL: &[DiffPart] = &[DiffPart::Committed, DiffPart::SinceVerdict, DiffPart::Uncommitted];

    pub(crate) fn of(self, changes: &Changes) -> Option<&ChangePart> {
        match self {
            DiffPart::Committed => Some(&changes.committed),
            DiffPart::SinceVerdict => changes.since_verdict.as_ref().map(|since| &since.committed),
            DiffPart::Uncommitted => changes.uncommitted.as_ref().filter(|part| part.count > 0),
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            DiffPart::Committed => "all commits",
            DiffPart::SinceVerdict => "since the last verdict",
            DiffPart::Uncommitted => "not committed",
        }
    }
}

/// A line of the diff as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffLine {
    /// The head of a file.
    File(usize),
    /// The head of a hunk: file and hunk.
    Hunk(usize, usize),
    /// A line: file, hunk and line.
    Line(usize, usize, usize),
}

impl DiffLine {
    pub(crate) fn file(self) -> usize {
        match self {
            DiffLine::File(file) | DiffLine::Hunk(file, _) | DiffLine::Line(file, ..) => file,
        }
    }
}

/// Where a comment stands: the file, and the line with whether it is one of the old file.
pub(crate) type Spot = (String, Option<(u32, bool)>);

/// What a person has done with the diff of one task or run. It stays when the screen is left.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiffReading {
    pub(crate) part: DiffPart,
    /// The line at which the person is.
    pub(crate) at: usize,
    /// The files that were read, each with the mark of what it said then.
    viewed: BTreeMap<String, u64>,
    /// The comments that wait, by place.
    pub(crate) comments: BTreeMap<Spot, String>,
}

impl DiffReading {
    /// The part that is shown: the one that was chosen, if it is there.
    pub(crate) fn part<'a>(&self, changes: &'a Changes) -> &'a ChangePart {
        self.part.of(changes).unwrap_or(&changes.committed)
    }

    /// The lines, in order; those of a file that is viewed are folded away.
    pub(crate) fn lines(&self, changes: &Changes) -> Vec<DiffLine> {
        let mut lines = Vec::new();
        for (file, changed) in self.part(changes).files.iter().enumerate() {
            lines.push(DiffLine::File(file));
            if self.is_viewed(changed) {
                continue;
            }
            for (hunk, shown) in changed.hunks.iter().enumerate() {
                lines.push(DiffLine::Hunk(file, hunk));
                lines.extend((0..shown.lines.len()).map(|line| DiffLine::Line(file, hunk, line)));
            }
        }
        lines
    }

    pub(crate) fn is_viewed(&self, file: &ChangedFile) -> bool {
        self.viewed.get(&file.path).is_some_and(|viewed| *viewed == file.mark())
    }

    /// The next part that there is.
    pub(crate) fn next_part(&mut self, changes: &Changes) {
        let there: Vec<DiffPart> = DiffPart::ALL.iter().copied().filter(|part| part.of(changes).is_some()).collect();
        let at = there.iter().position(|part| *part == self.part).map_or(0, |at| at + 1);
        self.part = there.get(at).or(there.first()).copied().unwrap_or_default();
        self.at = 0;
    }

    pub(crate) fn step(&mut self, changes: &Changes, by: isize) {
        let last = self.lines(changes).len().saturating_sub(1);
        self.at = self.at.min(last).saturating_add_signed(by).min(last);
    }

    /// The line at which the person is.
    pub(crate) fn here(&self, changes: &Changes) -> Option<DiffLine> {
        let lines = self.lines(changes);
        lines.get(self.at.min(lines.len().saturating_sub(1))).copied()
    }

    /// To the head of the next file, or of the one before.
    pub(crate) fn next_file(&mut self, changes: &Changes, is_forward: bool) {
        let Some(here) = self.here(changes) else { return };
        let file = if is_forward { here.file() + 1 } else { here.file().saturating_sub(1) };
        let head = self.lines(changes).iter().position(|line| *line == DiffLine::File(file));
        self.at = head.unwrap_or(self.at);
    }

    /// Marks the file as viewed, or not; from one that is viewed it goes on to the next.
    pub(crate) fn toggle_viewed(&mut self, changes: &Changes) {
        let Some(here) = self.here(changes) else { return };
        let Some(file) = self.part(changes).files.get(here.file()) else { return };
        if self.is_viewed(file) {
            self.viewed.remove(&file.path);
            return;
        }
        self.viewed.insert(file.path.clone(), file.mark());
        let next = |line: &DiffLine| *line == DiffLine::File(here.file() + 1);
        let lines = self.lines(changes);
        let head = |line: &DiffLine| *line == DiffLine::File(here.file());
        self.at = lines.iter().position(next).or_else(|| lines.iter().position(head)).unwrap_or_default();
    }

    /// Where a comment at this line stands.
    pub(crate) fn spot(&self, changes: &Changes) -> Option<Spot> {
        let here = self.here(changes)?;
        let file = self.part(changes).files.get(here.file())?;
        let line = match here {
            DiffLine::File(_) | DiffLine::Hunk(..) => None,
            DiffLine::Line(_, hunk, line) => file.hunks.get(hunk)?.lines.get(line).and_then(line_number),
        };
        Some((file.path.clone(), line))
    }

    /// The comments as they are sent.
    pub(crate) fn gathered(&self) -> Vec<LineComment> {
        let comment = |((file, line), text): (&Spot, &String)| LineComment {
            file: file.clone(),
            line: line.map(|(number, _)| number),
            removed: line.is_some_and(|(_, removed)| removed),
            part: None,
            text: text.clone(),
        };
        self.comments.iter().map(comment).collect()
    }
}

/// The number of a line, and whether it is one of the old file.
pub(crate) fn line_number(line: &HunkLine) -> Option<(u32, bool)> {
    match line.change {
        LineChange::Removed => line.old.map(|number| (number, true)),
        LineChange::Same | LineChange::Added => line.new.map(|number| (number, false)),
    }
}
