//! Reads an expression. Says where and how it went wrong; never guesses.

use std::ops::Range;

use super::{CompareOp, Comparison, Expr, ExprValue, Number, ValuePath};

/// Longest expression that is read, in bytes.
const LONGEST: usize = 4096;
/// Deepest nesting of parentheses and negations.
const DEEPEST: usize = 32;

/// Why an expression cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// The part of the text that is at fault.
    pub at: Range<usize>,
    /// What is wrong with it.
    pub message: String,
    /// The way out, if there is an obvious one.
    pub help: Option<String>,
}

/// Reads `text` as an expression.
pub fn parse(text: &str) -> Result<Expr, ExprError> {
    if text.len() > LONGEST {
        return Err(error(0..text.len(), format!("it is longer than {LONGEST} bytes")));
    }
    let mut parser = ExprParser { tokens: scan(text)?, next: 0, end: text.len(), depth: 0 };
    let expr = parser.any()?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(error(token.at.clone(), format!("unexpected {}", token.kind.name()))
            .help("join comparisons with `&&` or `||`")),
    }
}

fn error(at: Range<usize>, message: impl Into<String>) -> ExprError {
    ExprError { at, message: message.into(), help: None }
}

impl ExprError {
    fn help(mut self, text: &str) -> Self {
        self.help = Some(text.into());
        self
    }
}

#[derive(Clone, Debug, PartialEq)]
enum ExprTokenKind {
    Path(ValuePath),
    Value(ExprValue),
    Op(CompareOp),
    And,
    Or,
    Not,
    Open,
    Close,
}

impl ExprTokenKind {
    fn name(&self) -> String {
        match self {
            ExprTokenKind::Path(path) => format!("`{path}`"),
            ExprTokenKind::Value(value) => format!("{value}"),
            ExprTokenKind::Op(op) => format!("`{}`", op.word()),
            ExprTokenKind::And => "`&&`".into(),
            ExprTokenKind::Or => "`||`".into(),
            ExprTokenKind::Not => "`!`".into(),
            ExprTokenKind::Open => "`(`".into(),
            ExprTokenKind::Close => "`)`".into(),
        }
    }
}

#[derive(Clone, Debug)]
struct ExprToken {
    kind: ExprTokenKind,
    at: Range<usize>,
}

fn scan(text: &str) -> Result<Vec<ExprToken>, ExprError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, len) = token(text, at)?;
        tokens.push(ExprToken { kind, at: at..at + len });
        at += len;
    }
    Ok(tokens)
}

/// The token that starts at `at`, and its length in bytes.
fn token(text: &str, at: usize) -> Result<(ExprTokenKind, usize), ExprError> {
    const SYMBOLS: [(&str, ExprTokenKind); 11] = [
        ("&&", ExprTokenKind::And),
        ("||", ExprTokenKind::Or),
        ("==", ExprTokenKind::Op(CompareOp::Equal)),
        ("!=", ExprTokenKind::Op(CompareOp::NotEqual)),
        ("<=", ExprTokenKind::Op(CompareOp::AtMost)),
        (">=", ExprTokenKind::Op(CompareOp::AtLeast)),
        ("<", ExprTokenKind::Op(CompareOp::Less)),
        (">", ExprTokenKind::Op(CompareOp::More)),
        ("!", ExprTokenKind::Not),
        ("(", ExprTokenKind::Open),
        (")", ExprTokenKind::Close),
    ];
    let rest = &text[at..];
    for (symbol, kind) in SYMBOLS {
        if rest.starts_with(symbol) {
            return Ok((kind, symbol.len()));
        }
    }
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '\'' | '"' => quoted(rest, at, first),
        '$' => braced(rest, at),
        '-' | '0'..='9' => number(rest, at),
        'a'..='z' | 'A'..='Z' | '_' => word(rest, at),
        '=' if rest.starts_with("=>") => Err(error(at..at + 2, "`=>` is not a comparison").help("write `>=`")),
        '=' if rest.starts_with("=<") => Err(error(at..at + 2, "`=<` is not a comparison").help("write `<=`")),
        '=' => Err(error(at..at + 1, "`=` is not a comparison").help("write `==`")),
        '&' => Err(error(at..at + 1, "a single `&`").help("write `&&`")),
        '|' => Err(error(at..at + 1, "a single `|`").help("write `||`")),
        other => Err(error(at..at + other.len_utf8(), format!("unexpected {other:?}"))),
    }
}

fn quoted(rest: &str, at: usize, quote: char) -> Result<(ExprTokenKind, usize), ExprError> {
    match rest[1..].find(quote) {
        Some(len) => Ok((ExprTokenKind::Value(ExprValue::Text(rest[1..=len].into())), len + 2)),
        None => Err(error(at..at + rest.len(), format!("text without its closing {quote}"))),
    }
}

fn number(rest: &str, at: usize) -> Result<(ExprTokenKind, usize), ExprError> {
    let len = rest
        .char_indices()
        .find(|(index, c)| !(c.is_ascii_alphanumeric() || *c == '.' || (*index == 0 && *c == '-')))
        .map_or(rest.len(), |(index, _)| index);
    let digits = &rest[..len];
    match Number::read(digits) {
        Some(number) => Ok((ExprTokenKind::Value(ExprValue::Number(number)), len)),
        None => Err(error(at..at + len, format!("`{digits}` is not a number that can be compared"))
            .help("numbers have at most 18 digits and 9 decimal places")),
    }
}

fn word(rest: &str, at: usize) -> Result<(ExprTokenKind, usize), ExprError> {
    let (path, len) = path(rest, at)?;
    let kind = match (path.head(), path.tail()) {
        ("true", []) => ExprTokenKind::Value(ExprValue::Bool(true)),
        ("false", []) => ExprTokenKind::Value(ExprValue::Bool(false)),
        ("and" | "AND", []) => return Err(error(at..at + len, "`and` is not an operator").help("write `&&`")),
        ("or" | "OR", []) => return Err(error(at..at + len, "`or` is not an operator").help("write `||`")),
        ("not" | "NOT", []) => return Err(error(at..at + len, "`not` is not an operator").help("write `!`")),
        _ => ExprTokenKind::Path(path),
    };
    Ok((kind, len))
}

/// `${path}`: the same as `path`, for those used to the variables of prompts.
fn braced(rest: &str, at: usize) -> Result<(ExprTokenKind, usize), ExprError> {
    let whole = || error(at..at + 1, "`$` that starts no variable").help("write `${name}`, or just the name");
    let inner = rest.strip_prefix("${").ok_or_else(whole)?;
    let (path, len) = path(inner, at + 2)?;
    match inner[len..].strip_prefix('}') {
        Some(_) => Ok((ExprTokenKind::Path(path), len + 3)),
        None => Err(error(at..at + len + 2, "`${` without its `}`")),
    }
}

/// Reads a dotted path from the start of `rest`. Also used for the variables of prompts and commands.
pub(crate) fn path(rest: &str, at: usize) -> Result<(ValuePath, usize), ExprError> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let segment = |from: usize| {
        let len = rest[from..].find(|c: char| !is_word(c)).unwrap_or(rest.len() - from);
        rest[from..from + len].to_owned()
    };
    let first = segment(0);
    if !first.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return Err(error(at..at + first.len(), "a name starts with a letter"));
    }
    let mut len = first.len();
    let mut tail = Vec::new();
    loop {
        let (skip, close) = match rest[len..].chars().next() {
            Some('.') => (1, ""),
            Some('[') => (1, "]"),
            _ => return Ok((ValuePath::new(first, tail), len)),
        };
        let next = segment(len + skip);
        let end = len + skip + next.len();
        if next.is_empty() || !rest[end..].starts_with(close) {
            return Err(error(at..at + end, format!("`{}` is not a whole path", &rest[..end])));
        }
        tail.push(next);
        len = end + close.len();
    }
}

struct ExprParser {
    tokens: Vec<ExprToken>,
    next: usize,
    end: usize,
    depth: usize,
}

impl ExprParser {
    fn peek(&self) -> Option<&ExprToken> {
        self.tokens.get(self.next)
    }

    fn take(&mut self) -> Option<ExprToken> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn takes(&mut self, kind: &ExprTokenKind) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *kind);
        self.next += usize::from(found);
        found
    }

    fn any(&mut self) -> Result<Expr, ExprError> {
        self.joined(&ExprTokenKind::Or, Self::all, Expr::Any)
    }

    fn all(&mut self) -> Result<Expr, ExprError> {
        self.joined(&ExprTokenKind::And, Self::unary, Expr::All)
    }

    /// One part, or several with `by` between them.
    fn joined(
        &mut self,
        by: &ExprTokenKind,
        part: fn(&mut Self) -> Result<Expr, ExprError>,
        many: fn(Vec<Expr>) -> Expr,
    ) -> Result<Expr, ExprError> {
        let mut parts = vec![part(self)?];
        while self.takes(by) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { many(parts) })
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        let Some(token) = self.take() else {
            let message = if self.tokens.is_empty() { "it is empty" } else { "a comparison is missing at the end" };
            return Err(error(self.end..self.end, message).help("write `field < 2`"));
        };
        match token.kind {
            ExprTokenKind::Not => Ok(Expr::Not(Box::new(self.deeper(&token.at, ExprParser::unary)?))),
            ExprTokenKind::Open => {
                let inner = self.deeper(&token.at, ExprParser::any)?;
                match self.takes(&ExprTokenKind::Close) {
                    true => Ok(inner),
                    false => Err(error(token.at, "`(` without its `)`")),
                }
            }
            ExprTokenKind::Path(path) => self.comparison(path),
            ExprTokenKind::Value(_)
            | ExprTokenKind::Op(_)
            | ExprTokenKind::And
            | ExprTokenKind::Or
            | ExprTokenKind::Close => {
                Err(error(token.at, format!("a comparison cannot start with {}", token.kind.name()))
                    .help("the field comes first: `field < 2`"))
            }
        }
    }

    fn comparison(&mut self, path: ValuePath) -> Result<Expr, ExprError> {
        let Some(ExprToken { kind: ExprTokenKind::Op(op), at: op_at }) = self.peek().cloned() else {
            return Ok(Expr::Compare(Comparison { path, op: CompareOp::Equal, value: ExprValue::Bool(true) }));
        };
        self.next += 1;
        match self.take() {
            Some(ExprToken { kind: ExprTokenKind::Value(value), at: value_at }) => match (&value, op.is_order()) {
                (ExprValue::Number(_), _) | (ExprValue::Text(_) | ExprValue::Bool(_), false) => {
                    Ok(Expr::Compare(Comparison { path, op, value }))
                }
                (ExprValue::Text(_) | ExprValue::Bool(_), true) => {
                    Err(error(value_at, format!("`{}` compares numbers, not {value}", op.word()))
                        .help("compare text with `==` or `!=`"))
                }
            },
            Some(ExprToken { kind: ExprTokenKind::Path(other), at }) => {
                Err(error(at, format!("`{other}` is not a value")).help(&format!("text stands in quotes: '{other}'")))
            }
            Some(token) => Err(error(token.at, format!("expected a value, found {}", token.kind.name()))),
            None => Err(error(op_at, format!("`{}` with nothing behind it", op.word()))),
        }
    }

    fn deeper(
        &mut self,
        at: &Range<usize>,
        inner: fn(&mut Self) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        if self.depth == DEEPEST {
            return Err(error(at.clone(), format!("nested deeper than {DEEPEST}")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(expr) => expr.to_string(),
            Err(ExprError { at, message, .. }) => format!("{}..{}: {message}", at.start, at.end),
        }
    }

    #[test]
    fn what_can_be_written() {
        let cases = [
            ("review_round < 2", "review_round < 2"),
            ("review_round<2", "review_round < 2"),
            ("review.result == 'FAIL'", "review.result == 'FAIL'"),
            ("${review.result} != \"PASS\"", "review.result != 'PASS'"),
            ("a > 1 && b <= -2 || !c", "(a > 1 && b <= -2) || !(c)"),
            ("run-tests.output.items[0].ok", "run-tests.output.items.0.ok"),
            ("score >= 0.75", "score >= 0.75"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_and_where() {
        let cases = [
            ("", "0..0: it is empty"),
            ("review_round << 2", "14..15: expected a value, found `<`"),
            ("review_round = 2", "13..14: `=` is not a comparison"),
            ("2 > review_round", "0..1: a comparison cannot start with 2"),
            ("a == b", "5..6: `b` is not a value"),
            ("a < 'x'", "4..7: `<` compares numbers, not 'x'"),
            ("a < 2 b > 3", "6..7: unexpected `b`"),
            ("(a < 2", "0..1: `(` without its `)`"),
            ("a <", "2..3: `<` with nothing behind it"),
            ("a and b", "2..5: `and` is not an operator"),
            ("a == 99999999999999999999", "5..25: `99999999999999999999` is not a number that can be compared"),
            ("a. == 1", "0..2: `a.` is not a whole path"),
            ("!$ݤ", "1..2: `$` that starts no variable"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}a < 1{}", "(".repeat(2000), ")".repeat(2000));
        assert!(parse(&deep).is_err());
        assert!(parse(&"!".repeat(4000)).is_err());
    }
}
