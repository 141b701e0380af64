//! How fast and how small the bridge is, beside a direct HTTP call and mcp-slicer (PyPI), in one run on one practice Slicer.
//!
//!     cargo bench --bench bridge                    everything, about five minutes
//!     cargo bench --bench bridge -- --calls 2000    fewer calls in the endurance part
//!
//! The program of a benchmark is built with the features of the tests, which makes it larger. With
//! `SLICER_AI_AGENT_PROGRAM=target/release/slicer-ai-agent` the one that people build is measured.
//!
//! The three ways are measured in turn, call by call, so that whatever else the machine does hits all of them alike. What
//! a bridge adds is its median less that of the direct call.

#[path = "../tests/support/mcp_slicer.rs"]
mod mcp_slicer;
#[path = "../tests/support/practice.rs"]
mod practice;
#[path = "../tests/support/python_environment.rs"]
mod python_environment;

use std::time::{Duration, Instant};

use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use slicer_ai_agent::bridge::WebServer;
use slicer_ai_agent::bridge::web_server::{NodeFilter, NodeListing};
use slicer_ai_agent::slicer::practice::PracticeProcess;
use tokio::process::Command;

const ROUNDS: usize = 500;
const STARTS: usize = 15;
const CLIENTS: usize = 8;

type Client = RunningService<RoleClient, ()>;

struct Server {
    client: Client,
    pid: u32,
    /// From the start of the process to the answer to `initialize`.
    start: Duration,
}

impl Server {
    async fn start(mut command: Command) -> Self {
        command.kill_on_drop(true);
        let started = Instant::now();
        let (transport, _) = TokioChildProcess::builder(command).stderr(std::process::Stdio::null()).spawn().unwrap();
        let pid = transport.id().unwrap();
        let client = ().serve(transport).await.unwrap();
        Self { client, pid, start: started.elapsed() }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.client.call_tool(params).await.unwrap();
        serde_json::from_str(&result.content[0].as_text().unwrap().text).unwrap()
    }

    async fn run(&self, code: &str) -> Value {
        self.call("execute_python_code", json!({"code": code})).await
    }
}

fn ours(slicer: &PracticeProcess) -> Command {
    let program = std::env::var("SLICER_AI_AGENT_PROGRAM");
    let mut command = Command::new(program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_slicer-ai-agent")));
    command.args(["bridge", "--slicer-url", &slicer.url]);
    command
}

fn theirs(slicer: &PracticeProcess) -> Command {
    Command::from(mcp_slicer::command("0.3.1", &slicer.url))
}

/// Resident memory in kB: all of it, and what is not backed by files.
fn memory(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (value("VmRSS:"), value("RssAnon:"))
}

/// Times in ms, sorted.
struct Times(Vec<f64>);

impl Times {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn add(&mut self, started: Instant) {
        self.0.push(started.elapsed().as_secs_f64() * 1000.0);
    }

    fn at(&mut self, share: f64) -> f64 {
        self.0.sort_by(f64::total_cmp);
        self.0[((self.0.len() - 1) as f64 * share).round() as usize]
    }
}

fn row(name: &str, all: &mut [Times; 3]) {
    let medians: Vec<f64> = all.iter_mut().map(|times| times.at(0.5)).collect();
    let slow: Vec<f64> = all.iter_mut().map(|times| times.at(0.95)).collect();
    println!(
        "| `{name}` | {:.2} / {:.2} | {:.2} / {:.2} | {:.2} / {:.2} | {:.2} | {:.2} |",
        medians[0],
        slow[0],
        medians[1],
        slow[1],
        medians[2],
        slow[2],
        medians[1] - medians[0],
        medians[2] - medians[0]
    );
}

async fn latency(slicer: &PracticeProcess, our: &Server, their: &Server) {
    println!(
        "\n| median / p95 in ms, {ROUNDS} calls each | direct HTTP | ours | mcp-slicer 0.3.1 | ours adds | it adds |"
    );
    println!("|---|---|---|---|---|---|");
    let direct = WebServer::new(&slicer.url, None).unwrap();
    let filter = NodeFilter::default();
    let mut all = [Times::new(), Times::new(), Times::new()];
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let plain = direct.nodes(NodeListing::Names, &filter).await.unwrap();
        all[0].add(started);
        for (times, server) in [(1, our), (2, their)] {
            let started = Instant::now();
            let reply = server.call("list_nodes", json!({})).await;
            all[times].add(started);
            assert_eq!(reply["nodes"], plain);
        }
    }
    row("list_nodes", &mut all);
    let mut all = [Times::new(), Times::new(), Times::new()];
    for number in 0..ROUNDS {
        let code = format!("__execResult = {number} + 1");
        let started = Instant::now();
        assert_eq!(direct.exec(&code, None).await.unwrap(), number + 1);
        all[0].add(started);
        for (times, server) in [(1, our), (2, their)] {
            let started = Instant::now();
            assert_eq!(server.run(&code).await, json!({"success": true, "message": number + 1}));
            all[times].add(started);
        }
    }
    row("execute_python_code", &mut all);
}

async fn starts(slicer: &PracticeProcess) {
    let mut all = [Times::new(), Times::new()];
    for _ in 0..STARTS {
        for (times, command) in [(0, ours(slicer)), (1, theirs(slicer))] {
            let server = Server::start(command).await;
            all[times].0.push(server.start.as_secs_f64() * 1000.0);
            server.client.cancel().await.unwrap();
        }
    }
    println!(
        "\nFrom process start to `initialize` answered, median of {STARTS}: ours {:.1} ms, mcp-slicer {:.0} ms.",
        all[0].at(0.5),
        all[1].at(0.5)
    );
}

/// Several clients, each a process of its own, call at once; every reply must be the one to its own call.
async fn at_once(slicer: &PracticeProcess) {
    let mut servers = Vec::new();
    for _ in 0..CLIENTS {
        servers.push(Server::start(ours(slicer)).await);
    }
    let started = Instant::now();
    let running: Vec<_> = servers
        .into_iter()
        .enumerate()
        .map(|(client, server)| {
            tokio::spawn(async move {
                for call in 0..1000 / CLIENTS {
                    let wanted = format!("{client}-{call}");
                    let reply = server.run(&format!("__execResult = '{wanted}'")).await;
                    assert_eq!(reply, json!({"success": true, "message": wanted}));
                }
            })
        })
        .collect();
    for one in running {
        one.await.unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "\n1,000 calls from {CLIENTS} clients at once: every reply right, {seconds:.2} s ({:.0} calls/s).",
        1000.0 / seconds
    );
}

async fn endurance(slicer: &PracticeProcess, our: &Server, calls: usize) {
    println!("\n| calls | bridge: resident (its own) MB | Slicer: resident MB |\n|---|---|---|");
    let show = |done: usize| {
        let ((all, own), (slicer_all, _)) = (memory(our.pid), memory(slicer.pid));
        println!("| {done} | {:.1} ({:.1}) | {:.1} |", all as f64 / 1e3, own as f64 / 1e3, slicer_all as f64 / 1e3);
    };
    let marks = [1000, calls / 4, calls / 2, calls * 3 / 4, calls];
    for call in 1..=calls {
        if call % 4 == 0 {
            our.call("list_nodes", json!({})).await;
        } else {
            assert_eq!(our.run(&format!("__execResult = {call}")).await["message"], call);
        }
        if marks.contains(&call) {
            show(call);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let calls =
        arguments.iter().position(|one| one == "--calls").map_or(100_000, |at| arguments[at + 1].parse().unwrap());
    let slicer = practice::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        starts(&slicer).await;
        let (our, their) = (Server::start(ours(&slicer)).await, Server::start(theirs(&slicer)).await);
        latency(&slicer, &our, &their).await;
        let ((all, own), (their_all, their_own)) = (memory(our.pid), memory(their.pid));
        println!(
            "\nResident after {} calls: ours {:.1} MB ({:.1} its own), mcp-slicer {:.1} MB ({:.1} its own).",
            2 * ROUNDS,
            all as f64 / 1e3,
            own as f64 / 1e3,
            their_all as f64 / 1e3,
            their_own as f64 / 1e3
        );
        at_once(&slicer).await;
        endurance(&slicer, &our, calls).await;
    });
}
