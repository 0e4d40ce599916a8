//! The loop: messages of the person, the engine and the clock go into the model, and its commands are carried out.

use std::io::{self, Write, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use jiff::Timestamp;

use crate::link::{self, Finder};
use crate::look::TerminalLook;
use crate::model::{DashboardCommand, DashboardMessage, Model, update};
use crate::terminal::{self, PersonTerminal};
use crate::{asks, attach, view};

/// How often ages and the screen that is looked at are renewed.
const SECOND: Duration = Duration::from_secs(1);

/// The most messages that are dealt with before the terminal is drawn again.
const AT_ONCE: usize = 256;

/// How the dashboard is started.
pub struct Dashboard {
    /// What the terminal can show.
    pub look: TerminalLook,
    /// The folder in which the person is.
    pub here: String,
    /// Whether the engine is on another machine.
    pub is_remote: bool,
    /// Finds the engine if it is there.
    pub find: Finder,
    /// Finds the engine, and starts it if it is not there.
    pub start: Finder,
}

/// The ways to the threads around the loop.
struct DashboardThreads {
    /// To the loop itself, for answers.
    to: SyncSender<DashboardMessage>,
    /// To the one who follows the engine: read the whole board again.
    again: Sender<()>,
    /// To the one who listens to the person: the last message has been dealt with.
    dealt_with: Sender<()>,
}

impl Dashboard {
    /// Shows the dashboard until the person quits.
    pub fn run(self) -> io::Result<()> {
        link::keep_quiet();
        let (to, messages) = sync_channel(link::AHEAD);
        // Dropped with this function: then the one who follows the engine ends.
        let (again, read_again) = channel();
        let (find, heard) = (self.find.clone(), to.clone());
        std::thread::spawn(move || link::follow(&find, &heard, &read_again));
        let mut screen = PersonTerminal::take()?;
        let keys = to.clone();
        let dealt_with = terminal::listen(crossterm::event::read, move |message| keys.send(message).is_ok());
        let mut model = Model::new(self.look, self.here.clone(), self.is_remote, Timestamp::now());
        model.size = screen.size()?;
        let threads = DashboardThreads { to, again, dealt_with };
        self.serve(&mut screen, model, &messages, &threads)
    }

    fn serve(
        &self,
        screen: &mut PersonTerminal,
        mut model: Model,
        messages: &Receiver<DashboardMessage>,
        threads: &DashboardThreads,
    ) -> io::Result<()> {
        let mut next_second = Instant::now() + SECOND;
        loop {
            screen.draw(|frame| view::draw(frame, &model))?;
            let mut message = match messages.recv_timeout(next_second.saturating_duration_since(Instant::now())) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    next_second = Instant::now() + SECOND;
                    DashboardMessage::Tick(Timestamp::now())
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            for _ in 0..AT_ONCE {
                let is_typed = matches!(message, DashboardMessage::Key(_) | DashboardMessage::Resized(..));
                for command in update(&mut model, message) {
                    if command == DashboardCommand::Quit {
                        return Ok(());
                    }
                    if let Some(told) = self.carry_out(screen, threads, command) {
                        update(&mut model, told);
                    }
                }
                if is_typed {
                    // The one who listens is there as long as the terminal is.
                    let _ = threads.dealt_with.send(());
                }
                match messages.try_recv() {
                    Ok(next) => message = next,
                    Err(_) => break,
                }
            }
        }
    }

    /// Does what the model wants; what takes time is done on a thread of its own, and tells its answer later.
    fn carry_out(
        &self,
        screen: &mut PersonTerminal,
        DashboardThreads { to, again, .. }: &DashboardThreads,
        command: DashboardCommand,
    ) -> Option<DashboardMessage> {
        match command {
            DashboardCommand::ReadAgain => {
                // The one who follows the engine is there as long as the dashboard is.
                let _ = again.send(());
                None
            }
            DashboardCommand::Quit => None,
            DashboardCommand::Attach(id) => Some(DashboardMessage::CameBack(attach::attach(screen, &id))),
            DashboardCommand::Edit(folder) => Some(DashboardMessage::CameBack(attach::edit(screen, &folder))),
            DashboardCommand::Doctor => Some(DashboardMessage::CameBack(attach::doctor(screen))),
            DashboardCommand::Copy(text) => {
                Some(DashboardMessage::CameBack(copy(&text).err().map(|error| error.to_string())))
            }
            DashboardCommand::Fetch(ask) => {
                let (find, to) = (self.find.clone(), to.clone());
                std::thread::spawn(move || {
                    let answer = find().and_then(|client| asks::fetch(&client, &ask));
                    to.send(DashboardMessage::Got(ask, Box::new(answer)))
                });
                None
            }
            DashboardCommand::Look(ids) => {
                let (find, to) = (self.find.clone(), to.clone());
                std::thread::spawn(move || {
                    let answer = find().and_then(|client| link::rows_of(&client, &ids));
                    answer.map(|rows| to.send(DashboardMessage::Rows(Box::new(rows))))
                });
                None
            }
            DashboardCommand::Send(request) => {
                let (start, to) = (self.start.clone(), to.clone());
                std::thread::spawn(move || {
                    let answer = start().and_then(|client| asks::send(&client, &request));
                    to.send(DashboardMessage::Answered(request.number, Box::new(answer)))
                });
                None
            }
        }
    }
}

/// Asks the terminal to put a text into its clipboard (OSC 52).
fn copy(text: &str) -> io::Result<()> {
    let mut out = stdout();
    write!(out, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
    out.flush()
}
