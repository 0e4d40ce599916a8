//! The form of OTLP/HTTP with JSON: what a collector is sent under `/v1/traces`.

use serde_json::{Map, json};

use crate::context::SpanContext;
use crate::span::{SpanKind, SpanRecord, SpanValue};

pub(crate) fn body(resource: &[(String, String)], records: &[SpanRecord]) -> Vec<u8> {
    let one = |(key, value): &(String, String)| json!({ "key": key, "value": { "stringValue": value } });
    let resource: Vec<_> = resource.iter().map(one).collect();
    let spans: Vec<_> = records.iter().map(span).collect();
    let body = json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": { "name": "sluice", "version": env!("CARGO_PKG_VERSION") }, "spans": spans }],
        }],
    });
    body.to_string().into_bytes()
}

fn span(record: &SpanRecord) -> serde_json::Value {
    let mut span = Map::new();
    span.insert("traceId".into(), hex(&record.context.trace).into());
    span.insert("spanId".into(), hex(&record.context.id).into());
    if let Some(parent) = &record.parent {
        span.insert("parentSpanId".into(), hex(parent).into());
    }
    span.insert("name".into(), record.name.as_ref().into());
    span.insert("kind".into(), number(record.kind).into());
    // Numbers of 64 bits are texts in JSON, because not every reader could hold them otherwise.
    span.insert("startTimeUnixNano".into(), record.began.to_string().into());
    span.insert("endTimeUnixNano".into(), record.ended.to_string().into());
    span.insert("attributes".into(), attributes(&record.values));
    if !record.links.is_empty() {
        let link = |to: &SpanContext| json!({ "traceId": hex(&to.trace), "spanId": hex(&to.id) });
        span.insert("links".into(), record.links.iter().map(link).collect());
    }
    if record.failed {
        span.insert("status".into(), json!({ "code": 2 }));
    }
    span.into()
}

/// The numbers of the protocol.
fn number(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
    }
}

fn attributes(values: &[(&'static str, SpanValue)]) -> serde_json::Value {
    let one = |(key, value): &(&'static str, SpanValue)| match value {
        SpanValue::Text(text) => json!({ "key": key, "value": { "stringValue": text } }),
        SpanValue::Number(number) => json!({ "key": key, "value": { "intValue": number.to_string() } }),
    };
    values.iter().map(one).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_the_protocol_wants_it() {
        let records = [
            SpanRecord {
                context: SpanContext { trace: [0x0a; 16], id: [0x0b; 8] },
                parent: Some([0x0c; 8]),
                links: Vec::new(),
                name: "GET /v1/runs/{id}".into(),
                kind: SpanKind::Server,
                values: vec![("http.route", "/v1/runs/{id}".into()), ("http.response.status_code", 503_u32.into())],
                failed: true,
                began: 1_700_000_000_000_000_001,
                ended: 1_700_000_000_000_000_002,
            },
            SpanRecord {
                context: SpanContext { trace: [1; 16], id: [2; 8] },
                parent: None,
                links: vec![SpanContext { trace: [3; 16], id: [4; 8] }],
                name: "store.commit".into(),
                kind: SpanKind::Internal,
                values: Vec::new(),
                failed: false,
                began: 3,
                ended: 4,
            },
        ];
        let body: serde_json::Value =
            serde_json::from_slice(&body(&[("service.name".into(), "tea".into())], &records)).expect("JSON");
        let first = &body["resourceSpans"][0];
        insta::assert_snapshot!(first["resource"]["attributes"][0].to_string(), @r#"{"key":"service.name","value":{"stringValue":"tea"}}"#);
        let spans = &first["scopeSpans"][0]["spans"];
        insta::assert_snapshot!(format!("{:#}", spans[0]), @r#"
        {
          "traceId": "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a",
          "spanId": "0b0b0b0b0b0b0b0b",
          "parentSpanId": "0c0c0c0c0c0c0c0c",
          "name": "GET /v1/runs/{id}",
          "kind": 2,
          "startTimeUnixNano": "1700000000000000001",
          "endTimeUnixNano": "1700000000000000002",
          "attributes": [
            {
              "key": "http.route",
              "value": {
                "stringValue": "/v1/runs/{id}"
              }
            },
            {
              "key": "http.response.status_code",
              "value": {
                "intValue": "503"
              }
            }
          ],
          "status": {
            "code": 2
          }
        }
        "#);
        insta::assert_snapshot!(spans[1].to_string(), @r#"{"traceId":"01010101010101010101010101010101","spanId":"0202020202020202","name":"store.commit","kind":1,"startTimeUnixNano":"3","endTimeUnixNano":"4","attributes":[],"links":[{"traceId":"03030303030303030303030303030303","spanId":"0404040404040404"}]}"#);
    }
}
