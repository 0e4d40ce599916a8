//! What to start for one attempt: the words, the environment, the files, and how the prompt goes in.
//!
//! The prompt is one word of the command, stdin, a file, or typed later. It is never part of a shell's text.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::hooks::{self, HookSetup, HookSite};
use super::{Harness, HarnessError, HarnessMode, HarnessPermissions};

/// What one word of a command may hold, its end mark included: the kernel's MAX_ARG_STRLEN.
const LONGEST_WORD: usize = 128 * 1024;

/// By these an agent program knows that it was started by another one. The engine may have been; its agents were not.
const SIGNS_OF_NESTING: [&str; 9] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
    "QWEN_CODE",
];

pub struct HarnessRequest<'a> {
    pub mode: HarnessMode,
    pub permissions: HarnessPermissions,
    pub prompt: &'a str,
    pub workspace: &'a Path,
    /// A folder of this attempt alone, outside the workspace, for the files that the agent needs.
    pub private: &'a Path,
    pub sluice: &'a Path,
    /// The session about which the program's hooks tell us; without one they tell nothing.
    pub session: Option<&'a str>,
    /// The environment that the session would inherit.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HarnessInvocation {
    pub argv: Vec<OsString>,
    pub env_set: Vec<(String, OsString)>,
    pub env_unset: Vec<String>,
    /// What to write to stdin before closing it; `None` leaves stdin to the terminal, or to nothing.
    pub stdin: Option<Vec<u8>>,
    /// What to type into the session once it is up, followed by Enter.
    pub typed: Option<String>,
    /// The attempt's folder, to be made first.
    pub folder: PathBuf,
    /// Files to write first.
    pub files: Vec<HarnessPromptFile>,
    /// Links to make first, where there is something to link to.
    pub links: Vec<HarnessLink>,
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarnessPromptFile {
    pub path: PathBuf,
    pub content: Vec<u8>,
}

/// A link in the attempt's own folder to a file that it shares with the person's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarnessLink {
    pub target: PathBuf,
    pub path: PathBuf,
}

impl Harness {
    pub fn invocation(&self, request: &HarnessRequest<'_>) -> Result<HarnessInvocation, HarnessError> {
        let (words, reduced, warning) = self.command(request.mode, request.permissions)?;
        let mut made = HarnessInvocation {
            env_unset: SIGNS_OF_NESTING.iter().map(|name| (*name).to_owned()).collect(),
            folder: request.private.to_owned(),
            warnings: warning.into_iter().collect(),
            ..HarnessInvocation::default()
        };
        self.put_prompt(words, request, &mut made);
        self.put_environment(reduced, request, &mut made);
        Ok(made)
    }

    /// The command, whether it is a reduced one, and what is to be said about that.
    fn command(
        &self,
        mode: HarnessMode,
        permissions: HarnessPermissions,
    ) -> Result<(&[String], bool, Option<String>), HarnessError> {
        let (key, normal, reduced) = match mode {
            HarnessMode::Interactive => ("interactive", &self.interactive, &self.reduced_interactive),
            HarnessMode::Headless => ("headless", &self.headless, &self.reduced_headless),
        };
        let no_command = || HarnessError::NoCommand { name: self.name.clone(), key };
        match (permissions, reduced) {
            (HarnessPermissions::Reduced, Some(words)) => Ok((words, true, None)),
            (HarnessPermissions::Reduced, None) => {
                Ok((normal.as_deref().ok_or_else(no_command)?, false, self.missing_reduction(mode)))
            }
            (HarnessPermissions::Full, _) => Ok((normal.as_deref().ok_or_else(no_command)?, false, None)),
        }
    }

    fn put_prompt(&self, words: &[String], request: &HarnessRequest<'_>, made: &mut HarnessInvocation) {
        let mentions = |placeholder: &str| words.iter().any(|word| word.contains(placeholder));
        let file = request.private.join("prompt.md");
        let fits = words.iter().filter(|word| word.contains("{prompt}")).all(|word| fits(word, request.prompt));
        let prompt = match fits {
            true => OsString::from(request.prompt),
            false => {
                let mut sentence = OsString::from("Read the file ");
                sentence.push(&file);
                sentence.push(" to its end. It holds everything you are asked to do; do it.");
                sentence
            }
        };
        if !fits || mentions("{prompt_file}") {
            made.files.push(HarnessPromptFile { path: file.clone(), content: request.prompt.as_bytes().to_vec() });
        }
        if !mentions("{prompt}") && !mentions("{prompt_file}") {
            match request.mode {
                HarnessMode::Headless => made.stdin = Some(request.prompt.as_bytes().to_vec()),
                HarnessMode::Interactive => made.typed = Some(request.prompt.to_owned()),
            }
        } else if request.mode == HarnessMode::Headless {
            // Some programs read stdin to its end before they begin, whatever their command says.
            made.stdin = Some(Vec::new());
        }
        let hooks = if mentions("{hooks}") { self.put_hooks(request, made) } else { String::new() };
        let values = [
            ("{prompt}", prompt.as_os_str()),
            ("{prompt_file}", file.as_os_str()),
            ("{workspace}", request.workspace.as_os_str()),
            ("{private}", request.private.as_os_str()),
            ("{sluice}", request.sluice.as_os_str()),
            ("{hooks}", OsStr::new(&hooks)),
        ];
        made.argv = words.iter().map(|word| fill(word, &values)).collect();
    }

    /// Has the program load a plugin that calls us, if it loads any.
    fn put_plugin(&self, request: &HarnessRequest<'_>, made: &mut HarnessInvocation) {
        let HarnessRequest { sluice, session, private, .. } = *request;
        let inherited = (request.environment)(hooks::OPENCODE_SETTINGS);
        let inherited = inherited.as_deref().map(OsStr::to_string_lossy);
        let site = HookSite { sluice, session, private, own_folder: None };
        if let Some((file, settings)) = hooks::plugin(self.output, &site, inherited.as_deref()) {
            made.files.push(file);
            made.env_set.push((hooks::OPENCODE_SETTINGS.to_owned(), settings.into()));
        }
    }

    /// Has the program's hooks call us; what its command must say for that.
    fn put_hooks(&self, request: &HarnessRequest<'_>, made: &mut HarnessInvocation) -> String {
        let own_folder = self.own_folder.as_ref().map(|own| own.path(request.private));
        let HarnessRequest { sluice, session, private, .. } = *request;
        let setup = hooks::setup(self.output, &HookSite { sluice, session, private, own_folder });
        let Some(HookSetup { word, file }) = setup else { return String::new() };
        made.files.extend(file);
        word
    }

    fn put_environment(&self, reduced: bool, request: &HarnessRequest<'_>, made: &mut HarnessInvocation) {
        let mut set = self.set.clone();
        if reduced {
            set.extend(self.reduced_set.clone());
        }
        if request.mode == HarnessMode::Headless {
            set.extend(self.headless_set.clone());
        }
        made.env_set.extend(set.into_iter().map(|(name, value)| (name, OsString::from(value))));
        made.env_unset.extend(self.unset.iter().cloned());
        self.put_plugin(request, made);
        let Some(own) = &self.own_folder else { return };
        let folder = own.path(request.private);
        let usual = (request.environment)(&own.variable)
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from((request.environment)("HOME")?).join(&own.usual)));
        if let Some(usual) = usual {
            let shared =
                own.shared.iter().map(|name| HarnessLink { target: usual.join(name), path: folder.join(name) });
            made.links.extend(shared);
        }
        made.env_set.push((own.variable.clone(), folder.into_os_string()));
    }
}

/// Not if it is longer than the kernel takes, has a byte that no word can hold, or would be taken for an option.
fn fits(word: &str, prompt: &str) -> bool {
    let looks_like_an_option = word.starts_with("{prompt}") && prompt.starts_with('-');
    !prompt.contains('\0') && word.len() + prompt.len() < LONGEST_WORD && !looks_like_an_option
}

/// One word with its placeholders filled. What is filled in is not looked at again.
fn fill(word: &str, values: &[(&str, &OsStr)]) -> OsString {
    let mut filled = OsString::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        filled.push(&rest[..start]);
        let here = &rest[start..];
        match values.iter().find(|(name, _)| here.starts_with(name)) {
            Some((name, value)) => {
                filled.push(value);
                rest = &here[name.len()..];
            }
            None => {
                filled.push("{");
                rest = &here[1..];
            }
        }
    }
    filled.push(rest);
    filled
}

impl HarnessInvocation {
    /// Makes the folder, writes the files and makes the links. Doing it again changes nothing.
    pub fn prepare(&self) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        for file in &self.files {
            if let Some(folder) = file.path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            // A prompt may quote what is not for everybody on this machine.
            let mut opened =
                std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&file.path)?;
            opened.write_all(&file.content)?;
        }
        for folder in self.links.iter().filter_map(|link| link.path.parent()) {
            std::fs::create_dir_all(folder)?;
        }
        for link in self.links.iter().filter(|link| link.target.exists()) {
            match std::os::unix::fs::symlink(&link.target, &link.path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        Ok(())
    }
}
