//! Proxies: from the settings, from the environment, with exceptions, and never for this computer. What it protects: a
//! person behind a proxy gets through, and a model on the same computer is reached without one.

#[path = "support/model_server.rs"]
mod model_server;

use model_server::{ModelServer, ScriptedReply};
use slicer_ai_agent::llm::{Catalogue, ChatRequest, Client, Endpoint, LlmError, Message, NetworkCause, Transport};
use tokio_util::sync::CancellationToken;

fn client(base_url: &str, proxy: Option<&str>) -> Result<Client, LlmError> {
    let catalogue = Catalogue::from_toml(include_str!("../resources/models.toml")).unwrap();
    let endpoint = Endpoint { provider: "custom".into(), base_url: base_url.into(), model: "m".into(), api_key: None };
    let transport = Transport { proxy: proxy.map(str::to_owned), ..Transport::default() };
    Client::new(endpoint, &catalogue)?.with_max_retries(0).with_transport(&transport)
}

async fn ask(client: &Client) -> Result<String, LlmError> {
    let request = ChatRequest { messages: vec![Message::User { text: "hi".into() }], ..ChatRequest::default() };
    let (sender, _receiver) = tokio::sync::mpsc::channel(100);
    client.chat(&request, &CancellationToken::new(), &sender).await.map(|reply| reply.text)
}

fn address(server: &ModelServer) -> String {
    server.base_url().replace("/v1", "")
}

/// A proxy in the settings is used for far servers and for no name of this computer; one that is no address is told.
#[tokio::test]
async fn a_proxy_of_the_settings_is_used() {
    let proxy = ModelServer::start(vec![ScriptedReply::text("through the proxy")]);
    let far = client("http://model.invalid/v1", Some(&address(&proxy))).unwrap();
    assert_eq!(ask(&far).await.unwrap(), "through the proxy");
    let port = |server: &ModelServer| server.base_url().rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "model.localhost", "127.8.9.1"] {
        let local = ModelServer::start(vec![ScriptedReply::text("direct")]);
        let base = format!("http://{host}:{}", port(&local));
        match ask(&client(&base, Some(&address(&proxy))).unwrap()).await {
            Ok(text) => assert_eq!(text, "direct", "{host}"),
            // Not every system resolves every name of its own, nor listens at every loopback address.
            Err(error) => assert_eq!(error.kind(), "Network", "{host}: {error}"),
        }
    }
    let refused = client("http://[::1]:9/v1", Some(&address(&proxy))).unwrap();
    assert_eq!(ask(&refused).await.unwrap_err().kind(), "Network");
    assert_eq!(proxy.requests().len(), 1, "a call to this computer went through the proxy");
    let error = client("http://model.invalid/v1", Some("no address at all")).err().unwrap();
    assert!(error.advice().contains("http://host:port"), "{error}: {}", error.advice());
}

/// A proxy that wants a password is named as what stands in the way, also where it only makes a tunnel.
#[tokio::test]
async fn a_proxy_that_refuses_is_named() {
    let refuse = || ScriptedReply::Http { status: 407, headers: vec![], body: "who are you".into() };
    let proxy = ModelServer::start(vec![refuse(), refuse()]);
    for scheme in ["http", "https"] {
        let far = client(&format!("{scheme}://model.invalid/v1"), Some(&address(&proxy))).unwrap();
        let error = ask(&far).await.unwrap_err();
        assert!(matches!(error, LlmError::Network { cause: NetworkCause::Proxy, .. }), "{scheme}: {error:?}");
        assert!(error.advice().contains("proxy"), "{}", error.advice());
    }
}

const CHILD: &str = "SLICER_AI_AGENT_TEST_PROXY";

/// The environment's proxy and its exceptions hold. They are read once, so the test runs itself again.
#[tokio::test]
async fn exceptions_of_the_environment_hold() {
    if std::env::var_os(CHILD).is_some() {
        assert_eq!(ask(&client("http://far.invalid/v1", None).unwrap()).await.unwrap(), "through the proxy");
        for (host, proxy) in [("inside.invalid", None), ("model.inside.invalid", Some("http://127.0.0.1:9"))] {
            let error = ask(&client(&format!("http://{host}/v1"), proxy).unwrap()).await.unwrap_err();
            assert!(matches!(error, LlmError::Network { cause: NetworkCause::Dns, .. }), "{host}: {error:?}");
        }
        return;
    }
    let proxy = ModelServer::start(vec![ScriptedReply::text("through the proxy"), ScriptedReply::text("wrong")]);
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "exceptions_of_the_environment_hold", "--nocapture"]).env(CHILD, "1");
    for variable in ["HTTP_PROXY", "http_proxy"] {
        command.env(variable, address(&proxy));
    }
    for variable in ["NO_PROXY", "no_proxy"] {
        command.env(variable, "inside.invalid,.inside.invalid");
    }
    let output = command.output().await.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(proxy.requests().len(), 1, "an exception went through the proxy");
}
