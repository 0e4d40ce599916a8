//! `--watch`: what a command prints, again after everything that happens. It follows the events of the engine, and asks for
//! nothing while there are none.

use std::io::IsTerminal;
use std::sync::mpsc::channel;
use std::thread::park_timeout;
use std::time::Duration;

use crate::engine::{connect, start_none};
use crate::output::{CliExit, CliFailure, print_bytes, say};

/// What happens together is shown together.
const GATHER: Duration = Duration::from_millis(100);
/// How long an engine that is away is left alone before it is asked again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// From a moment before it was drawn: nothing happens unseen between that and the first event.
const EVENTS: &str = "/v1/events?follow=true&since=10s";

/// Draws once, or until the process is interrupted.
pub(super) fn maybe(watch: bool, mut draw: impl FnMut() -> Result<CliExit, CliFailure>) -> Result<CliExit, CliFailure> {
    if !watch {
        return draw();
    }
    std::thread::spawn(super::home::end_with_the_reader);
    let is_screen = std::io::stdout().is_terminal();
    let mut anew = || {
        // A file or a pipe gets one after the other, with a line between them.
        print_bytes(if is_screen { b"\x1b[H\x1b[2J" } else { b"\n" });
        draw()
    };
    draw_first(is_screen, &mut anew)?;
    start_none();
    let mut is_away = false;
    loop {
        // What happened while it was away is drawn when it is back.
        let told = if is_away { anew_if_running(&mut anew) } else { Ok(()) }.and_then(|()| follow(&mut anew));
        match told {
            Err(failure) if failure.exit != CliExit::Unavailable => return Err(failure),
            Ok(()) => is_away = false,
            Err(_) if is_away => {}
            Err(_) => {
                is_away = true;
                say("the engine is away; the next command that needs one starts it");
            }
        }
        park_timeout(AGAIN);
    }
}

/// Draws once, if there is an engine to ask: a screen that is kept shows what was last known.
fn anew_if_running(anew: &mut impl FnMut() -> Result<CliExit, CliFailure>) -> Result<(), CliFailure> {
    connect()?;
    anew().map(drop)
}

/// What cannot be drawn even once is a failure like that of the command without `--watch`.
fn draw_first(is_screen: bool, anew: &mut impl FnMut() -> Result<CliExit, CliFailure>) -> Result<CliExit, CliFailure> {
    let drawn = anew()?;
    if is_screen {
        say("watching; Ctrl-C ends it");
    }
    Ok(drawn)
}

/// Draws after everything that happens, until the engine ends.
fn follow(anew: &mut impl FnMut() -> Result<CliExit, CliFailure>) -> Result<(), CliFailure> {
    let client = connect()?;
    let (sender, news) = channel();
    let reading = std::thread::spawn(move || client.lines(EVENTS, |_| Ok(sender.send(()).is_ok())));
    while news.recv().is_ok() {
        park_timeout(GATHER);
        news.try_iter().for_each(drop);
        anew()?;
    }
    // Whatever ended it, the engine is asked again.
    drop(reading.join());
    Ok(())
}
