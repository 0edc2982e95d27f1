//! All properties of platforms and devices, by name. The loader's printer knows the type of each property; here its
//! bytes are converted to values.
use crate::{Device, Platform, Result};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::fmt;
use ur_loader::print::{
    kind::{Answer, Kind, Query},
    queries::{DEVICE_INFO, PLATFORM_INFO},
};

/// One property.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// for property in causeway::Device::first()?.properties()? {
///     println!("{}: {}", property.name, property.value);
/// }
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Property {
    /// Its name in Unified Runtime, in lower case and without the common prefix: `max_compute_units` is
    /// `UR_DEVICE_INFO_MAX_COMPUTE_UNITS`.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// The value of a property.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Value {
    /// None: an object that does not exist, or a value without a representation.
    None,
    /// A boolean.
    Truth(bool),
    /// A number: bytes, units, or as the name says.
    Number(u64),
    /// Text, a version, or bytes as hexadecimal digits.
    Text(String),
    /// Several values; for flags, those that are set.
    List(Vec<Value>),
    /// Named values.
    #[serde(serialize_with = "fields")]
    Fields(Vec<(&'static str, Value)>),
}
fn fields<S: Serializer>(
    fields: &[(&'static str, Value)],
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(fields.len()))?;
    for (name, value) in fields {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Truth(truth) => f.write_str(if *truth { "yes" } else { "no" }),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::List(all) if all.is_empty() => f.write_str("none"),
            Self::List(all) => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                f.write_str(&all.join(", "))
            }
            Self::Fields(all) => {
                let all: Vec<_> =
                    all.iter().map(|(name, value)| format!("{name} {value}")).collect();
                f.write_str(&all.join(", "))
            }
        }
    }
}

impl Platform {
    /// Every property that its driver supports, in the order of the specification.
    ///
    /// # Errors
    /// Returns the adapter's error, except for properties that it does not support.
    pub fn properties(&self) -> Result<Vec<Property>> {
        properties(&PLATFORM_INFO, "UR_PLATFORM_INFO_", |name| self.raw.bytes(name))
    }
}
impl Device {
    /// Every property that its driver supports, in the order of the specification.
    ///
    /// # Errors
    /// Returns the adapter's error, except for properties that it does not support.
    pub fn properties(&self) -> Result<Vec<Property>> {
        properties(&DEVICE_INFO, "UR_DEVICE_INFO_", |name| self.raw.bytes(name))
    }
}
fn properties(
    query: &'static Query,
    prefix: &str,
    ask: impl Fn(u32) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<Property>> {
    let mut all = Vec::new();
    for answer in query.answers {
        if let Some(bytes) = ask(answer.of)? {
            let name = answer.name.trim_start_matches(prefix).to_ascii_lowercase();
            all.push(Property { name, value: value(answer, &bytes) });
        }
    }
    Ok(all)
}

/// Converts an answer to a value.
fn value(answer: &Answer, bytes: &[u8]) -> Value {
    match answer.kind {
        Kind::Char if answer.many => {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            Value::Text(String::from_utf8_lossy(&bytes[..end]).into_owned())
        }
        Kind::U8 if answer.many => hexadecimal(bytes),
        kind if answer.many => {
            let all = bytes.chunks_exact(answer.size.max(1));
            Value::List(all.map(|one| read(kind, one)).collect())
        }
        kind => read(kind, bytes),
    }
}
/// Bytes as hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> Value {
    Value::Text(hex::encode(bytes))
}
/// A value from the first of these bytes.
fn read(kind: Kind, bytes: &[u8]) -> Value {
    match kind {
        Kind::Bool | Kind::Truth => Value::Truth(number::<1>(bytes) != 0),
        Kind::U8 | Kind::Char => Value::Number(number::<1>(bytes)),
        Kind::U32 | Kind::I32 => Value::Number(number::<4>(bytes)),
        Kind::U64 | Kind::Usize => Value::Number(number::<8>(bytes)),
        Kind::Version => {
            let version = number::<4>(bytes);
            Value::Text(format!("{}.{}", version >> 16, version & 0xffff))
        }
        Kind::Enum(names) => {
            let value = number::<4>(bytes);
            let name = names.iter().find(|(n, _)| u64::from(*n) == value);
            name.map_or(Value::Number(value), |(_, name)| named(names, name))
        }
        Kind::Flags(names) => {
            let value = number::<4>(bytes);
            let set = names.iter().filter(|(flag, _)| value & u64::from(*flag) != 0);
            Value::List(set.map(|(_, name)| named(names, name)).collect())
        }
        Kind::Record(record) => {
            let members = record.members.iter().filter(|m| m.name != "pNext" && m.name != "stype");
            let field = |m: &ur_loader::print::kind::Member| {
                (m.name, read(m.kind, bytes.get(m.at..).unwrap_or_default()))
            };
            Value::Fields(members.map(field).collect())
        }
        Kind::Array(of, count) => {
            let size = bytes.len() / count.max(1);
            let all = bytes.chunks_exact(size.max(1)).take(count);
            Value::List(all.map(|one| read(*of, one)).collect())
        }
        // An object or address of this process: only its existence can be told.
        Kind::Address | Kind::Bare if number::<8>(bytes) != 0 => Value::Text("there".into()),
        _ => Value::None,
    }
}
/// A name in lower case, without the prefix that all names of its kind share.
fn named(names: &[(u32, &'static str)], name: &str) -> Value {
    let same = |one: &str, other: &str| {
        one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
    };
    let shared = names.iter().map(|(_, other)| same(name, other)).min().unwrap_or(0);
    let from = match names.len() {
        0 | 1 => name.find("_FLAG_").map_or(0, |at| at + "_FLAG_".len()),
        _ => name[..shared].rfind('_').map_or(0, |at| at + 1),
    };
    Value::Text(name[from..].to_ascii_lowercase())
}
/// A little-endian number of `SIZE` bytes; 0 if there are fewer.
fn number<const SIZE: usize>(bytes: &[u8]) -> u64 {
    let mut word = [0_u8; 8];
    match (word.get_mut(..SIZE), bytes.get(..SIZE)) {
        (Some(word), Some(bytes)) => word.copy_from_slice(bytes),
        _ => return 0,
    }
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[(u32, &str)] =
        &[(1, "UR_THING_FLAG_FIRST"), (2, "UR_THING_FLAG_SECOND"), (4, "UR_THING_FLAG_FAR_OUT")];

    #[test]
    fn numbers_and_flags_come_out_by_their_names() {
        assert_eq!(read(Kind::Flags(NAMES), &6_u32.to_le_bytes()).to_string(), "second, far_out");
        assert_eq!(read(Kind::Enum(NAMES), &1_u32.to_le_bytes()).to_string(), "first");
        assert_eq!(read(Kind::Enum(NAMES), &9_u32.to_le_bytes()), Value::Number(9));
        assert_eq!(read(Kind::Version, &12_u32.to_le_bytes()).to_string(), "0.12");
        assert_eq!(read(Kind::Truth, &[1]).to_string(), "yes");
    }
    #[test]
    fn an_answer_that_is_too_short_is_no_fault() {
        for kind in [Kind::U64, Kind::Enum(NAMES), Kind::Flags(NAMES), Kind::Truth] {
            read(kind, &[]);
        }
        assert_eq!(read(Kind::Array(&Kind::U64, 3), &[1, 2]).to_string(), "0, 0");
    }
    #[test]
    fn fields_are_an_object_in_json() {
        let value = Value::Fields(vec![("width", Value::Number(3)), ("is", Value::Truth(true))]);
        assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"width":3,"is":true}"#);
    }
}
