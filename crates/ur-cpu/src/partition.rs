//! Sub-devices: which logical processors go into which. That kernels stay on them is the launch's
//! business; copies and fills run where there is room, as they wait for memory and not for a core.
use super::{
    device::DriverDevice,
    host::host,
    topology::{DOMAINS, topology},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    partition::Rule,
};
use ur_sys::{ur_device_affinity_domain_flags_t as Domain, ur_device_partition_t};

/// What makes a sub-device.
#[derive(Debug)]
pub(super) struct Part {
    /// The device that was partitioned, itself perhaps a part.
    pub(super) parent: Arc<DriverDevice>,
    /// Logical processors, by the kernel's numbers, ascending; never empty.
    pub(super) cpus: Vec<usize>,
    /// The rule it was made by, as C writes one: pairs of a `ur_device_partition_t` and its value.
    pub(super) rule: Vec<[u32; 2]>,
}

/// The processors that `device` consists of.
fn cpus(device: &DriverDevice) -> &[usize] {
    device.cpus().unwrap_or(&host().cpus)
}
/// What `device` has in common along each domain by which it comes apart.
fn domains(device: &DriverDevice) -> Result<Vec<(Domain, Vec<Vec<usize>>)>> {
    let topology = topology()?;
    let split = DOMAINS.into_iter().map(|domain| (domain, topology.split(cpus(device), domain)));
    Ok(split.filter(|(_, parts)| parts.len() > 1).collect())
}
/// The domains by which `device` comes apart, as `PARTITION_AFFINITY_DOMAIN` tells them.
///
/// # Errors
/// As for `topology`.
pub(super) fn affinity(device: &DriverDevice) -> Result<Domain> {
    let domains = domains(device)?;
    let all = domains.iter().fold(Domain::default(), |all, (domain, _)| all | *domain);
    Ok(if domains.is_empty() { all } else { all | Domain::NEXT_PARTITIONABLE })
}
/// The rules that apply to `device`; none if it has one processor.
///
/// # Errors
/// As for `topology`.
pub(super) fn supported(device: &DriverDevice) -> Result<Vec<u32>> {
    use ur_device_partition_t as P;
    Ok(match () {
        () if device.compute_units() < 2 => vec![],
        () if domains(device)?.is_empty() => vec![P::EQUALLY.0, P::BY_COUNTS.0],
        () => vec![P::EQUALLY.0, P::BY_COUNTS.0, P::BY_AFFINITY_DOMAIN.0],
    })
}
/// How many parts `device` can have at most: one for each processor, 0 if it cannot be partitioned.
pub(super) fn most_parts(device: &DriverDevice) -> u32 {
    match device.compute_units() {
        1 => 0,
        units => units as u32,
    }
}

/// Splits `device`. The same rule always gives the same parts, in the order of their processors, in
/// new objects.
///
/// # Errors
/// `DEVICE_PARTITION_FAILED` where nothing comes of the rule, `INVALID_DEVICE_PARTITION_COUNT` for
/// counts that add up to more than there is, `INVALID_VALUE` for a rule that no CPU has.
pub(super) fn partition(device: &Arc<DriverDevice>, rule: &Rule) -> Result<Vec<Arc<DriverDevice>>> {
    use ur_device_partition_t as P;
    let failed = |why: String| Err(Error::new(ErrorCode::DevicePartitionFailed, why));
    let cpus = cpus(device);
    let (parts, noted): (Vec<Vec<usize>>, _) = match rule {
        Rule::Equally(units) => {
            let parts = cpus.chunks_exact(*units as usize).map(<[_]>::to_vec).collect();
            (parts, vec![[P::EQUALLY.0, *units]])
        }
        Rule::ByCounts(counts) => {
            let noted = counts.iter().map(|n| [P::BY_COUNTS.0, *n]).collect();
            (by_counts(cpus, counts)?, noted)
        }
        Rule::ByAffinityDomain(wanted) => {
            let one = wanted.bits().is_power_of_two();
            if !one && !wanted.contains(Domain::NEXT_PARTITIONABLE) {
                return Err(Error::new(
                    ErrorCode::InvalidValue,
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
            (parts, vec![[P::BY_AFFINITY_DOMAIN.0, domain.bits()]])
        }
        Rule::ByCslice => {
            return Err(Error::new(
                ErrorCode::InvalidValue,
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
        let (parent, rule) = (Arc::clone(device), noted.clone());
        Arc::new(DriverDevice { part: Some(Part { parent, cpus, rule }) })
    };
    Ok(parts.into_iter().map(make).collect())
}
fn by_counts(cpus: &[usize], counts: &[u32]) -> Result<Vec<Vec<usize>>> {
    let wanted: usize = counts.iter().map(|n| *n as usize).fold(0, usize::saturating_add);
    if wanted > cpus.len() {
        return Err(Error::new(
            ErrorCode::InvalidDevicePartitionCount,
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
