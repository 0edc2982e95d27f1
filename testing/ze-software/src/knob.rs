//! The environment variables. Each knob has a variable, and `ZE_SOFTWARE_PROFILE` sets several knobs at once,
//! to match a family of Intel devices with its driver. A variable with an unknown name or an invalid value
//! ends the process, so that no test passes because of a typo.
use std::sync::LazyLock;

/// The prefix of the variables' names.
const PREFIX: &str = "ZE_SOFTWARE_";
/// The values that a knob accepts.
#[derive(Clone, Copy)]
enum Values {
    Number,
    /// Numbers, separated by commas.
    Numbers,
    /// A number of MiB, with or without an `M` after it.
    Mebibytes,
    /// One of these words.
    One(&'static [&'static str]),
    /// Some of these words, separated by commas.
    Some(&'static [&'static str]),
    /// A number, or this word.
    NumberOr(&'static str),
    /// A number, optionally followed by a colon and another number or nothing.
    NumberAndMore,
    /// Any text; the code that uses it checks it.
    Text,
}
use Values::{Mebibytes, Number, NumberAndMore, NumberOr, Numbers, One, Text};
const SWITCH: Values = One(&["0", "1"]);
/// All knobs.
const ALL: &[(&str, Values)] = &[
    ("BROKEN_DEVICE", Number),
    ("BROKEN_DRIVER", SWITCH),
    ("CHECK_THREADS", SWITCH),
    ("COUNTER_EVENTS", One(&["none", "zex", "core", "snapshots"])),
    ("DEVICES", Number),
    ("ENGINES", Numbers),
    ("EVENT_POOL", One(&["strict"])),
    ("FAIL", Text),
    ("FLUSH", NumberOr("never")),
    ("GLOBAL_BITS", NumberAndMore),
    ("HIDE", Text),
    ("HIERARCHY", One(&["COMPOSITE", "FLAT", "COMBINED"])),
    ("HOST_FAULT", SWITCH),
    ("HOST_NAMES", SWITCH),
    ("IMPORT_FD", One(&["owned"])),
    ("INLINE", SWITCH),
    ("IPC", One(&["fd", "opaque", "xe2-old", "xe2-new"])),
    ("IPC_DEAD", One(&["abort"])),
    ("KERNEL_BITS", Number),
    ("LACKS", Values::Some(&["ipc", "descriptors", "imports", "virtual_memory"])),
    ("LOST_AFTER", Number),
    ("MEMORY", Number),
    ("PEER", SWITCH),
    ("POOL", Mebibytes),
    ("PROFILE", One(&["igpu", "bmg", "pvc"])),
    ("REORDER", SWITCH),
    ("SHARED_ENGINES", One(&["0", "1", "all"])),
    ("STATEFUL_4G", Mebibytes),
    ("SUBDEVICES", Number),
    ("THROTTLE", Number),
    ("TIMER", Number),
    ("TRACE", One(&["0", "1", "errors"])),
    ("VM", One(&["neo-old", "neo-new"])),
    ("WRAPS", SWITCH),
];
impl Values {
    fn has(self, text: &str) -> bool {
        let is_number = |text: &str| text.trim().parse::<u64>().is_ok();
        match self {
            Number => is_number(text),
            Numbers => text.split(',').all(is_number),
            Mebibytes => is_number(text.strip_suffix('M').unwrap_or(text)),
            One(words) => words.contains(&text),
            Self::Some(words) => text.split(',').all(|one| words.contains(&one.trim())),
            NumberOr(word) => text == word || is_number(text),
            NumberAndMore => text.split(':').count() <= 2 && text.split(':').all(is_number),
            Text => true,
        }
    }
}
/// What is wrong with a variable; `name` is without the prefix.
fn fault(name: &str, text: &str) -> Option<String> {
    match ALL.iter().find(|(known, _)| *known == name) {
        None => Some(format!("there is no such knob as {PREFIX}{name}")),
        Some((_, values)) if text.is_empty() || values.has(text) => None,
        Some(_) => Some(format!("{PREFIX}{name}: {text:?} is nothing that it can be")),
    }
}
/// Checks all variables, on the first call.
fn check() {
    static CHECKED: LazyLock<()> = LazyLock::new(|| {
        let faults = std::env::vars_os().filter_map(|(name, text)| {
            fault(name.to_str()?.strip_prefix(PREFIX)?, &text.to_string_lossy())
        });
        let faults: Vec<_> = faults.collect();
        if !faults.is_empty() {
            eprintln!("ze-software: {}: its README has a table", faults.join("; "));
            std::process::abort()
        }
    });
    *CHECKED
}

/// The knobs that a profile sets; a variable in the environment overrides them.
type Knobs = &'static [(&'static str, &'static str)];
/// The behaviour that all of Intel's drivers share.
const NEO: Knobs = &[
    ("IMPORT_FD", "owned"),
    ("CHECK_THREADS", "1"),
    ("SHARED_ENGINES", "1"),
    ("IPC_DEAD", "abort"),
    ("EVENT_POOL", "strict"),
    ("HOST_FAULT", "1"),
    ("STATEFUL_4G", "4096"),
    ("TIMER", "19200000"),
    ("KERNEL_BITS", "32"),
    ("GLOBAL_BITS", "36"),
];
/// The integrated graphics of Meteor Lake, with a driver before 26.18.
const IGPU: Knobs = &[("ENGINES", "1,1,0"), ("FLUSH", "2"), ("IPC", "fd"), ("VM", "neo-old")];
/// A Battlemage card, with driver 26.27 or later.
const BMG: Knobs = &[("ENGINES", "1,1,0"), ("IPC", "xe2-new"), ("POOL", "2"), ("VM", "neo-new")];
/// A Ponte Vecchio card: two tiles, each with its own engines.
const PVC: Knobs = &[
    ("ENGINES", "4,1,7"),
    ("SUBDEVICES", "2"),
    ("HIERARCHY", "FLAT"),
    ("POOL", "2"),
    ("VM", "neo-new"),
];

/// A family of devices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Not an Intel device: as permissive as the specification allows.
    Plain,
    Igpu,
    Bmg,
    Pvc,
}
/// The family of the devices.
pub fn profile() -> Profile {
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| match own("PROFILE").as_deref() {
        Some("igpu") => Profile::Igpu,
        Some("bmg") => Profile::Bmg,
        Some("pvc") => Profile::Pvc,
        _ => Profile::Plain,
    });
    *PROFILE
}
/// The value of a variable; `None` if it is empty or not set.
fn own(name: &str) -> Option<String> {
    check();
    std::env::var(format!("{PREFIX}{name}")).ok().filter(|text| !text.is_empty())
}
/// The value of a knob, named without `ZE_SOFTWARE_`: that of its variable, else that of the profile.
pub fn text(name: &str) -> Option<String> {
    own(name).or_else(|| {
        let (family, all): (Knobs, Knobs) = match profile() {
            Profile::Plain => (&[], &[]),
            Profile::Igpu => (IGPU, NEO),
            Profile::Bmg => (BMG, NEO),
            Profile::Pvc => (PVC, NEO),
        };
        let found = family.iter().chain(all).find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}
/// Whether a knob is set to `wish`.
pub fn is(name: &str, wish: &str) -> bool {
    text(name).is_some_and(|text| text == wish)
}
/// The number that a knob is set to; `otherwise` if it is not set.
pub fn number(name: &str, otherwise: u64) -> u64 {
    text(name).and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
}
/// The value of a knob in MiB, converted to bytes.
pub fn mebibytes(name: &str) -> Option<usize> {
    let text = text(name)?;
    text.strip_suffix('M').unwrap_or(&text).trim().parse::<usize>().ok().map(|mib| mib << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_knob_and_what_it_cannot_be_are_told() {
        for (name, text) in [
            ("POOL", "2"),
            ("POOL", "2M"),
            ("GLOBAL_BITS", "36"),
            ("GLOBAL_BITS", "36:100"),
            ("FLUSH", "never"),
            ("ENGINES", "4,1,2"),
            ("LACKS", "ipc,imports"),
            ("SHARED_ENGINES", "all"),
            ("PEER", ""),
        ] {
            assert_eq!(fault(name, text), None, "{name}={text}");
        }
        for (name, text) in [
            ("PEAR", "0"),
            ("POOL", "2G"),
            ("GLOBAL_BITS", "36:1:2"),
            ("FLUSH", "always"),
            ("ENGINES", "4,,2"),
            ("LACKS", "ipc,legs"),
            ("VM", "new"),
            ("LOST_AFTER", "-1"),
        ] {
            assert!(fault(name, text).is_some(), "{name}={text}");
        }
    }
    #[test]
    fn profiles_set_knobs_that_there_are_to_what_they_can_be() {
        for (name, text) in [NEO, IGPU, BMG, PVC].into_iter().flatten() {
            assert_eq!(fault(name, text), None, "{name}={text}");
        }
    }
    #[test]
    fn the_readme_and_the_front_page_tell_of_each_knob() {
        let root = env!("CARGO_MANIFEST_DIR");
        for file in ["README.md", "src/lib.rs"] {
            let page = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
            for (name, _) in ALL {
                assert!(page.contains(&format!("| `{PREFIX}{name}` |")), "{file}: {name}");
            }
        }
    }
}
