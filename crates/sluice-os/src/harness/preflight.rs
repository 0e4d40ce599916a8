//! Before a start: would the program come up, or stop at something that only a person can do? Files and variables are looked
//! at, and no program is run. What to look at for each program is data, in `table.toml`; this is how a look is carried out.
//!
//! An answer is yes, no or unknown. Only a no refuses a start, and a look says no only where it knows every way to a yes:
//! what cannot be read or understood, and a program behind a script of the person's own, is unknown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Harness, HarnessMode};

mod clue;
mod found;

pub(super) use clue::document;
pub use clue::repository_of;
use clue::{ClueAnswer, ClueSight};
pub use found::find_program;
use found::is_shell_script;

/// The cure that Sluice itself can carry out, when a person asks for it.
const SET_UP: &str = "run `sluice harness setup {program}` in {repository}";

/// What is looked at before a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HarnessLook {
    /// The program is on the PATH of the session, and may be executed.
    Installed,
    /// It has a key, or a person has logged in.
    Login,
    /// Its folder is one that it works in without asking.
    Trust,
    /// The questions of its first start are answered.
    Dialogs,
    /// It works as this user of the machine.
    User,
}

impl HarnessLook {
    pub const ALL: [HarnessLook; 5] =
        [HarnessLook::Installed, HarnessLook::User, HarnessLook::Login, HarnessLook::Dialogs, HarnessLook::Trust];

    pub fn word(self) -> &'static str {
        match self {
            HarnessLook::Installed => "installed",
            HarnessLook::Login => "login",
            HarnessLook::Trust => "trust",
            HarnessLook::Dialogs => "dialogs",
            HarnessLook::User => "user",
        }
    }

    pub fn read(word: &str) -> Option<HarnessLook> {
        HarnessLook::ALL.into_iter().find(|look| look.word() == word)
    }
}

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HarnessAnswer {
    /// It is so, and this is what shows it.
    Yes(String),
    /// Why, and what a person can do about it.
    No { why: String, cure: HarnessCure },
    /// Why it cannot be told.
    Unknown(String),
}

impl HarnessAnswer {
    pub fn word(&self) -> &'static str {
        match self {
            HarnessAnswer::Yes(_) => "yes",
            HarnessAnswer::No { .. } => "no",
            HarnessAnswer::Unknown(_) => "unknown",
        }
    }
}

/// What a person can do so that a start works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HarnessCure {
    /// `sluice harness setup` does it.
    SetUp(String),
    /// Only the person can do it.
    ByHand(String),
}

impl HarnessCure {
    pub fn text(&self) -> &str {
        match self {
            HarnessCure::SetUp(text) | HarnessCure::ByHand(text) => text,
        }
    }
}

/// What starts the program after the cure.
#[derive(Clone, Copy, Debug)]
pub enum HarnessRetry<'a> {
    /// This command, which the person says.
    Command(&'a str),
    /// `sluice harness setup` by itself; after another cure this command.
    AfterSetup(&'a str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarnessFinding {
    pub look: HarnessLook,
    pub answer: HarnessAnswer,
}

/// What a start would be made with.
pub struct HarnessScene<'a> {
    pub mode: HarnessMode,
    /// The command. What only some commands need is looked at where the command has it.
    pub arguments: &'a [String],
    /// The environment of the session, before the harness adds its own.
    pub environment: &'a BTreeMap<String, String>,
    /// Where the session works.
    pub workspace: &'a Path,
}

/// Which looks are made: all, or those that a person names.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum HarnessPreflight {
    #[default]
    All,
    Only(Vec<HarnessLook>),
}

impl HarnessPreflight {
    fn makes(&self, look: HarnessLook) -> bool {
        match self {
            HarnessPreflight::All => true,
            HarnessPreflight::Only(looks) => looks.contains(&look),
        }
    }
}

/// What is looked at for one program, as the table has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LookTable {
    /// Folders of its configuration, by the names that clues use for them.
    pub(super) folders: BTreeMap<String, LookFolder>,
    /// Ends of variables, by the names that clues use for them: a program may remember a key by its end.
    pub(super) ends: BTreeMap<String, LookEnd>,
    login: Option<LookRow>,
    trust: Option<LookRow>,
    dialogs: Vec<LookRow>,
    user: Option<LookRow>,
}

/// A folder that a variable names, or a usual one below the person's home.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LookFolder {
    variable: Option<String>,
    usual: String,
    /// Below the folder that the variable names.
    #[serde(default)]
    below: String,
}

/// The last letters of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LookEnd {
    variable: String,
    letters: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct LookRow {
    /// Only in a terminal: without one the program does not ask.
    #[serde(default)]
    in_terminal: bool,
    /// Only for commands with this word.
    with: Option<String>,
    yes: Vec<String>,
    #[serde(default)]
    perhaps: Vec<String>,
    /// What to say if there is no clue at all. Without it that is unknown.
    no: Option<String>,
    #[serde(default)]
    cure: String,
    /// `sluice harness setup` is the cure.
    #[serde(default)]
    set_up: bool,
}

impl LookTable {
    /// A text with its names filled in: links followed, each name with one meaning. `None` if one has none.
    pub(super) fn real(&self, text: &str, scene: &HarnessScene<'_>) -> Option<String> {
        ClueSight::of(self, scene).real(text)
    }
}

impl Harness {
    /// Looks at everything that is known to matter for such a start, and that a person wants to be looked at.
    pub fn looks(&self, scene: &HarnessScene<'_>) -> Vec<HarnessFinding> {
        let mut findings = self.all_looks(scene);
        findings.retain(|finding| self.preflight.makes(finding.look));
        findings
    }

    /// The same, whatever a person wants: what is to be set up does not depend on that.
    pub(super) fn all_looks(&self, scene: &HarnessScene<'_>) -> Vec<HarnessFinding> {
        let sight = ClueSight::of(&self.looks, scene);
        let program = scene.arguments.first().map_or("", String::as_str);
        let found = find_program(program, scene.environment.get("PATH").map(String::as_str), scene.workspace);
        let is_script = found.as_deref().is_some_and(is_shell_script);
        let mut findings = vec![HarnessFinding { look: HarnessLook::Installed, answer: installed(program, found) }];
        let LookTable { login, trust, dialogs, user, .. } = &self.looks;
        let rows = (user.iter().map(|row| (HarnessLook::User, row)))
            .chain(login.iter().map(|row| (HarnessLook::Login, row)))
            .chain(dialogs.iter().map(|row| (HarnessLook::Dialogs, row)))
            .chain(trust.iter().map(|row| (HarnessLook::Trust, row)));
        for (look, row) in rows.filter(|(_, row)| row.matters(scene)) {
            let answer = match row.answer(&sight, program) {
                HarnessAnswer::No { .. } if is_script => {
                    HarnessAnswer::Unknown(format!("`{program}` is a shell script, which may set up what is missing"))
                }
                answer => answer,
            };
            findings.push(HarnessFinding { look, answer });
        }
        findings
    }

    /// Why a start would come to nothing, with the cure; nothing if it may work.
    pub fn refusal(&self, scene: &HarnessScene<'_>, then: HarnessRetry<'_>) -> Option<String> {
        let program = scene.arguments.first().map_or("", String::as_str);
        let (mut whys, mut cures): (Vec<String>, Vec<HarnessCure>) = (Vec::new(), Vec::new());
        for finding in self.looks(scene) {
            match finding.answer {
                HarnessAnswer::No { why, cure } => {
                    whys.push(why);
                    // One command may be the cure of several.
                    cures.extend((!cures.contains(&cure)).then_some(cure));
                }
                HarnessAnswer::Yes(_) | HarnessAnswer::Unknown(_) => {}
            }
        }
        let is_setup = cures.iter().all(|cure| matches!(cure, HarnessCure::SetUp(_)));
        let then = match then {
            HarnessRetry::AfterSetup(_) if is_setup => ", which starts it again".to_owned(),
            HarnessRetry::AfterSetup(command) | HarnessRetry::Command(command) => format!("; then {command}"),
        };
        let cures = capital(&cures.iter().map(HarnessCure::text).collect::<Vec<_>>().join("; "));
        (!whys.is_empty()).then(|| format!("`{program}` cannot be started: {}. {cures}{then}", whys.join("; ")))
    }
}

fn installed(program: &str, found: Option<PathBuf>) -> HarnessAnswer {
    match found {
        Some(path) => HarnessAnswer::Yes(path.display().to_string()),
        None => HarnessAnswer::No {
            why: match program.contains('/') {
                true => "it is not there, or may not be executed".to_owned(),
                false => "it is not on the PATH of your last command, or may not be executed".to_owned(),
            },
            cure: HarnessCure::ByHand(
                "install it, or mend its harness in config.toml (`sluice doctor` looks)".to_owned(),
            ),
        },
    }
}

impl LookRow {
    fn matters(&self, scene: &HarnessScene<'_>) -> bool {
        let has = |word: &String| scene.arguments.iter().any(|argument| argument == word);
        (!self.in_terminal || scene.mode == HarnessMode::Interactive) && self.with.as_ref().is_none_or(has)
    }

    fn answer(&self, sight: &ClueSight<'_>, program: &str) -> HarnessAnswer {
        let mut doubt = None;
        for clue in &self.yes {
            match sight.look(clue) {
                ClueAnswer::Seen => return HarnessAnswer::Yes(sight.shown(clue)),
                ClueAnswer::Unreadable(why) => doubt = doubt.or(Some(why)),
                ClueAnswer::Absent => {}
            }
        }
        for clue in &self.perhaps {
            match sight.look(clue) {
                ClueAnswer::Seen => doubt = doubt.or(Some(format!("{} may matter", sight.shown(clue)))),
                ClueAnswer::Unreadable(why) => doubt = doubt.or(Some(why)),
                ClueAnswer::Absent => {}
            }
        }
        match (doubt, &self.no) {
            (Some(why), _) => HarnessAnswer::Unknown(why),
            (None, None) => HarnessAnswer::Unknown("it may have one that cannot be seen from outside".to_owned()),
            (None, Some(_)) if !sight.has_home() => HarnessAnswer::Unknown("HOME is not set".to_owned()),
            (None, Some(why)) => {
                let text = |text: &str| sight.shown(text).replace("{program}", program);
                let cure = match self.set_up {
                    true => HarnessCure::SetUp(text(SET_UP)),
                    false => HarnessCure::ByHand(text(&self.cure)),
                };
                HarnessAnswer::No { why: sight.shown(why), cure }
            }
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl fmt::Display for HarnessAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HarnessAnswer::Yes(by) => write!(f, "yes ({by})"),
            HarnessAnswer::No { why, .. } => write!(f, "no: {why}"),
            HarnessAnswer::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}
