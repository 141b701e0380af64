//! What our model client costs: the time until the first word that it adds to a bare HTTP exchange, and the processor time
//! while an answer streams at 200 tokens a second, for the client alone and for the whole engine with its history.
//!
//!     cargo bench --bench llm          # optimised
//!     cargo test --bench llm           # as the tests are built: quicker to make, slower to run
//!
//! The server is this program again, as a child, so that its work is not counted.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use slicer_ai_agent::engine::{self, EngineOptions, Event, Settings, SlicerTarget, TurnEvent};
use slicer_ai_agent::llm::{Catalogue, ChatRequest, Client, Delta, Endpoint, Message};
use slicer_ai_agent::store::Paths;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 300;
const TOKENS_PER_SECOND: u64 = 200;
const SECONDS: u64 = 10;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    if std::env::args().any(|argument| argument == "serve") {
        return serve();
    }
    let server = Server::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    first_word(&server, &runtime)?;
    processor_time(&server, &runtime)?;
    Ok(())
}

// ---------------------------------------------------------------------------------------------------- the server

/// A child process that answers.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    fn base(&self, what: &str) -> String {
        format!("http://{}/{what}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            self.child.wait().ok();
        }
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn serve() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let mut stream = stream?;
        std::thread::spawn(move || {
            if let Err(error) = answer(&mut stream) {
                eprintln!("the server of the measurement: {error}");
            }
        });
    }
    Ok(())
}

fn answer(stream: &mut TcpStream) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(count) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = count.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    stream.write_all(HEAD.as_bytes())?;
    if first.contains("/slow/") {
        let started = Instant::now();
        for number in 0..TOKENS_PER_SECOND * SECONDS {
            let due = started + Duration::from_micros(number * 1_000_000 / TOKENS_PER_SECOND);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            stream.write_all(chunk(" token").as_bytes())?;
        }
    } else {
        stream.write_all(chunk("first").as_bytes())?;
    }
    stream.write_all(END.as_bytes())?;
    Ok(())
}

// ------------------------------------------------------------------------------------------------- measurements

fn client(base_url: String) -> Outcome<Client> {
    let catalogue = Catalogue::from_toml(include_str!("../resources/models.toml"))?;
    let endpoint = Endpoint { provider: "custom".into(), base_url, model: "m".into(), api_key: None };
    Ok(Client::new(endpoint, &catalogue)?)
}

fn request() -> ChatRequest {
    // A prompt of the size that a turn has.
    let system = "Rules of Slicer programming. ".repeat(700);
    let messages = vec![Message::System { text: system }, Message::User { text: "Hello".into() }];
    ChatRequest { messages, ..ChatRequest::default() }
}

fn quantile(times: &mut [f64], part: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times[((times.len() - 1) as f64 * part).round() as usize]
}

fn first_word(server: &Server, runtime: &tokio::runtime::Runtime) -> Outcome<()> {
    let (request, client) = (request(), client(server.base("fast"))?);
    let body = "x".repeat(20_500);
    let post = format!(
        "POST /fast/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    // In turns, so that whatever else the machine does falls on both.
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut stream = TcpStream::connect(&server.address)?;
        stream.set_nodelay(true)?;
        stream.write_all(post.as_bytes())?;
        let mut got = Vec::new();
        while !got.windows(5).any(|window| window == b"first") {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece)?;
            got.extend_from_slice(&piece[..count]);
        }
        bare.push(started.elapsed().as_secs_f64() * 1000.0);
        let started = Instant::now();
        let took = runtime.block_on(async {
            let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
            let cancel = CancellationToken::new();
            let call = client.chat(&request, &cancel, &sender);
            tokio::pin!(call);
            let mut took = None;
            loop {
                tokio::select! {
                    biased;
                    Some(delta) = receiver.recv() => if matches!(delta, Delta::Text(_)) { took = Some(started.elapsed()) },
                    reply = &mut call => return reply.map(|_| took),
                }
            }
        })?;
        // The piece may still lie in the channel when the call is over: then the end of the call is when it was there.
        ours.push(took.unwrap_or_else(|| started.elapsed()).as_secs_f64() * 1000.0);
    }
    for (name, part) in [("median", 0.5), ("95 %", 0.95)] {
        let (bare, ours) = (quantile(&mut bare, part), quantile(&mut ours, part));
        println!("first word, {name}: bare HTTP {bare:.2} ms, client {ours:.2} ms, added {:.2} ms", ours - bare);
    }
    Ok(())
}

/// Processor time of all threads of this process so far; `None` where the system does not tell.
fn processor() -> Option<Duration> {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(sum))
}

fn tell(what: &str, before: Option<Duration>, after: Option<Duration>, took: Duration) {
    match (before, after) {
        (Some(before), Some(after)) => {
            let used = after.saturating_sub(before);
            let share = used.as_secs_f64() / took.as_secs_f64() * 100.0;
            println!(
                "{what} at {TOKENS_PER_SECOND} tokens/s: {:.0} ms of processor in {:.1} s ({share:.1} % of one core)",
                used.as_secs_f64() * 1000.0,
                took.as_secs_f64()
            );
        }
        _ => println!("{what}: this system does not tell the processor time of a process"),
    }
}

fn processor_time(server: &Server, runtime: &tokio::runtime::Runtime) -> Outcome<()> {
    let (request, client) = (request(), client(server.base("slow"))?);
    let (before, started) = (processor(), Instant::now());
    let reply = runtime.block_on(async {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
        let reader = tokio::spawn(async move { while receiver.recv().await.is_some() {} });
        let reply = client.chat(&request, &CancellationToken::new(), &sender).await;
        drop(sender);
        reader.await.ok();
        reply
    })?;
    assert_eq!(reply.text.len() as u64, TOKENS_PER_SECOND * SECONDS * " token".len() as u64);
    tell("client", before, processor(), started.elapsed());
    runtime.block_on(whole_engine(server))
}

async fn whole_engine(server: &Server) -> Outcome<()> {
    let data = tempfile::tempdir()?;
    let mut settings = Settings::default();
    settings.model.provider = "custom".into();
    settings.model.model = "m".into();
    settings.model.base_url = server.base("slow");
    let mut engine = engine::start(EngineOptions {
        paths: Paths::new(Some(data.path().to_owned()))?,
        settings: Some(settings),
        slicer: SlicerTarget::None,
        granted: BTreeSet::new(),
        api_key: None,
        max_attempts: None,
        executable: None,
    })?;
    engine.commands.send(engine::Command::NewConversation).await?;
    let (mut before, mut started) = (None, Instant::now());
    let mut facts = 0;
    while let Some(event) = engine.events.recv().await {
        match event {
            Event::Opened { conversation, .. } => {
                engine.commands.send(engine::Command::Send { conversation, text: "Hello".into() }).await?;
                (before, started) = (processor(), Instant::now());
            }
            Event::Turn { event, .. } => {
                facts += 1;
                if matches!(event.event, TurnEvent::Finished { .. }) {
                    break;
                }
            }
            _ => {}
        }
    }
    tell(&format!("engine with history ({facts} facts)"), before, processor(), started.elapsed());
    engine.commands.send(engine::Command::Shutdown).await?;
    Ok(())
}
