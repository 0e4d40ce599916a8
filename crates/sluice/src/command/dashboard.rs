//! `sluice dashboard` and `sluice status`: the board, live or once, and in a few words.

use std::io::IsTerminal;
use std::sync::Arc;

use serde_json::json;
use sluice_api::board::{Board, BoardCounts};
use sluice_api::usage::dollars;
use sluice_api::{Client, Problem};
use sluice_tui::{Dashboard, Finder, TerminalLook};

use crate::args::{DashboardArgs, StatusArgs};
use crate::engine::{ask, connect, places};
use crate::output::{CliExit, CliFailure, CliOutput, print};

/// The width of a board that is printed where there is no terminal.
const COLUMNS: u16 = 120;

/// Without colour where `NO_COLOR` says so, whatever it says.
fn look(ascii: bool) -> TerminalLook {
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    TerminalLook { ascii, colour }
}

pub(crate) fn dashboard(arguments: &DashboardArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let look = look(arguments.ascii);
    if arguments.once || output == CliOutput::Json {
        let board: Board = ask(|client| client.get("/v1/board"))?;
        let columns = terminal_size::terminal_size().map_or(COLUMNS, |(width, _)| width.0);
        return output.show(&board, || print(&sluice_tui::once(board.clone(), look, columns)));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let message = "the dashboard needs a terminal";
        return Err(CliFailure::new(CliExit::Refused, "no_terminal", message)
            .hint("`sluice dashboard --once` prints the board without one"));
    }
    // An engine that cannot be started is told about here, not on a screen that tries for ever.
    connect()?;
    let here = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
    let is_remote = sluice_api::client::named().is_some();
    let shown = Dashboard { look, here, is_remote, find: finder()?, start: starter() }.run();
    shown.map(|()| CliExit::Done).map_err(|error| {
        let message = format!("the terminal cannot be used: {error}");
        CliFailure::new(CliExit::Refused, "no_terminal", message)
    })
}

/// The engine if it is there. It is not started: a person who stops the engine does not want the dashboard to start it again.
fn finder() -> Result<Finder, CliFailure> {
    if let Some(client) = Client::of_environment()? {
        return Ok(Arc::new(move || Ok(client.clone())));
    }
    let client = Client::new(&places()?.socket())?;
    Ok(Arc::new(move || Ok(client.clone())))
}

/// The engine, started if it is not there, as every command does: a person wants something done.
fn starter() -> Finder {
    Arc::new(|| {
        connect().map_err(|failure| {
            let problem = Problem::unavailable(failure.message);
            let code = sluice_api::client::GONE.to_owned();
            Problem { code, hint: failure.hint, ..problem }
        })
    })
}

pub(crate) fn status(arguments: &StatusArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let board: Board = ask(|client| client.get("/v1/board"))?;
    let document = json!({ "counts": board.counts, "projects": board.projects, "today": board.today });
    output.show(&document, || match arguments.short {
        true => print(&format!("{}\n", sluice_tui::short(&board, look(arguments.ascii)))),
        false => print(&told(&board)),
    })
}

/// How much of what there is, a line for each that there is.
fn told(board: &Board) -> String {
    let BoardCounts { working, queued, in_review, ready_to_merge, done_today, .. } = board.counts;
    let counts = [
        (board.counts.need_person(), "wait for you"),
        (ready_to_merge, "of these can be merged"),
        (in_review, "are in review"),
        (working, "are at work"),
        (queued, "are queued"),
        (done_today, "have ended today"),
    ];
    let line = |(count, words): (usize, &str)| format!("{count:>5} {words}\n");
    let lines: String = counts.into_iter().filter(|(count, _)| *count > 0).map(line).collect();
    let cost = board.today.cost_usd.map(|cost| format!("today: {}\n", dollars(cost))).unwrap_or_default();
    if lines.is_empty() { format!("nothing waits and nothing works\n{cost}") } else { format!("{lines}{cost}") }
}
