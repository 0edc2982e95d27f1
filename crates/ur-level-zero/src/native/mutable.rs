//! Recorded lists whose launches the driver changes in their place: arguments, ranges, offsets.
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
    list::NativeList,
};
use std::{
    ffi::c_void,
    ptr::{from_ref, null},
    sync::Arc,
};
use ur_adapter::error::Result;
use ze_sys::*;

/// What is changed of a launch.
const WANTED: u32 = ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS
    | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT
    | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE
    | ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET;

/// Whether the driver changes all that is wanted of a launch in its place.
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
/// A list that is filled, closed, executed, and changed.
///
/// # Errors
/// Returns the driver's error.
pub fn list(context: &Arc<NativeContext>, device: &DriverDevice) -> Result<NativeList> {
    let desc = ze_mutable_command_list_exp_desc_t {
        stype: ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC,
        ..Default::default()
    };
    let next = from_ref(&desc).cast();
    NativeList::regular(context, device.raw(), device.compute()?.ordinal, next)
}
/// The number by which the launch that is appended next is changed later.
///
/// # Errors
/// Returns the driver's error.
pub fn next(list: RawList) -> Result<u64> {
    let desc = ze_mutable_command_id_exp_desc_t {
        stype: ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC,
        pNext: null(),
        flags: WANTED,
    };
    let mut id = 0;
    // SAFETY: a live list that its recorder has to himself; `desc` says what it is, `id` is writable.
    unsafe { driver().command_list_get_next_command_id_exp(list, &raw const desc, &raw mut id) }
        .ok()?;
    Ok(id)
}

/// What one launch is from now on.
#[derive(Debug)]
pub struct Change<'values> {
    /// The launch's number.
    pub id: u64,
    /// How many groups there are.
    pub groups: [u32; 3],
    /// How many items make one.
    pub local: [u32; 3],
    /// The number of the first item.
    pub offset: [u32; 3],
    /// Its arguments, by their indices.
    pub arguments: Vec<(u32, Value<'values>)>,
}
/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub enum Value<'values> {
    /// These bytes.
    Bytes(&'values [u8]),
    /// An address or a handle, as it lies in memory.
    Word([u8; size_of::<usize>()]),
    /// An address that is none: no value at all to a driver that looks there.
    Null,
    /// So many bytes of local memory.
    Local(usize),
}
impl Value<'_> {
    /// An address or a handle.
    pub fn word(word: usize) -> Self {
        if word == 0 { Self::Null } else { Self::Word(word.to_ne_bytes()) }
    }
    /// How many bytes the kernel takes, and where they are.
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
    /// Makes the change in a closed list that nothing executes. The list has to be closed again.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn apply(&self, list: RawList) -> Result<()> {
        let [x, y, z] = self.groups;
        let groups = ze_group_count_t { groupCountX: x, groupCountY: y, groupCountZ: z };
        let count = ze_mutable_group_count_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC,
            pNext: null(),
            commandId: self.id,
            pGroupCount: &raw const groups,
        };
        let [x, y, z] = self.local;
        let size = ze_mutable_group_size_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC,
            pNext: (&raw const count).cast(),
            commandId: self.id,
            groupSizeX: x,
            groupSizeY: y,
            groupSizeZ: z,
        };
        let [x, y, z] = self.offset;
        let offset = ze_mutable_global_offset_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC,
            pNext: (&raw const size).cast(),
            commandId: self.id,
            offsetX: x,
            offsetY: y,
            offsetZ: z,
        };
        let mut last: *const c_void = (&raw const offset).cast();
        let mut all = Vec::with_capacity(self.arguments.len());
        for (index, value) in &self.arguments {
            let (size, at) = value.parts();
            all.push(ze_mutable_kernel_argument_exp_desc_t {
                stype: ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC,
                pNext: last,
                commandId: self.id,
                argIndex: *index,
                argSize: size,
                pArgValue: at,
            });
            // There is room for all: none moves any more.
            last = all.last().map_or(last, |one| from_ref(one).cast());
        }
        let changes = ze_mutable_commands_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC,
            pNext: last,
            flags: 0,
        };
        // SAFETY: a live list that nothing executes and its recorder has to himself; all that is linked lives during the
        // call and says what it is.
        unsafe { driver().command_list_update_mutable_commands_exp(list, &raw const changes) }.ok()
    }
}
