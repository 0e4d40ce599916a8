//! What a person sets, by the variables that OpenTelemetry has for it or in `config.toml`.

use std::fmt;

/// What a collector is asked under, if only its address is set.
const TRACES: &str = "/v1/traces";
/// What this is called if nobody says otherwise.
const SERVICE: &str = "sluice";

/// Where traces go.
#[derive(Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The whole address.
    pub endpoint: String,
    /// What is sent beside them. The values are secrets.
    pub headers: Vec<(String, String)>,
    /// What this is called.
    pub service: String,
}

/// Without the values of headers: they let somebody in.
impl fmt::Debug for TelemetrySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        write!(f, "{} as {}, with {names:?}", self.endpoint, self.service)
    }
}

impl TelemetrySettings {
    /// What is set: by variables first, else `configured`, the address in `config.toml`. `None` when traces are not
    /// wanted; the error says what cannot be used.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
        configured: Option<&str>,
    ) -> Result<Option<TelemetrySettings>, String> {
        let set = |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let is = |name: &str, word: &str| set(name).is_some_and(|text| text.eq_ignore_ascii_case(word));
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        let below = |address: String| format!("{}{TRACES}", address.trim_end_matches('/'));
        let endpoint = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT").map(below))
            .or_else(|| configured.filter(|text| !text.is_empty()).map(|text| below(text.to_owned())));
        let Some(endpoint) = endpoint else { return Ok(None) };
        let [own, all] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
        let (name, written) = set(own).map_or_else(|| (all, set(all)), |text| (own, Some(text)));
        let headers = headers(&written.unwrap_or_default());
        // Its value is not repeated: it is a secret.
        let headers = headers.ok_or_else(|| format!("{name} is not written as `name=value,name=value`"))?;
        let service = set("OTEL_SERVICE_NAME").unwrap_or_else(|| SERVICE.to_owned());
        Ok(Some(TelemetrySettings { endpoint, headers, service }))
    }
}

/// Pairs as the W3C writes baggage: `name=value,name=value`, with `%20` for what has a meaning there.
fn headers(written: &str) -> Option<Vec<(String, String)>> {
    let pairs = written.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_ascii_lowercase(), plain(value.trim())?))
    };
    pairs.map(read).collect()
}

fn plain(escaped: &str) -> Option<String> {
    let mut parts = escaped.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows from variables, written `NAME=value`, one a line.
    fn read(variables: &str, configured: Option<&str>) -> String {
        let variable = |name: &str| {
            let pairs = variables.lines().filter_map(|line| line.trim().split_once('='));
            pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next()
        };
        match TelemetrySettings::read(variable, configured) {
            Ok(None) => "nothing".into(),
            Ok(Some(settings)) => format!("{settings:?}"),
            Err(why) => why,
        }
    }

    #[test]
    fn variables_come_before_the_file() {
        let file = Some("http://file:4318/");
        let all = "OTEL_EXPORTER_OTLP_ENDPOINT=http://all:4318";
        let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://own/traces";
        assert_eq!(read("", None), "nothing");
        assert_eq!(read("OTEL_EXPORTER_OTLP_ENDPOINT= ", None), "nothing");
        assert_eq!(read("", file), "http://file:4318/v1/traces as sluice, with []");
        assert_eq!(read(all, file), "http://all:4318/v1/traces as sluice, with []");
        assert_eq!(read(&format!("{all}\n{own}\nOTEL_SERVICE_NAME=tea"), file), "https://own/traces as tea, with []");
        assert_eq!(read(&format!("{all}\nOTEL_SDK_DISABLED=true"), file), "nothing");
        assert_eq!(read(&format!("{all}\nOTEL_TRACES_EXPORTER=none"), file), "nothing");
    }

    #[test]
    fn headers_are_pairs_and_are_never_shown() {
        let with = |text: &str| read(&format!("OTEL_EXPORTER_OTLP_HEADERS={text}"), Some("http://file"));
        assert!(with("Api-Key=hunter2, authorization=Bearer%20hunter2").ends_with(r#"["api-key", "authorization"]"#));
        let refused = with("hunter2");
        assert_eq!(refused, "OTEL_EXPORTER_OTLP_HEADERS is not written as `name=value,name=value`");
        assert_eq!(with("key=%2"), refused);
        assert_eq!(headers("a=b%20c%3D,d=e=f"), Some(vec![("a".into(), "b c=".into()), ("d".into(), "e=f".into())]));
    }
}
