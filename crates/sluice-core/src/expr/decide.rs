//! Answers exactly whether an expression can hold, and shows values for which it does.
//!
//! Every comparison is between one path and one constant, so the constants cut each path's values into few
//! cells within which no comparison changes. One value per cell is enough: trying them all decides the
//! question over all integers, not over a sample. Sampling a range misses the
//! clause that starts beyond it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Comparison, Expr, ExprValue, Number, ValuePath};

/// Values for which an expression holds.
pub type Witness = BTreeMap<ValuePath, ExprValue>;

/// What a path's values can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDomain {
    /// Whole numbers: the fields of a task.
    Integers,
    /// Numbers with places, text, truth values, or nothing at all: the results of steps.
    Anything,
}

/// The expressions are too entangled to be decided within the [`BUDGET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExprTooComplex;

/// How many comparisons are looked at before giving up, for all questions about one file together.
pub const BUDGET: usize = 2_000_000;
/// How many paths may stand in alternatives (`||`) of one question. What must hold in any case is decided path by
/// path, however many there are.
pub const MOST_PATHS: usize = 32;

/// Answers questions about the expressions of one file, until one is too hard.
#[derive(Debug)]
pub struct Decider {
    domain: ValueDomain,
    budget: usize,
    told: bool,
}

impl Decider {
    /// A decider whose paths have values of `domain`.
    pub fn new(domain: ValueDomain) -> Self {
        Decider { domain, budget: BUDGET, told: false }
    }

    /// Values for which every one of `all` holds and none of `none` does; `None` if there are none.
    ///
    /// Small non-negative values are preferred, because that is what counters hold. After the first question that is
    /// too hard none is answered: the file needs mending anyway, and hard questions are seldom alone.
    pub fn witness(&mut self, all: &[&Expr], none: &[&Expr]) -> Result<Option<Witness>, ExprTooComplex> {
        let answer = witness(all, none, self.domain, &mut self.budget);
        if answer.is_err() {
            self.budget = 0;
        }
        answer
    }

    /// Whether an answer was refused; true only once, so that it is reported once.
    pub fn refused_first(&mut self) -> bool {
        self.budget == 0 && !std::mem::replace(&mut self.told, true)
    }
}

fn witness(
    all: &[&Expr],
    none: &[&Expr],
    domain: ValueDomain,
    budget: &mut usize,
) -> Result<Option<Witness>, ExprTooComplex> {
    let parts = all.iter().map(|expr| build(expr, false)).chain(none.iter().map(|expr| build(expr, true))).collect();
    let formula = join(parts, true);
    let mut constants = BTreeMap::new();
    spend(budget, collect(&formula, &mut constants))?;
    let values: BTreeMap<&ValuePath, Vec<Option<ExprValue>>> =
        constants.iter().map(|(path, constants)| (*path, cells(constants, domain))).collect();
    let open =
        values.iter().map(|(path, values)| (*path, OpenValues { left: values.iter().collect(), matters: false }));
    let Some((open, rest)) = narrow(open.collect(), formula, budget)? else { return Ok(None) };
    let mut alternatives = BTreeMap::new();
    collect(&rest, &mut alternatives);
    if alternatives.len() > MOST_PATHS {
        return Err(ExprTooComplex);
    }
    let found = search(open, rest, budget)?;
    Ok(found.map(|open| open.into_iter().filter_map(|(path, open)| Some((path.clone(), open.example()?))).collect()))
}

fn spend(budget: &mut usize, cost: usize) -> Result<(), ExprTooComplex> {
    *budget = budget.checked_sub(cost).filter(|left| *left > 0).ok_or(ExprTooComplex)?;
    Ok(())
}

/// The comparisons that must hold in any case, and what else must.
fn split(formula: Formula<'_>) -> (Vec<(&Comparison, bool)>, Formula<'_>) {
    let parts = match formula {
        Formula::Joined { all: true, parts } => parts,
        other => vec![other],
    };
    let mut certain = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        match part {
            Formula::Leaf { compare, negated } => certain.push((compare, negated)),
            Formula::Constant(_) | Formula::Joined { .. } => rest.push(part),
        }
    }
    (certain, join(rest, true))
}

/// Negation pushed down to the comparisons, so that a formula is only `and`, `or` and leaves.
#[derive(Clone, Debug)]
enum Formula<'a> {
    Constant(bool),
    Leaf {
        compare: &'a Comparison,
        negated: bool,
    },
    /// Parts of which `all` must hold, or else one.
    Joined {
        all: bool,
        parts: Vec<Formula<'a>>,
    },
}

fn build(expr: &Expr, negated: bool) -> Formula<'_> {
    match expr {
        Expr::Compare(compare) => Formula::Leaf { compare, negated },
        Expr::Not(inner) => build(inner, !negated),
        Expr::All(parts) => join(parts.iter().map(|part| build(part, negated)).collect(), !negated),
        Expr::Any(parts) => join(parts.iter().map(|part| build(part, negated)).collect(), negated),
    }
}

/// Joins parts of which `all` must hold, or else one: without those that decide nothing, and as flat as it can be.
fn join(parts: Vec<Formula<'_>>, all: bool) -> Formula<'_> {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Formula::Constant(value) if value == all => {}
            Formula::Constant(_) => return part,
            Formula::Joined { all: inner, parts } if inner == all => kept.extend(parts),
            Formula::Leaf { .. } | Formula::Joined { .. } => kept.push(part),
        }
    }
    match kept.len() {
        0 => Formula::Constant(all),
        1 => kept.remove(0),
        _ => Formula::Joined { all, parts: kept },
    }
}

/// Gathers the constants that each path is compared with; gives the number of comparisons.
fn collect<'a>(formula: &Formula<'a>, into: &mut BTreeMap<&'a ValuePath, BTreeSet<&'a ExprValue>>) -> usize {
    match formula {
        Formula::Constant(_) => 0,
        Formula::Leaf { compare, .. } => {
            into.entry(&compare.path).or_default().insert(&compare.value);
            1
        }
        Formula::Joined { parts, .. } => parts.iter().map(|part| collect(part, into)).sum(),
    }
}

/// One value from every cell that `constants` cut, in order of preference.
fn cells(constants: &BTreeSet<&ExprValue>, domain: ValueDomain) -> Vec<Option<ExprValue>> {
    let step = match domain {
        ValueDomain::Integers => Number::UNIT,
        ValueDomain::Anything => 1,
    };
    let mut numbers = BTreeSet::from([Number::whole(0)]);
    let mut others: Vec<Option<ExprValue>> = Vec::new();
    for constant in constants {
        match constant {
            ExprValue::Number(number) => numbers.extend([number.0 - step, number.0, number.0 + step].map(Number)),
            ExprValue::Text(_) | ExprValue::Bool(_) => others.push(Some((*constant).clone())),
        }
    }
    let in_range = |number: &Number| match domain {
        ValueDomain::Integers => number.as_whole().is_some(),
        ValueDomain::Anything => true,
    };
    let (negative, natural): (Vec<Number>, Vec<Number>) =
        numbers.into_iter().filter(in_range).partition(|number| number.0 < 0);
    let mut values: Vec<Option<ExprValue>> =
        natural.into_iter().chain(negative.into_iter().rev()).map(|number| Some(ExprValue::Number(number))).collect();
    if domain == ValueDomain::Anything {
        // What is not named by any comparison, and what is not there at all, behave alike: one of them is enough.
        others.push(None);
        values.splice(0..0, others);
    }
    values
}

/// The values that a path may still have.
#[derive(Clone, Debug)]
struct OpenValues<'a> {
    /// Never empty; the preferred one first.
    left: Vec<&'a Option<ExprValue>>,
    /// Whether it was narrowed. If not, any value will do, and none is worth telling.
    matters: bool,
}

impl OpenValues<'_> {
    fn example(&self) -> Option<ExprValue> {
        self.left.first().filter(|_| self.matters).and_then(|value| (*value).clone())
    }
}

type OpenPaths<'a> = BTreeMap<&'a ValuePath, OpenValues<'a>>;

/// Takes out what the certain comparisons forbid, until nothing changes; gives what is left to hold. `None`: nothing
/// can make it hold.
fn narrow<'a>(
    mut open: OpenPaths<'a>,
    mut formula: Formula<'a>,
    budget: &mut usize,
) -> Result<Option<(OpenPaths<'a>, Formula<'a>)>, ExprTooComplex> {
    loop {
        let (certain, rest) = split(formula);
        if matches!(rest, Formula::Constant(false)) {
            return Ok(None);
        }
        if certain.is_empty() {
            return Ok(Some((open, rest)));
        }
        for (compare, negated) in certain {
            let Some(path) = open.get_mut(&compare.path) else { continue };
            spend(budget, path.left.len())?;
            path.matters = true;
            path.left.retain(|value| compare.op.holds(value.as_ref(), &compare.value) != negated);
            if path.left.is_empty() {
                return Ok(None);
            }
        }
        spend(budget, size(&rest))?;
        formula = settle(&rest, &open);
    }
}

/// Tries the values of one path after the other; gives those that make the formula hold.
fn search<'a>(
    open: OpenPaths<'a>,
    formula: Formula<'a>,
    budget: &mut usize,
) -> Result<Option<OpenPaths<'a>>, ExprTooComplex> {
    let Some(path) = first_path(&formula) else { return Ok(Some(open)) };
    let values = open.get(path).map(|open| open.left.clone()).unwrap_or_default();
    for value in values {
        let mut tried = open.clone();
        tried.insert(path, OpenValues { left: vec![value], matters: true });
        spend(budget, size(&formula) + tried.len())?;
        let rest = settle(&formula, &tried);
        if let Some((open, rest)) = narrow(tried, rest, budget)?
            && let Some(found) = search(open, rest, budget)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The first path of a formula that is still undecided.
fn first_path<'a>(formula: &Formula<'a>) -> Option<&'a ValuePath> {
    match formula {
        Formula::Constant(_) => None,
        Formula::Leaf { compare, .. } => Some(&compare.path),
        Formula::Joined { parts, .. } => parts.iter().find_map(first_path),
    }
}

/// The formula without the comparisons that all values left agree about.
fn settle<'a>(formula: &Formula<'a>, open: &OpenPaths<'a>) -> Formula<'a> {
    match formula {
        Formula::Constant(value) => Formula::Constant(*value),
        Formula::Leaf { compare, negated } => {
            let left = open.get(&compare.path).map(|open| open.left.as_slice()).unwrap_or_default();
            let holds = |value: &&Option<ExprValue>| compare.op.holds(value.as_ref(), &compare.value) != *negated;
            match (left.iter().any(&holds), left.iter().all(&holds)) {
                (_, true) => Formula::Constant(true),
                (false, _) => Formula::Constant(false),
                (true, false) => formula.clone(),
            }
        }
        Formula::Joined { all, parts } => join(parts.iter().map(|part| settle(part, open)).collect(), *all),
    }
}

/// How many comparisons are left in it.
fn size(formula: &Formula<'_>) -> usize {
    match formula {
        Formula::Constant(_) => 0,
        Formula::Leaf { .. } => 1,
        Formula::Joined { parts, .. } => parts.iter().map(size).sum(),
    }
}

/// `review_round = 2`, or `a = 0 and b = 3`.
pub fn show(witness: &Witness) -> String {
    /// More values than these show nothing.
    const SHOWN: usize = 8;
    let shown = |(path, value): (&ValuePath, &ExprValue)| format!("{path} = {value}");
    let parts: Vec<String> = witness.iter().take(SHOWN).map(shown).collect();
    match witness.len() {
        0 => "any values".into(),
        1..=SHOWN => parts.join(" and "),
        count => format!("{} and {} more", parts.join(", "), count - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{CompareOp, parse};
    use super::*;

    fn found(all: &[&str], none: &[&str], domain: ValueDomain) -> String {
        let read = |texts: &[&str]| texts.iter().map(|text| parse(text).unwrap()).collect::<Vec<_>>();
        let (all, none) = (read(all), read(none));
        match Decider::new(domain).witness(&all.iter().collect::<Vec<_>>(), &none.iter().collect::<Vec<_>>()) {
            Ok(Some(witness)) => show(&witness),
            Ok(None) => "never".into(),
            Err(ExprTooComplex) => "too complex".into(),
        }
    }

    #[test]
    fn witnesses() {
        use ValueDomain::{Anything, Integers};
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
    fn what_must_hold_in_any_case_is_decided_however_much_it_is() {
        let low: Vec<String> = (0..400).map(|n| format!("a{n} < 5")).collect();
        let contradiction = format!("{} && z == 1 && z == 2", low[..200].join(" && "));
        assert_eq!(found(&[&contradiction], &[], ValueDomain::Anything), "never");
        assert_eq!(found(&[&contradiction], &[], ValueDomain::Integers), "never");
        assert!(
            found(&[&low[..200].join(" && "), &low[200..].join(" && ")], &[], ValueDomain::Integers)
                .starts_with("a0 = 0")
        );
    }

    #[test]
    fn entangled_expressions_end_in_an_answer() {
        let clause =
            |count: usize| (0..count).map(|n| format!("(a{n} == 1 || b{n} == 1)")).collect::<Vec<_>>().join(" && ");
        let never =
            |count: usize| (0..count).map(|n| format!("a{n} == 1 || b{n} == 1")).collect::<Vec<_>>().join(" || ");
        assert_ne!(found(&[&clause(16)], &[], ValueDomain::Integers), "never");
        assert_eq!(found(&[&clause(16)], &[&never(16)], ValueDomain::Integers), "never");
        assert_eq!(found(&[&clause(40)], &[], ValueDomain::Integers), "too complex", "more paths than are looked at");
    }

    #[test]
    fn after_one_refusal_nothing_is_answered_and_it_is_told_once() {
        let hard = (0..20).map(|n| format!("(a{n} == 1 || b{n} == 1)")).collect::<Vec<_>>().join(" && ");
        let (hard, easy) = (parse(&hard).unwrap(), parse("a < 1").unwrap());
        let mut decider = Decider::new(ValueDomain::Integers);
        assert!(!decider.refused_first());
        assert_eq!(decider.witness(&[&hard], &[]), Err(ExprTooComplex));
        assert!(decider.refused_first());
        assert_eq!(decider.witness(&[&easy], &[]), Err(ExprTooComplex));
        assert!(!decider.refused_first());
    }

    const PATHS: [&str; 3] = ["a", "b", "c"];
    fn nested(leaf: impl Strategy<Value = Expr> + 'static) -> impl Strategy<Value = Expr> {
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|expr| Expr::Not(Box::new(expr))),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::All),
                prop::collection::vec(inner, 2..4).prop_map(Expr::Any),
            ]
        })
    }

    fn compare(path: usize, op: usize, value: ExprValue) -> Expr {
        Expr::Compare(Comparison { path: ValuePath::new(PATHS[path], []), op: CompareOp::ALL[op], value })
    }

    fn whole(value: i64) -> ExprValue {
        ExprValue::Number(Number::whole(value))
    }

    fn over_integers() -> impl Strategy<Value = Expr> {
        nested((0..3usize, 0..6usize, -4i64..5).prop_map(|(path, op, value)| compare(path, op, whole(value))))
    }

    fn over_anything() -> impl Strategy<Value = Expr> {
        let value = prop_oneof![
            (-2i64..3).prop_map(whole),
            Just(ExprValue::Number(Number(Number::UNIT / 2))),
            prop_oneof![Just("PASS"), Just("FAIL"), Just("")].prop_map(|text| ExprValue::Text(text.into())),
            any::<bool>().prop_map(ExprValue::Bool),
        ];
        // Only numbers have an order; the parser refuses the rest, and so nothing else is asked here.
        nested((0..3usize, 0..6usize, value).prop_map(|(path, op, value)| match value {
            ExprValue::Number(_) => compare(path, op, value),
            ExprValue::Text(_) | ExprValue::Bool(_) => compare(path, op % 2, value),
        }))
    }

    /// Something of every cell that the constants above can cut.
    fn samples(domain: ValueDomain) -> Vec<Option<ExprValue>> {
        let numbers = |step: i128| (-12..=12).map(move |it| Some(ExprValue::Number(Number(it * step))));
        match domain {
            ValueDomain::Integers => numbers(Number::UNIT).collect(),
            ValueDomain::Anything => {
                let texts = ["PASS", "FAIL", "", "other"].map(|text| Some(ExprValue::Text(text.into())));
                let others = [None, Some(ExprValue::Bool(true)), Some(ExprValue::Bool(false))];
                numbers(Number::UNIT / 4).chain(texts).chain(others).collect()
            }
        }
    }

    fn brute_force(all: &[&Expr], none: &[&Expr], domain: ValueDomain) -> bool {
        let samples = samples(domain);
        let read = |expr: &Expr| {
            let paths = expr.comparisons();
            PATHS.map(|name| paths.iter().any(|compare| compare.path.head() == name))
        };
        let read: Vec<[bool; 3]> = all.iter().chain(none).map(|expr| read(expr)).collect();
        let of = |path: usize| match read.iter().any(|read| read[path]) {
            true => &samples[..],
            false => &samples[..1],
        };
        of(0).iter().any(|a| {
            of(1).iter().any(|b| {
                of(2).iter().any(|c| {
                    let lookup = |path: &ValuePath| {
                        let index = PATHS.iter().position(|name| *name == path.head())?;
                        [a, b, c][index].clone()
                    };
                    all.iter().all(|expr| expr.holds(&lookup)) && !none.iter().any(|expr| expr.holds(&lookup))
                })
            })
        })
    }

    /// The answer agrees with trying everything, and a witness is one.
    fn agrees(all: &[&Expr], none: &[&Expr], domain: ValueDomain) -> Result<(), TestCaseError> {
        let decided = Decider::new(domain).witness(all, none).unwrap();
        prop_assert_eq!(decided.is_some(), brute_force(all, none, domain));
        let Some(found) = decided else { return Ok(()) };
        let unnamed = match domain {
            ValueDomain::Integers => Some(whole(0)),
            ValueDomain::Anything => None,
        };
        let lookup = |path: &ValuePath| found.get(path).cloned().or(unnamed.clone());
        prop_assert!(all.iter().all(|expr| expr.holds(&lookup)) && !none.iter().any(|expr| expr.holds(&lookup)));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn overlap_agrees_with_brute_force(one in over_integers(), two in over_integers()) {
            agrees(&[&one, &two], &[], ValueDomain::Integers)?;
        }

        #[test]
        fn gap_agrees_with_brute_force(clauses in prop::collection::vec(over_integers(), 1..4)) {
            agrees(&[], &clauses.iter().collect::<Vec<_>>(), ValueDomain::Integers)?;
        }

        #[test]
        fn conditions_agree_with_brute_force(one in over_anything(), two in over_anything(), not in over_anything()) {
            agrees(&[&one, &two], &[&not], ValueDomain::Anything)?;
        }
    }
}
