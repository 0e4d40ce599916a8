//! What can be wrong with a definition: the codes, how grave each is, and one finding of it.
//!
//! A code never changes its meaning and is never used again. Each has a page in `docs/problems/`.

use crate::span::Span;
use crate::words::words;

words! {
    /// How much a finding weighs.
    Severity {
        /// The definition cannot be used.
        Error = "error",
        /// The definition can be used; it will probably not do what its author wants.
        Warning = "warning",
        /// Nothing is wrong; worth knowing. Never counted as a finding.
        Note = "note",
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $severity:ident;)+) => {
        /// The kind of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every code there is, in order.
            pub const ALL: &[Code] = &[$(Code::$name,)+];

            /// The code as people see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            /// How much a finding with this code weighs.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)+ }
            }

            /// One line: what this code says about a file.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

codes! {
    // Reading a file.
    /// The file is larger than a definition may be.
    FileTooLarge = "S0001", Error;
    /// The file is not UTF-8 text.
    NotText = "S0002", Error;
    /// The file is not valid YAML or TOML.
    Syntax = "S0003", Error;
    /// The file nests or repeats more than a definition may.
    TooMuchStructure = "S0004", Error;
    /// The file is none of the formats that Sluice reads.
    UnknownFormat = "S0005", Error;
    /// A key is written twice.
    DuplicateKey = "S0006", Error;
    /// A key that this format does not have.
    UnknownKey = "S0007", Error;
    /// A value of the wrong type.
    WrongType = "S0008", Error;
    /// A key that must be there is missing.
    MissingKey = "S0009", Error;
    /// A value that is not one of those allowed.
    NotAChoice = "S0010", Error;
    /// A name that is not well formed.
    BadName = "S0011", Error;
    /// A number, size or duration that cannot be used.
    BadQuantity = "S0012", Error;
    /// Keys that do not go together.
    KeyConflict = "S0013", Error;

    // Lifecycles. The first nine are the rules of the format's first description, in its order.
    /// A transition leads to a state that does not exist.
    UnknownTarget = "S0101", Error;
    /// A transition starts from a state that does not exist.
    UnknownSource = "S0102", Error;
    /// A transition leaves a terminal state.
    LeavesTerminal = "S0103", Error;
    /// A hook names a prompt that does not exist.
    UnknownPrompt = "S0104", Error;
    /// A state names a respawn prompt that does not exist.
    UnknownRespawnPrompt = "S0105", Error;
    /// An exit rule advances to a state that does not exist.
    UnknownRuleTarget = "S0106", Error;
    /// Two clauses can hold at once.
    Overlap = "S0107", Error;
    /// A guard cannot be read.
    BadGuard = "S0108", Error;
    /// The clauses of an exit rule leave a gap.
    Gap = "S0109", Error;
    /// An exit rule watches a state that does not exist.
    UnknownRuleState = "S0110", Error;
    /// A guard reads a field that no task has.
    UnknownField = "S0111", Error;
    /// A state from which no terminal state can be reached.
    NoWayOut = "S0112", Error;
    /// A state that no task can reach.
    UnreachableState = "S0113", Warning;
    /// A verdict that no transition takes.
    VerdictNotTaken = "S0114", Warning;
    /// The guards on a verdict's transitions leave a gap.
    VerdictGap = "S0115", Warning;
    /// A loop that agents can go round for ever.
    EndlessLoop = "S0116", Warning;
    /// `stuck_after` without a state `stuck`.
    NoStuckState = "S0117", Warning;
    /// A workspace is still bound at the end.
    WorkspaceKept = "S0118", Warning;
    /// A session is still alive at the end.
    SessionKept = "S0119", Warning;
    /// An exit rule advances along a transition that does not exist.
    NoSuchMove = "S0120", Warning;
    /// A guard that can never hold.
    NeverHolds = "S0121", Warning;
    /// The run of a state leads to a state that does not exist.
    UnknownRunTarget = "S0122", Error;
    /// The run of a state leads along a transition that does not exist.
    NoRunMove = "S0123", Error;
    /// A run that is never started.
    RunNeverStarts = "S0124", Error;

    // Recipes.
    /// Two steps or inputs have the same name.
    DuplicateName = "S0201", Error;
    /// A reference to a step that does not exist.
    UnknownStep = "S0202", Error;
    /// Steps that wait for each other.
    Cycle = "S0203", Error;
    /// A condition cannot be read.
    BadCondition = "S0204", Error;
    /// A condition reads a step that does not come before.
    NotUpstream = "S0205", Error;
    /// A condition waits for a value that its step never gives.
    NobodyGives = "S0206", Error;
    /// A step that can never run.
    UnreachableStep = "S0207", Warning;
    /// A loop that leads to no earlier step.
    BadLoop = "S0208", Error;
    /// A loop without a bound.
    UnboundedLoop = "S0209", Error;
    /// A default that does not fit its input's type.
    BadDefault = "S0210", Error;
    /// A trigger waits for an event that Sluice does not record.
    UnknownEvent = "S0211", Warning;
    /// An agent that may do everything in the checkout, without the file saying so.
    UnsaidPermissions = "S0212", Error;

    // Texts: prompts, commands, variables.
    /// A variable that nothing defines.
    UnknownVariable = "S0301", Error;
    /// A variable that is given too late.
    VariableTooLate = "S0302", Error;
    /// A placeholder that cannot be read.
    BadPlaceholder = "S0303", Error;
    /// A variable where the shell would not expand it.
    VariableNotExpanded = "S0304", Error;
    /// A prompt file outside its root.
    PromptOutsideRoot = "S0305", Error;
    /// A prompt file that is missing or cannot be read.
    PromptFileMissing = "S0306", Warning;

    // Notes.
    /// A loop that goes on as long as people want it to.
    PeopleLoop = "S0901", Note;
    /// A rule that can never fire.
    DeadRule = "S0902", Note;
    /// A hook that never has an effect.
    IdleHook = "S0903", Note;
    /// The greatest number of agent starts.
    AgentStarts = "S0904", Note;
    /// A counter that goes up before the agent it counts is started.
    CountedFirst = "S0905", Note;
    /// Conditions that are too entangled to be judged.
    Undecided = "S0906", Note;
    /// A word in braces that is almost a variable.
    WordInBraces = "S0907", Note;
    /// A command that may do what a person may.
    ActsAsPerson = "S0910", Note;
    /// Work in the checkout itself.
    InCheckout = "S0911", Note;
}

impl Code {
    /// The code written as `text`, in any case.
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}

/// A second place that helps to see the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagnosisLabel {
    /// The place that the label points at.
    pub span: Span,
    /// What the reader is told about that place.
    pub text: String,
}

/// One finding about a file: what is wrong, where, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The finding's code, which decides its severity and has a page of its own.
    pub code: Code,
    /// What is wrong, naming the thing; one line, no full stop.
    pub message: String,
    /// The place of the offending value in the file.
    pub span: Span,
    /// A word or two at the offending value itself; may be empty.
    pub label: String,
    /// Other places that matter.
    pub others: Vec<DiagnosisLabel>,
    /// Facts that explain it, such as the path that shows it.
    pub notes: Vec<String>,
    /// How the author can mend it; `None` when there is nothing to say.
    pub help: Option<String>,
}

impl Diagnosis {
    /// A finding of `code` at `span`.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnosis {
            code,
            message: one_line(message),
            span,
            label: String::new(),
            others: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// With a word at the offending value.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = one_line(text);
        self
    }

    /// With a second place.
    pub fn other(mut self, span: Span, text: impl Into<String>) -> Self {
        self.others.push(DiagnosisLabel { span, text: one_line(text) });
        self
    }

    /// With a fact that explains it.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(one_line(text));
        self
    }

    /// With a fact that explains it, if there is one to tell.
    pub fn maybe_note(mut self, text: Option<String>) -> Self {
        self.notes.extend(text.map(one_line));
        self
    }

    /// With the way out.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(one_line(text));
        self
    }

    /// With the way out, if there is one to tell.
    pub fn maybe_help(mut self, text: Option<String>) -> Self {
        self.help = text.map(one_line).or(self.help);
        self
    }

    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// Names and texts of a file end up in messages, and a file may hold anything: a line break or an escape sequence
/// must not get further than this.
fn one_line(text: impl Into<String>) -> String {
    let text = text.into();
    match text.contains(char::is_control) {
        true => text.replace(char::is_control, " "),
        false => text,
    }
}

/// A text of a file that is short enough to stand in a message.
pub fn clip(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `did you mean …?` for a name that is close to one of `known`, else a list of what there is.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    /// A list longer than this helps nobody.
    const LISTED: usize = 16;
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(close) = closest(name, known.iter().copied()) {
        return Some(format!("did you mean `{close}`?"));
    }
    match known.len() {
        0 => None,
        1 => Some(format!("there is only `{}`", known[0])),
        2..=LISTED => Some(format!("choose from {}", list(&known, "and"))),
        count => Some(format!("there are {count}, such as {}", list(&known[..LISTED / 2], "and"))),
    }
}

/// The member of `known` that `name` was probably meant to be.
pub fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer names are not compared: the distance costs the product of the lengths.
    const LONGEST: usize = 64;
    /// So many names are looked at. Whoever has more will find the right one in another way.
    const MOST_COMPARED: usize = 2_000;
    if name.len() > LONGEST {
        return None;
    }
    let close_enough = (name.chars().count() / 3).clamp(1, 3);
    let lower = name.to_lowercase();
    known
        .into_iter()
        .take(MOST_COMPARED)
        .filter(|other| other.len() <= LONGEST && *other != name)
        .map(|other| (strsim::osa_distance(&lower, &other.to_lowercase()), other))
        .filter(|(distance, _)| *distance <= close_enough)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// `a`, `b` and `c`, each in backquotes.
pub fn list<S: AsRef<str>>(names: &[S], joiner: &str) -> String {
    match names {
        [] => "none".into(),
        [one] => format!("`{}`", one.as_ref()),
        [init @ .., last] => {
            let init: Vec<String> = init.iter().map(|name| format!("`{}`", name.as_ref())).collect();
            format!("{} {joiner} `{}`", init.join(", "), last.as_ref())
        }
    }
}

/// The same of as many as one wants to read: `a`, `b` and 7 more.
pub fn few<S: AsRef<str>>(names: &[S]) -> String {
    /// More than these are counted.
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => list(names, "and"),
        Some(more) => {
            let shown: Vec<String> = names[..SHOWN].iter().map(|name| format!("`{}`", name.as_ref())).collect();
            format!("{} and {more} more", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_ascending_and_found_again() {
        for pair in Code::ALL.windows(2) {
            assert!(pair[0].as_str() < pair[1].as_str(), "{:?} before {:?}", pair[0], pair[1]);
        }
        for code in Code::ALL {
            assert_eq!(Code::parse(&code.as_str().to_lowercase()), Some(*code));
        }
    }

    #[test]
    fn a_near_miss_is_suggested_and_a_far_one_is_not() {
        assert_eq!(suggest("need", ["needs", "when"]).as_deref(), Some("did you mean `needs`?"));
        assert_eq!(suggest("colour", ["needs", "when"]).as_deref(), Some("choose from `needs` and `when`"));
        assert_eq!(suggest("x", []), None);
    }
}
