//! The rules passed to `urDevicePartition`: read from the caller's list, and checked as far as that is possible without
//! the device. The adapter applies them.
#![expect(unsafe_code, reason = "reads C's list and its unions")]
use crate::{
    error::{Error, ErrorCode, Result},
    shim,
};
use ur_hal::{AffinityDomains, Partition};
use ur_sys::{
    ur_device_affinity_domain_flags_t, ur_device_partition_properties_t, ur_device_partition_t,
};

/// As `PARTITION_TYPE` answers how a part came about: pairs of a `ur_device_partition_t` and its value.
pub fn as_pairs(how: &Partition) -> Vec<[u32; 2]> {
    use ur_device_partition_t as P;
    match how {
        Partition::Equally(units) => vec![[P::EQUALLY.0, *units]],
        Partition::ByCounts(counts) => counts.iter().map(|n| [P::BY_COUNTS.0, *n]).collect(),
        Partition::ByDomain(domain) => vec![[P::BY_AFFINITY_DOMAIN.0, domain.bits()]],
        Partition::BySlice => vec![[P::BY_CSLICE.0, 0]],
    }
}

/// The rule that `properties` contains: a single one, or any number of counts.
///
/// # Errors
/// `INVALID_NULL_POINTER` without a list, `INVALID_ENUMERATION` for a rule or a domain that the ABI does not define,
/// `INVALID_VALUE` for an empty list, rules that cannot be combined, and parts without compute units or domains.
pub fn rule(properties: &ur_device_partition_properties_t) -> Result<Partition> {
    use ur_device_partition_t as P;
    let invalid = |why| Err(Error::new(ErrorCode::InvalidValue, why));
    shim::present(properties.pProperties)?;
    // SAFETY: the entry's contract, which its caller upholds: the list has `PropCount` elements.
    let list = unsafe { shim::data(properties.pProperties, properties.PropCount) }?;
    if list.iter().any(|p| p.r#type.name().is_none()) {
        return Err(ErrorCode::InvalidEnumeration.into());
    }
    let [first, rest @ ..] = list else {
        return invalid("a device is partitioned by one rule at least, and the list is empty");
    };
    if first.r#type == P::BY_COUNTS && rest.iter().all(|p| p.r#type == P::BY_COUNTS) {
        // SAFETY: every member of the union is a `u32`.
        return Ok(Partition::ByCounts(list.iter().map(|p| unsafe { p.value.count }).collect()));
    }
    if !rest.is_empty() {
        return invalid("only counts come in a list: every other rule stands alone");
    }
    Ok(match first.r#type {
        P::EQUALLY => {
            // SAFETY: as above.
            match unsafe { first.value.equally } {
                0 => {
                    return invalid(
                        "a part has one compute unit at least: EQUALLY with 0 has none",
                    );
                }
                units => Partition::Equally(units),
            }
        }
        P::BY_AFFINITY_DOMAIN => {
            // SAFETY: as above; flags are a transparent `u32`, for which every value is valid.
            let domain = unsafe { first.value.affinity_domain };
            if !ur_device_affinity_domain_flags_t::VALID.contains(domain) {
                return Err(ErrorCode::InvalidEnumeration.into());
            }
            if domain.bits() == 0 {
                return invalid("no affinity domain is named");
            }
            Partition::ByDomain(AffinityDomains::from_bits(domain.bits()))
        }
        _ => Partition::BySlice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};
    use ur_device_partition_t as P;
    use ur_sys::{
        ur_device_partition_property_t, ur_device_partition_value_t, ur_structure_type_t,
    };

    fn read(list: &[(P, u32)]) -> Result<Partition> {
        let value = |count| ur_device_partition_value_t { count };
        let list: Vec<_> = list
            .iter()
            .map(|&(r#type, n)| ur_device_partition_property_t { r#type, value: value(n) })
            .collect();
        rule(&ur_device_partition_properties_t {
            stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
            pNext: null_mut(),
            pProperties: list.as_ptr(),
            PropCount: list.len(),
        })
    }
    #[test]
    fn one_rule_or_many_counts_are_read() {
        assert_eq!(read(&[(P::EQUALLY, 3)]).unwrap(), Partition::Equally(3));
        let counts = read(&[(P::BY_COUNTS, 3), (P::BY_COUNTS, 0), (P::BY_COUNTS, 1)]).unwrap();
        assert_eq!(counts, Partition::ByCounts(vec![3, 0, 1]));
        let numa = ur_device_affinity_domain_flags_t::NUMA;
        let domain = read(&[(P::BY_AFFINITY_DOMAIN, numa.bits())]).unwrap();
        assert_eq!(domain, Partition::ByDomain(AffinityDomains::NUMA));
        assert_eq!(read(&[(P::BY_CSLICE, 0)]).unwrap(), Partition::BySlice);
    }
    #[test]
    fn what_says_nothing_or_two_things_is_refused() {
        use ErrorCode as E;
        for (list, code) in [
            (&[][..], E::InvalidValue),
            (&[(P::EQUALLY, 0)], E::InvalidValue),
            (&[(P::BY_AFFINITY_DOMAIN, 0)], E::InvalidValue),
            (&[(P::BY_AFFINITY_DOMAIN, 1 << 20)], E::InvalidEnumeration),
            (&[(P(7), 1)], E::InvalidEnumeration),
            (&[(P::BY_COUNTS, 1), (P(7), 1)], E::InvalidEnumeration),
            (&[(P::EQUALLY, 1), (P::EQUALLY, 1)], E::InvalidValue),
            (&[(P::BY_COUNTS, 1), (P::EQUALLY, 1)], E::InvalidValue),
            (&[(P::EQUALLY, 1), (P::BY_COUNTS, 1)], E::InvalidValue),
        ] {
            assert_eq!(read(list).unwrap_err().code(), code, "{list:?}");
        }
        let nowhere = ur_device_partition_properties_t {
            stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
            pNext: null_mut(),
            pProperties: null(),
            PropCount: 0,
        };
        assert_eq!(rule(&nowhere).unwrap_err().code(), E::InvalidNullPointer);
    }
}
