//! Parses `ONEAPI_DEVICE_SELECTOR`, which selects the devices that a program sees. The result answers two
//! questions: could an adapter have a selected device (`may_use`, before it is loaded), and which devices of
//! a platform are selected (`choose`). `selected` enumerates the devices.
//!
//! The grammar, which ignores case:
//!
//! ```text
//! selector = term { ";" term } [ ";" ]
//! term     = [ "!" ] backend ":" device { "," device } [ "," ]
//! backend  = "*" | "level_zero" | "opencl" | "cuda" | "hip" | "native_cpu" | "offload"
//! device   = "*" | "cpu" | "gpu" | "fpga" | "mca" | "vpu" | step [ "." step [ "." step ] ]
//! step     = "*" | number
//! ```
//!
//! A number is the index of a device in its platform; further steps name sub-devices and sub-devices of
//! these; after a `*` only `*` may follow. A device is selected if a term without `!` names it, or there is
//! no such term, and no term with `!` names it. A sub-device is visible only if a term names it.
use ur_sys::{ur_backend_t as Backend, ur_device_type_t as Kind};

/// The parsed variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    accepted: Vec<Term>,
    discarded: Vec<Term>,
}
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// `None` means every backend.
    backend: Option<Backend>,
    devices: Vec<Device>,
}
#[derive(Clone, Debug, PartialEq, Eq)]
enum Device {
    /// Every root device of the type, but no sub-devices.
    Kind(Kind),
    /// A device or sub-device; the number of steps is its depth.
    At(Vec<Step>),
    /// Every root device, which is what a selector without accepting terms selects.
    Every,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Any,
    Number(u32),
}

/// The maximal number of steps.
pub(crate) const DEPTH: usize = 3;

const BACKENDS: [(&str, Backend); 6] = [
    ("level_zero", Backend::LEVEL_ZERO),
    ("opencl", Backend::OPENCL),
    ("cuda", Backend::CUDA),
    ("hip", Backend::HIP),
    ("native_cpu", Backend::NATIVE_CPU),
    ("offload", Backend::OFFLOAD),
];
const KINDS: [(&str, Kind); 5] = [
    ("cpu", Kind::CPU),
    ("gpu", Kind::GPU),
    ("fpga", Kind::FPGA),
    ("mca", Kind::MCA),
    ("vpu", Kind::VPU),
];

/// A device as the selector identifies it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its type.
    pub(crate) kind: Kind,
    /// Its index in the platform; for a sub-device followed by its index in its parent, and so on.
    pub(crate) numbers: Vec<u32>,
}

impl Selector {
    /// Parses `text`; returns `None` if it is empty.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let (mut accepted, mut discarded) = (Vec::new(), Vec::new());
        for term in list(text, ';') {
            match term.strip_prefix('!') {
                Some(term) => discarded.push(Term::parse(term)?),
                None => accepted.push(Term::parse(term)?),
            }
        }
        Ok(Some(Self { accepted, discarded }))
    }

    /// Whether an adapter of `backend` with devices of these `kinds` could have a selected device.
    pub(crate) fn may_use(&self, backend: Backend, kinds: &[Kind]) -> bool {
        let accepted = |kind: &Kind| {
            self.accepted.is_empty() || self.accepted.iter().any(|t| t.may_name(backend, *kind))
        };
        let discarded = |kind: &Kind| self.discarded.iter().any(|t| t.names_all(backend, *kind));
        // Sub-devices can be selected although their parent devices are discarded.
        let parts = self.accepted.iter().any(|t| t.names_parts(backend));
        kinds.iter().any(|kind| accepted(kind) && (parts || !discarded(kind)))
    }
    /// Returns the indices of the selected devices and sub-devices, in the order in which the terms name
    /// them.
    pub(crate) fn choose(&self, backend: Backend, all: &[Place]) -> Vec<usize> {
        let accepting = self.accepted.iter().filter(|term| term.is_for(backend));
        let mut patterns: Vec<&Device> = accepting.flat_map(|term| &term.devices).collect();
        if self.accepted.is_empty() {
            patterns.push(&Device::Every);
        }
        let mut chosen: Vec<usize> = Vec::new();
        for pattern in patterns {
            for (at, place) in all.iter().enumerate() {
                let discarded = self.discarded.iter().any(|t| t.names(backend, place));
                if pattern.names(place) && !discarded && !chosen.contains(&at) {
                    chosen.push(at);
                }
            }
        }
        chosen
    }
    /// Whether sub-devices of the device at `place` could be selected.
    pub(crate) fn looks_into(&self, backend: Backend, place: &[u32]) -> bool {
        self.accepted.iter().any(|t| t.looks_into(backend, place))
    }
}

/// Splits at a separator, of which one may also follow the last item.
fn list(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.strip_suffix(separator).unwrap_or(text).split(separator)
}

impl Term {
    fn parse(text: &str) -> Result<Self, String> {
        let (backend, devices) = text.split_once(':').ok_or_else(|| {
            format!("{text:?} has no colon: write BACKEND:DEVICES, as in level_zero:gpu")
        })?;
        let known = BACKENDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(backend));
        let backend = match (backend, known) {
            ("*", _) => None,
            (_, Some((_, backend))) => Some(*backend),
            _ => {
                let names = BACKENDS.map(|(name, _)| name).join(", ");
                return Err(format!("{backend:?} is no backend: there are {names} and *"));
            }
        };
        let devices = list(devices, ',').map(Device::parse).collect::<Result<_, _>>()?;
        Ok(Self { backend, devices })
    }
    fn is_for(&self, backend: Backend) -> bool {
        self.backend.is_none_or(|of| of == backend)
    }
    fn names(&self, backend: Backend, place: &Place) -> bool {
        self.is_for(backend) && self.devices.iter().any(|device| device.names(place))
    }
    fn may_name(&self, backend: Backend, kind: Kind) -> bool {
        let may = |device: &Device| !matches!(device, Device::Kind(of) if *of != kind);
        self.is_for(backend) && self.devices.iter().any(may)
    }
    fn names_all(&self, backend: Backend, kind: Kind) -> bool {
        let all = |device: &Device| match device {
            Device::Kind(of) => *of == kind,
            Device::At(steps) => *steps == [Step::Any],
            Device::Every => true,
        };
        self.is_for(backend) && self.devices.iter().any(all)
    }
    fn names_parts(&self, backend: Backend) -> bool {
        let part = |device: &Device| matches!(device, Device::At(steps) if steps.len() > 1);
        self.is_for(backend) && self.devices.iter().any(part)
    }
    fn looks_into(&self, backend: Backend, place: &[u32]) -> bool {
        let deeper = |device: &Device| match device {
            Device::Kind(_) | Device::Every => false,
            Device::At(steps) => steps.len() > place.len() && on_the_way(steps, place),
        };
        self.is_for(backend) && self.devices.iter().any(deeper)
    }
}

fn on_the_way(steps: &[Step], place: &[u32]) -> bool {
    steps.iter().zip(place).all(|(step, at)| match step {
        Step::Any => true,
        Step::Number(number) => number == at,
    })
}

impl Device {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some((_, kind)) = KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Ok(Self::Kind(*kind));
        }
        let steps: Vec<_> = text.split('.').map(step).collect::<Option<_>>().ok_or_else(|| {
            let kinds = KINDS.map(|(name, _)| name).join(", ");
            format!("{text:?} is no device: write *, {kinds}, or a number as 0, 0.1 or 0.*")
        })?;
        if steps.len() > DEPTH {
            return Err(format!("{text:?} is too deep: parts of parts (0.1.2) are the smallest"));
        }
        let after_any = steps.iter().skip_while(|step| **step != Step::Any);
        if after_any.into_iter().any(|step| *step != Step::Any) {
            return Err(format!("{text:?} has a number after *: only * can follow"));
        }
        Ok(Self::At(steps))
    }
    fn names(&self, place: &Place) -> bool {
        match self {
            Self::Kind(of) => place.numbers.len() == 1 && *of == place.kind,
            Self::At(steps) => {
                steps.len() == place.numbers.len() && on_the_way(steps, &place.numbers)
            }
            Self::Every => place.numbers.len() == 1,
        }
    }
}
fn step(text: &str) -> Option<Step> {
    match text {
        "*" => Some(Step::Any),
        _ if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok().map(Step::Number),
        _ => None,
    }
}

#[cfg(test)]
#[path = "selector/tests.rs"]
mod tests;
