//! When to try again, and after how long. A provider that says how long to wait is believed; otherwise the wait doubles
//! with some chance in it, so that many clients do not come back at the same moment.

use std::time::Duration;

use reqwest::header::HeaderMap;

/// Waits longer than this are not sat out: the person is told how long it would be.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Nobody means more than this.
const LONGEST_TOLD: Duration = Duration::from_secs(7 * 86_400);
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_STEP: Duration = Duration::from_secs(16);
/// Overrides the number of retries.
const VARIABLE: &str = "SLICER_AI_AGENT_MAX_RETRIES";
const DEFAULT_RETRIES: u32 = 5;

/// The number of retries that the environment asks for, or 5.
pub(super) fn limit_from_environment() -> u32 {
    std::env::var(VARIABLE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(DEFAULT_RETRIES)
}

/// How long to wait before the given retry (1 is the first), when the provider told nothing.
pub(super) fn backoff(retry: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << retry.saturating_sub(1).min(10)).min(LONGEST_STEP);
    // The sub-second part of the clock is chance enough to spread clients out; it lies in 0.75 to 1.25.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    doubled.mul_f64(0.75 + f64::from(now.subsec_nanos() % 1_000_000) / 2_000_000.0)
}

/// How long the headers ask to wait: a header in milliseconds, `retry-after` (seconds, a date or a span), or the headers
/// that tell when a limit is reset. What makes no sense (negative, not a number, longer than anybody could mean) counts
/// as not told.
pub(super) fn wait_from_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let in_ms = ["retry-after-ms", "x-retry-after-ms", "x-ms-retry-after-ms"];
    let ms = in_ms.iter().find_map(|name| seconds(text(name)?.parse::<f64>().ok()? / 1000.0));
    let after =
        || text("retry-after").and_then(|after| number(after).or_else(|| moment(after)).or_else(|| duration(after)));
    let resets = || {
        let names = [
            "x-ratelimit-reset-requests",
            "x-ratelimit-reset-tokens",
            "x-ratelimit-reset",
            "ratelimit-reset",
            "x-ratelimit-reset-after",
        ];
        names.iter().filter_map(|name| text(name).and_then(reset)).max()
    };
    let moments = || {
        let kinds = ["requests", "tokens", "input-tokens", "output-tokens"];
        let names = kinds.iter().map(|kind| format!("anthropic-ratelimit-{kind}-reset"));
        // These stand on every answer; only the limit that is used up tells how long to wait.
        let used_up = |name: &String| text(&name.replace("-reset", "-remaining")).is_none_or(|left| left == "0");
        names.filter(used_up).filter_map(|name| moment(text(&name)?)).max()
    };
    ms.or_else(after).or_else(resets).or_else(moments)
}

/// A count of seconds.
fn number(text: &str) -> Option<Duration> {
    text.parse::<f64>().ok().and_then(seconds)
}

/// When a limit is reset: a span, a count of seconds, or a moment in Unix time (seconds or milliseconds).
fn reset(text: &str) -> Option<Duration> {
    let Ok(value) = text.parse::<f64>() else { return duration(text).or_else(|| moment(text)) };
    let now = time::OffsetDateTime::now_utc().unix_timestamp() as f64;
    match value {
        at if at > 1e12 => seconds((at / 1000.0 - now).max(0.0)),
        at if at > 1e9 => seconds((at - now).max(0.0)),
        span => seconds(span),
    }
}

/// Reads spans as `6m0s`, `76ms`, `1h2m`, `34s` or `1.5s`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut total = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += number
            * match &rest[..end] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86400.0,
                _ => return None,
            };
        rest = &rest[end..];
    }
    seconds(total)
}

fn seconds(seconds: f64) -> Option<Duration> {
    // Not a number fails both.
    (seconds >= 0.0 && seconds <= LONGEST_TOLD.as_secs_f64()).then(|| Duration::from_secs_f64(seconds))
}

/// The time until a moment: an HTTP date in its three forms, such as `Wed, 21 Oct 2015 07:28:00 GMT`, or an ISO one.
/// Nothing is left when it has passed.
fn moment(text: &str) -> Option<Duration> {
    let named = time::macros::format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let c = time::macros::format_description!(
        "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
    );
    let iso = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok();
    let utc = |date: Result<time::PrimitiveDateTime, _>| date.ok().map(time::PrimitiveDateTime::assume_utc);
    let date = iso
        .or_else(|| utc(time::PrimitiveDateTime::parse(text, &named)))
        .or_else(|| utc(time::PrimitiveDateTime::parse(&with_whole_year(text)?, &named)))
        .or_else(|| utc(time::PrimitiveDateTime::parse(text, &c)))?;
    let left = (date - time::OffsetDateTime::now_utc()).as_seconds_f64();
    seconds(left.max(0.0))
}

/// A date such as `Wednesday, 21-Oct-15 07:28:00 GMT` with the year in full; its two digits are of this century.
fn with_whole_year(text: &str) -> Option<String> {
    let (weekday, rest) = text.split_once(", ")?;
    let (day, rest) = rest.split_once('-')?;
    let (month, rest) = rest.split_once('-')?;
    Some(format!("{}, {day} {month} 20{rest}", weekday.get(..3)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        wait_from_headers(&map)
    }

    /// Each way in which providers tell a wait is understood; 6m0s is six minutes.
    #[test]
    fn waits_are_read_in_every_spelling() {
        assert_eq!(wait(&[("retry-after", "20")]), Some(Duration::from_secs(20)));
        assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "9")]), Some(Duration::from_millis(1500)));
        assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(Duration::ZERO));
        let later = time::OffsetDateTime::now_utc() + Duration::from_secs(90);
        let format = time::macros::format_description!(
            "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
        );
        let told = wait(&[("retry-after", &later.format(&format).unwrap())]).unwrap();
        assert!(told > Duration::from_secs(85) && told <= Duration::from_secs(90), "{told:?}");
        let resets = [("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-reset-tokens", "76ms")];
        assert_eq!(wait(&resets), Some(Duration::from_secs(360)));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "1.5")]), Some(Duration::from_millis(1500)));
        assert_eq!(wait(&[("retry-after", "Wednesday, 21-Oct-15 07:28:00 GMT")]), Some(Duration::ZERO));
        assert_eq!(wait(&[("retry-after", "Wed Oct 21 07:28:00 2015")]), Some(Duration::ZERO));
        assert_eq!(wait(&[("retry-after", "Thu Oct  1 07:28:00 2015")]), Some(Duration::ZERO));
        assert_eq!(wait(&[("x-ratelimit-reset-after", "2.5")]), Some(Duration::from_millis(2500)));
        let at = time::OffsetDateTime::now_utc().unix_timestamp() + 40;
        for text in [at.to_string(), (at * 1000).to_string()] {
            let told = wait(&[("x-ratelimit-reset", &text)]).unwrap();
            assert!(told > Duration::from_secs(35) && told <= Duration::from_secs(41), "{told:?}");
        }
        let iso = later.format(&time::format_description::well_known::Rfc3339).unwrap();
        let used_up =
            [("anthropic-ratelimit-tokens-reset", iso.as_str()), ("anthropic-ratelimit-tokens-remaining", "0")];
        assert!(wait(&used_up).unwrap() > Duration::from_secs(80));
        let left = [("anthropic-ratelimit-tokens-reset", iso.as_str()), ("anthropic-ratelimit-tokens-remaining", "9")];
        assert_eq!(wait(&left), None);
    }

    /// Nonsense in a header must neither panic, nor hammer the server, nor wait for ever: it counts as not told, and the
    /// next header or the doubling wait decides.
    #[test]
    fn nonsense_counts_as_not_told() {
        for text in ["-5", "nan", "inf", "-inf", "1e300", "999999999999999999999", "", " ", "\u{1f}", "5 apples", "--"]
        {
            let Ok(value) = reqwest::header::HeaderValue::from_str(text) else { continue };
            for name in ["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens", "x-ratelimit-reset-after"] {
                let mut map = HeaderMap::new();
                map.insert(name, value.clone());
                assert_eq!(wait_from_headers(&map), None, "{name}: {text:?}");
            }
        }
        assert_eq!(wait(&[("retry-after-ms", "-1"), ("retry-after", "3")]), Some(Duration::from_secs(3)));
        let mut map = HeaderMap::new();
        map.insert("retry-after", reqwest::header::HeaderValue::from_bytes(b"\xff\xfe").unwrap());
        assert_eq!(wait_from_headers(&map), None);
    }

    /// The wait grows, has a ceiling, and never overflows.
    #[test]
    fn the_wait_doubles_up_to_a_ceiling() {
        assert!(backoff(1) >= Duration::from_millis(375) && backoff(1) <= Duration::from_millis(625));
        assert!(backoff(3) >= Duration::from_millis(1500) && backoff(3) <= Duration::from_millis(2500));
        assert!(backoff(u32::MAX) <= Duration::from_secs(20));
    }
}
