//! The command line: one file a subcommand, text for people and `--json` for scripts.
//!
//! Machine output is one object on stdout and nothing else there; progress and logs go to stderr. The exit code says how
//! it went: 0 done, 1 failed, 2 wrong usage, 3 nothing to connect to, 4 refused by policy.

mod ask;
mod bench;
mod bridge;
mod console;
mod conversations;
mod costs;
mod demo;
mod doctor;
mod index;
mod launch;
mod models;
mod practice;
mod print_config;
mod run;
mod search;
mod session;
mod validate;
mod window;
mod workflow;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::engine::Problem;
use crate::llm;
use crate::store::{self, Paths};
use console::Console;

/// Exit codes of the contract.
pub mod exit {
    pub const DONE: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const NO_CONNECTION: u8 = 3;
    pub const REFUSED: u8 = 4;
}

#[derive(Parser)]
#[command(
    name = "slicer-ai-agent",
    version,
    about = "An assistant for 3D Slicer: say what you want; it plans, checks, runs, verifies and can take back.",
    after_help = "Without a subcommand the window opens.\nFirst try: slicer-ai-agent demo\n\nFor research only; not a medical device."
)]
struct Arguments {
    /// Folder for history, settings and the practice Slicer (default: the system's place for application data)
    #[arg(long, global = true, value_name = "DIR", env = "SLICER_AI_AGENT_DATA")]
    data_dir: Option<PathBuf>,
    /// How much to log on stderr: error, warn, info, debug, trace
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn")]
    log: String,
    /// No progress on stderr
    #[arg(long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Set up and start the practice Slicer, and run three real requests on it
    Demo(demo::Arguments),
    /// One request, without the window
    Ask(ask::Arguments),
    /// One piece of Python through the safety check, a guarded run and, when it fails, the restore
    Run(run::Arguments),
    /// What a piece of Python may do, without running it
    Validate(validate::Arguments),
    /// The MCP server for 3D Slicer (stdio or HTTP)
    Bridge(bridge::Arguments),
    /// Start the practice Slicer and keep it running
    Practice(practice::Arguments),
    /// Start the installed 3D Slicer with its Web Server on, reachable from this computer only
    Launch(launch::Arguments),
    /// Add folders to the knowledge, or bring it up to date
    Index(index::Arguments),
    /// Search the knowledge as the agent does
    Search(search::Arguments),
    /// Figures of quality
    Bench(bench::Arguments),
    /// The models that are known, with their prices
    Models(models::ListArguments),
    /// Whether a model answers with these settings
    TestConnection(models::TestArguments),
    /// What models have cost
    Costs(costs::Arguments),
    /// Past conversations
    Conversations(conversations::Arguments),
    /// Guided workflows: list, show, check a package, run one
    Workflow(workflow::Arguments),
    /// What of the set-up works, and what to do about the rest
    Doctor(doctor::Arguments),
}

/// What a subcommand gives back: an exit code, or a failure in words.
type Outcome = Result<u8, Failure>;

/// A failure that ends the command.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub problem: Problem,
}

impl Failure {
    fn new(code: u8, kind: &str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code, problem: Problem { kind: kind.into(), message: message.into(), advice: advice.into() } }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(exit::FAILED, "Failed", format!("{error:#}"), "")
    }
}

/// The exit code that a problem of a turn stands for.
fn code_of(problem: &Problem) -> u8 {
    match problem.kind.as_str() {
        "NoSlicer" | "ExecOff" | "Network" | "NoKey" => exit::NO_CONNECTION,
        "Refused" => exit::REFUSED,
        "BadRequest" => exit::USAGE,
        _ => exit::FAILED,
    }
}

/// Reads the arguments, runs the command, and gives its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_log(&arguments.log);
    let console = Console { quiet: arguments.quiet };
    let outcome = Paths::new(arguments.data_dir)
        .map_err(|error| Failure::new(exit::FAILED, "Store", error.to_string(), "Name another folder with --data-dir."))
        .and_then(|paths| dispatch(arguments.command, &paths, console));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{}", console::in_words(&failure.problem));
            // Whoever asked for one object on stdout gets one, also when there is no result.
            if std::env::args().any(|argument| argument == "--json") {
                println!("{}", serde_json::json!({"error": failure.problem}));
            }
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(command: Option<Command>, paths: &Paths, console: Console) -> Outcome {
    match command {
        None => window::open(paths, console),
        Some(Command::Demo(arguments)) => demo::run(&arguments, paths, console),
        Some(Command::Ask(arguments)) => ask::run(&arguments, paths, console),
        Some(Command::Run(arguments)) => run::run(&arguments, paths, console),
        Some(Command::Validate(arguments)) => validate::run(&arguments),
        Some(Command::Bridge(arguments)) => bridge::run(&arguments),
        Some(Command::Practice(arguments)) => practice::run(&arguments, paths, console),
        Some(Command::Launch(arguments)) => launch::run(&arguments, paths, console),
        Some(Command::Index(arguments)) => index::run(&arguments, paths, console),
        Some(Command::Bench(arguments)) => bench::run(&arguments, paths),
        Some(Command::Search(arguments)) => search::run(&arguments, paths),
        Some(Command::Models(arguments)) => models::list(&arguments, paths),
        Some(Command::TestConnection(arguments)) => models::test(&arguments, paths),
        Some(Command::Costs(arguments)) => costs::run(&arguments, paths),
        Some(Command::Conversations(arguments)) => conversations::run(&arguments, paths),
        Some(Command::Workflow(arguments)) => workflow::run(&arguments, paths, console),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments, paths),
    }
}

fn start_log(level: &str) {
    let filter =
        tracing_subscriber::EnvFilter::try_new(level).unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| MaskedStderr).with_target(false);
    if log.try_init().is_err() {
        eprintln!("The log could not be started.");
    }
}

/// Where the log goes: stderr, without keys. At its finest level the log has whole messages, and a model or a server may
/// have repeated a key in one.
struct MaskedStderr;

impl std::io::Write for MaskedStderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        std::io::stderr().write_all(llm::mask(&store::for_log(&text), None).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Runs a command that works with the engine. What is still at work in the background when it ends (a download that was
/// given up) is not waited for.
fn block_on(work: impl Future<Output = Outcome>) -> Outcome {
    let runtime = runtime()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome
}

/// A runtime for commands that work with the engine.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(exit::FAILED, "Failed", error.to_string(), ""))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// The definition of all arguments is consistent (clap checks it only when asked).
    #[test]
    fn arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
