//! Somebody on the network who is no engine, and takes what is posted there. Only whether it was taken is of interest.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::address::{HttpAddress, read};
use super::{innermost, run};
use crate::problem::Problem;

const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// A server that is no engine, such as the receiver of a webhook, and the headers for it.
pub struct Outside {
    address: HttpAddress,
    url: String,
    /// What is sent with everything; secrets among it.
    headers: HeaderMap,
}

impl Outside {
    /// The server at this address, with the headers of each request. Problems repeat no value of a header.
    pub fn at(url: &str, headers: &[(String, String)]) -> Result<Outside, Problem> {
        let wrong = || {
            Problem::bad_request("its address cannot be used").hint("say http://host:port/path or https://host/path")
        };
        let uri = read(url).ok_or_else(wrong)?;
        let address = HttpAddress::at(url, &uri, None, None)?.ok_or_else(wrong)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let url = address.url(path).ok_or_else(wrong)?;
        let header = |(name, value): &(String, String)| {
            let unfit = || Problem::bad_request(format!("`{}` cannot be sent as a header", name.escape_debug()));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| unfit())?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        let headers = headers.iter().map(header).collect::<Result<_, Problem>>()?;
        Ok(Outside { address, url, headers })
    }

    /// Who that is, for people.
    pub fn host(&self) -> &str {
        self.address.host()
    }

    /// Posts JSON, on this thread. The error says why it was not taken.
    pub fn post(&self, body: Vec<u8>) -> Result<(), Problem> {
        self.post_as("application/json", body)
    }

    /// Posts something of this media type, on this thread. The error names the host, and nothing else of the address; it passes
    /// unless the server refuses what was posted.
    pub fn post_as(&self, media: &'static str, body: Vec<u8>) -> Result<(), Problem> {
        let failed = |why: &dyn std::fmt::Display| Problem::unavailable(format!("{}: {why}", self.address.host()));
        let request = self.address.http.post(&self.url).header(CONTENT_TYPE, media);
        let request = request.headers(self.headers.clone()).timeout(ANSWERED_WITHIN).body(body);
        run(async {
            match request.send().await {
                Ok(answer) if answer.status().is_success() => Ok(()),
                Ok(answer) if is_refusal(answer.status()) => {
                    Err(Problem::bad_request(format!("{}: it answered {}", self.address.host(), answer.status())))
                }
                Ok(answer) => Err(failed(&format!("it answered {}", answer.status()))),
                Err(error) if error.is_timeout() => Err(failed(&"it does not answer")),
                Err(error) => Err(failed(&innermost(&error.without_url()))),
            }
        })
    }
}

/// Whether a server that answers this would answer it again to the same. Who may post, and how often, can change.
fn is_refusal(status: StatusCode) -> bool {
    let passes = [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::MISDIRECTED_REQUEST,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_client_error() && !passes.contains(&status)
}

#[cfg(test)]
mod tests {
    use super::{Outside, StatusCode, is_refusal};

    #[test]
    fn what_is_refused_for_ever() {
        let refused = [400, 404, 410, 413, 422].map(|code| StatusCode::from_u16(code).is_ok_and(is_refusal));
        assert_eq!(refused, [true; 5]);
        let passing = [401, 403, 408, 429, 500, 503].map(|code| StatusCode::from_u16(code).is_ok_and(is_refusal));
        assert_eq!(passing, [false; 6]);
    }

    #[test]
    fn addresses() {
        let read = |url: &str| Outside::at(url, &[]).map(|it| format!("{} {}", it.host(), it.url)).ok();
        assert_eq!(read("http://host:4318/v1/traces").as_deref(), Some("host:4318 http://host:4318/v1/traces"));
        assert_eq!(read("http://host").as_deref(), Some("host:80 http://host:80/"));
        assert_eq!(read("https://[::1]/a?b=c").as_deref(), Some("[::1]:443 https://[::1]:443/a?b=c"));
        for wrong in ["", "host:4317", "grpc://host", "http://", "http:///path", "http://u:p@host/", "http://h/a b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let secret = [("a header".to_owned(), "hunter2".to_owned())];
        let refused = Outside::at("http://host", &secret).err().map(|problem| problem.message).unwrap_or_default();
        assert_eq!(refused, "`a header` cannot be sent as a header");
    }
}
