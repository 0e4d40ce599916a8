//! The pipes of a running script: its input is fed and its two outputs are kept, without a thread for each.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::capture::{CapturedOutput, OutputCapture};
use super::sweep::timespec;
use super::{ERRORS, OUTPUT, ProcessFailure, ProcessScript, system};
use crate::redact::{RedactionFlow, Redactor};

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;

pub(super) enum PipeEvent {
    Exited,
    Late,
    Cancelled,
    Pipe,
}

struct PipeOutput {
    pipe: Option<File>,
    flow: RedactionFlow,
    capture: OutputCapture,
}

pub(super) struct ScriptPipes {
    handle: OwnedFd,
    input: Option<ChildStdin>,
    unsent: Vec<u8>,
    sent: usize,
    outputs: [PipeOutput; 2],
    /// Made once: to give back and get anew so much memory at every look costs more than the look.
    buffer: Vec<u8>,
}

impl ScriptPipes {
    pub(super) fn new(child: &mut Child, script: &ProcessScript) -> Result<Self, ProcessFailure> {
        let input = &script.input;
        let pid = Pid::from_raw(child.id().cast_signed());
        let pid = pid.ok_or_else(|| system("a process without number", io::ErrorKind::NotFound))?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| system("watching a script", error))?;
        let missing = || system("a script without pipes", io::ErrorKind::BrokenPipe);
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let stdin = child.stdin.take().ok_or_else(missing)?;
        for fd in [stdout.as_fd(), stderr.as_fd(), stdin.as_fd()] {
            ioctl_fionbio(fd, true).map_err(|error| system("preparing the pipes of a script", error))?;
        }
        let redactor = Redactor::of(script.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let output = |pipe: OwnedFd, ending: &str| {
            let flow = RedactionFlow::new(redactor.clone());
            let file = script.output_file.as_ref().map(|path| path.with_extension(ending));
            PipeOutput { pipe: Some(pipe.into()), flow, capture: OutputCapture::new(script.output_limit, file) }
        };
        Ok(Self {
            handle,
            input: (!input.is_empty()).then_some(stdin),
            unsent: input.to_vec(),
            sent: 0,
            outputs: [output(stdout.into(), OUTPUT), output(stderr.into(), ERRORS)],
            buffer: vec![0; PIECE],
        })
    }

    pub(super) fn turn(
        &mut self,
        cancel: Option<&OwnedFd>,
        until: Option<Instant>,
    ) -> Result<PipeEvent, ProcessFailure> {
        let (exited, cancelled, late) = {
            let mut waiting = vec![PollFd::new(&self.handle, PollFlags::IN)];
            waiting.extend(cancel.map(|cancel| PollFd::new(cancel, PollFlags::IN)));
            let own = waiting.len();
            let open = self.outputs.iter().filter_map(|output| output.pipe.as_ref());
            waiting.extend(open.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            waiting.extend(self.input.as_ref().map(|input| PollFd::new(input, PollFlags::OUT)));
            let left = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
            match poll(&mut waiting, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(system("waiting for a script", error)),
            }
            let ready: Vec<bool> = waiting.iter().map(|it| !it.revents().is_empty()).collect();
            (ready[0], own == 2 && ready[1], until.is_some_and(|until| Instant::now() >= until))
        };
        self.serve();
        Ok(match (exited, cancelled, late) {
            (true, ..) => PipeEvent::Exited,
            (false, true, _) => PipeEvent::Cancelled,
            (false, false, true) => PipeEvent::Late,
            (false, false, false) => PipeEvent::Pipe,
        })
    }

    /// Reads and writes what can be done at once.
    fn serve(&mut self) {
        if let Some(input) = &mut self.input {
            match input.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if would_block(&error) => {}
                // It does not want to read the rest: its right.
                Err(_) => self.sent = self.unsent.len(),
            }
        }
        if self.sent == self.unsent.len() {
            self.input = None;
        }
        self.read();
    }

    fn read(&mut self) {
        self.outputs.iter_mut().for_each(|output| output.read(&mut self.buffer));
    }

    /// Reads until both outputs are closed, or nothing more came within the time, or could be waited for.
    pub(super) fn drain(&mut self, within: Duration) {
        let deadline = Instant::now() + within;
        loop {
            self.read();
            let open = self.outputs.iter().filter_map(|output| output.pipe.as_ref());
            let mut waiting: Vec<PollFd<'_>> = open.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
            let left = deadline.saturating_duration_since(Instant::now());
            if waiting.is_empty() || left.is_zero() {
                return;
            }
            match poll(&mut waiting, Some(&timespec(left))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    pub(super) fn finish(self) -> (CapturedOutput, CapturedOutput) {
        let [stdout, stderr] = self.outputs;
        (stdout.finish(), stderr.finish())
    }
}

impl PipeOutput {
    /// Takes what is there, but not for ever: a program that never stops printing must still be told to end.
    fn read(&mut self, buffer: &mut [u8]) {
        for _ in 0..64 {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => self.capture.push(&self.flow.push(&buffer[..count])),
                Err(error) if would_block(&error) => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn finish(mut self) -> CapturedOutput {
        self.capture.push(&self.flow.finish());
        self.capture.finish()
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
