//! Answers exactly whether an expression can hold, and shows values for which it does.
//!
//! Every comparison is between one path and one constant, so the constants cut each path's values into few
//! cells within which no comparison changes. One value per cell is enough: trying them all decides the
//! question over all integers, not over a sample. Sampling a range misses the
//! clause that starts beyond it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Compare, Expr, Number, Path, Value};

/// Values for which an expression holds.
pub type Witness = BTreeMap<Path, Value>;

/// What a path's values can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Whole numbers: the fields of a task.
    Integers,
    /// Numbers with places, text, truth values, or nothing at all: the results of steps.
    Anything,
}

/// The expressions are too entangled to be decided within [`BUDGET`] trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooComplex;

/// How many partial assignments are tried before giving up. Each costs about the size of the expression.
pub const BUDGET: usize = 20_000;

/// Values for which every one of `all` holds and none of `none` does; `None` if there are none.
///
/// Small non-negative values are preferred, because that is what counters hold.
pub fn witness(all: &[&Expr], none: &[&Expr], domain: Domain) -> Result<Option<Witness>, TooComplex> {
    let parts = all.iter().map(|expr| build(expr, false)).chain(none.iter().map(|expr| build(expr, true))).collect();
    let formula = both(parts);
    let mut constants = BTreeMap::new();
    collect(&formula, &mut constants);
    let order: Vec<(&Path, Vec<Option<Value>>)> =
        constants.iter().map(|(path, values)| (*path, cells(values, domain))).collect();
    let mut search = Search { order, budget: BUDGET, found: Witness::new() };
    Ok(search.run(&formula, 0)?.then_some(search.found))
}

/// Negation pushed down to the comparisons, so that a formula is only `and`, `or` and leaves.
#[derive(Clone, Debug)]
enum Formula<'a> {
    True,
    False,
    Leaf { compare: &'a Compare, negated: bool },
    And(Vec<Formula<'a>>),
    Or(Vec<Formula<'a>>),
}

fn build(expr: &Expr, negated: bool) -> Formula<'_> {
    match expr {
        Expr::Compare(compare) => Formula::Leaf { compare, negated },
        Expr::Not(inner) => build(inner, !negated),
        Expr::All(parts) | Expr::Any(parts) => {
            let built = parts.iter().map(|part| build(part, negated)).collect();
            match matches!(expr, Expr::All(_)) != negated {
                true => both(built),
                false => either(built),
            }
        }
    }
}

fn both(parts: Vec<Formula<'_>>) -> Formula<'_> {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Formula::True => {}
            Formula::False => return Formula::False,
            Formula::And(inner) => kept.extend(inner),
            Formula::Leaf { .. } | Formula::Or(_) => kept.push(part),
        }
    }
    match kept.len() {
        0 => Formula::True,
        1 => kept.remove(0),
        _ => Formula::And(kept),
    }
}

fn either(parts: Vec<Formula<'_>>) -> Formula<'_> {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Formula::False => {}
            Formula::True => return Formula::True,
            Formula::Or(inner) => kept.extend(inner),
            Formula::Leaf { .. } | Formula::And(_) => kept.push(part),
        }
    }
    match kept.len() {
        0 => Formula::False,
        1 => kept.remove(0),
        _ => Formula::Or(kept),
    }
}

fn collect<'a>(formula: &Formula<'a>, into: &mut BTreeMap<&'a Path, BTreeSet<&'a Value>>) {
    match formula {
        Formula::True | Formula::False => {}
        Formula::Leaf { compare, .. } => {
            into.entry(&compare.path).or_default().insert(&compare.value);
        }
        Formula::And(parts) | Formula::Or(parts) => parts.iter().for_each(|part| collect(part, into)),
    }
}

/// One value from every cell that `constants` cut, in order of preference.
fn cells(constants: &BTreeSet<&Value>, domain: Domain) -> Vec<Option<Value>> {
    let step = match domain {
        Domain::Integers => Number::UNIT,
        Domain::Anything => 1,
    };
    let mut numbers = BTreeSet::from([Number::whole(0)]);
    let mut others: Vec<Option<Value>> = Vec::new();
    for constant in constants {
        match constant {
            Value::Number(number) => numbers.extend([number.0 - step, number.0, number.0 + step].map(Number)),
            Value::Text(_) | Value::Bool(_) => others.push(Some((*constant).clone())),
        }
    }
    let in_range = |number: &Number| match domain {
        Domain::Integers => number.as_whole().is_some(),
        Domain::Anything => true,
    };
    let (negative, natural): (Vec<Number>, Vec<Number>) =
        numbers.into_iter().filter(in_range).partition(|number| number.0 < 0);
    let mut values: Vec<Option<Value>> =
        natural.into_iter().chain(negative.into_iter().rev()).map(|number| Some(Value::Number(number))).collect();
    if domain == Domain::Anything {
        // What is not named by any comparison, and what is not there at all, behave alike: one of them is enough.
        others.push(None);
        values.splice(0..0, others);
    }
    values
}

struct Search<'a> {
    order: Vec<(&'a Path, Vec<Option<Value>>)>,
    budget: usize,
    found: Witness,
}

impl<'a> Search<'a> {
    /// Tries the cells of the path at `depth`; true when `found` makes the formula hold.
    fn run(&mut self, formula: &Formula<'a>, depth: usize) -> Result<bool, TooComplex> {
        match formula {
            Formula::True => return Ok(true),
            Formula::False => return Ok(false),
            Formula::Leaf { .. } | Formula::And(_) | Formula::Or(_) => {}
        }
        // Every path in the formula is in `order`, so an undecided formula has one left.
        let (path, count) = (self.order[depth].0, self.order[depth].1.len());
        for index in 0..count {
            self.budget = self.budget.checked_sub(1).ok_or(TooComplex)?;
            let value = self.order[depth].1[index].clone();
            let rest = assign(formula, path, value.as_ref());
            match value {
                Some(value) => drop(self.found.insert(path.clone(), value)),
                None => drop(self.found.remove(path)),
            }
            if self.run(&rest, depth + 1)? {
                return Ok(true);
            }
        }
        self.found.remove(path);
        Ok(false)
    }
}

fn assign<'a>(formula: &Formula<'a>, path: &Path, value: Option<&Value>) -> Formula<'a> {
    match formula {
        Formula::True => Formula::True,
        Formula::False => Formula::False,
        Formula::Leaf { compare, .. } if compare.path != *path => formula.clone(),
        Formula::Leaf { compare, negated } => match compare.op.holds(value, &compare.value) != *negated {
            true => Formula::True,
            false => Formula::False,
        },
        Formula::And(parts) => both(parts.iter().map(|part| assign(part, path, value)).collect()),
        Formula::Or(parts) => either(parts.iter().map(|part| assign(part, path, value)).collect()),
    }
}

/// `review_round = 2`, or `a = 0 and b = 3`.
pub fn show(witness: &Witness) -> String {
    let parts: Vec<String> = witness.iter().map(|(path, value)| format!("{path} = {value}")).collect();
    match parts.is_empty() {
        true => "any values".into(),
        false => parts.join(" and "),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Op, parse};
    use super::*;

    fn found(all: &[&str], none: &[&str], domain: Domain) -> String {
        let read = |texts: &[&str]| texts.iter().map(|text| parse(text).unwrap()).collect::<Vec<_>>();
        let (all, none) = (read(all), read(none));
        match witness(&all.iter().collect::<Vec<_>>(), &none.iter().collect::<Vec<_>>(), domain) {
            Ok(Some(witness)) => show(&witness),
            Ok(None) => "never".into(),
            Err(TooComplex) => "too complex".into(),
        }
    }

    #[test]
    fn witnesses() {
        use Domain::{Anything, Integers};
        assert_eq!(found(&["review_round <= 2", "review_round >= 2"], &[], Integers), "review_round = 2");
        assert_eq!(found(&["review_round < 2", "review_round >= 2"], &[], Integers), "never");
        assert_eq!(found(&[], &["review_round < 2", "review_round > 2"], Integers), "review_round = 2");
        assert_eq!(found(&[], &["r >= 0"], Integers), "r = -1");
        assert_eq!(found(&["a > 1", "a < 2"], &[], Integers), "never");
        assert_eq!(found(&["a > 1", "a < 2"], &[], Anything), "a = 1.000000001");
        assert_eq!(found(&["a < 3 || b > 7", "a >= 3"], &[], Integers), "a = 3 and b = 8");
        assert_eq!(found(&["r == 'PASS'", "r == 'FAIL'"], &[], Anything), "never");
        assert_eq!(found(&["r != 'PASS'"], &["r == 'FAIL'"], Anything), "any values");
        assert_eq!(found(&["x == 9223372036854775807"], &[], Integers), "x = 9223372036854775807");
    }

    #[test]
    fn entangled_expressions_end_in_an_answer() {
        let clause = (0..40).map(|n| format!("(a{n} == 1 || b{n} == 1)")).collect::<Vec<_>>().join(" && ");
        let never = (0..40).map(|n| format!("a{n} == 1 || b{n} == 1")).collect::<Vec<_>>().join(" || ");
        assert_ne!(found(&[&clause], &[], Domain::Integers), "never");
        assert!(["never", "too complex"].contains(&&*found(&[&clause], &[&never], Domain::Integers)));
    }

    fn any_expr() -> impl Strategy<Value = Expr> {
        let ops = [Op::Equal, Op::NotEqual, Op::Less, Op::AtMost, Op::More, Op::AtLeast];
        let leaf = (0..3usize, 0..6usize, -4i64..5).prop_map(move |(field, op, value)| {
            let path = Path::new(["a", "b", "c"][field], []);
            Expr::Compare(Compare { path, op: ops[op], value: Value::Number(Number::whole(value)), at: 0..0 })
        });
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|expr| Expr::Not(Box::new(expr))),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::All),
                prop::collection::vec(inner, 2..4).prop_map(Expr::Any),
            ]
        })
    }

    fn holds(expr: &Expr, values: [i64; 3]) -> bool {
        expr.holds(&|path| {
            let index = ["a", "b", "c"].iter().position(|name| *name == path.head())?;
            Some(Value::Number(Number::whole(values[index])))
        })
    }

    /// Every constant is within -4..5, so -6..=6 contains a value of every cell.
    fn brute_force(all: &[&Expr], none: &[&Expr]) -> bool {
        let range = -6..=6;
        range.clone().any(|a| {
            range.clone().any(|b| {
                range.clone().any(|c| {
                    all.iter().all(|expr| holds(expr, [a, b, c])) && !none.iter().any(|expr| holds(expr, [a, b, c]))
                })
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn overlap_agrees_with_brute_force(one in any_expr(), two in any_expr()) {
            let decided = witness(&[&one, &two], &[], Domain::Integers).unwrap();
            prop_assert_eq!(decided.is_some(), brute_force(&[&one, &two], &[]));
        }

        #[test]
        fn gap_agrees_with_brute_force(clauses in prop::collection::vec(any_expr(), 1..4)) {
            let clauses: Vec<&Expr> = clauses.iter().collect();
            let decided = witness(&[], &clauses, Domain::Integers).unwrap();
            prop_assert_eq!(decided.is_some(), brute_force(&[], &clauses));
        }

        #[test]
        fn a_witness_is_one(one in any_expr(), two in any_expr()) {
            if let Some(found) = witness(&[&one], &[&two], Domain::Integers).unwrap() {
                let lookup = |path: &Path| Some(found.get(path).cloned().unwrap_or(Value::Number(Number::whole(0))));
                prop_assert!(one.holds(&lookup) && !two.holds(&lookup));
            }
        }
    }
}
