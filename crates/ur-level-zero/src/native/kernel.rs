//! Driver kernels: their properties, and their arguments. The arguments are state of the driver's kernel
//! object: they can only be set through an [`ArgumentLock`], which gives exclusive access to the kernel.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Outcome, RawKernel, RawList, driver},
    list::Events,
    module::NativeModule,
    owned::Owned,
};
use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr::{from_mut, null, null_mut},
    sync::{Arc, Mutex, MutexGuard},
};
use ur_hal::{ErrorKind, FunctionFacts, Result, listed, made, text, told};
use ur_lock::{Shared, locked};
use ur_mapping::PerProcess;
use ze_sys::*;

/// The table row of the driver function that takes all arguments in one call.
const WITH_ARGUMENTS: &str = "command_list_append_launch_kernel_with_arguments";
/// Values up to this size in bytes are remembered, to avoid setting them again.
const REMEMBERED: usize = 16;

/// A kernel, and what was set of it.
#[derive(Debug)]
pub struct NativeKernel {
    /// All have it in common that name this kernel of the driver's. It goes before the kernel does, whose name another one may then have.
    set: Arc<Mutex<Set>>,
    kernel: Owned<RawKernel, Arc<NativeModule>>,
    facts: FunctionFacts,
}
/// The number of registers of a kernel: an extension of Intel.
#[repr(C)]
struct RegisterFile {
    stype: ze_structure_type_t,
    next: *mut c_void,
    registers: u32,
}
/// The extension's structure type `ZEX_STRUCTURE_KERNEL_REGISTER_FILE_SIZE_EXP`.
const REGISTER_FILE: ze_structure_type_t = 0x0003_0012;
/// The values that were set last.
#[derive(Debug, Default)]
struct Set {
    /// Whether other code may set values that are not recorded here.
    is_lent: bool,
    group: Option<[u32; 3]>,
    offset: Option<[u32; 3]>,
    values: Vec<Option<Value>>,
    /// The size in bytes of each argument that the driver accepted one by one. Arguments of the same sizes
    /// may be passed in one call.
    accepted: Vec<usize>,
    is_looked_at: bool,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Bytes(u8, [u8; REMEMBERED]),
    Local(usize),
}

impl NativeKernel {
    /// The kernel with that name; `None` if there is none.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(module: &Arc<NativeModule>, name: &CStr) -> Result<Option<Self>> {
        let desc = ze_kernel_desc_t { pKernelName: name.as_ptr(), ..Default::default() };
        // SAFETY: the module is live; `desc` and the name live during the call, `to` is writable.
        match made(|to| unsafe { driver().kernel_create(module.raw(), &desc, to) }) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            raw => Self::new(raw?, true, module).map(Some),
        }
    }
    /// Wraps an existing kernel; `owned`: it is destroyed on drop.
    ///
    /// # Errors
    /// Returns the driver's error; what the driver does not know stays the application's.
    pub fn adopted(raw: RawKernel, owned: bool, module: &Arc<NativeModule>) -> Result<Self> {
        Self::ask(raw)?;
        let adopted = Self::new(raw, owned, module)?;
        adopted.lend();
        Ok(adopted)
    }
    /// From now on other code may set arguments too, so nothing is remembered.
    pub fn lend(&self) {
        *self.turn().set = Set { is_lent: true, ..Set::default() };
    }
    fn new(raw: RawKernel, owned: bool, module: &Arc<NativeModule>) -> Result<Self> {
        let kernel = Owned::adopted(raw, owned, Arc::clone(module));
        let facts = Self::ask(raw)?;
        static SETS: PerProcess<Shared<usize, Mutex<Set>>> = PerProcess::new();
        Ok(Self { set: SETS.get().of(raw.addr()), kernel, facts })
    }
    fn ask(raw: RawKernel) -> Result<FunctionFacts> {
        let mut told = ze_kernel_properties_t::default();
        let mut most = ze_kernel_max_group_size_properties_ext_t::default();
        let mut preferred = ze_kernel_preferred_group_size_properties_t::default();
        let mut file = RegisterFile { stype: REGISTER_FILE, next: null_mut(), registers: 0 };
        preferred.pNext = from_mut(&mut file).cast();
        most.pNext = from_mut(&mut preferred).cast();
        told.pNext = from_mut(&mut most).cast();
        // SAFETY: the kernel is live; the four structures are linked, writable, and have their types.
        unsafe { driver().kernel_get_properties(raw, &raw mut told) }.ok()?;
        let group = [told.requiredGroupSizeX, told.requiredGroupSizeY, told.requiredGroupSizeZ];
        let one = |n: u32| (n != 0).then_some(n);
        let size = |n: u32| one(n).map(|n| n as usize);
        Ok(FunctionFacts {
            items: size(most.maxGroupSize),
            required_group: (group != [0; 3]).then_some(group.map(|n| n as usize)),
            sub_group: one(told.requiredSubgroupSize),
            local_memory: told.localMemSize as usize,
            private_memory: told.privateMemSize as usize,
            arguments: Some(told.numKernelArgs),
            multiple: size(preferred.preferredMultiple).or(size(told.requiredSubgroupSize)),
            sub_groups: one(told.requiredNumSubGroups),
            most_sub_group: told.maxSubgroupSize,
            most_sub_groups: told.maxNumSubgroups,
            spilled: Some(told.spillMemSize),
            registers: one(file.registers),
            ..FunctionFacts::default() // the driver does not report the limit of an argument
        })
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawKernel {
        self.kernel.raw()
    }
    /// Its properties.
    pub fn facts(&self) -> &FunctionFacts {
        &self.facts
    }
    /// Its name.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn name(&self) -> Result<CString> {
        // SAFETY: the kernel is live; `listed` passes a buffer with the size that it states.
        let bytes = listed(0_u8, |size, to| unsafe {
            driver().kernel_get_name(self.raw(), size, to.cast())
        })?;
        Ok(CString::new(text(&bytes)).unwrap_or_default())
    }
    /// The attributes in its source, as text.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn attributes(&self) -> Result<String> {
        let bytes = listed(0_u8, |size, to| {
            let mut at: *mut c_char = to.cast();
            let to = if at.is_null() { null_mut() } else { &raw mut at };
            // SAFETY: the kernel is live; `listed` passes a buffer with the size that it states.
            unsafe { driver().kernel_get_source_attributes(self.raw(), size, to) }
        })?;
        Ok(String::from_utf8_lossy(text(&bytes)).into_owned())
    }
    /// Allows it to access memory to which no argument points; `flags` are
    /// `ZE_KERNEL_INDIRECT_ACCESS_FLAG_*`.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reach(&self, flags: u32) -> Result<()> {
        let _turn = self.turn();
        // SAFETY: the kernel is live, and locked.
        unsafe { driver().kernel_set_indirect_access(self.raw(), flags) }.ok()
    }
    /// Sets the cache preference: `ZE_CACHE_CONFIG_FLAG_*`, 0 for none.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn prefer(&self, flags: u32) -> Result<()> {
        let _turn = self.turn();
        // SAFETY: as above.
        unsafe { driver().kernel_set_cache_config(self.raw(), flags) }.ok()
    }
    /// Locks the kernel until the returned guard is dropped. This lock is held during driver calls, because
    /// they set state of the kernel.
    pub fn turn(&self) -> ArgumentLock<'_> {
        ArgumentLock { raw: self.raw(), set: locked(&self.set) }
    }
}
/// Numbers of groups in the driver's form.
pub(super) fn count_of([x, y, z]: [u32; 3]) -> ze_group_count_t {
    ze_group_count_t { groupCountX: x, groupCountY: y, groupCountZ: z }
}

/// Exclusive access to a kernel's arguments.
#[derive(Debug)]
pub struct ArgumentLock<'kernel> {
    raw: RawKernel,
    set: MutexGuard<'kernel, Set>,
}
impl ArgumentLock<'_> {
    /// Sets the group size.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn group(&mut self, size: [u32; 3]) -> Result<()> {
        if !self.set.is_lent && self.set.group == Some(size) {
            return Ok(());
        }
        let [x, y, z] = size;
        // SAFETY: the kernel is live, and locked.
        unsafe { driver().kernel_set_group_size(self.raw, x, y, z) }.ok()?;
        self.set.group = Some(size);
        Ok(())
    }
    /// Sets the global offset.
    ///
    /// # Errors
    /// Returns the driver's error; none for an offset of zeros if the driver does not support offsets.
    pub fn offset(&mut self, offset: [u32; 3]) -> Result<()> {
        if !self.set.is_lent && self.set.offset.unwrap_or_default() == offset {
            return Ok(());
        }
        let [x, y, z] = offset;
        // SAFETY: the kernel is live, and locked.
        unsafe { driver().kernel_set_global_offset_exp(self.raw, x, y, z) }.ok()?;
        self.set.offset = Some(offset);
        Ok(())
    }
    /// Sets an argument to bytes.
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
    /// Sets an argument to `bytes` of local memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn local(&mut self, index: u32, bytes: usize) -> Result<()> {
        self.set(index, bytes, null_mut(), Some(Value::Local(bytes)))
    }
    /// Sets an argument to an address or a handle. Never skipped, because something else may be there now.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn word(&mut self, index: u32, word: usize) -> Result<()> {
        // Drivers that inspect addresses expect a null pointer for a null address.
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
        // SAFETY: the kernel is live, and locked; `at` has `size` bytes or is null.
        unsafe { driver().kernel_set_argument_value(self.raw, index, size, at) }.ok()?;
        if self.set.values.len() <= place {
            self.set.values.resize(place + 1, None);
        }
        self.set.values[place] = value;
        Ok(())
    }
    /// The group size that the driver suggests for a range.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn suggest(&self, global: [u32; 3]) -> Result<[u32; 3]> {
        let ([x, y, z], mut to) = (global, [0; 3]);
        let [a, b, c] = to.each_mut().map(from_mut);
        // SAFETY: the kernel is live, and locked; the three are writable.
        unsafe { driver().kernel_suggest_group_size(self.raw, x, y, z, a, b, c) }.ok()?;
        Ok(to)
    }
    /// The largest number of groups of the current size that can be resident at once.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn most_cooperative(&self) -> Result<u32> {
        // SAFETY: the kernel is live, and locked; `to` is writable.
        told(|to| unsafe { driver().kernel_suggest_max_cooperative_group_count(self.raw, to) })
    }
    /// The sizes in bytes of arguments that may be passed in one call. Empty if they must be set one by one:
    /// because the driver does not have the function, or because other code may have set a different offset.
    pub fn accepted(&self, offset: [u32; 3]) -> &[usize] {
        let is_set = !self.set.is_lent && self.set.offset.unwrap_or_default() == offset;
        if is_set { &self.set.accepted } else { &[] }
    }
    /// Records that the driver accepted arguments of these sizes one by one.
    pub fn accept(&mut self, sizes: impl FnOnce() -> Vec<usize>) {
        if !self.set.is_looked_at {
            self.set.is_looked_at = true;
            self.set.accepted = if driver().has(WITH_ARGUMENTS) { sizes() } else { vec![] };
        }
    }
    /// Records that the driver does not support passing all arguments in one call.
    pub fn refuse(&mut self) {
        self.set.accepted.clear();
    }
    /// Appends a launch with all its arguments, in one call. `places` are their addresses; each must have the
    /// size that the driver accepted before.
    pub fn append_with(
        &mut self,
        list: RawList,
        groups: [u32; 3],
        local: [u32; 3],
        places: &mut [*mut c_void],
        (signal, count, waits): Events,
    ) -> Outcome {
        self.set.values.clear();
        self.set.group = None; // whether the kernel keeps it is not documented
        let groups = count_of(groups);
        let [x, y, z] = local;
        let local = ze_group_size_t { groupSizeX: x, groupSizeY: y, groupSizeZ: z };
        let (kernel, places, next) = (self.raw, places.as_mut_ptr(), null());
        // SAFETY: the kernel is live, and locked; each place has as many bytes as the kernel reads, during
        // the call; the driver checks the events.
        unsafe {
            driver().command_list_append_launch_kernel_with_arguments(
                list, kernel, groups, local, places, next, signal, count, waits,
            )
        }
    }
    /// Appends a launch with the arguments that were set.
    pub fn append(
        &self,
        list: RawList,
        groups: [u32; 3],
        cooperative: bool,
        (signal, count, waits): Events,
    ) -> Outcome {
        let groups = count_of(groups);
        let (kernel, groups, driver) = (self.raw, &raw const groups, driver());
        if cooperative {
            // SAFETY: the kernel is live, and locked; the driver checks the events.
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
