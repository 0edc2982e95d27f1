//! `causeway info`: all platforms and devices with all their properties, and what can be shared; as a table,
//! or as JSON.
use crate::{
    args, devices,
    failure::{Failure, Result},
    units,
};
use causeway::{Backend, Device, Platform, Property, Value};
use serde::{Serialize, Serializer};
use std::{fmt::Write as _, io::Write};

#[derive(Serialize)]
struct OfPlatform {
    platform: usize,
    name: String,
    backend: Backend,
    #[serde(serialize_with = "by_name")]
    properties: Vec<Property>,
    devices: Vec<OfDevice>,
}
#[derive(Serialize)]
struct OfDevice {
    /// The number in `causeway devices`.
    device: usize,
    name: String,
    sharing: Sharing,
    #[serde(serialize_with = "by_name")]
    properties: Vec<Property>,
}
/// What can be shared with other processes.
#[derive(Serialize)]
struct Sharing {
    memory: bool,
    physical_memory: bool,
    events: bool,
}

fn by_name<S: Serializer>(all: &[Property], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_map(all.iter().map(|property| (&property.name, &property.value)))
}

/// Prints the platforms and devices.
pub fn run(args: &args::Info) -> Result<()> {
    let chosen = match args.device {
        Some(device) => vec![devices::number(args::On { device, backend: args.backend })?],
        None => devices::numbers(args.backend)?,
    };
    let platforms = gather(&chosen, args.device.is_none() && args.backend.is_none())?;
    devices::tell_of_selector();
    let text = if args.json {
        serde_json::to_string_pretty(&platforms)
            .map_err(|error| Failure::said(format!("could not write JSON: {error}")))?
            + "\n"
    } else if platforms.is_empty() {
        return Err(devices::nothing(args.backend));
    } else {
        platforms.iter().map(table).collect::<Vec<_>>().join("\n")
    };
    let mut stdout = anstream::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Queries the devices with these numbers, and their platforms; with `all`, also platforms without devices.
fn gather(chosen: &[usize], all: bool) -> Result<Vec<OfPlatform>> {
    let found = Device::all()?;
    let mut platforms = Vec::new();
    for (number, platform) in Platform::all()?.into_iter().enumerate() {
        let mut devices = Vec::new();
        for &device in chosen {
            if platform.devices().contains(&found[device]) {
                devices.push(of_device(device, found[device])?);
            }
        }
        if all || !devices.is_empty() {
            platforms.push(OfPlatform {
                platform: number,
                name: platform.name()?,
                backend: platform.backend()?,
                properties: platform.properties()?,
                devices,
            });
        }
    }
    Ok(platforms)
}
fn of_device(device: usize, found: Device) -> Result<OfDevice> {
    Ok(OfDevice {
        device,
        name: found.name()?.trim().to_owned(),
        sharing: Sharing {
            memory: found.shares_memory()?,
            physical_memory: found.shares_physical_memory()?,
            events: found.shares_events()?,
        },
        properties: found.properties()?,
    })
}

/// Formats a platform as a table.
fn table(platform: &OfPlatform) -> String {
    let mut text = format!(
        "Platform {}: {} (through {})\n",
        platform.platform, platform.name, platform.backend
    );
    rows(&mut text, "  ", &platform.properties);
    for device in &platform.devices {
        let _ = write!(text, "\n  Device {}: {}\n", device.device, device.name);
        for sentence in device.sharing.sentences() {
            let _ = writeln!(text, "    {sentence}");
        }
        text.push('\n');
        rows(&mut text, "    ", &device.properties);
    }
    text
}
fn rows(text: &mut String, indent: &str, properties: &[Property]) {
    let width = properties.iter().map(|p| p.name.chars().count()).max().unwrap_or(0);
    for property in properties {
        let row = format!("{indent}{:width$}  {}", property.name, shown(property));
        let _ = writeln!(text, "{}", row.trim_end());
    }
}
/// Formats a value; sizes also in larger units.
fn shown(property: &Property) -> String {
    let of_bytes = ["mem_", "cache_size", "parameter_size", "constant_buffer_size"];
    let bytes = of_bytes.iter().any(|part| property.name.contains(part));
    match &property.value {
        Value::Number(size) if bytes && *size >= 4096 => {
            format!("{size} ({})", units::bytes(*size))
        }
        value => match value.to_string().trim() {
            "" => "none".into(),
            text => text.into(),
        },
    }
}

impl Sharing {
    /// One sentence for each kind of sharing.
    fn sentences(&self) -> [String; 3] {
        let one = |can: bool, what: &str, can_be: &str, cannot: &str| match can {
            true => format!("{what}: shared with other processes: {can_be}."),
            false => format!("{what}: not shared with other processes: {cannot}."),
        };
        [
            one(
                self.memory,
                "Memory",
                "one exports an allocation as a ticket, others open it and work on the same bytes",
                "copy through files, pipes or shared host memory instead",
            ),
            one(
                self.physical_memory,
                "Physical memory",
                "others open it by a ticket and map it where they like, or in parts",
                "share allocations, if the line above says that they can be",
            ),
            one(
                self.events,
                "Events",
                "one signals, commands of others wait on their devices, again and again",
                "wait on the host, and tell the other process by a pipe or socket",
            ),
        ]
    }
}
