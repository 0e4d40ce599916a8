//! The way to the engine: the board, the events after it, and the rows that they name. It asks when something happened, not by the
//! clock, and comes back by itself when the engine was away.

mod renewal;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use sluice_api::board::{Board, BoardRows};
use sluice_api::client::escape;
use sluice_api::event::EventShown;
use sluice_api::problem::Problem;
use sluice_api::{Client, client};

use crate::model::DashboardMessage;
use renewal::{BoardAsk, FIRST_PAUSE, LONGEST_PAUSE, Renewal};

/// A way to the engine that is made anew whenever it is needed.
pub type Finder = Arc<dyn Fn() -> Result<Client, Problem> + Send + Sync>;

/// An engine that has told nothing for so long is asked for a sign, and must give it within so long.
const NO_LINE: Duration = Duration::from_secs(5);
const SIGN_WITHIN: Duration = Duration::from_secs(3);

/// The most messages and the most names of rows that wait to be dealt with. While another program has the terminal nothing is dealt
/// with, and the engine is not read further than this.
pub(crate) const AHEAD: usize = 1_024;

/// Follows the engine until no one listens any more. When `again` tells so, the whole board is read once more.
pub(crate) fn follow(find: &Finder, to: &SyncSender<DashboardMessage>, again: &Receiver<()>) {
    let mut pause = FIRST_PAUSE;
    loop {
        again.try_iter().for_each(drop);
        let mut has_followed = false;
        let ended = find().and_then(|client| session(&client, (to, again), &mut has_followed));
        pause = if has_followed { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        let Err(problem) = ended else { continue };
        if to.send(DashboardMessage::Away(problem)).is_err() {
            return;
        }
        match again.recv_timeout(pause) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// One stay of an engine: the board, and what happens after it, until the engine goes away or everything is to be read again.
fn session(
    client: &Client,
    (to, again): (&SyncSender<DashboardMessage>, &Receiver<()>),
    has_followed: &mut bool,
) -> Result<(), Problem> {
    let board: Board = client.get("/v1/board")?;
    let cursor = board.cursor;
    let renewal = Renewal::new(board.rows.len(), Instant::now());
    let gone = |_| Problem::unavailable("no one looks any more");
    to.send(DashboardMessage::Board(Box::new(board))).map_err(gone)?;
    std::thread::scope(|scope| {
        let (named, changed) = sync_channel::<String>(AHEAD);
        scope.spawn(|| renew(client, to, changed, renewal));
        client.lines_or_none(&format!("/v1/events?follow=true&after={cursor}"), NO_LINE, |line| {
            // An engine that lets its events be followed is there: only one that does not is looked for ever more seldom.
            *has_followed = true;
            match line.map(serde_json::from_str::<EventShown>) {
                Some(Ok(event)) => {
                    // The other end is there as long as this scope is.
                    let _ = named.send(event.correlation_id.clone());
                    to.send(DashboardMessage::Happened(vec![event])).map_err(gone)?;
                }
                Some(Err(_)) => {}
                None => client.sign_within(SIGN_WITHIN).inspect_err(|problem| {
                    // At once: a question that is under way ends much later.
                    let _ = to.send(DashboardMessage::Away(problem.clone()));
                })?,
            }
            Ok(again.try_recv().is_err())
        })
    })
}

/// Asks for what has changed: everything that was named while the last answer was on its way, at once.
fn renew(client: &Client, to: &SyncSender<DashboardMessage>, changed: Receiver<String>, mut renewal: Renewal) {
    loop {
        let heard = match renewal.wait(Instant::now()) {
            None => changed.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(wait) => changed.recv_timeout(wait),
        };
        match heard {
            Ok(first) => {
                let now = Instant::now();
                std::iter::once(first).chain(changed.try_iter()).for_each(|id| renewal.name(id, now));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(ask) = renewal.next(Instant::now()) else { continue };
        let answer = match ask {
            BoardAsk::Whole => client.get::<Board>("/v1/board").map(|board| {
                renewal.has_whole(board.rows.len(), Instant::now());
                DashboardMessage::Renewed(Box::new(board))
            }),
            BoardAsk::Rows(ids) => rows_of(client, &ids).map(|rows| {
                renewal.has_rows();
                DashboardMessage::Rows(Box::new(rows))
            }),
        };
        let message = answer.unwrap_or_else(|problem| {
            renewal.failed(Instant::now());
            DashboardMessage::Unread(problem)
        });
        if to.send(message).is_err() {
            return;
        }
    }
}

/// Some rows as they are now.
pub(crate) fn rows_of<'a>(client: &Client, ids: impl IntoIterator<Item = &'a String>) -> Result<BoardRows, Problem> {
    let ids: Vec<String> = ids.into_iter().map(|id| escape(id)).collect();
    client.get(&format!("/v1/board/rows?id={}", ids.join(",")))
}

/// What an engine that does not answer is told to a person by: by the line above the footer, not by a line of text.
pub(crate) fn keep_quiet() {
    client::when_silent(|_| {});
}
