//! Tests the order of the generated checks by their text.

/// The rank of a rule, by its text: 0 for null pointers, 1 for handles, 2 for enumerations and members, 3 for
/// values and their combinations, 4 for events.
fn rank(rule: &str, params: &str, enumerations: &str) -> usize {
    let (word, of) = rule.split_once('(').unwrap();
    let first = of.split_whitespace().next().unwrap();
    match (word, first) {
        ("answer", _) | ("never" | "paired", "ERROR_INVALID_NULL_POINTER") => 0,
        ("never" | "paired", "ERROR_INVALID_NULL_HANDLE") => 1,
        ("never" | "paired", "ERROR_INVALID_ENUMERATION") | ("member", _) => 2,
        ("never" | "paired", _) => 3,
        ("events", _) => 4,
        ("given", name) => {
            let params = params.split([',', ')']).map(str::trim);
            let ty = params.filter_map(|p| p.strip_prefix(name)?.strip_prefix(": ")).next();
            match ty.unwrap() {
                ty if ty.ends_with("_handle_t") && !ty.starts_with('*') => 1,
                ty if enumerations.contains(ty) => 2,
                _ => 0,
            }
        }
        (word, _) => panic!("{word}"),
    }
}
/// The rules of a row, each on one line.
fn rules(body: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in body.lines().filter_map(|line| line.strip_prefix("        ")) {
        match all.last_mut().filter(|_| !line.starts_with(char::is_alphabetic)) {
            Some(last) => *last += line.trim(),
            None => all.push(line.to_string()),
        }
    }
    all
}

#[test]
fn every_entry_asks_for_enumerations_and_members_before_values_and_combinations() {
    let text = include_str!("../../../../crates/ur-loader/src/layers/check.rs");
    let (before, rows) = text.split_once("checks! {").unwrap();
    let enumerations = before.split_once("flags! {").unwrap().1;
    let (mut entries, mut asked) = (0, 0);
    let rows = rows.split("\n    }\n");
    let rows = rows.map(|row| row.rsplit_once(") {}\n").map_or(row, |(_, row)| row));
    for (head, body) in rows.filter_map(|row| row.split_once(") {\n")) {
        let params = head.split_once('(').unwrap().1;
        let rules = rules(body);
        let mut ranks: Vec<_> = rules.iter().map(|rule| rank(rule, params, enumerations)).collect();
        // Members for which the entry documents a code of its own are checked at the end.
        while ranks.last() == Some(&2) && ranks.iter().any(|rank| *rank > 2) {
            ranks.pop();
        }
        assert!(ranks.is_sorted(), "{head}: {ranks:?}");
        entries += 1;
        asked += rules.len();
    }
    assert!(entries > 200 && asked > 500, "{entries} entries, {asked} rules");
}

#[test]
fn what_a_refusal_says_names_parameters_as_c_does() {
    let text = include_str!("../../../../crates/ur-loader/src/layers/check.rs");
    let (_, rows) = text.split_once("checks! {").unwrap();
    let mut said = 0;
    for words in rows.lines().flat_map(|line| line.split('"').skip(1).step_by(2)) {
        let names = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        // Names that have an underscore in C, too.
        let theirs = |name: &str| name.starts_with("UR_") || name == "pipe_symbol";
        let ours = names.filter(|name| name.contains('_') && !theirs(name));
        assert_eq!(ours.collect::<Vec<_>>(), [""; 0], "{words}");
        assert!(!words.contains("r#"), "{words}");
        said += 1;
    }
    assert!(said > 500, "{said}");
}
