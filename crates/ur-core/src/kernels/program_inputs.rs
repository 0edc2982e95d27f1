//! Inputs of programs and kernels that callers pass through pointers: binaries, metadata, and small values. Metadata
//! and constants are copied; binaries are borrowed for the duration of the entry. Their meaning is handled in
//! `program/`.
#![expect(unsafe_code, reason = "reads what C points at")]
use super::{
    metadata::{Entry, Value},
    spirv::Constants,
};
use std::ffi::CStr;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_sys::{
    ur_device_binary_t, ur_program_metadata_type_t, ur_program_properties_t,
    ur_specialization_constant_info_t,
};

/// The largest size of one metadata entry in bytes. The longest are names of device globals.
const LONGEST: usize = 1 << 20;

/// The bytes of a binary that the caller passes.
///
/// # Errors
/// `INVALID_NULL_POINTER`; `INVALID_SIZE` for 0 bytes, and for more than `isize::MAX`.
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "C's promise, given at the entry")]
pub fn bytes<'call>(at: *const u8, length: usize) -> Result<&'call [u8]> {
    if at.is_null() {
        return Err(ErrorCode::InvalidNullPointer.into());
    }
    if length == 0 || length > isize::MAX as usize {
        return Error::refuse(ErrorCode::InvalidSize, format!("{length} bytes are no binary"));
    }
    // SAFETY: UR requires the caller to pass an address with this many readable bytes, valid during the entry.
    Ok(unsafe { std::slice::from_raw_parts(at, length) })
}
/// The metadata that the caller passes with a program.
///
/// # Errors
/// `INVALID_VALUE` for an entry without a name, of an unknown type, or longer than 1 MiB.
pub fn metadata(properties: Option<&ur_program_properties_t>) -> Result<Vec<Entry>> {
    use ur_program_metadata_type_t as T;
    let Some(properties) = properties.filter(|p| p.count > 0 && !p.pMetadatas.is_null()) else {
        return Ok(vec![]);
    };
    // SAFETY: UR requires the caller to pass `count` entries at this address, which is not null.
    let all =
        unsafe { std::slice::from_raw_parts(properties.pMetadatas, properties.count as usize) };
    let refused = |why: &'static str| Error::refuse(ErrorCode::InvalidValue, why);
    let one = |entry: &ur_sys::ur_program_metadata_t| {
        if entry.pName.is_null() {
            return refused("a metadata entry of the program has no name");
        }
        // SAFETY: UR requires the name to be a string that ends with a zero byte; it is not null.
        let name = unsafe { CStr::from_ptr(entry.pName) }.to_bytes().to_vec();
        let value = match entry.r#type {
            // SAFETY: the type of the entry selects this member.
            T::UINT32 => Value::Word(unsafe { entry.value.data32 }),
            // SAFETY: the type of the entry selects this member.
            T::UINT64 => Value::Long(unsafe { entry.value.data64 }),
            T::BYTE_ARRAY | T::STRING => {
                // SAFETY: both types select a member that is one pointer.
                let at = unsafe { entry.value.pData }.cast::<u8>();
                if at.is_null() || entry.size > LONGEST {
                    return refused("a metadata entry of the program has no bytes, or too many");
                }
                // SAFETY: UR requires `size` bytes to be readable at this address, which is not null.
                let bytes = unsafe { std::slice::from_raw_parts(at, entry.size) }.to_vec();
                if entry.r#type == T::STRING { Value::Text(bytes) } else { Value::Bytes(bytes) }
            }
            _ => return refused("a metadata entry of the program has an unknown type"),
        };
        Ok((name, value))
    };
    all.iter().map(one).collect()
}
/// The id and the value of a specialization constant; `known` are the constants of the program.
///
/// # Errors
/// `INVALID_SPEC_ID` for an id that the program does not have; `INVALID_VALUE` for a missing value, and for one whose
/// size is not the constant's.
pub fn constant(
    one: &ur_specialization_constant_info_t,
    known: &Constants,
) -> Result<(u32, Vec<u8>)> {
    let refused = |code, why: String| Error::refuse(code, why);
    let Some(&bytes) = known.get(&one.id) else {
        let why = format!("the program has no specialization constant {}", one.id);
        return refused(ErrorCode::InvalidSpecId, why);
    };
    if one.pValue.is_null() || one.size == 0 || (bytes != 0 && one.size != bytes) {
        let why = format!(
            "specialization constant {} has {bytes} bytes, and {} at {:p} are given",
            one.id, one.size, one.pValue
        );
        return refused(ErrorCode::InvalidValue, why);
    }
    // SAFETY: UR requires `size` bytes to be readable at this address, which is not null.
    let value = unsafe { std::slice::from_raw_parts(one.pValue.cast::<u8>(), one.size) };
    Ok((one.id, value.to_vec()))
}
/// The name of a binary's target.
pub fn target(binary: &ur_device_binary_t) -> Option<&CStr> {
    let name = binary.pDeviceTargetSpec;
    // SAFETY: UR requires the name to be a string that ends with a zero byte; it is not null.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}
/// Reads a byte at an address where the caller has stated that there is one.
pub fn byte(at: UsmPtr) -> u8 {
    // SAFETY: the caller of the entry passed the address with a size of at least one byte, which UR requires to be
    // readable.
    unsafe { at.as_ptr().cast::<u8>().read() }
}
/// Reads a 32-bit number at an address where the caller has stated that there are 4 bytes.
pub fn word(at: UsmPtr) -> u32 {
    // SAFETY: the caller of the entry passed the address with a size of 4 bytes, which UR requires to be readable. It
    // may be unaligned.
    unsafe { at.as_ptr().cast::<u32>().read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{ffi::c_char, ptr::null_mut};
    use ur_sys::{ur_program_metadata_t, ur_program_metadata_value_t as V, ur_structure_type_t};

    fn all(entries: &[ur_program_metadata_t]) -> Result<Vec<Entry>> {
        metadata(Some(&ur_program_properties_t {
            stype: ur_structure_type_t::PROGRAM_PROPERTIES,
            pNext: null_mut(),
            count: entries.len() as u32,
            pMetadatas: entries.as_ptr(),
        }))
    }
    fn entry(
        name: *const c_char,
        r#type: ur_program_metadata_type_t,
        size: usize,
        value: V,
    ) -> ur_program_metadata_t {
        ur_program_metadata_t { pName: name, r#type, size, value }
    }
    #[test]
    fn each_kind_of_metadata_is_read_by_its_type() {
        use ur_program_metadata_type_t as T;
        let mut bytes = *b"12345678abc";
        let data = V { pData: bytes.as_mut_ptr().cast() };
        let name = c"k@tag".as_ptr();
        let read = all(&[
            entry(name, T::UINT32, 4, V { data32: 7 }),
            entry(name, T::UINT64, 8, V { data64: 1 << 40 }),
            entry(name, T::BYTE_ARRAY, 11, data),
            entry(name, T::STRING, 3, data),
        ])
        .unwrap();
        let values = read.into_iter().map(|(name, value)| {
            assert_eq!(name, b"k@tag");
            value
        });
        let expected = [
            Value::Word(7),
            Value::Long(1 << 40),
            Value::Bytes(b"12345678abc".to_vec()),
            Value::Text(b"123".to_vec()),
        ];
        assert_eq!(values.collect::<Vec<_>>(), expected);
        assert_eq!(metadata(None).unwrap(), []);
    }
    #[test]
    fn entries_that_are_none_are_refused() {
        use ur_program_metadata_type_t as T;
        let null = V { pData: null_mut() };
        let mut byte = 0_u8;
        let data = V { pData: (&raw mut byte).cast() };
        for one in [
            entry(std::ptr::null(), T::UINT32, 4, V { data32: 7 }),
            entry(c"k@tag".as_ptr(), T::BYTE_ARRAY, 9, null),
            entry(c"k@tag".as_ptr(), T::STRING, LONGEST + 1, data),
            entry(c"k@tag".as_ptr(), ur_program_metadata_type_t(99), 1, data),
        ] {
            assert_eq!(all(&[one]).unwrap_err().code(), ErrorCode::InvalidValue);
        }
        assert_eq!(bytes(std::ptr::null(), 3).unwrap_err().code(), ErrorCode::InvalidNullPointer);
        assert_eq!(bytes(&byte, 0).unwrap_err().code(), ErrorCode::InvalidSize);
    }
}
