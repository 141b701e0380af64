//! Providers and models as data. What a provider wants differently (its quirks) is a field here and never guessed from
//! its address, so that a person can add or correct one without a new build.

use serde::{Deserialize, Serialize};

use super::types::Usage;

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Chat completions as OpenAI defined them.
    Openai,
    /// Messages as Anthropic defined them.
    Anthropic,
    /// No wire at all: the built-in recipes.
    Recipes,
}

/// What a provider wants differently from the others of its wire format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Quirks {
    /// Name of the field that limits the answer.
    pub max_tokens_field: String,
    /// True: `stream_options` is understood, so that usage arrives with a stream.
    pub stream_options: bool,
    /// True: `reasoning_content` of earlier assistant messages goes back within a tool loop.
    pub reasoning_back: bool,
    /// The field that takes how long to think: `reasoning_effort`, `reasoning` (an object) or `enable_thinking` (a
    /// switch); empty: there is none.
    pub effort: String,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            max_tokens_field: "max_tokens".into(),
            stream_options: true,
            reasoning_back: false,
            effort: "reasoning_effort".into(),
        }
    }
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Provider {
    pub id: String,
    pub name: String,
    pub wire: Wire,
    /// Empty: the person gives it.
    pub base_url: String,
    /// Other addresses of the same provider, for example of other regions.
    #[serde(default)]
    pub alternatives: Vec<String>,
    /// Environment variable that may hold the key.
    pub key_variable: Option<String>,
    pub needs_key: bool,
    #[serde(default)]
    pub quirks: Quirks,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Input read from the provider's cache; absent: the price of input.
    pub cached: Option<f64>,
    /// Input written to the provider's cache; absent: the price of input.
    pub cache_write: Option<f64>,
    /// The day on which they were read, as `YYYY-MM-DD`.
    pub date: String,
    /// Other prices for the whole of a call whose prompt is longer, shortest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Tier>,
}

/// Prices of a call with a long prompt.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Tier {
    /// They hold for a prompt of more tokens than this, cached ones included.
    pub tokens: u64,
    pub input: f64,
    pub output: f64,
    pub cached: Option<f64>,
    pub cache_write: Option<f64>,
}

/// How a model of the Messages format is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// It takes an effort and decides by itself.
    Adaptive,
    /// It takes a number of tokens.
    Budget,
}

/// One model of a provider.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Model {
    pub provider: String,
    pub id: String,
    /// Largest input in tokens.
    pub context: Option<u64>,
    /// Largest answer in tokens.
    pub max_output: Option<u64>,
    pub prices: Option<Prices>,
    #[serde(default)]
    pub vision: bool,
    #[serde(default)]
    pub thinks: bool,
    #[serde(default)]
    pub tools: bool,
    /// How thinking is asked for, where the wire format has several ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// True: the model refuses a temperature of its own.
    #[serde(default)]
    pub fixed_temperature: bool,
}

/// All providers and models that are known by name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Catalogue {
    #[serde(rename = "provider", default)]
    providers: Vec<Provider>,
    #[serde(rename = "model", default)]
    models: Vec<Model>,
}

/// The provider table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error("the provider table cannot be read: {0}")]
    Unreadable(#[from] toml::de::Error),
    #[error("the provider table names the provider `{0}` twice")]
    Twice(String),
    #[error("the provider table gives the model `{model}` to the provider `{provider}`, which it does not define")]
    Orphan { provider: String, model: String },
}

impl Catalogue {
    /// Reads the table from TOML text.
    ///
    /// # Errors
    /// When the text is not such a table, or contradicts itself.
    pub fn from_toml(text: &str) -> Result<Self, CatalogueError> {
        let catalogue: Self = toml::from_str(text)?;
        for (position, provider) in catalogue.providers.iter().enumerate() {
            if catalogue.providers[..position].iter().any(|earlier| earlier.id == provider.id) {
                return Err(CatalogueError::Twice(provider.id.clone()));
            }
        }
        if let Some(model) = catalogue.models.iter().find(|model| catalogue.provider(&model.provider).is_none()) {
            return Err(CatalogueError::Orphan { provider: model.provider.clone(), model: model.id.clone() });
        }
        Ok(catalogue)
    }

    /// All providers, in the order in which they are offered.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// The provider of this id.
    pub fn provider(&self, id: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// The models that are known of a provider, in the order in which they are offered.
    pub fn models<'a>(&'a self, provider: &'a str) -> impl Iterator<Item = &'a Model> + 'a {
        self.models.iter().filter(move |model| model.provider == provider)
    }

    /// What is known of a model; `None` for one that is not listed, which works nevertheless.
    pub fn model(&self, provider: &str, id: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.provider == provider && model.id == id)
    }

    /// Price of a call in US dollars. `None` when the price is not known: it is never invented.
    pub fn cost_usd(&self, provider: &str, model: &str, usage: &Usage) -> Option<f64> {
        let prices = self.model(provider, model)?.prices.as_ref()?;
        let prompt = usage.input + usage.cached;
        let tier = prices.above.iter().rfind(|tier| prompt > tier.tokens);
        let (input, output, cached, cache_write) = match tier {
            Some(tier) => (tier.input, tier.output, tier.cached, tier.cache_write),
            None => (prices.input, prices.output, prices.cached, prices.cache_write),
        };
        let written = usage.cache_write.min(usage.input);
        let dollars = (usage.input - written) as f64 * input
            + written as f64 * cache_write.unwrap_or(input)
            + usage.cached as f64 * cached.unwrap_or(input)
            + usage.output as f64 * output;
        Some(dollars / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../../resources/models.toml");

    /// The table that ships must load, and hold every provider of the command line's contract.
    #[test]
    fn the_shipped_table_has_every_provider() {
        let catalogue = Catalogue::from_toml(SHIPPED).unwrap();
        let ids = "kimi deepseek claude openai qwen gemini mistral groq openrouter xai ollama lmstudio llamacpp vllm \
                   custom custom-anthropic recipes";
        for id in ids.split_whitespace() {
            assert!(catalogue.provider(id).is_some(), "{id} is missing");
        }
        assert_eq!(catalogue.provider("claude").unwrap().wire, Wire::Anthropic);
        assert_eq!(catalogue.provider("custom-anthropic").unwrap().wire, Wire::Anthropic);
        assert!(!catalogue.provider("ollama").unwrap().needs_key);
        assert!(catalogue.models("openai").count() > 3);
    }

    /// Every kind of token has its own price, and cached input is not billed as fresh input.
    #[test]
    fn cost_counts_each_kind_of_token_once() {
        let catalogue = Catalogue::from_toml(SHIPPED).unwrap();
        let usage = Usage { input: 1_000_000, cached: 2_000_000, output: 100_000, ..Usage::default() };
        // gpt-4.1: 2 in, 0.5 cached, 8 out.
        let cost = catalogue.cost_usd("openai", "gpt-4.1", &usage).unwrap();
        assert!((cost - (2.0 + 1.0 + 0.8)).abs() < 1e-9, "{cost}");
        let written = Usage { input: 1_000_000, cache_write: 400_000, ..Usage::default() };
        // claude-sonnet-4-6: 3 in, 3.75 written.
        let cost = catalogue.cost_usd("claude", "claude-sonnet-4-6", &written).unwrap();
        assert!((cost - (0.6 * 3.0 + 0.4 * 3.75)).abs() < 1e-9, "{cost}");
    }

    /// A long prompt has its own prices where the provider has them, for the whole call.
    #[test]
    fn a_long_prompt_has_its_own_price() {
        let catalogue = Catalogue::from_toml(SHIPPED).unwrap();
        let cost =
            |input| catalogue.cost_usd("gemini", "gemini-2.5-pro", &Usage { input, ..Usage::default() }).unwrap();
        // 1.25 up to 200,000 tokens, 2.5 above.
        assert!((cost(200_000) - 0.25).abs() < 1e-9, "{}", cost(200_000));
        assert!((cost(200_001) - 0.500_002_5).abs() < 1e-9, "{}", cost(200_001));
    }

    /// Prices without a day, tiers out of order and models without a size are slips of whoever wrote the table.
    #[test]
    fn the_shipped_table_is_in_order() {
        let catalogue = Catalogue::from_toml(SHIPPED).unwrap();
        for provider in ["kimi", "deepseek", "claude", "openai", "qwen", "gemini", "mistral", "groq", "xai"] {
            assert!(catalogue.models(provider).count() >= 3, "{provider} has too few models");
        }
        for model in &catalogue.models {
            assert!(model.context.is_some_and(|tokens| tokens >= 8_000), "{}", model.id);
            let Some(prices) = &model.prices else { continue };
            let date = prices.date.split('-').map(str::len).collect::<Vec<_>>();
            assert_eq!(date, [4, 2, 2], "{}", model.id);
            assert!(prices.above.is_sorted_by_key(|tier| tier.tokens), "{}", model.id);
            assert!(prices.cached.unwrap_or(0.0) <= prices.input, "{}", model.id);
        }
    }

    /// A price that is not known must show as unknown, also when the same model is served by somebody else.
    #[test]
    fn an_unknown_model_has_no_cost() {
        let catalogue = Catalogue::from_toml(SHIPPED).unwrap();
        let usage = Usage { input: 10, ..Usage::default() };
        assert_eq!(catalogue.cost_usd("openai", "no-such-model", &usage), None);
        assert_eq!(catalogue.cost_usd("custom", "gpt-4.1", &usage), None);
    }

    /// A person's own table is told what is wrong with it.
    #[test]
    fn a_table_that_contradicts_itself_is_refused() {
        let one = "[[provider]]\nid=\"a\"\nname=\"A\"\nwire=\"openai\"\nbase_url=\"\"\nneeds_key=false\n";
        assert!(matches!(Catalogue::from_toml(&format!("{one}{one}")), Err(CatalogueError::Twice(id)) if id == "a"));
        let orphan = format!("{one}[[model]]\nprovider=\"b\"\nid=\"m\"\n");
        assert!(matches!(Catalogue::from_toml(&orphan), Err(CatalogueError::Orphan { .. })));
        assert!(matches!(Catalogue::from_toml("x = ["), Err(CatalogueError::Unreadable(_))));
    }
}
