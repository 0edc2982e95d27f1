//! The names of the layers, and the parser for `UR_ENABLE_LAYERS`: names separated by commas.

/// Parameters are checked before a call.
pub const PARAMETERS: u32 = 1;
/// Memory ranges that a call touches are checked before it.
pub const BOUNDS: u32 = 2;
/// Objects and resources that were never released are reported at the end.
pub const LEAKS: u32 = 4;
/// Handles are checked before a call.
pub const LIFETIME: u32 = 8;
/// Calls are recorded.
pub const TRACING: u32 = 16;

/// Each name and the layers that it turns on. The sanitizers are accepted but turn nothing on.
const LAYERS: &[(&str, u32)] = &[
    ("UR_LAYER_FULL_VALIDATION", PARAMETERS | BOUNDS | LEAKS | LIFETIME),
    ("UR_LAYER_PARAMETER_VALIDATION", PARAMETERS),
    ("UR_LAYER_LEAK_CHECKING", LEAKS),
    ("UR_LAYER_BOUNDS_CHECKING", BOUNDS),
    ("UR_LAYER_LIFETIME_VALIDATION", LIFETIME),
    ("UR_LAYER_TRACING", TRACING),
    ("UR_LAYER_ASAN", 0),
    ("UR_LAYER_MSAN", 0),
    ("UR_LAYER_TSAN", 0),
];

/// Returns all names, separated by semicolons, as programs can query them.
pub fn available() -> String {
    LAYERS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
}
/// Whether there is a layer of that name.
pub fn known(name: &str) -> bool {
    LAYERS.iter().any(|(known, _)| *known == name)
}

/// The layers to turn on, and warnings about the names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The layers, as bits.
    pub on: u32,
    /// At most one warning about unknown names and one about layers that do nothing.
    pub warnings: Vec<String>,
}

/// Evaluates the variable's `value` and the names that a program `enabled`.
pub fn asked(value: &str, enabled: &[String]) -> Asked {
    let mut asked = Asked::default();
    let (mut unknown, mut idle) = (Vec::new(), Vec::new());
    let listed = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    for name in listed.chain(enabled.iter().map(String::as_str)) {
        match LAYERS.iter().find(|(known, _)| *known == name) {
            Some((_, 0)) => idle.push(name),
            Some((_, bits)) => asked.on |= bits,
            None => unknown.push(shown(name)),
        }
    }
    if !unknown.is_empty() {
        asked.warnings.push(format!(
            "UR_ENABLE_LAYERS: there is no layer {}; the names, with commas between them, are {}",
            unknown.join(", "),
            available().replace(';', ", ")
        ));
    }
    if !idle.is_empty() {
        asked.warnings.push(format!(
            "{} does nothing here: this loader has no sanitizers; run the program with the \
             sanitizers of its compiler instead",
            idle.join(", ")
        ));
    }
    asked
}
/// Shortens and quotes an unknown name for a warning.
fn shown(name: &str) -> String {
    let short: String = name.chars().take(64).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_turns_on_what_it_says() {
        let on = |value: &str| asked(value, &[]).on;
        assert_eq!(on("UR_LAYER_TRACING"), TRACING);
        assert_eq!(on("UR_LAYER_FULL_VALIDATION"), PARAMETERS | BOUNDS | LEAKS | LIFETIME);
        assert_eq!(on(" UR_LAYER_LEAK_CHECKING , UR_LAYER_BOUNDS_CHECKING,"), LEAKS | BOUNDS);
        assert_eq!(asked("", &["UR_LAYER_TRACING".into()]).on, TRACING);
        assert_eq!(asked("", &[]), Asked::default());
    }
    #[test]
    fn all_wrong_names_are_one_warning_that_lists_the_right_ones() {
        let wrong = asked("nope,UR_LAYER_TRACING,ur_layer_tracing;x", &[]);
        assert_eq!(wrong.on, TRACING);
        assert_eq!(wrong.warnings.len(), 1);
        for name in ["\"nope\"", "\"ur_layer_tracing;x\"", "UR_LAYER_LEAK_CHECKING"] {
            assert!(wrong.warnings[0].contains(name), "{wrong:?}");
        }
    }
    #[test]
    fn sanitizers_are_accepted_with_a_warning() {
        let asked = asked("UR_LAYER_ASAN,UR_LAYER_TSAN", &[]);
        assert_eq!((asked.on, asked.warnings.len()), (0, 1));
        assert!(asked.warnings[0].contains("UR_LAYER_TSAN"));
    }
    proptest::proptest! {
        #[test]
        fn garbage_is_read_to_its_end(value: String) {
            let asked = asked(&value, &[]);
            proptest::prop_assert!(asked.warnings.len() <= 2);
        }
    }
}
