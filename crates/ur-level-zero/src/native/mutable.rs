//! Mutable command lists: recorded launches whose arguments, ranges and offsets the driver changes in place.
#![expect(
    unsafe_code,
    reason = "calls into the vendor's driver; sends chains that point at what they own"
)]
use super::{
    super::{
        LevelZero,
        device::DriverDevice,
        driver::{RawList, driver},
    },
    arguments::one_by_one,
    context::NativeContext,
    device::extended,
    kernel::count_of,
    list::NativeList,
};
use std::{
    ffi::c_void,
    ptr::{from_ref, null},
    sync::Arc,
};
use ur_hal::{Launch, Result, told};
use ze_sys::*;

/// The properties of a launch that are changed.
const WANTED: u32 = ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS
    | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT
    | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE
    | ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET;

/// Whether the driver can change all these properties in place.
///
/// # Errors
/// Returns the driver's error.
pub fn is_supported(device: &DriverDevice) -> Result<bool> {
    let is_there = driver().has("command_list_update_mutable_commands_exp")
        && device.platform().extensions().has("ZE_experimental_mutable_command_list");
    let can = |told: u32| told & WANTED == WANTED;
    Ok(is_there
        && can(
            extended::<ze_mutable_command_list_exp_properties_t>(device.raw())?.mutableCommandFlags
        ))
}
/// Creates a mutable regular list.
///
/// # Errors
/// Returns the driver's error.
pub fn list(context: &Arc<NativeContext>, device: &DriverDevice) -> Result<NativeList> {
    let desc = ze_mutable_command_list_exp_desc_t::default();
    let next = from_ref(&desc).cast();
    NativeList::regular(context, device.raw(), device.compute()?.ordinal, next)
}
/// The number with which the launch that is appended next can be changed.
///
/// # Errors
/// Returns the driver's error.
pub fn next(list: RawList) -> Result<u64> {
    let desc = ze_mutable_command_id_exp_desc_t { flags: WANTED, ..Default::default() };
    // SAFETY: a live list to which the caller has exclusive access; `desc` has its type, `to` is writable.
    told(|to| unsafe { driver().command_list_get_next_command_id_exp(list, &desc, to) })
}

/// The value of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Value<'values> {
    /// Bytes.
    Bytes(&'values [u8]),
    /// An address or a handle, in memory representation.
    Word([u8; size_of::<usize>()]),
    /// A null address, which is passed to the driver as a null pointer.
    Null,
    /// Bytes of local memory.
    Local(usize),
}
impl Value<'_> {
    /// An address or a handle.
    pub fn word(word: usize) -> Self {
        if word == 0 { Self::Null } else { Self::Word(word.to_ne_bytes()) }
    }
    /// The size in bytes, and the address of the value.
    fn parts(&self) -> (usize, *const c_void) {
        match self {
            Self::Bytes(bytes) => (bytes.len(), bytes.as_ptr().cast()),
            Self::Word(word) => (word.len(), word.as_ptr().cast()),
            Self::Null => (size_of::<usize>(), null()),
            Self::Local(bytes) => (*bytes, null()),
        }
    }
}
/// Changes the recorded launch with the number `id` into another launch of the same function, in a closed list that is not
/// executing. The list must be closed again.
///
/// # Errors
/// `INVALID_VALUE` for an offset of more than 32 bits; else the driver's error.
pub fn change(list: RawList, id: u64, launch: &Launch<'_, LevelZero>) -> Result<()> {
    let [x, y, z] = launch.geometry.offset_words()?.unwrap_or_default();
    let arguments = one_by_one(launch.arguments);
    let groups = count_of(launch.geometry.group_words());
    let count = ze_mutable_group_count_exp_desc_t {
        commandId: id,
        pGroupCount: &raw const groups,
        ..Default::default()
    };
    let [across, up, deep] = launch.geometry.local;
    let size = ze_mutable_group_size_exp_desc_t {
        pNext: (&raw const count).cast(),
        commandId: id,
        groupSizeX: across,
        groupSizeY: up,
        groupSizeZ: deep,
        ..Default::default()
    };
    let offset = ze_mutable_global_offset_exp_desc_t {
        pNext: (&raw const size).cast(),
        commandId: id,
        offsetX: x,
        offsetY: y,
        offsetZ: z,
        ..Default::default()
    };
    let mut last: *const c_void = (&raw const offset).cast();
    let mut all = Vec::with_capacity(arguments.len());
    for (index, value) in &arguments {
        let (size, at) = value.parts();
        all.push(ze_mutable_kernel_argument_exp_desc_t {
            pNext: last,
            commandId: id,
            argIndex: *index,
            argSize: size,
            pArgValue: at,
            ..Default::default()
        });
        // The capacity suffices, so that no entry is moved later.
        last = all.last().map_or(last, |one| from_ref(one).cast());
    }
    let changes = ze_mutable_commands_exp_desc_t { pNext: last, ..Default::default() };
    // SAFETY: a live list that is not executing, to which the caller has exclusive access; all linked
    // structures live during the call and have their types.
    unsafe { driver().command_list_update_mutable_commands_exp(list, &raw const changes) }.ok()
}
