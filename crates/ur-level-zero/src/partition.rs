//! Sub-devices: the tiles of a device, which have driver handles, and slices, which are the engines of a
//! tile's compute group and share the tile's handle. The same sub-device is always the same object.
use super::{DriverDevice, device::Part, native::device as native};
use std::sync::Arc;
use ur_hal::{AffinityDomains as Domain, Error, ErrorKind, Partition, PartitionKind, Result};

/// The tiles of a device; most devices have none.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn parts(of: &Arc<DriverDevice>) -> Result<Vec<Arc<DriverDevice>>> {
    if let Some(known) = of.parts().get() {
        return Ok(known.clone());
    }
    let mut made = vec![];
    if of.engine().is_none() {
        for raw in native::parts(of.raw())? {
            let part = Part { parent: Arc::clone(of), engine: None };
            made.push(DriverDevice::new(raw, Arc::clone(of.platform()), Some(part))?);
        }
    }
    Ok(of.parts().get_or_init(|| made).clone())
}
/// The slices of a tile: one device for each engine of its compute group. None if there is only one engine.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn slices(of: &Arc<DriverDevice>) -> Result<Vec<Arc<DriverDevice>>> {
    if let Some(known) = of.slices().get() {
        return Ok(known.clone());
    }
    let engines = of.compute()?.engines;
    let mut made = vec![];
    if of.parent().is_some() && of.engine().is_none() && engines > 1 {
        for engine in 0..engines {
            let part = Part { parent: Arc::clone(of), engine: Some(engine) };
            made.push(DriverDevice::new(of.raw(), Arc::clone(of.platform()), Some(part))?);
        }
    }
    Ok(of.slices().get_or_init(|| made).clone())
}
/// The sub-devices by affinity domain.
fn by_domain(of: &Arc<DriverDevice>) -> Result<Vec<Arc<DriverDevice>>> {
    let tiles = parts(of)?;
    if tiles.is_empty() && super::options().slices_by_domain { slices(of) } else { Ok(tiles) }
}
/// The ways in which a device can be partitioned.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn supported(device: &Arc<DriverDevice>) -> Result<Vec<PartitionKind>> {
    if !by_domain(device)?.is_empty() {
        return Ok(vec![PartitionKind::ByDomain]);
    }
    Ok(match slices(device)?.is_empty() {
        true => vec![],
        false => vec![PartitionKind::BySlice],
    })
}
/// The number of sub-devices; 0 if it cannot be partitioned.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn count(device: &Arc<DriverDevice>) -> Result<u32> {
    let tiles = parts(device)?.len();
    Ok(if tiles != 0 { tiles } else { slices(device)?.len() } as u32)
}
/// The affinity domains by which a device can be partitioned.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn domains(device: &Arc<DriverDevice>) -> Result<Domain> {
    Ok(match by_domain(device)?.is_empty() {
        true => Domain::default(),
        false => Domain::NUMA | Domain::NEXT_PARTITIONABLE,
    })
}
/// How a sub-device came about; `None` for a root device.
pub(super) fn origin(device: &DriverDevice) -> Option<Partition> {
    device.parent().map(|_| match device.engine() {
        Some(_) => Partition::BySlice,
        None => Partition::ByDomain(Domain::NUMA),
    })
}
/// Partitions `device`.
///
/// # Errors
/// `DEVICE_PARTITION_FAILED` if it has none of that kind; `INVALID_VALUE` for rules and domains that no Level
/// Zero device supports.
pub(super) fn partition(
    device: &Arc<DriverDevice>,
    how: &Partition,
) -> Result<Vec<Arc<DriverDevice>>> {
    let parts = match how {
        Partition::ByDomain(domain)
            if *domain == Domain::NUMA || *domain == Domain::NEXT_PARTITIONABLE =>
        {
            by_domain(device)?
        }
        Partition::BySlice => slices(device)?,
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                "devices of Level Zero come apart by the domains NUMA and NEXT_PARTITIONABLE and by \
                 slices alone: ask SUPPORTED_PARTITIONS",
            ));
        }
    };
    match parts.is_empty() {
        true => Err(Error::new(
            ErrorKind::PartitionFailed,
            "this device has no such parts: ask SUPPORTED_PARTITIONS",
        )),
        false => Ok(parts),
    }
}
