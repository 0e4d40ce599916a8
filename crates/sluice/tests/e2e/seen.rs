//! A dashboard in a terminal of tmux, for a test that presses its keys. Nothing sleeps: whatever the terminal is told wakes the test,
//! which looks at the screen then.

use std::io::Read;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use super::home::{Home, LONG, run};
use super::process;

/// The desktop of the person who looks.
pub(crate) const DISPLAY: &str = ":7";

/// A dashboard in a terminal of its own.
pub(crate) struct Seen<'a> {
    home: &'a Home,
    /// Something was written to the terminal.
    written: Receiver<()>,
}

impl<'a> Seen<'a> {
    /// Starts the dashboard in a terminal of this size.
    pub(crate) fn start(home: &'a Home, (columns, rows): (u16, u16), arguments: &str) -> Seen<'a> {
        let pipe = home.pipe("dashboard.pipe");
        let (sender, written) = channel();
        let path = pipe.path().to_owned();
        std::thread::spawn(move || {
            let mut told = std::fs::File::open(path).unwrap();
            let mut bytes = [0; 4096];
            while told.read(&mut bytes).is_ok_and(|count| count > 0) && sender.send(()).is_ok() {}
        });
        let seen = Seen { home, written };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let line = format!("{} dashboard {arguments}; echo ended; exec cat", env!("CARGO_BIN_EXE_sluice"));
        seen.tmux(&["new-session", "-d", "-s", "d", "-x", &columns, "-y", &rows, &line]);
        seen.tmux(&["pipe-pane", "-t", "d", "-O", &format!("cat > {}", pipe.path())]);
        seen
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command: Command = self.home.program("tmux");
        // The person sits at a desktop.
        command.env("DISPLAY", DISPLAY).arg("-S").arg(self.home.path("dashboard.sock")).args(arguments);
        run(&mut command).done().stdout
    }

    /// What stands on the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "d"])
    }

    /// Waits until the screen looks like this, by looking at it whenever something is written to it.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let give_up = Instant::now() + LONG;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            if self.written.recv_timeout(give_up.saturating_duration_since(Instant::now())).is_err() {
                panic!("it does not show {what}:\n{}", self.screen());
            }
            self.written.try_iter().for_each(drop);
        }
    }

    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Types letters as they are.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-t", "d", "-l", text]);
    }

    /// Presses a key by its name.
    pub(crate) fn presses(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "d", key]);
    }

    /// Sends bytes to the terminal as they are, each as two digits.
    pub(crate) fn sends(&self, bytes: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "d", "-H"], bytes].concat());
    }

    /// Something that tmux knows about the terminal.
    pub(crate) fn told(&self, what: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", "d", what]).trim_end().to_owned()
    }

    /// Waits until the dashboard fills a terminal of this size: its head in the first line, its keys in the last. The lines that tmux
    /// shows are always as many and as wide as the terminal; only where the dashboard draws says what it takes the size to be.
    #[track_caller]
    pub(crate) fn fills(&self, (columns, rows): (u16, u16), what: &str, is_so: impl Fn(&str) -> bool) -> String {
        assert_eq!(self.told("#{pane_width}x#{pane_height}"), format!("{columns}x{rows}"));
        self.until(what, |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let first = lines.first().is_some_and(|line| line.starts_with("sluice"));
            let last = lines.get(usize::from(rows) - 1).is_some_and(|line| line.ends_with("[q]uit"));
            // No line of the dashboard stands twice, and none is left of another size.
            let once = lines.iter().filter(|line| line.ends_with("[q]uit")).count() == 1;
            first && last && once && is_so(screen)
        })
    }

    /// The process of the dashboard.
    pub(crate) fn pid(&self) -> i32 {
        let folder = self.home.path("");
        let is_dashboard = |pid: &i32| process::words(*pid).trim_end().ends_with("sluice dashboard");
        process::of(&folder).into_iter().find(is_dashboard).unwrap()
    }

    /// How the terminal reads keys: the settings of `stty`.
    pub(crate) fn settings(&self) -> String {
        let terminal = self.told("#{pane_tty}");
        run(self.home.program("stty").args(["-a", "-F", &terminal])).done().stdout
    }

    /// The keys in the last line.
    pub(crate) fn footer(&self) -> String {
        self.screen().lines().last().unwrap_or_default().to_owned()
    }

    /// Gives the terminal another size.
    pub(crate) fn resizes(&self, (columns, rows): (u16, u16)) {
        self.tmux(&["resize-window", "-t", "d", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the dashboard\n{}", self.screen());
        }
        self.tmux(&["kill-server"]);
    }
}
