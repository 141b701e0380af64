//! The maintainers' script that refreshes the table of models. What it protects: facts come from the public table, what a
//! person wrote stays, and a price that is not known is left out rather than guessed.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use slicer_ai_agent::llm::{Catalogue, Usage};
use slicer_ai_agent::platform;

const TABLE_BEFORE: &str = r#"# Words at the top.

[[provider]]
id = "openai"
name = "OpenAI"
wire = "openai"
base_url = "https://api.openai.com/v1"
needs_key = true
quirks = { max_tokens_field = "max_completion_tokens" }

[[provider]]
id = "qwen"
name = "Qwen"
wire = "openai"
base_url = ""
needs_key = true

[[model]]
provider = "openai"
id = "one"
context = 5
prices = { input = 9.0, output = 9.0, cached = 9.0, date = "2020-01-01" }
fixed_temperature = true
written_by_hand = "stays"

[[model]]
provider = "qwen"
id = "tiers"

[[model]]
provider = "openai"
id = "free"
prices = { input = 1.0, output = 1.0, date = "2020-01-01" }

[[model]]
provider = "openai"
id = "not-in-the-table"
context = 7
prices = { input = 3.0, output = 4.0, date = "2020-01-01" }
"#;

#[test]
fn the_script_refreshes_facts_and_keeps_the_rest() {
    let python = platform::find_python(&|line| eprintln!("{line}")).unwrap();
    if python.minor < 11 {
        println!("not tried: the script reads TOML with Python's own module, which Python 3.{} lacks", python.minor);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (models, table) = (folder.path().join("models.toml"), folder.path().join("table.json"));
    std::fs::write(&models, TABLE_BEFORE).unwrap();
    let facts = json!({
        "one": { "max_input_tokens": 1000, "max_output_tokens": 100, "input_cost_per_token": 1.25e-6, "output_cost_per_token": 1e-5,
            "cache_read_input_token_cost": 1.25e-7, "cache_creation_input_token_cost": 0.0, "supports_vision": true,
            "supports_function_calling": true, "input_cost_per_token_above_200k_tokens": 2.5e-6,
            "output_cost_per_token_above_200k_tokens": 1.5e-5 },
        "dashscope/tiers": { "max_input_tokens": 2000, "supports_reasoning": true, "tiered_pricing": [
            { "range": [0, 32000.0], "input_cost_per_token": 1.2e-6, "output_cost_per_token": 6e-6 },
            { "range": [32000.0, 128000.0], "input_cost_per_token": 2.4e-6, "output_cost_per_token": 1.2e-5 }] },
        "free": { "max_input_tokens": 3000, "input_cost_per_token": 0.0, "output_cost_per_token": 0.0 },
    });
    std::fs::write(&table, facts.to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/refresh_models.py");
    let run = |more: &[&str]| {
        let mut command = Command::new(&python.executable);
        command.arg(&script).arg("--table").arg(&table).arg("--models").arg(&models).args(more).output().unwrap()
    };
    let checked = run(&["--check"]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert_eq!(std::fs::read_to_string(&models).unwrap(), TABLE_BEFORE, "a check changes nothing");
    let output = run(&[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("look at: openai not-in-the-table"), "{output:?}");
    let text = std::fs::read_to_string(&models).unwrap();
    assert!(text.starts_with(&TABLE_BEFORE[..TABLE_BEFORE.find("[[model]]").unwrap()]), "{text}");
    assert!(text.contains("written_by_hand = \"stays\"") && text.contains("fixed_temperature = true"), "{text}");
    let catalogue = Catalogue::from_toml(&text).unwrap();
    let one = catalogue.model("openai", "one").unwrap();
    let prices = one.prices.as_ref().unwrap();
    assert_eq!(
        (one.context, one.max_output, one.vision, one.tools, one.thinks),
        (Some(1000), Some(100), true, true, false)
    );
    assert_eq!((prices.input, prices.output, prices.cached, prices.cache_write), (1.25, 10.0, Some(0.125), None));
    assert_ne!(prices.date, "2020-01-01");
    let cost =
        |model: &str, provider: &str, input| catalogue.cost_usd(provider, model, &Usage { input, ..Usage::default() });
    assert_eq!(cost("one", "openai", 1_000_000), Some(2.5), "a long prompt");
    assert_eq!(cost("tiers", "qwen", 10_000), Some(0.012));
    assert_eq!(cost("tiers", "qwen", 100_000), Some(0.24));
    assert_eq!(cost("free", "openai", 10), None, "zero for all is how the table says that it does not know");
    let kept = catalogue.model("openai", "not-in-the-table").unwrap();
    assert_eq!((kept.context, kept.prices.as_ref().unwrap().date.as_str()), (Some(7), "2020-01-01"));
    assert_eq!(run(&["--check"]).status.code(), Some(0), "twice changes nothing more");
}
