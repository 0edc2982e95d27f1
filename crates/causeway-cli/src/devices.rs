//! `causeway devices`: a table or JSON; and the devices that numbers on the command line select.
use crate::{
    args,
    failure::{Failure, Result},
    units,
};
use causeway::{Backend, Context, Device, DeviceInfo};
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct Numbered {
    device: usize,
    #[serde(flatten)]
    info: DeviceInfo,
}

/// Lists the devices.
pub fn run(args: &args::Devices) -> Result<()> {
    let mut devices = Vec::new();
    let all = Device::all()?;
    for device in numbers(args.backend)? {
        devices.push(Numbered { device, info: all[device].info()? });
    }
    tell_of_selector();
    let text = if args.json {
        serde_json::to_string_pretty(&devices)
            .map_err(|error| Failure::said(format!("could not write JSON: {error}")))?
            + "\n"
    } else if devices.is_empty() {
        return Err(nothing(args.backend));
    } else {
        table(&devices)
    };
    let mut stdout = anstream::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}

const HEADS: [&str; 7] = ["#", "DEVICE", "KIND", "UNITS", "MEMORY", "CLOCK", "SHARES"];

fn table(devices: &[Numbered]) -> String {
    let rows: Vec<[String; 7]> = devices.iter().map(row).collect();
    let mut widths = HEADS.map(|head| head.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; 7]| {
        let cells: Vec<_> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(HEADS);
    for (row, device) in rows.iter().zip(devices) {
        let info = &device.info;
        text += &line(row.each_ref().map(String::as_str));
        let (indent, driver) = ("", &info.driver_version);
        let (width, vendor) = (widths[0], &info.vendor);
        text += &format!("{indent:width$}  {vendor}, driver {driver}, through {}\n", info.backend);
    }
    text
}

fn row(device: &Numbered) -> [String; 7] {
    let info = &device.info;
    let clock = match info.max_clock_mhz {
        0 => "-".to_owned(),
        mhz => format!("{:.2} GHz", f64::from(mhz) / 1000.0),
    };
    let shares = [
        (info.shares_memory, "memory"),
        (info.shares_physical_memory, "physical memory"),
        (info.shares_events, "events"),
    ];
    let shares: Vec<_> = shares.iter().filter(|(can, _)| *can).map(|(_, what)| *what).collect();
    let shares = if shares.is_empty() { "nothing".to_owned() } else { shares.join(", ") };
    let (name, kind) = (info.name.trim().to_owned(), info.kind.to_string());
    let (units, memory) = (info.compute_units.to_string(), units::bytes(info.global_memory));
    [device.device.to_string(), name, kind, units, memory, clock, shares]
}

/// Returns the device numbers that belong to a backend; all numbers if none is given.
pub fn numbers(backend: Option<Backend>) -> Result<Vec<usize>> {
    let mut numbers = vec![];
    for (number, device) in Device::all()?.iter().enumerate() {
        if backend.is_none_or(|wanted| device.platform().and_then(|p| p.backend()) == Ok(wanted)) {
            numbers.push(number);
        }
    }
    Ok(numbers)
}
/// The failure for a backend without devices, or for no devices at all.
pub fn nothing(backend: Option<Backend>) -> Failure {
    let absent = match backend {
        Some(backend) => Device::first_with(backend),
        None => Device::first(),
    };
    absent.map_or_else(Failure::from, |_| Failure::said("no device was found"))
}
/// Tells the user that `ONEAPI_DEVICE_SELECTOR` may hide devices.
pub fn tell_of_selector() {
    if let Ok(selector) = std::env::var("ONEAPI_DEVICE_SELECTOR")
        && !selector.is_empty()
    {
        // Information beside the result: a failure to write it is ignored.
        let _ = writeln!(
            anstream::stderr(),
            "only devices that ONEAPI_DEVICE_SELECTOR={selector} selects are seen; unset it to see all"
        );
    }
}
/// Returns the device number that the command line selects.
pub fn number(on: args::On) -> Result<usize> {
    let numbers = numbers(on.backend)?;
    numbers.get(on.device).copied().ok_or_else(|| match (on.backend, numbers.len()) {
        (backend, 0) => nothing(backend),
        (Some(backend), count) => {
            let device = on.device;
            Failure::said(format!("there is no device {device} among the {count} of {backend}"))
        }
        (None, count) => Failure::said(format!(
            "there is no device {}: `causeway devices` lists the {count} there are",
            on.device
        )),
    })
}
/// Creates a context for the device that the command line selects.
pub fn context_on(on: args::On) -> Result<Context> {
    context(number(on)?)
}
/// Creates a context for the device with this number.
pub fn context(number: usize) -> Result<Context> {
    let devices = Device::all()?;
    let Some(device) = devices.get(number) else {
        let sentence = format!(
            "there is no device {number}: `causeway devices` lists the {} there are",
            devices.len()
        );
        return Err(Failure::said(sentence));
    };
    Ok(Context::new(device)?)
}
