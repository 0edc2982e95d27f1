//! Kernels of the driver's: their properties, and their arguments. A kernel's arguments are state of
//! the driver's: [`ArgumentLock`] is the only way to them, and whoever has it has the kernel to himself.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Outcome, RawEvent, RawKernel, RawList, driver},
    module::{NativeModule, filled},
};
use std::{
    ffi::{CStr, CString, c_void},
    ptr::{from_mut, null, null_mut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use ur_adapter::error::Result;
use ze_sys::*;

/// The driver's call that takes all arguments at once, as a row.
const WITH_ARGUMENTS: &str = "command_list_append_launch_kernel_with_arguments";
/// Values no longer than this are remembered, so that they are not set again.
const REMEMBERED: usize = 16;

/// A kernel: destroyed on drop if it is ours.
#[derive(Debug)]
pub struct NativeKernel {
    raw: RawKernel,
    owned: bool,
    facts: Facts,
    set: Mutex<Set>,
    _module: Arc<NativeModule>,
}
/// How many registers a kernel has: an extension of Intel's.
#[repr(C)]
struct RegisterFile {
    stype: ze_structure_type_t,
    next: *mut c_void,
    registers: u32,
}
/// Its `ZEX_STRUCTURE_KERNEL_REGISTER_FILE_SIZE_EXP`.
const REGISTER_FILE: ze_structure_type_t = 0x0003_0012;
/// What a kernel is like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Its arguments.
    pub arguments: u32,
    /// Items of its groups, where it says so; zeros where it does not.
    pub group: [usize; 3],
    /// Items of a group at most, where the driver tells.
    pub most_items: Option<usize>,
    /// Items of a group should be a multiple of this, where the driver tells.
    pub multiple: Option<usize>,
    /// Sub-groups of a group, where it says so; 0 where it does not.
    pub sub_groups: u32,
    /// Items of its sub-groups, where it says so; 0 where it does not.
    pub sub_group: u32,
    /// Items of its sub-groups at most.
    pub most_sub_group: u32,
    /// Sub-groups of a group at most.
    pub most_sub_groups: u32,
    /// Bytes of local memory of its own.
    pub local: usize,
    /// Bytes of private memory of an item.
    pub private: usize,
    /// Bytes of registers that an item spills.
    pub spilled: u32,
    /// Registers of a hardware thread; 0 from a driver that does not tell.
    pub registers: u32,
}
/// What the driver was told last.
#[derive(Debug, Default)]
struct Set {
    /// Others may set something that is not noted here.
    is_lent: bool,
    group: Option<[u32; 3]>,
    offset: Option<[u32; 3]>,
    values: Vec<Option<Value>>,
    /// Bytes of each argument that the driver took, one by one: what may be told all at once.
    accepted: Vec<usize>,
    is_looked_at: bool,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Bytes(u8, [u8; REMEMBERED]),
    Local(usize),
}

impl NativeKernel {
    /// The kernel of that name; `None` where there is none.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(module: &Arc<NativeModule>, name: &CStr) -> Result<Option<Self>> {
        let desc = ze_kernel_desc_t {
            stype: ZE_STRUCTURE_TYPE_KERNEL_DESC,
            pKernelName: name.as_ptr(),
            ..Default::default()
        };
        let mut raw = None;
        // SAFETY: a live module; `desc` and the name live during the call, `raw` is writable.
        let made = unsafe { driver().kernel_create(module.raw(), &raw const desc, &raw mut raw) };
        if made.status() == Some(ZE_RESULT_ERROR_INVALID_KERNEL_NAME) {
            return Ok(None);
        }
        made.ok()?;
        Self::new(RawKernel::given(raw, "zeKernelCreate")?, true, module).map(Some)
    }
    /// One that C brought; `owned`: it is destroyed here.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn adopted(raw: RawKernel, owned: bool, module: &Arc<NativeModule>) -> Result<Self> {
        let adopted = Self::new(raw, owned, module)?;
        adopted.lend();
        Ok(adopted)
    }
    /// Others may set its arguments too from now on: nothing is remembered any more.
    pub fn lend(&self) {
        *self.turn().set = Set { is_lent: true, ..Set::default() };
    }
    fn new(raw: RawKernel, owned: bool, module: &Arc<NativeModule>) -> Result<Self> {
        let (module, set) = (Arc::clone(module), Mutex::default());
        let mut made = Self { raw, owned, facts: Facts::default(), set, _module: module };
        made.facts = made.ask()?;
        Ok(made)
    }
    fn ask(&self) -> Result<Facts> {
        let mut told = ze_kernel_properties_t {
            stype: ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES,
            ..Default::default()
        };
        let mut most = ze_kernel_max_group_size_properties_ext_t {
            stype: ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES,
            ..Default::default()
        };
        let mut preferred = ze_kernel_preferred_group_size_properties_t {
            stype: ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES,
            ..Default::default()
        };
        let mut file = RegisterFile { stype: REGISTER_FILE, next: null_mut(), registers: 0 };
        preferred.pNext = from_mut(&mut file).cast();
        most.pNext = from_mut(&mut preferred).cast();
        told.pNext = from_mut(&mut most).cast();
        // SAFETY: live; the four are linked, writable, and say what they are.
        unsafe { driver().kernel_get_properties(self.raw, &raw mut told) }.ok()?;
        let group = [told.requiredGroupSizeX, told.requiredGroupSizeY, told.requiredGroupSizeZ];
        let told_or_not = |n: u32| (n != 0).then_some(n as usize);
        Ok(Facts {
            arguments: told.numKernelArgs,
            group: group.map(|n| n as usize),
            most_items: told_or_not(most.maxGroupSize),
            multiple: told_or_not(preferred.preferredMultiple),
            sub_groups: told.requiredNumSubGroups,
            sub_group: told.requiredSubgroupSize,
            most_sub_group: told.maxSubgroupSize,
            most_sub_groups: told.maxNumSubgroups,
            local: told.localMemSize as usize,
            private: told.privateMemSize as usize,
            spilled: told.spillMemSize,
            registers: file.registers,
        })
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawKernel {
        self.raw
    }
    /// What it is like.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }
    /// What it is called.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn name(&self) -> Result<CString> {
        // SAFETY: live; `filled` passes room for as much as it says.
        let bytes =
            filled(|size, to| unsafe { driver().kernel_get_name(self.raw, size, to.cast()) })?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Ok(CString::new(&bytes[..end]).unwrap_or_default())
    }
    /// What its source says of it, as text.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn attributes(&self) -> Result<String> {
        let (mut size, mut at) = (0, null_mut());
        // SAFETY: live; both are writable. Of a null string only the size is told.
        unsafe { driver().kernel_get_source_attributes(self.raw, &raw mut size, &raw mut at) }
            .ok()?;
        let mut text = vec![0_u8; size as usize + 1];
        at = text.as_mut_ptr().cast();
        // SAFETY: as above; there is room for as much as it told.
        unsafe { driver().kernel_get_source_attributes(self.raw, &raw mut size, &raw mut at) }
            .ok()?;
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    }
    /// Lets it reach memory that no argument points at, of these `ZE_KERNEL_INDIRECT_ACCESS_FLAG_*`.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reach(&self, flags: u32) -> Result<()> {
        let _turn = self.turn();
        // SAFETY: live; nobody else changes it during the turn.
        unsafe { driver().kernel_set_indirect_access(self.raw, flags) }.ok()
    }
    /// More local memory, or more cache: `ZE_CACHE_CONFIG_FLAG_*`, 0 for no preference.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn prefer(&self, flags: u32) -> Result<()> {
        let _turn = self.turn();
        // SAFETY: as above.
        unsafe { driver().kernel_set_cache_config(self.raw, flags) }.ok()
    }
    /// Has the kernel to oneself until what is returned is dropped. The only lock of this adapter that
    /// is held across driver calls: what they set is the kernel's, and nobody else's.
    pub fn turn(&self) -> ArgumentLock<'_> {
        ArgumentLock { raw: self.raw, set: self.set.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}
impl Drop for NativeKernel {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: ours, destroyed once; nothing runs it any more.
            unsafe { driver().kernel_destroy(self.raw) }.let_go();
        }
    }
}

/// The time in which a kernel's arguments are one caller's.
#[derive(Debug)]
pub struct ArgumentLock<'kernel> {
    raw: RawKernel,
    set: MutexGuard<'kernel, Set>,
}
impl ArgumentLock<'_> {
    /// # Errors
    /// Returns the driver's error.
    pub fn group(&mut self, size: [u32; 3]) -> Result<()> {
        if !self.set.is_lent && self.set.group == Some(size) {
            return Ok(());
        }
        let [x, y, z] = size;
        // SAFETY: live, and ours for now.
        unsafe { driver().kernel_set_group_size(self.raw, x, y, z) }.ok()?;
        self.set.group = Some(size);
        Ok(())
    }
    /// # Errors
    /// The driver's own; none for an offset of zeros from a driver that has no offsets.
    pub fn offset(&mut self, offset: [u32; 3]) -> Result<()> {
        if !self.set.is_lent && self.set.offset.unwrap_or_default() == offset {
            return Ok(());
        }
        let [x, y, z] = offset;
        // SAFETY: live, and ours for now.
        unsafe { driver().kernel_set_global_offset_exp(self.raw, x, y, z) }.ok()?;
        self.set.offset = Some(offset);
        Ok(())
    }
    /// A value; what it points at is not remembered.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn value(&mut self, index: u32, bytes: &[u8]) -> Result<()> {
        let mut first = [0; REMEMBERED];
        let short = bytes.len() <= REMEMBERED;
        first.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let value = short.then_some(Value::Bytes(bytes.len() as u8, first));
        self.set(index, bytes.len(), bytes.as_ptr().cast(), value)
    }
    /// So many bytes of local memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn local(&mut self, index: u32, bytes: usize) -> Result<()> {
        self.set(index, bytes, null_mut(), Some(Value::Local(bytes)))
    }
    /// An address or a handle: told again each time, as what is there may be something else.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn word(&mut self, index: u32, word: usize) -> Result<()> {
        // A null address is no argument at all to a driver that looks there.
        let at = if word == 0 { null_mut() } else { (&raw const word).cast_mut().cast() };
        self.set(index, size_of::<usize>(), at, None)
    }
    fn set(
        &mut self,
        index: u32,
        size: usize,
        at: *const c_void,
        value: Option<Value>,
    ) -> Result<()> {
        let place = index as usize;
        let value = value.filter(|_| !self.set.is_lent);
        if value.is_some() && self.set.values.get(place).copied().flatten() == value {
            return Ok(());
        }
        // SAFETY: live, and ours for now; so many bytes are there, or the address is null.
        unsafe { driver().kernel_set_argument_value(self.raw, index, size, at) }.ok()?;
        if self.set.values.len() <= place {
            self.set.values.resize(place + 1, None);
        }
        self.set.values[place] = value;
        Ok(())
    }
    /// The size of groups that the driver would choose for a range.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn suggest(&self, global: [u32; 3]) -> Result<[u32; 3]> {
        let ([x, y, z], mut to) = (global, [0; 3]);
        let [a, b, c] = to.each_mut().map(from_mut);
        // SAFETY: live, and ours for now; the three are writable.
        unsafe { driver().kernel_suggest_group_size(self.raw, x, y, z, a, b, c) }.ok()?;
        Ok(to)
    }
    /// How many groups of the size set can wait for each other.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn most_cooperative(&self) -> Result<u32> {
        let mut most = 0;
        // SAFETY: live, and ours for now; `most` is writable.
        unsafe { driver().kernel_suggest_max_cooperative_group_count(self.raw, &raw mut most) }
            .ok()?;
        Ok(most)
    }
    /// Bytes of each argument that the driver took before. Empty where they have to be told one by one:
    /// where the driver has no other way, and where others set something that is not known here.
    pub fn accepted(&self, offset: [u32; 3]) -> &[usize] {
        let is_set = !self.set.is_lent && self.set.offset.unwrap_or_default() == offset;
        if is_set { &self.set.accepted } else { &[] }
    }
    /// Notes that the driver took arguments of these sizes, each by itself.
    pub fn accept(&mut self, sizes: impl FnOnce() -> Vec<usize>) {
        if !self.set.is_looked_at {
            self.set.is_looked_at = true;
            self.set.accepted = if driver().has(WITH_ARGUMENTS) { sizes() } else { vec![] };
        }
    }
    /// Notes that the driver has no other way than one by one.
    pub fn refuse(&mut self) {
        self.set.accepted.clear();
    }
    /// Appends it to a list with all that it takes, in one call. Arguments are where `places` says, each
    /// of as many bytes as the driver took before.
    pub fn append_with(
        &mut self,
        list: RawList,
        groups: [u32; 3],
        local: [u32; 3],
        places: &mut [*mut c_void],
        (signal, count, waits): (Option<RawEvent>, u32, *const RawEvent),
    ) -> Outcome {
        self.set.values.clear();
        self.set.group = Some(local);
        let [x, y, z] = groups;
        let groups = ze_group_count_t { groupCountX: x, groupCountY: y, groupCountZ: z };
        let [x, y, z] = local;
        let local = ze_group_size_t { groupSizeX: x, groupSizeY: y, groupSizeZ: z };
        let (kernel, places, next) = (self.raw, places.as_mut_ptr(), null());
        // SAFETY: live, and ours for now; at each place are as many bytes as the kernel takes, during
        // the call; the events are the list's to judge.
        let outcome = unsafe {
            driver().command_list_append_launch_kernel_with_arguments(
                list, kernel, groups, local, places, next, signal, count, waits,
            )
        };
        if outcome.status() != Some(ZE_RESULT_SUCCESS) {
            self.set.group = None; // who knows how far it came
        }
        outcome
    }
    /// Appends it with what was set to a list.
    pub fn append(
        &self,
        list: RawList,
        groups: [u32; 3],
        cooperative: bool,
        (signal, count, waits): (Option<RawEvent>, u32, *const RawEvent),
    ) -> Outcome {
        let [x, y, z] = groups;
        let groups = ze_group_count_t { groupCountX: x, groupCountY: y, groupCountZ: z };
        let (kernel, groups, driver) = (self.raw, &raw const groups, driver());
        if cooperative {
            // SAFETY: live, and ours for now; the events are the list's to judge.
            return unsafe {
                driver.command_list_append_launch_cooperative_kernel(
                    list, kernel, groups, signal, count, waits,
                )
            };
        }
        // SAFETY: as above.
        unsafe {
            driver.command_list_append_launch_kernel(list, kernel, groups, signal, count, waits)
        }
    }
}
