//! What processes are told about themselves, and what they inherit.

use std::collections::{BTreeMap, VecDeque};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_os::git::is_local;
use sluice_os::process::{ProcessIdentity, environment_of, has_terminal};
use sluice_os::redact::is_secret;
use sluice_os::session::SessionId;

use super::{LocalOrder, PerformContext, StepIdentity};
use crate::machine::config::EnvConfig;
use crate::machine::places::HomePaths;
use crate::names::{self, digest};
use crate::redact::HomeRedactor;
use crate::undone::PerformError;

/// The variables that every session inherits.
#[rustfmt::skip]
const USUAL: &[&str] = &[
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "HOSTNAME", "MAIL", "LANG", "LANGUAGE", "TZ", "TERM", "TERMINFO", "COLORTERM",
    "NO_COLOR", "FORCE_COLOR", "CI", "IS_SANDBOX", "TMPDIR", "TMP", "TEMP", "EDITOR", "VISUAL", "PAGER", "BROWSER", "LESS", "MANPATH",
    "INFOPATH", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
    "GPG_TTY", "GPG_AGENT_INFO", "GNUPGHOME", "http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy", "HTTP_PROXY",
    "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE", "KUBECONFIG", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "VIRTUAL_ENV", "CC", "CXX", "CFLAGS", "CXXFLAGS",
    "LDFLAGS",
];
/// The families of variables that every session inherits: languages and folders, agents and the models behind them, and
/// what programmers use.
#[rustfmt::skip]
const USUAL_FAMILIES: &[&str] = &[
    "LC_*", "XDG_*", "GIT_*", "GH_*", "GITHUB_*", "GITLAB_*", "GLAB_*",
    "ANTHROPIC_*", "CLAUDE*", "OPENAI_*", "CODEX_*", "GEMINI_*", "GOOGLE_*", "VERTEX*", "CLOUDSDK_*", "AWS_*", "AZURE_*",
    "MISTRAL_*", "GROQ_*", "OPENROUTER_*", "DEEPSEEK_*", "XAI_*", "GROK_*", "COHERE_*", "TOGETHER_*", "FIREWORKS_*",
    "CEREBRAS_*", "PERPLEXITY_*", "MOONSHOT_*", "ZAI_*", "OLLAMA_*", "LITELLM_*", "LLM_*", "MCP_*", "OPENCODE_*", "AIDER_*",
    "CURSOR_*", "AMP_*", "GOOSE_*", "PI_*", "COPILOT_*", "QWEN_*", "KIRO_*", "CRUSH_*", "DISABLE_*", "OTEL_*",
    "CARGO*", "RUST*", "SCCACHE_*", "NODE_*", "NPM_*", "npm_config_*", "NVM_*", "FNM_*", "VOLTA_*", "PNPM_*", "YARN_*",
    "BUN_*", "DENO_*", "PYTHON*", "PIP_*", "UV_*", "POETRY_*", "CONDA_*", "PYENV_*", "GO*", "JAVA_*", "MAVEN_*", "GRADLE_*",
    "SDKMAN_*", "KOTLIN_*", "ANDROID_*", "RUBY*", "GEM_*", "BUNDLE_*", "RBENV_*", "DOTNET_*", "DOCKER_*", "COMPOSE_*",
    "NIX_*", "MISE_*", "ASDF_*", "HOMEBREW_*",
];
/// How many secrets are remembered that processes were given; the one that was given longest ago goes first.
const MOST_SECRETS: usize = 256;
/// The digests of the secrets that a session was given.
const DIGESTS: &str = "token.sha256";

/// What sessions and scripts inherit from. It follows the last command with which a person changed something: an engine
/// lives for weeks, and what a person sets in a shell is meant for the agents that they start from there.
pub struct InheritedEnvironment(Mutex<InheritedVariables>);

#[derive(Default)]
struct InheritedVariables {
    /// What this process was started with, or, if a session or script started it, what that was started with: what an agent
    /// has set is no person's.
    own: EnvironmentVariables,
    /// What stays whatever a person's shell has: nothing, unless a person gave the engine an environment of its own.
    stays: EnvironmentVariables,
    /// What the last command had; at first what the engine was started with.
    last: EnvironmentVariables,
    /// The secrets of what is passed on, now and before, whatever a person's shell has by now: those that have them still
    /// run.
    secrets: VecDeque<(String, String)>,
    /// What is passed on with these settings, until a person's shell has something else.
    passed: Option<(EnvConfig, Arc<EnvironmentVariables>)>,
}

type EnvironmentVariables = BTreeMap<String, String>;

impl InheritedEnvironment {
    /// What this process was started with, unless something else is `given` in its place.
    pub fn own(given: Option<BTreeMap<String, String>>, set: &EnvConfig) -> InheritedEnvironment {
        let own = given.unwrap_or_else(own_variables);
        let last = own.clone();
        let own = InheritedEnvironment(Mutex::new(InheritedVariables { own, last, ..InheritedVariables::default() }));
        own.with(|inheritance| inheritance.note(set));
        own
    }

    /// What this process was started with stays; commands add to it and change it.
    pub fn stay(&self, set: &EnvConfig) {
        self.with(|inheritance| {
            inheritance.stays = inheritance.own.clone();
            inheritance.passed = None;
            inheritance.note(set);
        });
    }

    /// A person asked with this process for a change. At a terminal what is not set any more is gone. Elsewhere (cron, a
    /// bare `ssh`, a program) little may be set at all, so it adds and changes, and takes nothing away.
    pub fn follow(&self, process: &ProcessIdentity, set: &EnvConfig) {
        let variables: EnvironmentVariables = environment_of(process).into_iter().collect();
        self.with(|inheritance| {
            inheritance.last = match has_terminal(process) {
                true => variables,
                false => added(std::mem::take(&mut inheritance.last), variables),
            };
            inheritance.passed = None;
            inheritance.note(set);
        });
    }

    fn given(&self, set: &EnvConfig) -> Arc<EnvironmentVariables> {
        self.with(|inheritance| inheritance.note(set))
    }

    /// The secrets that processes were or would be given, each with its variable.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        self.with(|InheritedVariables { secrets, .. }| secrets.iter().cloned().collect())
    }

    fn with<T>(&self, then: impl FnOnce(&mut InheritedVariables) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl InheritedVariables {
    /// What is passed on, with its secrets written down. Each script asks for it, and it seldom changes.
    fn note(&mut self, set: &EnvConfig) -> Arc<EnvironmentVariables> {
        if let Some((known, passed)) = &self.passed
            && known == set
        {
            return passed.clone();
        }
        let InheritedVariables { stays, last, secrets, .. } = self;
        let both = stays.iter().chain(last.iter()).filter(|(name, _)| passes(set, name));
        let set_here = set.set.iter().filter(|(name, value)| can_be_set(name) && !value.contains('\0'));
        let passed: EnvironmentVariables =
            both.chain(set_here).map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, value) in passed.iter().filter(|(name, value)| is_secret(name, value)) {
            secrets.retain(|(_, known)| known != value);
            secrets.push_back((name.clone(), value.clone()));
        }
        let too_many = secrets.len().saturating_sub(MOST_SECRETS);
        secrets.drain(..too_many);
        let passed = Arc::new(passed);
        self.passed = Some((set.clone(), passed.clone()));
        passed
    }
}

/// These and those; those count. Programs are looked for where both say.
fn added(mut these: EnvironmentVariables, those: EnvironmentVariables) -> EnvironmentVariables {
    let before = these.get("PATH").cloned().unwrap_or_default();
    these.extend(those);
    if let Some(path) = these.get_mut("PATH") {
        let known: Vec<String> = path.split(':').map(str::to_owned).collect();
        let more = before.split(':').filter(|folder| !folder.is_empty() && !known.iter().any(|it| it == folder));
        *path = known.iter().map(String::as_str).chain(more).collect::<Vec<_>>().join(":");
    }
    these
}

fn own_variables() -> EnvironmentVariables {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

impl PerformContext {
    /// Takes out what the processes here know as secrets, and what looks like one; what is stored goes through this.
    pub fn clean(&self) -> HomeRedactor {
        HomeRedactor::of(&self.surroundings.secrets())
    }
}

/// What a session inherits of a person's environment: who and where one is, how the network is reached, what agents and
/// the tools of programmers are set up with, and what a person allows besides; never what is Sluice's own.
pub fn inherited(bench: &PerformContext) -> BTreeMap<String, String> {
    let config = bench.config();
    let mut environment = with_programs(&bench.surroundings.given(&config.env), &bench.places);
    environment.insert("SLUICE_HOME".into(), bench.places.home().display().to_string());
    let (name, value) = bench.within.assignment();
    environment.insert(name.into(), value);
    environment.extend(PLAIN_GIT.map(|(name, value)| (name.to_owned(), value.to_owned())));
    environment
}

/// What a session would inherit if this process were the last command of a person.
pub fn of_this_command(places: &HomePaths, set: &EnvConfig) -> BTreeMap<String, String> {
    let mut environment = with_programs(&InheritedEnvironment::own(None, set).given(set), places);
    environment.insert("SLUICE_HOME".into(), places.home().display().to_string());
    environment
}

/// The home's own programs are found first.
fn with_programs(given: &EnvironmentVariables, places: &HomePaths) -> EnvironmentVariables {
    let mut environment = given.clone();
    let programs = places.programs().display().to_string();
    let path = environment.get("PATH").map(|path| format!("{programs}:{path}")).unwrap_or(programs);
    environment.insert("PATH".into(), path);
    environment
}

/// The work of an agent is what git shows of it to the next: neither other objects in the place of its own, nor a program that
/// git starts with each look.
const PLAIN_GIT: [(&str, &str); 5] = [
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null/none"), // one that is there would be told of with every command
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
];

/// Whether a variable is nothing that a person can give to a session. What ties a git to the repository in which a person
/// called is of no use in a worktree.
fn is_sluices(name: &str) -> bool {
    name.starts_with("SLUICE_") || is_local(name)
}

/// Whether a person can set a variable of this name for sessions.
pub fn can_be_set(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !is_sluices(name)
}

/// Whether a variable is passed on.
fn passes(set: &EnvConfig, name: &str) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(begins) => name.starts_with(begins),
        None => name == pattern,
    };
    let is_usual = USUAL.iter().chain(USUAL_FAMILIES).any(|pattern| fits(pattern));
    let is_denied = is_sluices(name) || set.deny.iter().any(|it| fits(it));
    (is_usual || set.allow.iter().any(|it| fits(it))) && !is_denied
}

pub(super) fn about(bench: &PerformContext, order: &LocalOrder) -> BTreeMap<String, String> {
    let mut told = BTreeMap::from([
        ("SLUICE_RUN".to_owned(), order.run.to_string()),
        ("SLUICE_STEP".to_owned(), order.step.clone()),
        ("SLUICE_ATTEMPT".to_owned(), order.attempt.to_string()),
        ("SLUICE_ROLE".to_owned(), order.role.clone()),
        ("SLUICE_BIN".to_owned(), bench.program.display().to_string()),
    ]);
    told.extend(bench.port_base(&order.folder));
    if let StepIdentity::Elsewhere { environment } = &order.voice {
        told.extend(environment.iter().cloned());
    }
    told
}

/// A secret that is this session's alone; only its digest stays here. On this machine a session is known by its processes
/// and needs none; over the network the secret says who asks. It names its session, so that nobody has to search.
///
/// A session that is adopted has the secret it was started with: digests are added, never replaced.
pub fn token(session: &SessionId, private: &Path) -> Result<String, PerformError> {
    let secret = names::secret(&format!("{session}~"))?;
    let digest = format!("{}\n", digest(secret.as_bytes()));
    let written = std::fs::create_dir_all(private).and_then(|()| {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(private.join(DIGESTS));
        file?.write_all(digest.as_bytes())
    });
    written.map_err(PerformError::at("cannot prepare", private))?;
    Ok(secret)
}

pub fn is_secret_of(private: &Path, secret: &str) -> bool {
    let digest = digest(secret.as_bytes());
    let kept = std::fs::read_to_string(private.join(DIGESTS)).unwrap_or_default();
    kept.lines().any(|line| names::is_same(line, &digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_little_takes_nothing_away() {
        let set = |pairs: &[(&str, &str)]| -> EnvironmentVariables {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let rich = set(&[("PATH", "/mine:/bin"), ("OPENAI_API_KEY", "a"), ("LANG", "C")]);
        let found = added(rich, set(&[("PATH", "/usr/bin:/bin"), ("LANG", "de")]));
        assert_eq!(found, set(&[("PATH", "/usr/bin:/bin:/mine"), ("OPENAI_API_KEY", "a"), ("LANG", "de")]));
    }

    #[test]
    fn what_is_usual_and_what_a_person_allows_is_passed_on() {
        let env = |allow: &[&str], deny: &[&str]| EnvConfig {
            allow: allow.iter().map(|it| (*it).to_owned()).collect(),
            deny: deny.iter().map(|it| (*it).to_owned()).collect(),
            set: BTreeMap::new(),
        };
        let none = env(&[], &[]);
        for usual in [
            "HOME",
            "PATH",
            "LC_ALL",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "GH_TOKEN",
            "https_proxy",
            "CARGO_HOME",
            "GIT_SSH_COMMAND",
            "GIT_AUTHOR_NAME",
        ] {
            assert!(passes(&none, usual), "{usual}");
        }
        for other in ["DATABASE_URL", "STRIPE_SECRET", "SLUICE_TOKEN", "TMUX", "TMUX_PANE", "HOMER"] {
            assert!(!passes(&none, other), "{other}");
        }
        let some = env(&["DATABASE_URL", "MY_*", "SLUICE_TOKEN"], &["AWS_*", "MY_SECRET"]);
        assert!(passes(&some, "DATABASE_URL") && passes(&some, "MY_PLACE"));
        assert!(
            !passes(&some, "AWS_SECRET_ACCESS_KEY") && !passes(&some, "MY_SECRET") && !passes(&some, "SLUICE_TOKEN")
        );
        // A person may call from a hook, where git has said which repository and which index it means.
        let local = std::process::Command::new("git").args(["rev-parse", "--local-env-vars"]).output().unwrap();
        let local = String::from_utf8(local.stdout).unwrap();
        assert!(local.lines().any(|name| name == "GIT_DIR"), "{local}");
        for name in local.lines() {
            assert!(!passes(&none, name) && !passes(&env(&["GIT_*"], &[]), name), "{name}");
        }
    }

    #[test]
    fn what_a_person_sets_counts_more_than_a_shell_and_never_stands_for_sluice() {
        let surroundings = InheritedEnvironment(Mutex::default());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        surroundings.with(|it| it.last = EnvironmentVariables::from([pair("LANG", "C"), pair("CI", "1")]));
        let set = [pair("LANG", "de"), pair("MY_TOKEN", "a-secret-value"), pair("SLUICE_TOKEN", "x")];
        let env = EnvConfig { set: set.into(), ..EnvConfig::default() };
        let given = surroundings.given(&env);
        assert_eq!(*given, [pair("CI", "1"), pair("LANG", "de"), pair("MY_TOKEN", "a-secret-value")].into());
        assert_eq!(surroundings.secrets(), [pair("MY_TOKEN", "a-secret-value")]);
    }

    #[test]
    fn a_secret_that_was_given_stays_known_when_a_command_comes_from_another_shell() {
        let surroundings = InheritedEnvironment(Mutex::default());
        let none = EnvConfig::default();
        let shell = |value: &str| {
            let (token, other) = (("GH_TOKEN".into(), value.into()), ("OTHER_TOKEN".into(), "not-passed-on".into()));
            surroundings.with(|inheritance| {
                inheritance.last = EnvironmentVariables::from([token, other]);
                inheritance.passed = None;
                inheritance.note(&none);
            });
        };
        let known = || surroundings.secrets().into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        ["of-shell-a", "of-shell-b", "of-shell-a"].iter().for_each(|value| shell(value));
        assert_eq!(known(), ["of-shell-b", "of-shell-a"]);
        (0..MOST_SECRETS - 1).for_each(|number| shell(&format!("one-more-{number}")));
        assert_eq!((known().len(), known()[0].as_str()), (MOST_SECRETS, "of-shell-a"));
    }
}
