//! When to try again, and after how long. A provider that says how long to wait is believed; otherwise the wait doubles
//! with some chance in it, so that many clients do not come back at the same moment.

use std::time::Duration;

use reqwest::header::HeaderMap;

/// Waits longer than this are not sat out: the person is told how long it would be.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60);
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

/// How long the headers ask to wait: `retry-after-ms`, `retry-after` (seconds or a date), or the reset headers.
pub(super) fn wait_from_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()) {
        return seconds(ms / 1000.0);
    }
    if let Some(after) = text("retry-after") {
        return after.parse::<f64>().ok().and_then(seconds).or_else(|| until_date(after)).or_else(|| duration(after));
    }
    let resets = ["x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"];
    resets.iter().filter_map(|name| text(name).and_then(duration)).max()
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
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

/// The time until an HTTP date such as `Wed, 21 Oct 2015 07:28:00 GMT`; nothing left when it has passed.
fn until_date(text: &str) -> Option<Duration> {
    let format = time::macros::format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let date = time::PrimitiveDateTime::parse(text, &format).ok()?.assume_utc();
    let left = date - time::OffsetDateTime::now_utc();
    Some(Duration::try_from(left).unwrap_or_default())
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
    }

    /// The wait grows, has a ceiling, and never overflows.
    #[test]
    fn the_wait_doubles_up_to_a_ceiling() {
        assert!(backoff(1) >= Duration::from_millis(375) && backoff(1) <= Duration::from_millis(625));
        assert!(backoff(3) >= Duration::from_millis(1500) && backoff(3) <= Duration::from_millis(2500));
        assert!(backoff(u32::MAX) <= Duration::from_secs(20));
    }
}
