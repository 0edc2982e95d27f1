//! Mutable command lists: recorded launches whose arguments, ranges and offsets the driver changes in place.
#![expect(
    unsafe_code,
    reason = "calls into the vendor's driver; sends chains that point at what they own"
)]
use super::{
    super::{
        device::DriverDevice,
        driver::{RawList, driver},
    },
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
use ur_hal::{Result, told};
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

/// The new properties of a launch.
#[derive(Debug)]
pub struct Change<'values> {
    /// The number of the launch.
    pub id: u64,
    /// The number of groups in each dimension.
    pub groups: [u32; 3],
    /// The work-items of a group in each dimension.
    pub local: [u32; 3],
    /// The global offset.
    pub offset: [u32; 3],
    /// Its arguments, with their indexes.
    pub arguments: Vec<(u32, Value<'values>)>,
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
impl Change<'_> {
    /// Applies the change to a closed list that is not executing. The list must be closed again.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn apply(&self, list: RawList) -> Result<()> {
        let groups = count_of(self.groups);
        let count = ze_mutable_group_count_exp_desc_t {
            commandId: self.id,
            pGroupCount: &raw const groups,
            ..Default::default()
        };
        let [x, y, z] = self.local;
        let size = ze_mutable_group_size_exp_desc_t {
            pNext: (&raw const count).cast(),
            commandId: self.id,
            groupSizeX: x,
            groupSizeY: y,
            groupSizeZ: z,
            ..Default::default()
        };
        let [x, y, z] = self.offset;
        let offset = ze_mutable_global_offset_exp_desc_t {
            pNext: (&raw const size).cast(),
            commandId: self.id,
            offsetX: x,
            offsetY: y,
            offsetZ: z,
            ..Default::default()
        };
        let mut last: *const c_void = (&raw const offset).cast();
        let mut all = Vec::with_capacity(self.arguments.len());
        for (index, value) in &self.arguments {
            let (size, at) = value.parts();
            all.push(ze_mutable_kernel_argument_exp_desc_t {
                pNext: last,
                commandId: self.id,
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
}
