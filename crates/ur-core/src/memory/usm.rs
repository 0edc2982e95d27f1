//! What C says of the USM that it asks for: hints, alignments, rows, and what pools are to be like.
use ur_adapter::{
    chain,
    error::{Error, ErrorCode, Result},
    pool::Limits,
};
use ur_hal::greatest_common_divisor;
use ur_sys::{
    ur_usm_desc_t, ur_usm_device_desc_t, ur_usm_host_desc_t, ur_usm_pool_desc_t,
    ur_usm_pool_limits_desc_t,
};

/// What a descriptor hangs on its chain: flags for one kind of memory. All of them are hints, but
/// none may be unknown. Where memory lies (`ur_usm_alloc_location_desc_t`) is a hint too: there is
/// one memory.
///
/// # Errors
/// `INVALID_ENUMERATION` for flags that there are not; `INVALID_VALUE` for a chain that does not end.
pub fn check_hints(desc: &ur_usm_desc_t) -> Result<()> {
    let unknown = desc.hints.unknown_bits()
        | chain::extension::<ur_usm_host_desc_t>(desc)?.map_or(0, |d| d.flags.unknown_bits())
        | chain::extension::<ur_usm_device_desc_t>(desc)?.map_or(0, |d| d.flags.unknown_bits());
    match unknown {
        0 => Ok(()),
        bits => Err(Error::new(
            ErrorCode::InvalidEnumeration,
            format!("a descriptor of USM has flags that there are not: {bits:#x}"),
        )),
    }
}
/// The alignment that memory gets if C asks for `align`: `natural` for 0, and never more than `most`.
///
/// # Errors
/// `INVALID_VALUE` for what is no power of two, and for more.
pub fn alignment(align: usize, natural: usize, most: usize) -> Result<usize> {
    match align {
        0 => Ok(natural),
        align if align.is_power_of_two() && align <= most => Ok(align),
        align => {
            let why = format!("an alignment of {align} is no power of two up to {most}");
            Err(Error::new(ErrorCode::InvalidValue, why))
        }
    }
}
/// How far apart rows of so many bytes lie, and how many bytes all of them take: each starts where any
/// type can, at a multiple of `start`, and the pitch is a whole number of elements.
///
/// # Errors
/// `INVALID_USM_SIZE` for more than there are addresses for.
pub fn rows(start: usize, element: usize, width: usize, height: usize) -> Result<(usize, usize)> {
    let unit = lcm(start, element.max(1));
    let pitch = unit.and_then(|unit| width.checked_next_multiple_of(unit));
    let size = pitch.and_then(|pitch| pitch.checked_mul(height));
    let none = || Error::new(ErrorCode::InvalidUsmSize, "no memory has as many rows");
    pitch.zip(size).ok_or_else(none)
}
/// The least common multiple, if there is one.
fn lcm(one: usize, other: usize) -> Option<usize> {
    (one / greatest_common_divisor(one, other)).checked_mul(other)
}
/// What blocks of a pool are cut from, as C describes it.
///
/// # Errors
/// `INVALID_VALUE` for a chain that does not end.
pub fn limits(desc: &ur_usm_pool_desc_t) -> Result<Limits> {
    let mut limits = Limits::default();
    if let Some(wished) = chain::extension::<ur_usm_pool_limits_desc_t>(desc)? {
        limits.poolable = wished.maxPoolableSize;
        limits.chunk = wished.minDriverAllocSize.max(1);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_start_where_any_type_can_and_at_whole_elements() {
        assert_eq!(rows(512, 4, 100, 3).unwrap(), (512, 1536));
        assert_eq!(rows(512, 12, 100, 2).unwrap(), (1536, 3072));
        assert_eq!(rows(512, 0, 513, 1).unwrap(), (1024, 1024));
        for (element, width, height) in [(1, usize::MAX, 1), (1, 1, usize::MAX), (usize::MAX, 1, 1)]
        {
            let refused = rows(512, element, width, height).map_err(|error| error.code());
            assert_eq!(refused, Err(ErrorCode::InvalidUsmSize));
        }
    }
    #[test]
    fn an_alignment_is_a_power_of_two_that_memory_can_have() {
        assert_eq!(alignment(0, 128, 4096).unwrap(), 128);
        assert_eq!(alignment(4096, 128, 4096).unwrap(), 4096);
        for align in [3, 8192] {
            let refused = alignment(align, 128, 4096).map_err(|error| error.code());
            assert_eq!(refused, Err(ErrorCode::InvalidValue));
        }
    }
}
