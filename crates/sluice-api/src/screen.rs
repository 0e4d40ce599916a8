//! The terminal of an agent on the wire: what stands on its screen, as text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most lines of a screen.
pub const SCREEN_LINES: usize = 200;

/// The most columns of a screen.
pub const SCREEN_COLUMNS: usize = 400;

/// What stands on the screen of an agent's terminal. No character of it is a command to a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Screen {
    /// The session whose screen this is; null when there never was one.
    pub session: Option<String>,
    /// Whether that session is alive. If not, this is what stood there when it ended.
    pub alive: bool,
    /// How many columns the terminal has.
    pub columns: u16,
    /// How many lines the terminal has.
    pub rows: u16,
    /// The lines, from the top, without the spaces at their ends; lines after the last that is not empty are left out.
    pub lines: Vec<String>,
    /// Where the cursor stands; null when it is hidden or the session has ended.
    pub cursor: Option<ScreenCursor>,
}

/// A place on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenCursor {
    /// The line, from 0.
    pub row: u16,
    /// The column, from 0.
    pub column: u16,
}
