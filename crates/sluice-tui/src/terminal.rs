//! The terminal of the person: taken over and given back, also when the program fails, is ended by a signal, or is suspended for
//! tmux or an editor.

use std::io::{self, Stdout, stdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossterm::cursor::Show;
use crossterm::event::Event;
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::model::DashboardMessage;

/// Which program draws on the terminal now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TerminalHolder {
    /// Another program: before the dashboard, after it, or while it has lent the terminal.
    Another,
    /// The dashboard, which has taken it over.
    Dashboard,
}

/// The dashboard draws while it holds this lock, so that nothing is drawn after the terminal was given back.
static HOLDER: Mutex<TerminalHolder> = Mutex::new(TerminalHolder::Another);

fn holder() -> MutexGuard<'static, TerminalHolder> {
    HOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal while the dashboard has it. It is given back when this is dropped.
pub(crate) struct PersonTerminal {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl PersonTerminal {
    pub(crate) fn take() -> io::Result<PersonTerminal> {
        restore_on_panic();
        restore_on_signals()?;
        enter()?;
        Ok(PersonTerminal { terminal: Terminal::new(CrosstermBackend::new(stdout()))? })
    }

    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    pub(crate) fn draw(&mut self, drawing: impl FnOnce(&mut Frame)) -> io::Result<()> {
        let _held = holder();
        self.terminal.draw(drawing).map(drop)
    }

    /// Gives the terminal to another program, and takes it back when that has ended.
    pub(crate) fn lend<T>(&mut self, other: impl FnOnce() -> T) -> io::Result<T> {
        leave()?;
        let answer = other();
        enter()?;
        self.terminal.clear()?;
        Ok(answer)
    }
}

impl Drop for PersonTerminal {
    fn drop(&mut self) {
        // There is no terminal any more that could be told.
        let _ = leave();
    }
}

fn enter() -> io::Result<()> {
    let mut holder = holder();
    enable_raw_mode()?;
    *holder = TerminalHolder::Dashboard;
    execute!(stdout(), EnterAlternateScreen)
}

/// Gives the terminal back, if the dashboard has it.
fn leave() -> io::Result<()> {
    give_back(&mut holder())
}

fn give_back(holder: &mut TerminalHolder) -> io::Result<()> {
    match std::mem::replace(holder, TerminalHolder::Another) {
        TerminalHolder::Another => Ok(()),
        TerminalHolder::Dashboard => {
            disable_raw_mode()?;
            execute!(stdout(), LeaveAlternateScreen, Show)
        }
    }
}

/// A person sees why a program failed only outside of its screen. A failure on any thread ends the dashboard: the others would draw
/// over what was told.
fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |failure| {
        // The thread that fails may be the one that draws, and hold the lock.
        if let Ok(mut holder) = HOLDER.try_lock() {
            let _ = give_back(&mut holder);
        } else {
            let _ = disable_raw_mode();
            let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        }
        before(failure);
        std::process::exit(FAILED);
    }));
}

/// The exit code of a Rust program that has failed.
const FAILED: i32 = 101;

/// A signal that ends the dashboard ends it as it would any program, after the terminal was given back.
fn restore_on_signals() -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // Held until the process has ended: nothing is drawn any more.
            let mut holder = holder();
            // There may be no terminal any more that could be told.
            let _ = give_back(&mut holder);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Hands on what the person does. After each message it waits until that has been dealt with: while another program has the terminal
/// nothing is read from it, and no key of that program is lost. An event that is no message is not waited for.
pub(crate) fn listen(
    mut next: impl FnMut() -> io::Result<Event> + Send + 'static,
    mut heard: impl FnMut(DashboardMessage) -> bool + Send + 'static,
) -> Sender<()> {
    let (go_on, dealt_with): (Sender<()>, Receiver<()>) = channel();
    std::thread::spawn(move || {
        while let Ok(event) = next() {
            let Some(message) = read(event) else { continue };
            if !heard(message) || dealt_with.recv().is_err() {
                return;
            }
        }
    });
    go_on
}

/// What the terminal tells, as a message. What it tells besides keys and sizes was not asked for.
fn read(event: Event) -> Option<DashboardMessage> {
    match event {
        Event::Key(key) => Some(DashboardMessage::Key(key)),
        Event::Resize(columns, rows) => Some(DashboardMessage::Resized(columns, rows)),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use crossterm::event::{Event, KeyCode, KeyModifiers, MouseEvent, MouseEventKind};

    use super::{DashboardMessage, listen};

    /// A terminal that tells of focus, the mouse or pasted text does not stop the keys.
    #[test]
    fn keys_go_on_after_what_was_not_asked_for() {
        let mouse = MouseEvent { kind: MouseEventKind::Moved, column: 1, row: 1, modifiers: KeyModifiers::NONE };
        let key = |letter| Event::Key(KeyCode::Char(letter).into());
        let events = [Event::FocusGained, Event::FocusLost, Event::Mouse(mouse), Event::Paste("j".to_owned())];
        let mut events = events.into_iter().chain([key('a'), Event::FocusGained, key('b')]);
        let (to, messages) = sync_channel(1);
        let (_open, ended) = channel::<()>();
        let next = move || {
            events.next().map_or_else(|| ended.recv().map(|()| Event::FocusLost).map_err(std::io::Error::other), Ok)
        };
        let dealt_with = listen(next, move |message| to.send(message).is_ok());
        for letter in ['a', 'b'] {
            let message = messages.recv().unwrap();
            let DashboardMessage::Key(key) = message else { panic!("{message:?}") };
            assert_eq!(key.code, KeyCode::Char(letter));
            dealt_with.send(()).unwrap();
        }
    }
}
