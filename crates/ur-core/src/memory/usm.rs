//! Checks of USM requests: hints, alignments, pitches of rows, and limits of pools.
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

/// Checks the flags in a USM descriptor and its chain. All of them are hints, but unknown flags are refused. The
/// location (`ur_usm_alloc_location_desc_t`) is ignored, as a hint too: a device has one memory.
///
/// # Errors
/// `INVALID_ENUMERATION` for unknown flags; `INVALID_VALUE` for a chain that does not end.
pub fn check_hints(desc: &ur_usm_desc_t) -> Result<()> {
    let unknown = desc.hints.unknown_bits()
        | chain::extension::<ur_usm_host_desc_t>(desc)?.map_or(0, |d| d.flags.unknown_bits())
        | chain::extension::<ur_usm_device_desc_t>(desc)?.map_or(0, |d| d.flags.unknown_bits());
    match unknown {
        0 => Ok(()),
        bits => Error::refuse(
            ErrorCode::InvalidEnumeration,
            format!("a USM descriptor has unknown flags: {bits:#x}"),
        ),
    }
}
/// The alignment for a request of `align` bytes: `natural` for 0, and at most `most`.
///
/// # Errors
/// `INVALID_VALUE` unless it is 0 or a power of two up to `most`.
pub fn alignment(align: usize, natural: usize, most: usize) -> Result<usize> {
    match align {
        0 => Ok(natural),
        align if align.is_power_of_two() && align <= most => Ok(align),
        align => {
            let why = format!("an alignment of {align} is no power of two up to {most}");
            Error::refuse(ErrorCode::InvalidValue, why)
        }
    }
}
/// The pitch of rows of `width` bytes, and the size of all of them, in bytes. The pitch is a multiple of `start`, so
/// that every row begins at an address suitable for any type, and of the element size.
///
/// # Errors
/// `INVALID_USM_SIZE` if the size does not fit `usize`.
pub fn rows(start: usize, element: usize, width: usize, height: usize) -> Result<(usize, usize)> {
    let unit = lcm(start, element.max(1));
    let pitch = unit.and_then(|unit| width.checked_next_multiple_of(unit));
    let size = pitch.and_then(|pitch| pitch.checked_mul(height));
    let none = || Error::new(ErrorCode::InvalidUsmSize, "the rows exceed the address space");
    pitch.zip(size).ok_or_else(none)
}
/// The least common multiple; `None` if it does not fit `usize`.
fn lcm(one: usize, other: usize) -> Option<usize> {
    (one / greatest_common_divisor(one, other)).checked_mul(other)
}
/// The limits in the descriptor of a pool.
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
