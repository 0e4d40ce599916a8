//! TASK.md as HTML that can do nothing: no HTML of its own, no picture that is fetched, and links to the web and to mail
//! only. Agents write this file.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The schemes that a link may have.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

pub(super) fn rendered(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let events = Parser::new_ext(text, options).map(harmless);
    let mut out = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut out, events);
    out
}

fn harmless(event: Event<'_>) -> Event<'_> {
    match event {
        // What is written as HTML is shown as it is written.
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { dest_url, .. }) => Event::InlineHtml(opened(&dest_url)),
        Event::End(TagEnd::Link) => Event::InlineHtml("</a>".into()),
        // A picture would be fetched from elsewhere: its words stand for it.
        Event::Start(Tag::Image { dest_url, .. }) => {
            Event::InlineHtml(format!("<span class=\"picture\" title=\"{}\">", escaped(&dest_url)).into())
        }
        Event::End(TagEnd::Image) => Event::InlineHtml("</span>".into()),
        other => other,
    }
}

fn opened(to: &str) -> CowStr<'static> {
    let lower = to.trim().to_ascii_lowercase();
    match SCHEMES.iter().any(|scheme| lower.starts_with(scheme)) {
        true => format!("<a href=\"{}\" rel=\"noopener noreferrer nofollow\">", escaped(to.trim())).into(),
        false => format!("<a title=\"{}\">", escaped(to)).into(),
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_shown() {
        let shown =
            rendered("# Plan\n\n- [x] *one*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nlet x = 1 < 2;\n```\n");
        for part in ["<h1>Plan</h1>", "<em>one</em>", "<table>", "let x = 1 &lt; 2;"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn what_is_hostile_is_only_shown() {
        let hostile = "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\na <b onclick=\"x\">b</b>\n\n\
                       [go](javascript:alert(1)) [out](https://example.com/?a=\"b\"&c) [mail](mailto:a@b) \
                       [data](data:text/html,x) ![alt <b>](https://example.com/pixel.png)\n\n\
                       <https://example.com> <!-- comment --> &lt;script&gt;";
        let shown = rendered(hostile);
        for bad in ["<script", "<img", "<b onclick", "href=\"javascript", "href=\"data", "<!--"] {
            assert!(!shown.contains(bad), "{bad} in {shown}");
        }
        assert!(shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{shown}");
        assert!(shown.contains("rel=\"noopener noreferrer nofollow\""), "{shown}");
        assert!(shown.contains("href=\"https://example.com/?a=&quot;b&quot;&amp;c\""), "{shown}");
        assert!(shown.contains("href=\"mailto:a@b\""), "{shown}");
    }
}
