//! The interfaces through which devices are driven, each with one name everywhere.
use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};
use ur_sys::ur_backend_t;

/// The interface through which a platform is driven.
///
/// Its name is the same in text, in JSON, on the command line, in file names of adapters and in
/// `ONEAPI_DEVICE_SELECTOR`:
///
/// ```
/// use causeway::Backend;
///
/// assert_eq!("level_zero".parse(), Ok(Backend::LevelZero));
/// assert_eq!(Backend::LevelZero.to_string(), "level_zero");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// The host's processors.
    NativeCpu,
    /// NVIDIA's CUDA.
    Cuda,
    /// AMD's HIP.
    Hip,
    /// Intel's Level Zero.
    LevelZero,
    /// OpenCL.
    OpenCl,
    /// LLVM's offload library.
    Offload,
    /// Another backend.
    Other,
}
use Backend::{Cuda, Hip, LevelZero, NativeCpu, Offload, OpenCl, Other};

const NAMES: [(Backend, ur_backend_t, &str); 6] = [
    (NativeCpu, ur_backend_t::NATIVE_CPU, "native_cpu"),
    (Cuda, ur_backend_t::CUDA, "cuda"),
    (Hip, ur_backend_t::HIP, "hip"),
    (LevelZero, ur_backend_t::LEVEL_ZERO, "level_zero"),
    (OpenCl, ur_backend_t::OPENCL, "opencl"),
    (Offload, ur_backend_t::OFFLOAD, "offload"),
];

impl Backend {
    /// All backends that have a name.
    pub const ALL: [Self; 6] = [NativeCpu, Cuda, Hip, LevelZero, OpenCl, Offload];

    pub(crate) fn of(code: ur_backend_t) -> Self {
        NAMES.iter().find(|(_, known, _)| *known == code).map_or(Other, |(backend, ..)| *backend)
    }
    /// The backend's name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(backend, ..)| *backend == self).map_or("other", |(.., name)| name)
    }
}
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
impl FromStr for Backend {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            Error::new(ErrorKind::NoDevice, format!("there is no backend {name}; there are {all}"))
        })
    }
}
impl Serialize for Backend {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
impl<'de> Deserialize<'de> for Backend {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        match name.as_ref() {
            "other" => Ok(Other),
            name => name.parse().map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_has_one_name_in_text_and_in_json() {
        for backend in Backend::ALL {
            assert_eq!(backend.to_string().parse(), Ok(backend));
            let json = serde_json::to_string(&backend).unwrap();
            assert_eq!(json, format!("\"{backend}\""));
            assert_eq!(serde_json::from_str::<Backend>(&json).unwrap(), backend);
        }
        assert!("cpu".parse::<Backend>().unwrap_err().to_string().contains("native_cpu"));
    }
}
