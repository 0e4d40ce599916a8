//! The one table of keys. The footer, the help (`?`), the page in the manual and what a key does are all made from it.
//!
//! A key whose condition does not hold is in no footer and does nothing. No name of a state stands here: what can be done with a
//! row is told by the row.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sluice_api::board::BoardAction;

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// To another line of the screen.
    Move(Motion),
    /// The next thing that needs a person.
    NextNeed,
    /// Whatever starts or shows the agent of a row: attach, respawn or spawn.
    Enter,
    /// What waits, what stands on the screen, and a reply.
    Peek,
    /// Everything about a row.
    Details,
    /// To the next tab.
    NextTab,
    /// To the tab before.
    PreviousTab,
    /// The tab or screen with this name.
    Open(OpenedPlace),
    /// Something that the row allows.
    Do(BoardAction),
    /// Open the worktree in an editor.
    Edit,
    /// Bring kept work back.
    Undo,
    /// Copy the id of the row.
    Copy,
    /// The form of a new task.
    Create,
    /// A new run of a recipe.
    Start,
    /// Only rows with these words.
    Filter,
    /// Only rows of the next project.
    NextProject,
    /// Show or hide runs of tasks, and what has ended.
    Fold,
    /// One of the saved views.
    View,
    /// Save what is filtered now as a view.
    SaveView,
    /// A line for a command.
    Command,
    /// Every key and its meaning.
    Help,
    /// Back, or the end.
    Back,
    /// Something in a diff.
    Read(DiffDeed),
    /// One of the options that are numbered.
    Choose,
    /// Say something to what waits or works.
    Reply,
    /// Add costs up by something else.
    NextSum,
}

/// A way through the lines of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// To the line above.
    Up,
    /// To the line below.
    Down,
    /// To the first line.
    Top,
    /// To the last line.
    Bottom,
    /// One page further up.
    PageUp,
    /// One page further down.
    PageDown,
}

/// What is done in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffDeed {
    /// To the next file.
    NextFile,
    /// To the file before.
    PreviousFile,
    /// The file has been read.
    Viewed,
    /// A comment at the line.
    Comment,
    /// Take the comment at the line back.
    Uncomment,
    /// Another part of the diff.
    NextPart,
}

/// What can be opened for a row, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenedPlace {
    /// What the row has changed.
    Diff,
    /// What the agent or the steps printed.
    Log,
    /// TASK.md of the task.
    File,
    /// The events of the row.
    History,
    /// The states or steps, with the present one lit.
    Graph,
    /// The worktrees and kept work.
    Workspaces,
}

/// Where a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    /// The list of everything.
    Board,
    /// One row, with tabs.
    Detail,
    /// The difference of one row.
    Diff,
    /// The steps of one run.
    Run,
    /// What waits, one at a time.
    Inbox,
    /// A look at what waits, over another screen.
    Peek,
    /// Workers, workspaces, costs and events.
    List,
}

impl KeyScope {
    /// Every scope, in the order of the manual.
    pub(crate) const ALL: &[KeyScope] = &[
        KeyScope::Board,
        KeyScope::Peek,
        KeyScope::Detail,
        KeyScope::Diff,
        KeyScope::Run,
        KeyScope::Inbox,
        KeyScope::List,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            KeyScope::Board => "Board",
            KeyScope::Detail => "Details",
            KeyScope::Diff => "Diff",
            KeyScope::Run => "Run",
            KeyScope::Inbox => "Inbox",
            KeyScope::Peek => "Peek",
            KeyScope::List => "Lists",
        }
    }
}

/// When a key can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Wherever its scope holds.
    Always,
    /// While a row is chosen.
    Row,
    /// While the chosen row is a task.
    Task,
    /// While the chosen row allows one of these.
    Allowed(&'static [BoardAction]),
    /// While the chosen row waits for something, or its agent can be told something.
    Peekable,
    /// While the chosen row has work in a worktree of this machine.
    Worktree,
    /// While the chosen row, or what was ended last, may have kept work.
    Ended,
    /// While there is an attention with options.
    Options,
    /// While there is something that can be replied to.
    Reply,
    /// While there are comments that wait.
    Comments,
    /// While costs are shown.
    Costs,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyBinding {
    /// The key that is pressed.
    pub(crate) key: KeyCode,
    /// What the key does.
    pub(crate) deed: Deed,
    /// The word in the footer; empty: only in the help.
    pub(crate) word: &'static str,
    /// What it does, in the help.
    pub(crate) help: &'static str,
    /// When it can be used.
    pub(crate) when: When,
    /// The scopes in which it holds.
    pub(crate) scopes: &'static [KeyScope],
}

const EVERYWHERE: &[KeyScope] = &[
    KeyScope::Board,
    KeyScope::Detail,
    KeyScope::Diff,
    KeyScope::Run,
    KeyScope::Inbox,
    KeyScope::Peek,
    KeyScope::List,
];
const SCREENS: &[KeyScope] =
    &[KeyScope::Board, KeyScope::Detail, KeyScope::Diff, KeyScope::Run, KeyScope::Inbox, KeyScope::List];
const BOARD: &[KeyScope] = &[KeyScope::Board];
const ROWS: &[KeyScope] =
    &[KeyScope::Board, KeyScope::Detail, KeyScope::Diff, KeyScope::Run, KeyScope::Inbox, KeyScope::Peek];
const ONE: &[KeyScope] = &[KeyScope::Board, KeyScope::Detail, KeyScope::Run, KeyScope::Inbox];
const TABS: &[KeyScope] = &[KeyScope::Detail, KeyScope::Run];
const DIFF: &[KeyScope] = &[KeyScope::Diff];
const ASKED: &[KeyScope] = &[KeyScope::Peek, KeyScope::Inbox];

const fn of(
    key: KeyCode,
    deed: Deed,
    word: &'static str,
    help: &'static str,
    when: When,
    scopes: &'static [KeyScope],
) -> KeyBinding {
    KeyBinding { key, deed, word, help, when, scopes }
}

const fn letter(letter: char) -> KeyCode {
    KeyCode::Char(letter)
}

const fn act(
    key: char,
    action: BoardAction,
    word: &'static str,
    help: &'static str,
    allowed: &'static [BoardAction],
) -> KeyBinding {
    of(letter(key), Deed::Do(action), word, help, When::Allowed(allowed), ROWS)
}

/// Every key and its meaning. The footer shows those that can be used, in this order.
pub(crate) const TABLE: &[KeyBinding] = &[
    of(letter('1'), Deed::Choose, "choose", "choose the option with this number (1 to 9)", When::Options, ASKED),
    of(letter('r'), Deed::Reply, "reply", "reply in words", When::Reply, ASKED),
    of(letter(' '), Deed::Peek, "peek", "what waits and what its screen shows; reply there", When::Peekable, ONE),
    of(KeyCode::Enter, Deed::Enter, "agent", "attach to the agent, or start it (again)", When::Allowed(ENTER), ONE),
    act('m', BoardAction::Merge, "merge", "merge the work", &[BoardAction::Merge]),
    act('A', BoardAction::Approve, "approve", "let it pass", &[BoardAction::Approve]),
    act(
        'X',
        BoardAction::RequestChanges,
        "request changes",
        "send it back, with the comments at lines",
        &[BoardAction::RequestChanges],
    ),
    of(letter('c'), Deed::Read(DiffDeed::Comment), "comment", "comment on the line", When::Row, DIFF),
    of(
        letter('e'),
        Deed::Read(DiffDeed::Uncomment),
        "drop comment",
        "take the comment at the line back",
        When::Comments,
        DIFF,
    ),
    of(KeyCode::Tab, Deed::Read(DiffDeed::NextFile), "next file", "the next file", When::Row, DIFF),
    of(KeyCode::BackTab, Deed::Read(DiffDeed::PreviousFile), "", "the file before", When::Row, DIFF),
    of(letter('v'), Deed::Read(DiffDeed::Viewed), "viewed", "mark the file as viewed, or not", When::Row, DIFF),
    of(
        letter('s'),
        Deed::Read(DiffDeed::NextPart),
        "part",
        "all commits, those since the last verdict, what is not committed",
        When::Row,
        DIFF,
    ),
    act('a', BoardAction::Attach, "attach", "attach to the terminal; detach to come back", &[BoardAction::Attach]),
    act('R', BoardAction::Respawn, "respawn", "start the agent again", &[BoardAction::Respawn]),
    of(
        letter('r'),
        Deed::Do(BoardAction::Retry),
        "retry",
        "try the step that failed again",
        When::Allowed(&[BoardAction::Retry]),
        &[KeyScope::Board, KeyScope::Run],
    ),
    of(letter('d'), Deed::Open(OpenedPlace::Diff), "diff", "what has changed, with comments at lines", When::Row, ONE),
    act('x', BoardAction::Cancel, "cancel", "cancel it", &[BoardAction::Cancel]),
    act('p', BoardAction::CreatePr, "PR", "open a pull request", &[BoardAction::CreatePr]),
    of(
        letter('n'),
        Deed::NextNeed,
        "next",
        "the next that needs you",
        When::Always,
        &[KeyScope::Board, KeyScope::Inbox],
    ),
    of(
        letter('i'),
        Deed::Details,
        "details",
        "everything about it",
        When::Row,
        &[KeyScope::Board, KeyScope::Inbox, KeyScope::Diff],
    ),
    of(KeyCode::Tab, Deed::NextTab, "next tab", "the next tab", When::Row, TABS),
    of(KeyCode::BackTab, Deed::PreviousTab, "", "the tab before", When::Row, TABS),
    of(letter('l'), Deed::Open(OpenedPlace::Log), "log", "what the agent or the steps printed", When::Row, ONE),
    of(letter('t'), Deed::Open(OpenedPlace::File), "TASK.md", "TASK.md", When::Task, ONE),
    of(letter('h'), Deed::Open(OpenedPlace::History), "history", "what happened to it", When::Row, ONE),
    of(
        letter('v'),
        Deed::Open(OpenedPlace::Graph),
        "graph",
        "the states or steps, with the present one lit",
        When::Row,
        ONE,
    ),
    of(letter('o'), Deed::Edit, "open", "open the worktree in $EDITOR", When::Worktree, ROWS),
    of(
        letter('N'),
        Deed::Do(BoardAction::Nudge),
        "nudge",
        "send the agent a message",
        When::Allowed(&[BoardAction::Nudge]),
        ONE,
    ),
    of(letter('u'), Deed::Undo, "undo", "restore the work that was kept", When::Ended, ONE),
    act('D', BoardAction::Delete, "delete", "remove it from every list", &[BoardAction::Delete]),
    of(letter('c'), Deed::Create, "create", "create a task", When::Always, BOARD),
    of(letter('b'), Deed::Start, "begin", "start a recipe", When::Always, BOARD),
    of(letter('/'), Deed::Filter, "filter", "only rows with these words", When::Always, BOARD),
    of(letter('f'), Deed::NextProject, "project", "only rows of one project; again for the next", When::Always, BOARD),
    of(letter('z'), Deed::Fold, "fold", "show or hide runs of tasks, and what ended today", When::Always, BOARD),
    of(letter('1'), Deed::View, "view", "a saved view (1 to 9)", When::Always, BOARD),
    of(letter('S'), Deed::SaveView, "", "save the filter as a view", When::Always, BOARD),
    of(
        letter('w'),
        Deed::Open(OpenedPlace::Workspaces),
        "workspaces",
        "worktrees and kept work",
        When::Always,
        SCREENS,
    ),
    of(letter('y'), Deed::Copy, "copy id", "copy the id", When::Row, ROWS),
    of(letter('s'), Deed::NextSum, "sum by", "add costs up by something else", When::Costs, &[KeyScope::List]),
    of(letter(':'), Deed::Command, "command", "type a command; Tab completes it", When::Always, SCREENS),
    of(letter('?'), Deed::Help, "help", "every key", When::Always, SCREENS),
    of(letter('j'), Deed::Move(Motion::Down), "", "down", When::Always, EVERYWHERE),
    of(letter('k'), Deed::Move(Motion::Up), "", "up", When::Always, EVERYWHERE),
    of(letter('g'), Deed::Move(Motion::Top), "", "to the first", When::Always, EVERYWHERE),
    of(letter('G'), Deed::Move(Motion::Bottom), "", "to the last", When::Always, EVERYWHERE),
    of(KeyCode::PageDown, Deed::Move(Motion::PageDown), "", "a page down", When::Always, EVERYWHERE),
    of(KeyCode::PageUp, Deed::Move(Motion::PageUp), "", "a page up", When::Always, EVERYWHERE),
    of(letter('q'), Deed::Back, "quit", "back; on the board, quit", When::Always, EVERYWHERE),
];

const ENTER: &[BoardAction] = &[BoardAction::Attach, BoardAction::Respawn, BoardAction::Spawn];

/// What Enter does with a row that allows these.
pub(crate) fn entered(actions: &[BoardAction]) -> Option<BoardAction> {
    ENTER.iter().copied().find(|action| actions.contains(action))
}

/// The key of an event as the table has it: arrows and Escape are other names of letters.
pub(crate) fn named(event: KeyEvent) -> Option<KeyCode> {
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return match event.code {
            KeyCode::Char('d') => Some(KeyCode::PageDown),
            KeyCode::Char('u') => Some(KeyCode::PageUp),
            KeyCode::Char('c') => Some(letter('q')),
            _ => None,
        };
    }
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match event.code {
        KeyCode::Down => letter('j'),
        KeyCode::Up => letter('k'),
        KeyCode::Home => letter('g'),
        KeyCode::End => letter('G'),
        KeyCode::Esc => letter('q'),
        other => other,
    })
}

/// Whether a key is that of a line of the table: a number is any number.
pub(crate) fn is_key(binding: &KeyBinding, key: KeyCode) -> bool {
    binding.key == key || (binding.key == letter('1') && matches!(key, KeyCode::Char('1'..='9')))
}

/// A key as people call it.
pub(crate) fn label(key: KeyCode) -> String {
    match key {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char('1') => "1-9".to_owned(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => "Shift-Tab".to_owned(),
        KeyCode::PageDown => "PgDn".to_owned(),
        KeyCode::PageUp => "PgUp".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A key and its word, as short as it is clear: `[m]erge`, `[A] approve`.
pub(crate) fn hint(binding: &KeyBinding) -> String {
    let key = label(binding.key);
    match binding.word.strip_prefix(key.as_str()) {
        Some(rest) => format!("[{key}]{rest}"),
        None => format!("[{key}] {}", binding.word),
    }
}

/// The table as the manual shows it.
pub fn manual() -> String {
    let mut page = String::new();
    for scope in KeyScope::ALL {
        page.push_str(&format!("## {}\n\n| key | what it does | when |\n|---|---|---|\n", scope.title()));
        for binding in TABLE.iter().filter(|binding| binding.scopes.contains(scope)) {
            page.push_str(&format!("| `{}` | {} | {} |\n", label(binding.key), binding.help, condition(binding.when)));
        }
        page.push('\n');
    }
    page
}

fn condition(when: When) -> String {
    match when {
        When::Always => "always".to_owned(),
        When::Row => "a task or run is chosen".to_owned(),
        When::Task => "a task is chosen".to_owned(),
        When::Allowed(actions) => {
            let words: Vec<String> = actions.iter().map(|action| format!("`{action}`")).collect();
            format!("it allows {}", words.join(" or "))
        }
        When::Peekable => "it waits for you, or its agent can be told something".to_owned(),
        When::Worktree => "it has a worktree on this machine".to_owned(),
        When::Ended => "it has ended".to_owned(),
        When::Options => "there are options to choose from".to_owned(),
        When::Reply => "it takes words".to_owned(),
        When::Comments => "there are comments".to_owned(),
        When::Costs => "costs are shown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyScope, TABLE, label};

    /// A key means one thing in one place, unless its conditions exclude each other.
    #[test]
    fn no_key_stands_twice_in_one_scope() {
        for scope in KeyScope::ALL {
            let here: Vec<_> = TABLE.iter().filter(|binding| binding.scopes.contains(scope)).collect();
            for (at, binding) in here.iter().enumerate() {
                let twice = here[at + 1..].iter().find(|other| other.key == binding.key);
                assert!(twice.is_none(), "{} stands twice in {scope:?}: {binding:?}, {twice:?}", label(binding.key));
            }
        }
    }
}
