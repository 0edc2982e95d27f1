//! Flags, sizes and ranges of memory objects.
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::{ur_buffer_region_t, ur_mem_flags_t};

/// Checks that flags do not contradict each other.
///
/// # Errors
/// `INVALID_VALUE` if they do.
pub fn check_flags(flags: ur_mem_flags_t) -> Result<()> {
    use ur_mem_flags_t as F;
    let refused = |why| Error::refuse(ErrorCode::InvalidValue, why);
    let access = [F::READ_WRITE, F::WRITE_ONLY, F::READ_ONLY];
    if access.into_iter().filter(|&one| flags.contains(one)).count() > 1 {
        return refused(
            "READ_WRITE, WRITE_ONLY and READ_ONLY exclude each other: pass one of them",
        );
    }
    if flags.contains(F::USE_HOST_POINTER)
        && flags.intersects(F::ALLOC_HOST_POINTER | F::ALLOC_COPY_HOST_POINTER)
    {
        return refused(
            "USE_HOST_POINTER uses memory of the caller: it goes with no flag that allocates",
        );
    }
    Ok(())
}
/// Checks that a range is inside a buffer of `has` bytes.
///
/// # Errors
/// `INVALID_SIZE` for 0 bytes, and for a range that is not completely inside.
pub fn check_range(has: usize, offset: usize, size: usize) -> Result<()> {
    match size > 0 && ends_within(has, offset, size) {
        true => Ok(()),
        false => Err(outside(ErrorCode::InvalidSize, has, offset, size)),
    }
}
/// Checks that a sub-buffer is inside a buffer of `has` bytes.
///
/// # Errors
/// `INVALID_BUFFER_SIZE` if it is not completely inside.
pub fn check_part(has: usize, part: &ur_buffer_region_t) -> Result<()> {
    match ends_within(has, part.origin, part.size) {
        true => Ok(()),
        false => Err(outside(ErrorCode::InvalidBufferSize, has, part.origin, part.size)),
    }
}
fn ends_within(has: usize, offset: usize, size: usize) -> bool {
    offset.checked_add(size).is_some_and(|end| end <= has)
}
fn outside(code: ErrorCode, has: usize, offset: usize, size: usize) -> Error {
    Error::new(code, format!("{size} bytes from {offset} on are not in a buffer of {has} bytes"))
}
/// The flags of a sub-buffer: it has the access of its buffer, unless its own flags restrict it.
///
/// # Errors
/// `INVALID_VALUE` for access that the buffer does not allow, and for flags that say where the bytes are: a
/// sub-buffer's bytes are its buffer's.
pub fn of_part(whole: ur_mem_flags_t, part: ur_mem_flags_t) -> Result<ur_mem_flags_t> {
    use ur_mem_flags_t as F;
    check_flags(part)?;
    let refused = |why| Error::refuse(ErrorCode::InvalidValue, why);
    if part.intersects(F::USE_HOST_POINTER | F::ALLOC_HOST_POINTER | F::ALLOC_COPY_HOST_POINTER) {
        return refused(
            "the bytes of a sub-buffer are its buffer's: leave the host pointer flags out",
        );
    }
    let access = F::READ_WRITE | F::WRITE_ONLY | F::READ_ONLY;
    if !part.intersects(access) {
        return Ok(part | F(whole.bits() & access.bits()));
    }
    let forbidden = match () {
        () if whole.contains(F::READ_ONLY) => F::READ_WRITE | F::WRITE_ONLY,
        () if whole.contains(F::WRITE_ONLY) => F::READ_WRITE | F::READ_ONLY,
        () => F::default(),
    };
    match part.intersects(forbidden) {
        true => refused("a part cannot be accessed in a way in which its buffer cannot"),
        false => Ok(part),
    }
}
