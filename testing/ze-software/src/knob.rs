//! What the environment says: each knob has a variable, and `ZE_SOFTWARE_PROFILE` sets several at once, to what a family of
//! Intel's devices with its driver is like.
use std::sync::LazyLock;

/// The knobs of a profile; a variable that is set goes first.
type Knobs = &'static [(&'static str, &'static str)];
/// What all of Intel's drivers have in common.
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
/// Graphics of a processor (Meteor Lake), with a driver of before 26.18.
const IGPU: Knobs = &[("ENGINES", "1,1,0"), ("FLUSH", "2"), ("IPC", "fd"), ("VM", "neo-old")];
/// A card (Battlemage), with a driver of 26.27 or later.
const BMG: Knobs = &[("ENGINES", "1,1,0"), ("IPC", "xe2-new"), ("POOL", "2"), ("VM", "neo-new")];
/// A card for servers (Ponte Vecchio): two tiles, each with engines of its own.
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
    /// None of Intel's: as kind as the specification lets a driver be.
    Plain,
    Igpu,
    Bmg,
    Pvc,
}
/// Which family the devices are of. A name that is none ends the process: a test must not pass by a typo.
pub fn profile() -> Profile {
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
        match std::env::var("ZE_SOFTWARE_PROFILE").as_deref().unwrap_or_default() {
            "" => Profile::Plain,
            "igpu" => Profile::Igpu,
            "bmg" => Profile::Bmg,
            "pvc" => Profile::Pvc,
            other => {
                eprintln!("ze-software: ZE_SOFTWARE_PROFILE: {other:?} is not igpu, bmg or pvc");
                std::process::abort()
            }
        }
    });
    *PROFILE
}
/// What a knob is set to, by its variable without `ZE_SOFTWARE_`, or by the profile.
pub fn text(name: &str) -> Option<String> {
    let own = std::env::var(format!("ZE_SOFTWARE_{name}")).ok();
    own.or_else(|| {
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
/// A number that a knob is set to, or `otherwise`.
pub fn number(name: &str, otherwise: u64) -> u64 {
    text(name).and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
}
