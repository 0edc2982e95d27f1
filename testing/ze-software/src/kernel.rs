//! Kernels: their arguments and group size, which a launch captures, and their properties.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    backing, elf,
    handle::{self, Object, raw},
    image::{self, Image},
    inject::Answer,
    module::{self, Module},
    raw,
    sampler::Sampler,
    spirv::{self, Launch, Parameter, SUBGROUP},
};
use std::{
    ffi::{c_char, c_void},
    sync::{Arc, Mutex, MutexGuard},
};
use ur_lock::locked;
use ze_sys::*;

/// The largest number of work-items in a group.
pub const LARGEST_GROUP: u32 = 1024;
/// The size of a group's local memory in bytes.
const LOCAL_MEMORY: u64 = 64 << 10;
/// The largest number of groups of a cooperative launch.
const COOPERATIVE: u32 = 64;

/// The value of a parameter.
#[derive(Clone)]
enum Given {
    Bytes(Arc<[u8]>),
    Local(u64),
    Image(Arc<Image>),
    Sampler(Arc<Sampler>),
}
/// The state of a kernel that a launch captures.
#[derive(Clone, Default)]
struct State {
    arguments: Vec<Option<Given>>,
    size: [u32; 3],
    offset: [u32; 3],
}
#[derive(Clone)]
enum Entry {
    Portable(Arc<spirv::Program>, Arc<spirv::Kernel>),
    Native(elf::Function),
}
/// A kernel.
pub struct Kernel {
    name: String,
    module: Arc<Module>,
    entry: Entry,
    /// Empty for native code, which takes arguments of any size.
    parameters: Arc<[Option<Parameter>]>,
    state: Mutex<State>,
    indirect: Mutex<ze_kernel_indirect_access_flags_t>,
}
impl Object for Kernel {
    const TAG: u64 = 0x7a65_6b65_726e_656c;
}
/// A kernel and everything that it runs with, except the number of groups.
#[derive(Clone)]
pub struct Launchable {
    /// Keeps the code loaded.
    module: Arc<Module>,
    entry: Entry,
    parameters: Arc<[Option<Parameter>]>,
    state: State,
}
impl Kernel {
    fn new(module: Arc<Module>, name: String) -> Answer<Kernel> {
        let (entry, parameters): (_, Arc<[_]>) = match module.entry(&name)? {
            module::Found::Portable(program, kernel) => {
                let parameters = kernel.parameters.iter().map(|p| Some(*p)).collect();
                (Entry::Portable(program, kernel), parameters)
            }
            module::Found::Native(function, count) => {
                (Entry::Native(function), vec![None; count as usize].into())
            }
        };
        let arguments = vec![None; parameters.len()];
        let state = State { arguments, size: [1; 3], offset: [0; 3] };
        let kernel = Kernel {
            name,
            module,
            entry,
            parameters,
            state: Mutex::new(state),
            indirect: Mutex::default(),
        };
        kernel.state().size = kernel.required().unwrap_or([1; 3]);
        Ok(kernel)
    }
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
    fn portable(&self) -> Option<(&spirv::Program, &spirv::Kernel)> {
        match &self.entry {
            Entry::Portable(program, kernel) => Some((program, kernel)),
            Entry::Native(_) => None,
        }
    }
    fn required(&self) -> Option<[u32; 3]> {
        self.portable().and_then(|(_, kernel)| kernel.required)
    }
}
/// The kernel with its current arguments, group size and offset.
pub fn capture(kernel: &Kernel) -> Launchable {
    let (module, entry) = (Arc::clone(&kernel.module), kernel.entry.clone());
    let (parameters, state) = (Arc::clone(&kernel.parameters), kernel.state().clone());
    Launchable { module, entry, parameters, state }
}
/// As [`capture`], but with this group size and, unless the array is null, with these arguments: the address
/// of each value, and for local memory the address of its size.
///
/// # Errors
/// Those of [`Launchable::set_group_size`] and [`Launchable::set_argument`].
pub fn capture_with(
    kernel: &Kernel,
    group_size: [u32; 3],
    arguments: *const *mut c_void,
) -> Answer<Launchable> {
    let mut made = capture(kernel);
    made.set_group_size(group_size)?;
    if !arguments.is_null() {
        for (n, value) in raw::list(arguments, made.parameters.len())?.into_iter().enumerate() {
            let size = match made.parameters[n] {
                Some(Parameter::Local) => raw::get(value.cast::<usize>().cast_const())?,
                Some(parameter) => parameter.bytes() as usize,
                None => size_of::<usize>(),
            };
            let local = made.parameters[n] == Some(Parameter::Local);
            let value = if local { std::ptr::null() } else { value.cast_const() };
            made.set_argument(n as u32, size, value)?;
        }
    }
    Ok(made)
}
/// Checks and copies the value of an argument.
fn given(parameter: Option<Parameter>, size: usize, value: *const c_void) -> Answer<Given> {
    const SIZE: ze_result_t = ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
    let handle = || raw::get(value.cast::<*mut c_void>());
    match parameter {
        Some(Parameter::Local) => match (size, value.is_null()) {
            (0, _) => Err(SIZE),
            (_, true) if size as u64 <= LOCAL_MEMORY => Ok(Given::Local(size as u64)),
            (_, true) => Err(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY),
            (_, false) => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
        },
        Some(parameter) if parameter.bytes() != size as u64 => Err(SIZE),
        Some(Parameter::Image) if !value.is_null() => {
            Ok(Given::Image(image::get(handle()?.cast())?))
        }
        Some(Parameter::Sampler) if !value.is_null() => Ok(Given::Sampler(handle::get(handle()?)?)),
        // Without a value the argument is a null pointer, or all zeros.
        _ if value.is_null() => Ok(Given::Bytes(vec![0; size].into())),
        _ => Ok(Given::Bytes(raw::bytes(value.cast(), size)?.into())),
    }
}
impl Launchable {
    /// Sets an argument, for this launch only.
    ///
    /// # Errors
    /// `INVALID_KERNEL_ARGUMENT_INDEX` or `INVALID_KERNEL_ARGUMENT_SIZE` if the kernel has no such parameter.
    pub fn set_argument(&mut self, index: u32, size: usize, value: *const c_void) -> Answer {
        let parameter = self.parameters.get(index as usize);
        let parameter = parameter.ok_or(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX)?;
        self.state.arguments[index as usize] = Some(given(*parameter, size, value)?);
        Ok(())
    }
    /// Sets the group size, for this launch only.
    ///
    /// # Errors
    /// `INVALID_GROUP_SIZE_DIMENSION` if the kernel or the device does not support the size.
    pub fn set_group_size(&mut self, size: [u32; 3]) -> Answer {
        let required = match &self.entry {
            Entry::Portable(_, kernel) => kernel.required,
            Entry::Native(_) => None,
        };
        self.state.size = sized(required, size)?;
        Ok(())
    }
    /// Sets the global offset, for this launch only.
    ///
    /// # Errors
    /// None.
    pub fn set_offset(&mut self, offset: [u32; 3]) -> Answer {
        self.state.offset = offset;
        Ok(())
    }
    /// Fails for buffers that are larger than what the kernel's module can address.
    fn check_buffers(&self) -> Answer {
        for given in self.state.arguments.iter().flatten() {
            let Given::Bytes(bytes) = given else { continue };
            let Ok(address) = <[u8; 8]>::try_from(&bytes[..]) else { continue };
            let Some(found) = crate::memory::find(u64::from_le_bytes(address) as usize) else {
                continue;
            };
            self.module.reaches(found.size).map_err(|why| {
                eprintln!("ze-software: {}: {why}", self.module.label());
                ZE_RESULT_ERROR_DEVICE_LOST
            })?;
        }
        Ok(())
    }
    /// Runs the kernel.
    ///
    /// # Errors
    /// `DEVICE_LOST` if the kernel fails; the reason is printed to standard error.
    pub fn run(&self, groups: [u32; 3]) -> Answer {
        let bytes = |given: &Option<Given>, parameter: &Option<Parameter>| match given {
            Some(Given::Bytes(bytes)) => Arc::clone(bytes),
            Some(Given::Image(image)) => address(Arc::as_ptr(image)),
            Some(Given::Sampler(sampler)) => address(Arc::as_ptr(sampler)),
            Some(Given::Local(_)) => [].into(),
            None => vec![0; parameter.map_or(8, Parameter::bytes) as usize].into(),
        };
        let arguments = self.state.arguments.iter().zip(self.parameters.iter());
        let (program, kernel) = match &self.entry {
            Entry::Portable(program, kernel) => (program, kernel),
            Entry::Native(function) => {
                let all: Vec<_> =
                    arguments.map(|(given, parameter)| reached(bytes(given, parameter))).collect();
                elf::run(*function, &all, [groups, self.state.size, self.state.offset]);
                return Ok(());
            }
        };
        self.check_buffers()?;
        let arguments = arguments.map(|(given, parameter)| match given {
            Some(Given::Local(bytes)) => spirv::Argument::Local(*bytes),
            _ => spirv::Argument::Bytes(bytes(given, parameter)),
        });
        let launch = Launch {
            program: Arc::clone(program),
            kernel: Arc::clone(kernel),
            arguments: arguments.collect(),
            size: self.state.size,
            offset: self.state.offset,
        };
        launch.run(groups).map_err(|why| {
            eprintln!("ze-software: kernel {} of {}: {why}", kernel.name, self.module.label());
            ZE_RESULT_ERROR_DEVICE_LOST
        })
    }
}
/// An argument for a host function: an address is translated to where the host accesses that memory.
fn reached(argument: Arc<[u8]>) -> Arc<[u8]> {
    match <[u8; 8]>::try_from(&argument[..]) {
        Ok(word) => backing::reached_at(usize::from_le_bytes(word)).to_le_bytes().into(),
        Err(_) => argument,
    }
}
/// A pointer as a kernel argument.
fn address<T>(of: *const T) -> Arc<[u8]> {
    (of.expose_provenance() as u64).to_le_bytes().into()
}
/// Returns `size` if the kernel supports it as its group size.
fn sized(required: Option<[u32; 3]>, size: [u32; 3]) -> Answer<[u32; 3]> {
    let items = size.iter().try_fold(1_u32, |items, s| items.checked_mul(*s));
    let fits = items.is_some_and(|n| (1..=LARGEST_GROUP).contains(&n));
    let asked = required.is_none_or(|r| r == size);
    if fits && asked { Ok(size) } else { Err(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION) }
}
fn of(raw: ze_kernel_handle_t) -> Answer<Arc<Kernel>> {
    handle::get(raw!(raw))
}
/// A large group size that divides the range.
fn suggested(range: [u32; 3]) -> [u32; 3] {
    let mut left = 256;
    range.map(|items| {
        let best = (1..=left.min(items)).rev().find(|size| items.is_multiple_of(*size));
        let best = best.unwrap_or(1);
        left /= best;
        best
    })
}
/// Fills the structures in the chain of a kernel's properties.
fn also_says(next: *const c_void) -> Answer {
    let preferred = ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES;
    if let Some(to) = raw::find::<ze_kernel_preferred_group_size_properties_t>(next, preferred) {
        raw::amend(to, |p| {
            p.preferredMultiple = SUBGROUP;
            Ok(())
        })?;
    }
    let most = ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES;
    if let Some(to) = raw::find::<ze_kernel_max_group_size_properties_ext_t>(next, most) {
        raw::amend(to, |p| {
            p.maxGroupSize = LARGEST_GROUP;
            Ok(())
        })?;
    }
    if let Some(to) = raw::find::<RegisterFile>(next, REGISTER_FILE) {
        raw::amend(to, |p| {
            p.registers = 128;
            Ok(())
        })?;
    }
    Ok(())
}
/// The number of registers of a kernel: an Intel extension.
#[repr(C)]
#[derive(Clone, Copy)]
struct RegisterFile {
    stype: ze_structure_type_t,
    next: *mut c_void,
    registers: u32,
}
/// Intel's `ZEX_STRUCTURE_KERNEL_REGISTER_FILE_SIZE_EXP`.
const REGISTER_FILE: ze_structure_type_t = 0x0003_0012;
fn properties(kernel: &Kernel, p: &mut ze_kernel_properties_t) {
    let required = kernel.required().unwrap_or([0; 3]);
    let (program, code) = kernel.portable().unzip();
    let subgroup = code.and_then(|k| k.subgroup);
    p.numKernelArgs = kernel.parameters.len() as u32;
    [p.requiredGroupSizeX, p.requiredGroupSizeY, p.requiredGroupSizeZ] = required;
    p.requiredNumSubGroups = 0;
    p.requiredSubgroupSize = subgroup.unwrap_or(0);
    p.maxSubgroupSize = subgroup.unwrap_or(SUBGROUP);
    p.maxNumSubgroups = LARGEST_GROUP / p.maxSubgroupSize.max(1);
    p.localMemSize = program.map_or(0, |program| program.group_bytes() as u32);
    p.privateMemSize = 0;
    p.spillMemSize = 0;
    let mut kid = [0; 16];
    for (n, byte) in kernel.name.bytes().enumerate() {
        kid[n % 16] ^= byte.rotate_left((n / 16) as u32);
    }
    p.uuid = ze_kernel_uuid_t { kid, mid: kernel.module.uuid() };
}
/// Returns a text and its length including the NUL in the way of Level Zero: the caller passes the size of
/// its buffer, or 0 to get the length only.
pub fn put_text(size: *mut usize, to: *mut c_char, text: &str) -> Answer {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    let room = raw::get(size)?;
    if !to.is_null() && room != 0 {
        raw::put_bytes(to.cast(), room, &bytes);
    }
    raw::put(size, bytes.len())
}
entries! {
    fn zeKernelCreate(
        module: ze_module_handle_t,
        desc: *const ze_kernel_desc_t,
        to: *mut ze_kernel_handle_t,
    ) {
        let (module, d) = (module::get(module)?, raw::get(desc)?);
        let kernel = Kernel::new(module, raw::text(d.pKernelName)?)?;
        if to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        raw::put(to, handle::make(kernel).cast())
    }
    fn zeKernelDestroy(kernel: ze_kernel_handle_t) {
        handle::destroy::<Kernel>(raw!(kernel)).map(drop)
    }
    fn zeKernelSetCacheConfig(kernel: ze_kernel_handle_t, _flags: ze_cache_config_flags_t) {
        of(kernel).map(drop)
    }
    fn zeKernelSetGroupSize(kernel: ze_kernel_handle_t, x: u32, y: u32, z: u32) {
        let kernel = of(kernel)?;
        let size = sized(kernel.required(), [x, y, z])?;
        kernel.state().size = size;
        Ok(())
    }
    fn zeKernelSuggestGroupSize(
        kernel: ze_kernel_handle_t,
        width: u32,
        height: u32,
        depth: u32,
        x: *mut u32,
        y: *mut u32,
        z: *mut u32,
    ) {
        let kernel = of(kernel)?;
        let [a, b, c] = kernel.required().unwrap_or_else(|| suggested([width, height, depth]));
        raw::put(x, a)?;
        raw::put(y, b)?;
        raw::put(z, c)
    }
    fn zeKernelSuggestMaxCooperativeGroupCount(kernel: ze_kernel_handle_t, to: *mut u32) {
        of(kernel)?;
        raw::put(to, COOPERATIVE)
    }
    fn zeKernelSetArgumentValue(
        kernel: ze_kernel_handle_t,
        index: u32,
        size: usize,
        value: *const c_void,
    ) {
        let kernel = of(kernel)?;
        let parameter = kernel.parameters.get(index as usize);
        let parameter = parameter.ok_or(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX)?;
        let given = given(*parameter, size, value)?;
        kernel.state().arguments[index as usize] = Some(given);
        Ok(())
    }
    fn zeKernelSetIndirectAccess(
        kernel: ze_kernel_handle_t,
        flags: ze_kernel_indirect_access_flags_t,
    ) {
        let kernel = of(kernel)?;
        *locked(&kernel.indirect) |= flags;
        Ok(())
    }
    fn zeKernelGetIndirectAccess(
        kernel: ze_kernel_handle_t,
        to: *mut ze_kernel_indirect_access_flags_t,
    ) {
        let kernel = of(kernel)?;
        let flags = *locked(&kernel.indirect);
        raw::put(to, flags)
    }
    fn zeKernelGetSourceAttributes(
        kernel: ze_kernel_handle_t,
        size: *mut u32,
        to: *mut *mut c_char,
    ) {
        let kernel = of(kernel)?;
        let subgroup = kernel.portable().and_then(|(_, k)| k.subgroup);
        let text = subgroup.map_or(String::new(), |s| format!("intel_reqd_sub_group_size({s})"));
        let mut length = raw::get(size)? as usize;
        let place = if to.is_null() { std::ptr::null_mut() } else { raw::get(to)? };
        if place.is_null() && !to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER); // what asks for the size alone is a null `to`
        }
        put_text(&raw mut length, place, &text)?;
        raw::put(size, length as u32)
    }
    fn zeKernelGetProperties(kernel: ze_kernel_handle_t, to: *mut ze_kernel_properties_t) {
        let kernel = of(kernel)?;
        raw::amend(to, |p| {
            properties(&kernel, p);
            also_says(p.pNext)
        })
    }
    fn zeKernelGetName(kernel: ze_kernel_handle_t, size: *mut usize, to: *mut c_char) {
        put_text(size, to, &of(kernel)?.name)
    }
    fn zeKernelSetGlobalOffsetExp(kernel: ze_kernel_handle_t, x: u32, y: u32, z: u32) {
        of(kernel)?.state().offset = [x, y, z];
        Ok(())
    }
    fn zeKernelSchedulingHintExp(
        kernel: ze_kernel_handle_t,
        _hint: *mut ze_scheduling_hint_exp_desc_t,
    ) {
        of(kernel).map(drop)
    }
    fn zeKernelGetBinaryExp(kernel: ze_kernel_handle_t, size: *mut usize, to: *mut u8) {
        of(kernel)?.module.put_binary(size, to)
    }
    fn zeKernelGetAllocationPropertiesExp(
        kernel: ze_kernel_handle_t,
        count: *mut u32,
        to: *mut ze_kernel_allocation_exp_properties_t,
    ) {
        of(kernel)?;
        raw::put_list(count, to, &[])
    }
}
