//! Runs one program to its end within a time limit, with everything it says.
//!
//! Never through a shell, and never with a terminal to ask questions on. A program that does not end in time is killed
//! with all it has started.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program's pipes may stay open after its end, held by something it has left behind.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct CommandEnd {
    /// The exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum CommandTrouble {
    /// It could not be started or waited for.
    Start(std::io::Error),
    /// It took longer than this, and was killed.
    Late(Duration),
}

enum CommandPiece {
    Exit(std::io::Result<std::process::ExitStatus>),
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

pub(crate) fn run(command: Command, input: &[u8], limit: Duration) -> Result<CommandEnd, CommandTrouble> {
    run_first(command, input, limit, None)
}

/// The same, and only so many bytes of what the program says are kept.
pub(crate) fn run_first(
    mut command: Command,
    input: &[u8],
    limit: Duration,
    most: Option<u64>,
) -> Result<CommandEnd, CommandTrouble> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    start(command, input, limit, most)
}

/// Runs the program with a file that it does not read, but keeps open until it has ended.
pub(crate) fn run_holding(mut command: Command, held: File, limit: Duration) -> Result<CommandEnd, CommandTrouble> {
    command.stdin(held);
    start(command, &[], limit, None)
}

fn start(mut command: Command, input: &[u8], limit: Duration, most: Option<u64>) -> Result<CommandEnd, CommandTrouble> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let (sender, pieces) = channel();
    // Those who will read it come first: a program is not begun and then killed because the machine has no thread left.
    let input = input.to_vec();
    // A program that does not read its input says so by how it ends.
    let feed = waiting(move |mut stdin: ChildStdin| drop(stdin.write_all(&input)))?;
    let (stdout, stderr) =
        (collector(CommandPiece::Stdout, &sender, most)?, collector(CommandPiece::Stderr, &sender, None)?);
    let exit = waiting(move |mut child: Child| drop(sender.send(CommandPiece::Exit(child.wait()))))?;
    let mut child = command.spawn().map_err(CommandTrouble::Start)?;
    let group = Pid::from_child(&child);
    // Each of them is there, and takes what it waits for.
    drop(child.stdin.take().map(|pipe| feed.send(pipe)));
    drop(child.stdout.take().map(|pipe| stdout.send(pipe)));
    drop(child.stderr.take().map(|pipe| stderr.send(pipe)));
    drop(exit.send(child));
    gather(&pieces, group, limit)
}

/// A thread that does something with what it is given, and goes away if it is given nothing.
fn waiting<T: Send + 'static>(act: impl FnOnce(T) + Send + 'static) -> Result<Sender<T>, CommandTrouble> {
    let (give, given) = channel();
    let thread = std::thread::Builder::new().spawn(move || given.recv().map_or((), act));
    thread.map(|_| give).map_err(CommandTrouble::Start)
}

fn collector<R: Read + Send + 'static>(
    piece: fn(Vec<u8>) -> CommandPiece,
    to: &Sender<CommandPiece>,
    most: Option<u64>,
) -> Result<Sender<R>, CommandTrouble> {
    let to = to.clone();
    waiting(move |mut from: R| {
        let mut bytes = Vec::new();
        drop(from.by_ref().take(most.unwrap_or(u64::MAX)).read_to_end(&mut bytes));
        // The rest is read, so that the program comes to its end.
        drop(std::io::copy(&mut from, &mut std::io::sink()));
        drop(to.send(piece(bytes)));
    })
}

fn gather(pieces: &Receiver<CommandPiece>, group: Pid, limit: Duration) -> Result<CommandEnd, CommandTrouble> {
    let (mut exit, mut stdout, mut stderr) = (None, None, None);
    let mut deadline = Instant::now() + limit;
    let mut killed = false;
    while exit.is_none() || stdout.is_none() || stderr.is_none() {
        match pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(CommandPiece::Exit(status)) => {
                exit = Some(status.map_err(CommandTrouble::Start)?);
                deadline = deadline.min(Instant::now() + GRACE);
            }
            Ok(CommandPiece::Stdout(bytes)) => stdout = Some(bytes),
            Ok(CommandPiece::Stderr(bytes)) => stderr = Some(bytes),
            // What is left behind and holds the pipes is killed too; then the pipes close.
            Err(RecvTimeoutError::Timeout) if !killed => {
                killed = true;
                // Gone already is as good as killed.
                kill_process_group(group, Signal::KILL).ok();
                deadline = Instant::now() + GRACE;
                if exit.is_none() {
                    return Err(CommandTrouble::Late(limit));
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(CommandTrouble::Late(limit)),
        }
    }
    let code = exit.and_then(|status| status.code());
    Ok(CommandEnd { code, stdout: stdout.unwrap_or_default(), stderr: stderr.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_goes_in_and_both_outputs_come_back() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo bad >&2; exit 3"]);
        let ended = run(command, b"in", Duration::from_secs(60)).unwrap();
        assert_eq!((ended.code, ended.stdout, ended.stderr), (Some(3), b"in".to_vec(), b"bad\n".to_vec()));
    }

    #[test]
    fn what_does_not_end_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // The grandchild holds the fifo open for writing; reading it to its end waits for the grandchild's death.
        let mut command = Command::new("sh");
        command.args(["-c", "(exec sleep 600 >\"$1\") & wait", "sh"]).arg(&fifo);
        let reader = std::thread::spawn(move || std::fs::read(fifo).unwrap());
        let trouble = run(command, b"", Duration::from_millis(300)).unwrap_err();
        assert!(matches!(trouble, CommandTrouble::Late(_)), "{trouble:?}");
        assert!(reader.join().unwrap().is_empty());
    }
}
