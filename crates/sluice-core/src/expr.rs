//! The language of guards and conditions: `review_round < 2`, `review.result == 'FAIL' && !input.dry_run`.
//!
//! A lifecycle's guard compares whole numbers; a recipe's condition also knows text, truth values and paths.
//! One tree serves both, because overlap, gap and reachability are decided on it (see [`decide`]). It computes
//! nothing: no arithmetic, no functions, so that every question about it can be answered exactly.

pub mod decide;
mod parse;

use std::fmt;
use std::sync::Arc;

pub(crate) use parse::path as path_at;
pub use parse::{ExprError, parse};

use crate::words::words;

/// A dotted path to a value: `review_round`, `review.result`, `plan.output.items.0`. A copy shares its segments: a
/// text of megabytes may be nothing but variables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValuePath(Arc<[String]>);

impl ValuePath {
    /// A path of these segments; there is at least one.
    pub fn new(first: impl Into<String>, rest: impl IntoIterator<Item = String>) -> Self {
        ValuePath(std::iter::once(first.into()).chain(rest).collect())
    }

    /// The first segment: a field, a step, a variable.
    pub fn head(&self) -> &str {
        &self.0[0]
    }

    /// What follows the first segment.
    pub fn tail(&self) -> &[String] {
        &self.0[1..]
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// A decimal number with up to nine places, held exactly.
///
/// Not a float: two guards that share the boundary `0.1` must agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(i128);

impl Number {
    /// The factor by which values are stored: one is a thousand million parts.
    const UNIT: i128 = 1_000_000_000;

    /// The number that equals the integer `value`.
    pub fn whole(value: i64) -> Self {
        Number(i128::from(value) * Self::UNIT)
    }

    /// The whole number it is, if it is one.
    pub fn as_whole(self) -> Option<i64> {
        (self.0 % Self::UNIT == 0).then(|| i64::try_from(self.0 / Self::UNIT).ok()).flatten()
    }

    /// Reads `12`, `-3` or `0.75`; `None` when it has more places or digits than a number may have.
    pub fn read(text: &str) -> Option<Self> {
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        let negative = whole.starts_with('-');
        let whole: i64 = whole.parse().ok()?;
        if places.len() > 9 || !places.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let parts: i128 = format!("{places:0<9}").parse().ok()?;
        let signed = if negative { -parts } else { parts };
        Some(Number(i128::from(whole) * Self::UNIT + signed))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, value) = if self.0 < 0 { ("-", -self.0) } else { ("", self.0) };
        write!(f, "{sign}{}", value / Self::UNIT)?;
        match value % Self::UNIT {
            0 => Ok(()),
            places => write!(f, ".{}", format!("{places:09}").trim_end_matches('0')),
        }
    }
}

/// A value that a path can have, or that an expression names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExprValue {
    /// A number literal, such as `2` or `0.5`.
    Number(Number),
    /// A text literal in single quotes, such as `'FAIL'`.
    Text(String),
    /// A truth value: `true` or `false`.
    Bool(bool),
}

impl fmt::Display for ExprValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExprValue::Number(number) => number.fmt(f),
            ExprValue::Text(text) => write!(f, "'{text}'"),
            ExprValue::Bool(value) => value.fmt(f),
        }
    }
}

words! {
    /// The operator of a comparison between a path and a value. Its word is what is written.
    CompareOp {
        /// `==`: both sides have the same type and value.
        Equal = "==",
        /// `!=`: the sides differ, or the path has no value.
        NotEqual = "!=",
        /// `<`, which holds only between two numbers.
        Less = "<",
        /// `<=`, which holds only between two numbers.
        AtMost = "<=",
        /// `>`, which holds only between two numbers.
        More = ">",
        /// `>=`, which holds only between two numbers.
        AtLeast = ">=",
    }
}

impl CompareOp {
    /// Whether it needs an order, and so numbers on both sides.
    pub fn is_order(self) -> bool {
        match self {
            CompareOp::Equal | CompareOp::NotEqual => false,
            CompareOp::Less | CompareOp::AtMost | CompareOp::More | CompareOp::AtLeast => true,
        }
    }

    /// Whether `left op right` holds. A value that is not there equals nothing and has no order.
    fn holds(self, left: Option<&ExprValue>, right: &ExprValue) -> bool {
        let ordered = |test: fn(std::cmp::Ordering) -> bool| match (left, right) {
            (Some(ExprValue::Number(left)), ExprValue::Number(right)) => test(left.cmp(right)),
            _ => false,
        };
        match self {
            CompareOp::Equal => left == Some(right),
            CompareOp::NotEqual => left != Some(right),
            CompareOp::Less => ordered(|order| order.is_lt()),
            CompareOp::AtMost => ordered(|order| order.is_le()),
            CompareOp::More => ordered(|order| order.is_gt()),
            CompareOp::AtLeast => ordered(|order| order.is_ge()),
        }
    }
}

/// An expression, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// One comparison, `path op value`, or a bare path.
    Compare(Comparison),
    /// Negation, `!a`: holds when the inner expression does not.
    Not(Box<Expr>),
    /// Conjunction, `a && b`: holds when every part holds.
    All(Vec<Expr>),
    /// Disjunction, `a || b`: holds when at least one part holds.
    Any(Vec<Expr>),
}

/// One comparison of a path with a value. A bare path means `path == true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The path whose value is looked up when the expression is evaluated.
    pub path: ValuePath,
    /// The operator that compares the two sides.
    pub op: CompareOp,
    /// The literal on the right; `true` for a bare path.
    pub value: ExprValue,
}

impl Expr {
    /// Whether it holds, where `lookup` gives the value of a path.
    pub fn holds(&self, lookup: &dyn Fn(&ValuePath) -> Option<ExprValue>) -> bool {
        match self {
            Expr::Compare(Comparison { path, op, value }) => op.holds(lookup(path).as_ref(), value),
            Expr::Not(inner) => !inner.holds(lookup),
            Expr::All(parts) => parts.iter().all(|part| part.holds(lookup)),
            Expr::Any(parts) => parts.iter().any(|part| part.holds(lookup)),
        }
    }

    /// The step whose failed review it asks for, and nothing else: `S.result == 'FAIL'` or `S.result != 'PASS'`.
    pub fn failed_review(&self) -> Option<&str> {
        let Expr::Compare(Comparison { path, op, value: ExprValue::Text(text) }) = self else { return None };
        let asks = matches!((op, text.as_str()), (CompareOp::Equal, "FAIL") | (CompareOp::NotEqual, "PASS"));
        (asks && path.tail() == ["result"]).then(|| path.head())
    }

    /// Every comparison in it, from left to right.
    pub fn comparisons(&self) -> Vec<&Comparison> {
        match self {
            Expr::Compare(compare) => vec![compare],
            Expr::Not(inner) => inner.comparisons(),
            Expr::All(parts) | Expr::Any(parts) => parts.iter().flat_map(Expr::comparisons).collect(),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Expr], joiner: &str| {
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    write!(f, " {joiner} ")?;
                }
                match part {
                    Expr::Compare(_) | Expr::Not(_) => write!(f, "{part}")?,
                    Expr::All(_) | Expr::Any(_) => write!(f, "({part})")?,
                }
            }
            Ok(())
        };
        match self {
            Expr::Compare(Comparison { path, op: CompareOp::Equal, value: ExprValue::Bool(true) }) => {
                write!(f, "{path}")
            }
            Expr::Compare(Comparison { path, op, value }) => write!(f, "{path} {} {value}", op.word()),
            Expr::Not(inner) => write!(f, "!({inner})"),
            Expr::All(parts) => joined(f, parts, "&&"),
            Expr::Any(parts) => joined(f, parts, "||"),
        }
    }
}
