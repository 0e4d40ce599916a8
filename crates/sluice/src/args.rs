//! The arguments, as they are written. What they mean is the commands' business.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::output::{CliExit, CliFailure, CliOutput, harmless};

mod config;
mod harness;
mod home;
mod project;
mod run;
mod serve;
mod task;
mod workspace;

pub(crate) use config::ConfigCommand;
pub(crate) use harness::HarnessCommand;
pub(crate) use home::{
    BackupArgs, CompletionsArgs, DashboardArgs, DoctorArgs, EventsArgs, InnerCommand, NotifyCommand, RestoreArgs,
    SkillCommand, StatusArgs, StopArgs,
};
pub(crate) use project::{ProjectArgs, ProjectCommand};
pub(crate) use run::{
    AnswerArgs, InboxArgs, ProcessCommand, ProcessIdArg, RunCommand, RunIdArg, StartArgs, StepCommand, StepOutcomeArgs,
};
pub(crate) use serve::{OpenArgs, ServeArgs, TokenCommand, WorkerArgs};
pub(crate) use task::{
    DiffArgs, TaskCommand, TaskCreateArgs, TaskEndArgs, TaskIdArg, TaskJudgeArgs, TaskMergeArgs, TaskUpdateArgs,
    own_words,
};
pub(crate) use workspace::WorkspaceCommand;

/// A durable workflow engine for coding agents. Work flows; gates decide.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, max_term_width = 100, propagate_version = true, subcommand_required = true)]
#[command(
    after_help = "Start with `sluice project add`, then `sluice task create fix-login \"Fix the login\"`.\n`sluice workflow list` shows the workflows, `sluice graph default` draws one."
)]
struct CliArgs {
    #[command(subcommand)]
    command: CliCommand,

    /// Answer with one JSON document
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Check(CheckArgs),
    Graph(GraphArgs),
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    #[command(subcommand)]
    Project(ProjectCommand),
    #[command(subcommand)]
    Task(TaskCommand),
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    Start(StartArgs),
    #[command(subcommand)]
    Run(RunCommand),
    #[command(subcommand)]
    Process(ProcessCommand),
    #[command(subcommand)]
    Step(StepCommand),
    Dashboard(DashboardArgs),
    Status(StatusArgs),
    Inbox(InboxArgs),
    Answer(AnswerArgs),
    #[command(subcommand)]
    Notify(NotifyCommand),
    Events(EventsArgs),
    Doctor(DoctorArgs),
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(subcommand)]
    Harness(HarnessCommand),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    Serve(ServeArgs),
    Open(OpenArgs),
    Worker(WorkerArgs),
    #[command(subcommand)]
    Token(TokenCommand),
    Stop(StopArgs),
    Completions(CompletionsArgs),
    #[command(subcommand)]
    Skill(SkillCommand),
    #[command(flatten)]
    Inner(InnerCommand),
}

/// Check workflow files, and report every problem in them
///
/// Reads lifecycles and recipes (YAML or TOML). Each problem has its place in the file and what to do about it. Folders
/// are searched for definitions. Exits with 1 if there is an error, else with 3 if a path is missing, else with 0:
/// warnings alone are no failure.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  sluice check .sluice/workflows/review.yml\n  sluice check . --format sarif > sluice.sarif\n\n\
    `sluice workflow explain S0107` tells more about a code."
)]
pub(crate) struct CheckArgs {
    /// Files, or folders to search
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people, with the source lines
    Text,
    /// One JSON document with all problems
    Json,
    /// SARIF 2.1.0, for code scanners
    Sarif,
}

/// Draw a lifecycle or a recipe as a graph
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  sluice graph default\n  sluice graph .sluice/grimoires/release.yml --format svg > release.svg"
)]
pub(crate) struct GraphArgs {
    /// A file, or the name of a definition
    #[arg(value_name = "PATH|NAME")]
    pub(crate) target: String,

    /// The format of the drawing
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Text with lines of Unicode characters, for the terminal
    Text,
    /// The same text with ASCII characters only
    Ascii,
    /// A Mermaid diagram, for Markdown pages
    Mermaid,
    /// A DOT file, for Graphviz
    Dot,
    /// An SVG image, for browsers
    Svg,
}

/// List and print workflow definitions, and explain problem codes
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  sluice workflow show default > .sluice/workflows/mine.yml")]
pub(crate) enum WorkflowCommand {
    /// List the definitions that can be used here
    #[command(
        after_help = "Example:\n  sluice workflow list\n\nNearest wins: the repository's, then the home's, then the built-in ones."
    )]
    List {
        /// Also list definitions that a nearer one of the same name hides
        #[arg(long)]
        all: bool,
    },
    /// Print a definition's file as it is, ready to copy
    #[command(after_help = "Example:\n  sluice workflow show dev-task > .sluice/workflows/dev-task.toml")]
    Show {
        /// The name of the definition
        name: String,
    },
    /// Explain the code of a problem or a refusal: what it means, why it matters, and what to do
    #[command(after_help = "Examples:\n  sluice workflow explain S0107\n  sluice workflow explain no_transition")]
    Explain {
        /// The code, such as `S0107` or `no_transition`
        code: String,
    },
    /// Print the JSON Schema of a file format, for completion in editors
    #[command(after_help = "Example:\n  sluice workflow schema lifecycle > lifecycle.schema.json")]
    Schema {
        /// The file format: lifecycle, manifest, recipe or template
        format: String,
    },
}

pub(crate) fn command_line() -> clap::Command {
    CliArgs::command()
}

/// Reads the arguments of this process. What can be answered at once (`--help`, a mistake) has been.
pub(crate) fn read() -> Result<(CliCommand, CliOutput), ExitCode> {
    let understood = CliArgs::command().try_get_matches().and_then(|matches| {
        one_format(&matches)?;
        CliArgs::from_arg_matches(&matches)
    });
    match understood {
        Ok(CliArgs { command, json }) => Ok((command, if json { CliOutput::Json } else { CliOutput::People })),
        Err(error) => Err(answer(&error)),
    }
}

/// Refuses `--json` beside another `--format`: there is one answer, and it has one format.
fn one_format(matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((_, mut command)) = matches.subcommand() else { return Ok(()) };
    while let Some((_, inner)) = command.subcommand() {
        command = inner;
    }
    // Commands without a `--format` do not know the word.
    let raw = command.try_get_raw("format").ok().flatten().and_then(|mut raw| raw.next());
    let chosen = raw.filter(|_| command.value_source("format") == Some(ValueSource::CommandLine));
    match chosen {
        Some(format) if command.get_flag("json") && format != "json" => {
            let message = format!("`--json` and `--format {}` exclude each other", format.display());
            Err(CliArgs::command().error(ErrorKind::ArgumentConflict, message))
        }
        Some(_) | None => Ok(()),
    }
}

fn answer(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            crate::output::print_coloured(&error.render().ansi().to_string());
            CliExit::Done.into()
        }
        _ if wants_json => {
            CliOutput::Json.tell(&misunderstood(&error.render().to_string()));
            CliExit::Usage.into()
        }
        _ => {
            // It repeats what it was given, which another program may have written: then it has no colours at all.
            let is_plain = |word: std::ffi::OsString| word.to_str().is_some_and(|word| harmless(word) == word);
            match std::env::args_os().all(is_plain) {
                true => drop(error.print()),
                false => crate::output::say(error.render().to_string().trim_end()),
            }
            CliExit::Usage.into()
        }
    }
}

/// A mistake in the arguments as programs read it: what is wrong in one line, and where the right ones stand.
fn misunderstood(text: &str) -> CliFailure {
    let said = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: ")).unwrap_or("sluice");
    let command: Vec<&str> =
        usage.split_whitespace().take_while(|word| word.starts_with(|it: char| it.is_ascii_lowercase())).collect();
    let page = format!("see `{} --help`", command.join(" "));
    let hint = tip.map_or_else(|| page.clone(), |tip| format!("{tip}; {page}"));
    CliFailure::new(CliExit::Usage, "usage", said.trim_start_matches("error: ")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_begin_like_a_list() {
        for command in [
            "task create brew --context",
            "task update k3f9 --summary",
            "task request-changes k3f9 --message",
            "start release --prompt",
            "run retry k3f9 build --message",
            "run cancel k3f9 --reason",
            "process complete k3f9 --summary",
            "process cancel k3f9 --reason",
            "process step k3f9 build complete --summary",
            "step complete --summary",
            "step fail --summary",
            "step ask Which? --option",
            "answer k3f9 retry --message",
        ] {
            let words = ["sluice"].into_iter().chain(command.split(' ')).chain(["- beans\n- water", "--json"]);
            let understood = CliArgs::try_parse_from(words);
            assert!(understood.is_ok_and(|arguments| arguments.json), "{command}");
        }
    }

    #[test]
    fn a_suggested_command_is_not_taken_before_its_words_are_filled_in() {
        for command in [
            "answer k3f9/1 request-changes --message TEXT",
            "answer k3f9/1 TEXT",
            "task request-changes k3f9 --message TEXT",
            "task reject k3f9 --message TEXT",
        ] {
            let words = ["sluice"].into_iter().chain(command.split(' '));
            let said = CliArgs::try_parse_from(words).expect_err(command).to_string();
            assert!(said.contains("stands for your own words"), "{command}: {said}");
        }
    }

    /// What a task can be asked for is asked for on the command line too, and explained.
    #[test]
    fn a_task_can_be_created_with_everything_that_its_author_gives() {
        /// The engine's to say, or a hook's.
        const NOT_ASKED_FOR: [&str; 8] =
            ["id", "review_round", "crash_count", "workspace", "tmux_session", "pr_url", "created_at", "updated_at"];
        /// Found out by the command line.
        const NO_ARGUMENT: [&str; 1] = ["cwd"];
        const PAGE: &str = include_str!("../../../docs/working-with-tasks.md");

        let wanted = serde_json::to_value(sluice_api::task::CreateTask::default()).unwrap();
        let wanted: Vec<&str> = wanted.as_object().unwrap().keys().map(String::as_str).collect();
        let keys = sluice_core::task::TaskKey::WORDS.iter().filter(|key| !NOT_ASKED_FOR.contains(key));
        let missing: Vec<_> = keys.filter(|key| !wanted.contains(key)).collect();
        assert!(
            missing.is_empty(),
            "`CreateTask` in sluice-api has no {missing:?}, and NOT_ASKED_FOR does not name it"
        );

        let command = CliArgs::command();
        let create = command.find_subcommand("task").and_then(|task| task.find_subcommand("create")).unwrap();
        let given: Vec<&str> = create.get_arguments().map(|it| it.get_id().as_str()).collect();
        let missing: Vec<_> = wanted.iter().filter(|key| !given.contains(key) && !NO_ARGUMENT.contains(key)).collect();
        assert!(missing.is_empty(), "`TaskCreateArgs` has no {missing:?}, and NO_ARGUMENT does not name it");

        let options = create.get_arguments().filter(|it| !it.is_global_set()).filter_map(clap::Arg::get_long);
        let missing: Vec<_> = options.filter(|option| !PAGE.contains(&format!("`--{option}"))).collect();
        assert!(missing.is_empty(), "docs/working-with-tasks.md does not explain {missing:?} of `task create`");
    }

    #[test]
    fn every_command_shows_an_example() {
        fn look(command: &clap::Command, path: &str) {
            if command.is_hide_set() {
                return; // for Sluice itself
            }
            let path = format!("{path} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("sluice "), "{path} has no example in its --help");
            command.get_subcommands().for_each(|inner| look(inner, &path));
        }
        CliArgs::command().debug_assert();
        look(&CliArgs::command(), "");
    }
}
