//! Somebody on the network who is no engine, and takes what is posted there. Only whether it was taken is of interest.

use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;

use super::run;
use super::way::{Network, Way};
use crate::problem::Problem;

/// How long the server may take to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// A server that is no engine, such as the receiver of a webhook, and the headers for it.
pub struct Outside {
    way: Way,
    path: String,
    /// What is sent with everything; secrets among it.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Outside {
    /// The server at this address, with the headers of each request. Problems repeat no value of a header.
    pub fn at(url: &str, headers: &[(String, String)]) -> Result<Outside, Problem> {
        let wrong = || {
            Problem::bad_request("its address cannot be used").hint("say http://host:port/path or https://host/path")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(wrong());
        }
        let way = Way::Network(Network::at(&format!("{scheme}://{authority}"), None, None, wrong)?);
        let header = |(name, value): &(String, String)| {
            let unfit = || Problem::bad_request(format!("`{}` cannot be sent as a header", name.escape_debug()));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| unfit())?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        let headers = headers.iter().map(header).collect::<Result<_, Problem>>()?;
        Ok(Outside { way, path: path.to_owned(), headers })
    }

    /// Who that is, for people.
    pub fn host(&self) -> &str {
        self.way.host()
    }

    /// Posts JSON, on this thread. The error says why it was not taken.
    pub fn post(&self, body: Vec<u8>) -> Result<(), Problem> {
        let failed = |why: &dyn std::fmt::Display| Problem::unavailable(format!("{}: {why}", self.way.host()));
        let connection = self.way.connect().map_err(|error| failed(&error))?;
        let exchange = async {
            let stream = connection.open().await.map_err(|error| failed(&error))?;
            let shaken = http1::handshake(TokioIo::new(stream)).await;
            let (mut sender, connection) = shaken.map_err(|error| failed(&error))?;
            tokio::spawn(connection);
            let request = Request::post(&self.path).header(HOST, self.way.host()).header(CONNECTION, "close");
            let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(bytes::Bytes::from(body)));
            let mut request = request.map_err(|error| failed(&error))?;
            request.headers_mut().extend(self.headers.iter().cloned());
            let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
            if answer.status().is_success() { Ok(()) } else { Err(failed(&format!("it answered {}", answer.status()))) }
        };
        run(async {
            let answered = tokio::time::timeout(ANSWERED_WITHIN, exchange).await;
            answered.unwrap_or_else(|_| Err(failed(&"it does not answer")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Outside;

    #[test]
    fn addresses() {
        let read = |url: &str| Outside::at(url, &[]).map(|it| format!("{} {}", it.host(), it.path)).ok();
        assert_eq!(read("http://host:4318/v1/traces").as_deref(), Some("host:4318 /v1/traces"));
        assert_eq!(read("http://host").as_deref(), Some("host:80 /"));
        assert_eq!(read("https://[::1]/a?b=c").as_deref(), Some("[::1]:443 /a?b=c"));
        for wrong in ["", "host:4317", "grpc://host", "http://", "http:///path", "http://u:p@host/", "http://h/a b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let secret = [("a header".to_owned(), "hunter2".to_owned())];
        let refused = Outside::at("http://host", &secret).err().map(|problem| problem.message).unwrap_or_default();
        assert_eq!(refused, "`a header` cannot be sent as a header");
    }
}
