//! Sub-devices: which logical processors each has. Launches keep kernels on these processors; copies and
//! fills run anywhere, because they are limited by memory, not by cores.
use super::{
    Cpu,
    device::DriverDevice,
    host::host,
    topology::{DOMAINS, topology},
};
use std::sync::Arc;
use ur_hal::{
    AffinityDomains as Domain, Error, ErrorKind, Partition, PartitionKind, PartitionsDevices,
    Result,
};

/// What makes a device a sub-device.
#[derive(Debug)]
pub(super) struct Part {
    /// The device that was partitioned, which may be a sub-device itself.
    pub(super) parent: Arc<DriverDevice>,
    /// Its logical processors, by the kernel's numbers, ascending; never empty.
    pub(super) cpus: Vec<usize>,
    /// How it came about; of affinity domains the one that was taken.
    pub(super) how: Partition,
}

/// The processors of `device`.
fn cpus(device: &DriverDevice) -> &[usize] {
    device.cpus().unwrap_or(&host().cpus)
}
/// The affinity domains by which `device` can be partitioned, with the processors of each part.
fn domains(device: &DriverDevice) -> Result<Vec<(Domain, Vec<Vec<usize>>)>> {
    let topology = topology()?;
    let split = DOMAINS.into_iter().map(|domain| (domain, topology.split(cpus(device), domain)));
    Ok(split.filter(|(_, parts)| parts.len() > 1).collect())
}
impl PartitionsDevices for Cpu {
    fn affinity_domains(device: &Arc<DriverDevice>) -> Result<Option<Domain>> {
        let domains = domains(device)?;
        let all = domains.iter().fold(Domain::default(), |all, (domain, _)| all | *domain);
        Ok(Some(if domains.is_empty() { all } else { all | Domain::NEXT_PARTITIONABLE }))
    }
    /// One for each processor.
    fn most_parts(device: &Arc<DriverDevice>) -> Result<Option<u32>> {
        Ok(Some(match device.compute_units() {
            1 => 0,
            units => units as u32,
        }))
    }
    fn partition_kinds(device: &Arc<DriverDevice>) -> Result<Vec<PartitionKind>> {
        use PartitionKind as P;
        Ok(match () {
            () if device.compute_units() < 2 => vec![],
            () if domains(device)?.is_empty() => vec![P::Equally, P::ByCounts],
            () => vec![P::Equally, P::ByCounts, P::ByDomain],
        })
    }
    fn partition_of(device: &Arc<DriverDevice>) -> Option<Partition> {
        device.part.as_ref().map(|part| part.how.clone())
    }
    /// The same rule always gives the same parts, in the order of their processors, as new objects.
    fn parts(device: &Arc<DriverDevice>, how: &Partition) -> Result<Vec<Arc<DriverDevice>>> {
        let failed = |why: String| Err(Error::new(ErrorKind::PartitionFailed, why));
        let cpus = cpus(device);
        let (parts, noted): (Vec<Vec<usize>>, _) = match how {
            Partition::Equally(units) => {
                let parts = cpus.chunks_exact(*units as usize).map(<[_]>::to_vec).collect();
                (parts, how.clone())
            }
            Partition::ByCounts(counts) => (by_counts(cpus, counts)?, how.clone()),
            Partition::ByDomain(wanted) => {
                let one = wanted.bits().is_power_of_two();
                if !one && !wanted.contains(Domain::NEXT_PARTITIONABLE) {
                    return Err(Error::new(
                        ErrorKind::InvalidValue,
                        "a device is partitioned by one affinity domain at a time",
                    ));
                }
                let next = *wanted == Domain::NEXT_PARTITIONABLE;
                let fits = |domain| next || wanted.contains(domain);
                let found = domains(device)?.into_iter().find(|(domain, _)| fits(*domain));
                let Some((domain, parts)) = found else {
                    return failed(format!(
                        "the processors of this device do not come apart by {wanted:?}: ask \
                     PARTITION_AFFINITY_DOMAIN by what they do"
                    ));
                };
                (parts, Partition::ByDomain(domain))
            }
            Partition::BySlice => {
                return Err(Error::new(
                    ErrorKind::InvalidValue,
                    "a CPU has no slices: ask SUPPORTED_PARTITIONS what it can be partitioned by",
                ));
            }
        };
        if parts.is_empty() {
            return failed(format!(
                "no part comes of it: this device has {} compute units",
                device.compute_units()
            ));
        }
        let make = |cpus| {
            let (parent, how) = (Arc::clone(device), noted.clone());
            Arc::new(DriverDevice { part: Some(Part { parent, cpus, how }) })
        };
        Ok(parts.into_iter().map(make).collect())
    }
}
fn by_counts(cpus: &[usize], counts: &[u32]) -> Result<Vec<Vec<usize>>> {
    let wanted: usize = counts.iter().map(|n| *n as usize).fold(0, usize::saturating_add);
    if wanted > cpus.len() {
        return Err(Error::new(
            ErrorKind::InvalidPartitionCount,
            format!("the counts add up to {wanted} compute units and there are {}", cpus.len()),
        ));
    }
    let mut rest = cpus;
    let mut parts = vec![];
    for &count in counts.iter().filter(|n| **n != 0) {
        let (part, others) = rest.split_at(count as usize);
        parts.push(part.to_vec());
        rest = others;
    }
    Ok(parts)
}
