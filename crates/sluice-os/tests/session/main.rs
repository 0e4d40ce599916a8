//! Sessions with real processes and a real tmux: agents are small scripts, and every wait is for an event.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod askers;
mod bench;
mod ends;
mod kills;
mod restarts;
mod text;
mod windows;
