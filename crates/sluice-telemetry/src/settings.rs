//! What a person sets, by the variables that OpenTelemetry has for it or in `config.toml`.

use std::fmt;

/// What a collector is asked under, if only its address is set.
const TRACES: &str = "/v1/traces";
/// What this is called if no variable says otherwise.
const SERVICE: &str = "sluice";

const PROTOCOL: &str = "http/json";
/// What has no effect here if it is set: that is said, and traces are delivered all the same.
const WITHOUT_EFFECT: [&str; 5] = ["COMPRESSION", "TIMEOUT", "CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"];

#[derive(Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    pub endpoint: String,
    /// What is sent beside them. The values are secrets.
    pub headers: Vec<(String, String)>,
    /// What this process says about itself, its name among it.
    pub resource: Vec<(String, String)>,
    /// What is set and has no effect here, in words.
    pub notes: Vec<String>,
}

/// Without the values of headers: they let a caller in.
impl fmt::Debug for TelemetrySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let resource: Vec<String> = self.resource.iter().map(|(key, value)| format!("{key}={value}")).collect();
        write!(f, "{} as {}, with {names:?}", self.endpoint, resource.join(","))?;
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
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
        // The variable for traces alone comes before the one for all that is exported.
        let exporter = |what: &str| {
            let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{what}"), format!("OTEL_EXPORTER_OTLP_{what}")];
            names.into_iter().find_map(|name| set(&name).map(|value| (name, value)))
        };
        let only = |set: Option<(String, String)>, known: &[&str], why: &str| match set {
            Some((name, value)) if !known.contains(&value.as_str()) => Err(format!("{name} is `{value}`, and {why}")),
            Some(_) | None => Ok(()),
        };
        let named = |name: &str| set(name).map(|value| (name.to_owned(), value));
        only(exporter("PROTOCOL"), &[PROTOCOL], &format!("only `{PROTOCOL}` is spoken"))?;
        only(named("OTEL_TRACES_EXPORTER"), &["otlp"], "only `otlp` and `none` are known")?;
        let samplers = ["always_on", "parentbased_always_on"];
        only(named("OTEL_TRACES_SAMPLER"), &samplers, "all spans are told: let the collector choose among them")?;
        let pairs_of = |(name, written): (String, String)| {
            // Its value is not repeated: it may be a secret.
            pairs(&written).ok_or_else(|| format!("{name} is not written as `name=value,name=value`"))
        };
        let mut headers = exporter("HEADERS").map(pairs_of).transpose()?.unwrap_or_default();
        headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
        let mut resource = named("OTEL_RESOURCE_ATTRIBUTES").map(pairs_of).transpose()?.unwrap_or_default();
        let chosen = set("OTEL_SERVICE_NAME");
        if chosen.is_some() {
            resource.retain(|(key, _)| key != "service.name");
        }
        for (key, value) in
            [("service.version", env!("CARGO_PKG_VERSION")), ("service.name", chosen.as_deref().unwrap_or(SERVICE))]
        {
            if resource.iter().all(|(known, _)| known != key) {
                resource.insert(0, (key.to_owned(), value.to_owned()));
            }
        }
        let unused = WITHOUT_EFFECT.into_iter().filter_map(exporter);
        let unused = unused.filter(|(name, value)| !(name.ends_with("COMPRESSION") && value == "none"));
        let notes = unused.map(|(name, _)| format!("{name} is set and has no effect")).collect();
        Ok(Some(TelemetrySettings { endpoint, headers, resource, notes }))
    }
}

/// Pairs as the W3C writes baggage: `name=value,name=value`, with `%20` for what has a meaning there.
fn pairs(written: &str) -> Option<Vec<(String, String)>> {
    let pairs = written.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), plain(value.trim())?))
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

    const VERSION: &str = concat!("service.version=", env!("CARGO_PKG_VERSION"));

    #[test]
    fn attributes_of_the_resource_are_told_and_the_name_of_the_service_comes_first() {
        let with = |text: &str| read(&format!("OTEL_RESOURCE_ATTRIBUTES={text}"), Some("http://file"));
        let told = |resource: &str| format!("http://file/v1/traces as {resource}, with []");
        assert_eq!(with("a=b%20c,d=e"), told(&format!("service.name=sluice,{VERSION},a=b c,d=e")));
        assert_eq!(with("service.name=pot"), told(&format!("{VERSION},service.name=pot")));
        assert_eq!(
            with("service.name=pot,service.version=9\nOTEL_SERVICE_NAME=tea"),
            told("service.name=tea,service.version=9")
        );
        assert_eq!(with("nonsense"), "OTEL_RESOURCE_ATTRIBUTES is not written as `name=value,name=value`");
    }

    #[test]
    fn what_is_not_done_as_it_is_set_is_said() {
        let with = |text: &str| read(text, Some("http://file"));
        let plain = with("");
        assert_eq!(with("OTEL_EXPORTER_OTLP_PROTOCOL=http/json"), plain);
        assert_eq!(
            with("OTEL_EXPORTER_OTLP_PROTOCOL=grpc"),
            "OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`, and only `http/json` is spoken"
        );
        assert_eq!(with("OTEL_EXPORTER_OTLP_PROTOCOL=grpc\nOTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"), plain);
        assert_eq!(with("OTEL_TRACES_EXPORTER=otlp\nOTEL_TRACES_SAMPLER=parentbased_always_on"), plain);
        assert_eq!(
            with("OTEL_TRACES_EXPORTER=console"),
            "OTEL_TRACES_EXPORTER is `console`, and only `otlp` and `none` are known"
        );
        assert!(with("OTEL_TRACES_SAMPLER=traceidratio").starts_with("OTEL_TRACES_SAMPLER is `traceidratio`, and all"));
        assert_eq!(with("OTEL_EXPORTER_OTLP_COMPRESSION=none"), plain);
        assert_eq!(
            with("OTEL_EXPORTER_OTLP_COMPRESSION=gzip"),
            format!("{plain}; OTEL_EXPORTER_OTLP_COMPRESSION is set and has no effect")
        );
    }

    #[test]
    fn variables_come_before_the_file() {
        let file = Some("http://file:4318/");
        let all = "OTEL_EXPORTER_OTLP_ENDPOINT=http://all:4318";
        let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://own/traces";
        assert_eq!(read("", None), "nothing");
        assert_eq!(read("OTEL_EXPORTER_OTLP_ENDPOINT= ", None), "nothing");
        assert_eq!(read("", file), format!("http://file:4318/v1/traces as service.name=sluice,{VERSION}, with []"));
        assert_eq!(read(all, file), format!("http://all:4318/v1/traces as service.name=sluice,{VERSION}, with []"));
        let both = read(&format!("{all}\n{own}\nOTEL_SERVICE_NAME=tea"), file);
        assert_eq!(both, format!("https://own/traces as service.name=tea,{VERSION}, with []"));
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
        assert_eq!(pairs("a=b%20c%3D,d=e=f"), Some(vec![("a".into(), "b c=".into()), ("d".into(), "e=f".into())]));
    }
}
