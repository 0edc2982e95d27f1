//! Checks of the ranges, rows and patterns of commands against the rules of `ur_hal` and the backend's allocations. For
//! memory that the backend did not allocate, the caller is responsible.
use super::allocations::{Allocated, find, is_read_only, room};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::HostBytes,
};
use ur_hal::{Access, Address, Pattern, PatternLength, Range, Rows};

fn refused<T>(why: String) -> Result<T> {
    Error::refuse(ErrorCode::InvalidSize, why)
}

/// The range of a command that accesses it as `needs` states.
///
/// # Errors
/// `INVALID_SIZE` for 0 bytes, and for a range that is only partly inside an allocation; the errors of
/// [`Allocated::check_elsewhere`].
#[inline]
pub fn check_range<A: Allocated>(
    at: impl Into<Address>,
    bytes: usize,
    needs: Access,
) -> Result<Range> {
    let range = Range::new(at.into(), bytes)?;
    check::<A>(range, needs).map(|()| range)
}
#[inline]
fn check<A: Allocated>(range: Range, needs: Access) -> Result<()> {
    match room::<A>(range) {
        Ok(true) if needs == Access::ReadWrite && is_read_only::<A>(range) => {
            let at = range.start();
            Error::refuse(
                ErrorCode::InvalidValue,
                format!(
                    "{at:?} is memory of another process that may only be read: copy it to write"
                ),
            )
        }
        Ok(true) => Ok(()),
        Ok(false) => A::check_elsewhere(range, needs),
        Err(left) => {
            let (at, bytes) = (range.start(), range.bytes());
            refused(format!(
                "{bytes} bytes from {at:?} on are not within one allocation: it ends, or the next \
                 one begins, {left} bytes from there"
            ))
        }
    }
}
/// Checks `height` rows of `width` bytes, `pitch` bytes apart.
///
/// # Errors
/// `INVALID_SIZE` for rows longer than their pitch, and for more bytes than the allocation has; as for [`check_range`].
pub fn check_rows<A: Allocated>(
    rows: Rows,
    (width, height): (usize, usize),
    needs: Access,
) -> Result<()> {
    let span = rows.span(width, height)?;
    let pitch = rows.pitch;
    let whole = pitch * height; // no overflow: `span` has checked it
    match find::<A>(rows.start.into()).map(|found| found.bytes()).filter(|has| whole > *has) {
        Some(has) => refused(format!(
            "{height} rows, {pitch} bytes apart, exceed the allocation's {has} bytes"
        )),
        None => check::<A>(span, needs),
    }
}
/// The pattern of a command that fills `total` bytes.
///
/// # Errors
/// `INVALID_SIZE` unless the pattern has 1 to `total` bytes and `total` is a multiple of its length.
pub fn pattern_of(bytes: HostBytes<'_>, total: usize) -> Result<Pattern<'_>> {
    let length = PatternLength::new(bytes.len(), total)?; // checked before the bytes are read
    Ok(length.of(bytes.at_most(total).ok_or(ErrorCode::InvalidSize)?))
}
