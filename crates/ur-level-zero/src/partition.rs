//! Sub-devices: the tiles of a device, which have driver handles, and slices, which are the engines of a
//! tile's compute group and share the tile's handle. The same sub-device is always the same object.
use super::{DriverDevice, LevelZero, device::Part, native::device as native};
use std::sync::Arc;
use ur_hal::{
    AffinityDomains as Domain, Error, ErrorKind, Partition, PartitionKind, PartitionsDevices,
    Result,
};
use ur_lock::get_or_try;

/// The tiles of a device; most devices have none.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn parts(of: &Arc<DriverDevice>) -> Result<Vec<Arc<DriverDevice>>> {
    let make = |raw| {
        let part = Part { parent: Arc::clone(of), engine: None };
        DriverDevice::new(raw, Arc::clone(of.platform()), Some(part))
    };
    let parts = get_or_try(of.parts(), || match of.engine() {
        Some(_) => Ok(vec![]),
        None => native::parts(of.raw())?.into_iter().map(make).collect(),
    });
    parts.cloned()
}
/// The slices of a tile: one device for each engine of its compute group. None if there is only one engine.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn slices(of: &Arc<DriverDevice>) -> Result<Vec<Arc<DriverDevice>>> {
    let make = |engine| {
        let part = Part { parent: Arc::clone(of), engine: Some(engine) };
        DriverDevice::new(of.raw(), Arc::clone(of.platform()), Some(part))
    };
    let slices = get_or_try(of.slices(), || match of.compute()?.engines {
        engines if of.parent().is_some() && of.engine().is_none() && engines > 1 => {
            (0..engines).map(make).collect()
        }
        _ => Ok(vec![]),
    });
    slices.cloned()
}
/// The sub-devices by affinity domain.
fn by_domain(of: &Arc<DriverDevice>) -> Result<Vec<Arc<DriverDevice>>> {
    let tiles = parts(of)?;
    if tiles.is_empty() && super::options().slices_by_domain { slices(of) } else { Ok(tiles) }
}
impl PartitionsDevices for LevelZero {
    fn affinity_domains(device: &Arc<DriverDevice>) -> Result<Option<Domain>> {
        Ok(Some(match by_domain(device)?.is_empty() {
            true => Domain::default(),
            false => Domain::NUMA | Domain::NEXT_PARTITIONABLE,
        }))
    }
    fn most_parts(device: &Arc<DriverDevice>) -> Result<Option<u32>> {
        let tiles = parts(device)?.len();
        Ok(Some(if tiles != 0 { tiles } else { slices(device)?.len() } as u32))
    }
    fn partition_kinds(device: &Arc<DriverDevice>) -> Result<Vec<PartitionKind>> {
        Ok(match () {
            () if !by_domain(device)?.is_empty() => vec![PartitionKind::ByDomain],
            () if !slices(device)?.is_empty() => vec![PartitionKind::BySlice],
            () => vec![],
        })
    }
    fn partition_of(device: &Arc<DriverDevice>) -> Option<Partition> {
        device.parent().map(|_| match device.engine() {
            Some(_) => Partition::BySlice,
            None => Partition::ByDomain(Domain::NUMA),
        })
    }
    fn parts(device: &Arc<DriverDevice>, how: &Partition) -> Result<Vec<Arc<DriverDevice>>> {
        let parts = match how {
            Partition::ByDomain(Domain::NUMA | Domain::NEXT_PARTITIONABLE) => by_domain(device)?,
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
    /// Empty if they cannot be queried: callers cannot have a handle of one either.
    fn parts_with_handles(device: &Arc<DriverDevice>) -> Vec<Arc<DriverDevice>> {
        parts(device).unwrap_or_default()
    }
}
