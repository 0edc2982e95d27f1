//! Documented conditions on parameters (`size == 0 && …`): evaluates them and finds arguments that make one
//! true.
use super::arguments::Arguments;
use crate::spec::{Condition, Entry, Spec, Type, When};
use std::collections::BTreeSet;

/// A parameter, or a member behind it.
type Variable = (String, Option<String>);

/// The condition as the specification writes it.
pub fn text(condition: &Condition) -> String {
    let inner = |c: &Condition| match c {
        Condition::Both(..) => format!("({})", text(c)),
        c => text(c),
    };
    match condition {
        Condition::Both(left, operator, right) => {
            let logical = |op: &str| op == "&&" || op == "||";
            let side = |c: &Condition| match c {
                Condition::Both(_, op, _)
                    if op == operator || logical(operator) && !logical(op) =>
                {
                    text(c)
                }
                c => inner(c),
            };
            format!("{} {operator} {}", side(left), side(right))
        }
        Condition::Not(of) => format!("!{}", inner(of)),
        Condition::Number(n) => n.to_string(),
        Condition::Name(name, Some(at)) if at.parse::<usize>().is_ok() => format!("{name}[{at}]"),
        Condition::Name(name, Some(member)) => format!("{name}.{member}"),
        Condition::Name(name, None) => name.clone(),
    }
}
fn constant(name: &str) -> Option<u64> {
    if name == "null" { Some(0) } else { Spec::get().constants.get(name).copied() }
}
/// The value of the condition with the current arguments; `None` if it cannot be evaluated.
fn eval(condition: &Condition, arguments: &Arguments<'_>) -> Option<u64> {
    match condition {
        Condition::Number(n) => Some(*n),
        Condition::Not(of) => Some(u64::from(eval(of, arguments)? == 0)),
        Condition::Name(name, member) => match arguments.index(name) {
            Some(index) => arguments.value(index, member.as_deref()),
            None => constant(name),
        },
        Condition::Both(left, operator, right) => {
            let left = eval(left, arguments)?;
            match *operator {
                "&&" if left == 0 => return Some(0),
                "||" if left != 0 => return Some(1),
                _ => {}
            }
            let right = eval(right, arguments)?;
            Some(match *operator {
                "&&" | "||" => u64::from(right != 0),
                "==" => u64::from(left == right),
                "!=" => u64::from(left != right),
                "<" => u64::from(left < right),
                ">" => u64::from(left > right),
                "<=" => u64::from(left <= right),
                ">=" => u64::from(left >= right),
                "%" => left.checked_rem(right)?,
                "&" => left & right,
                "|" => left | right,
                "-" => left.wrapping_sub(right),
                "+" => left.wrapping_add(right),
                "*" => left.wrapping_mul(right),
                _ => return None,
            })
        }
    }
}
/// Collects the variables of a condition and the numbers in it.
fn collect(condition: &Condition, names: &mut Vec<Variable>, numbers: &mut BTreeSet<u64>) {
    match condition {
        Condition::Not(of) => collect(of, names, numbers),
        Condition::Both(left, _, right) => {
            collect(left, names, numbers);
            collect(right, names, numbers);
        }
        Condition::Number(n) => {
            numbers.insert(*n);
        }
        Condition::Name(name, member) => {
            let found = (name.clone(), member.clone());
            match constant(name) {
                Some(number) => {
                    numbers.insert(number);
                }
                None if !names.contains(&found) => names.push(found),
                None => {}
            }
        }
    }
}
fn candidates(
    arguments: &Arguments<'_>,
    (name, member): &Variable,
    numbers: &BTreeSet<u64>,
    nulls: bool,
) -> Option<Vec<u64>> {
    let index = arguments.index(name)?;
    let param = &arguments.entry.params[index];
    if member.is_none() && matches!(param.ty, Type::Pointer(_)) {
        let may_be_null = param.optional || nulls;
        return Some(if may_be_null { vec![1, 0] } else { vec![1] });
    }
    let mut all: BTreeSet<u64> = [0, 1, 3, 4, 5, 32, 64].into();
    all.extend(arguments.value(index, member.as_deref()));
    all.extend(numbers.iter().flat_map(|n| [*n, n + 1]));
    all.extend(numbers.iter().flat_map(|a| numbers.iter().map(move |b| a | b)));
    Some(all.into_iter().collect())
}

/// Sets the arguments so that a condition holds and no condition with another code does; returns whether that
/// is possible.
pub fn provoke(
    arguments: &mut Arguments<'_>,
    entry: &Entry,
    code: &str,
    condition: &Condition,
) -> bool {
    let (mut names, mut numbers) = (Vec::new(), BTreeSet::new());
    collect(condition, &mut names, &mut numbers);
    names.sort_by_key(|(_, member)| member.is_some()); // pointers before the members behind them
    let nulls = code == "InvalidNullPointer";
    let choices: Option<Vec<_>> =
        names.iter().map(|name| candidates(arguments, name, &numbers, nulls)).collect();
    let Some(choices) = choices else { return false };
    let total: usize = choices.iter().map(Vec::len).product();
    for mut at in 0..total.min(200_000) {
        for (variable, choice) in names.iter().zip(&choices) {
            let value = choice[at % choice.len()];
            at /= choice.len();
            let Some(index) = arguments.index(&variable.0) else { return false };
            if arguments.set(index, variable.1.as_deref(), value).is_none() {
                return false;
            }
        }
        let others = |arguments: &Arguments<'_>| {
            entry.errors.iter().any(|fault| match &fault.when {
                When::Holds(e) if fault.code != code => eval(e, arguments).is_some_and(|n| n != 0),
                _ => false,
            })
        };
        if eval(condition, arguments).is_some_and(|n| n != 0) && !others(arguments) {
            return true;
        }
    }
    false
}
