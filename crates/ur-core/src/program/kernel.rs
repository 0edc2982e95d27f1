//! Kernels: functions of built programs, and their properties on each device.
use super::{
    code::{Function, HasCode, Module, leave, no_kernel},
    object::Program,
};
use crate::kernels::{
    arguments::Taken,
    geometry::{Limits, Range},
    metadata::Wanted,
};
use crate::{
    over_driver::{Context, Device},
    process_mutex::ProcessMutex,
};
use std::{
    ffi::{CStr, CString},
    sync::Arc,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Owned,
};
use ur_hal::{Capabilities, ErrorKind, FunctionFacts, GroupChoice, NativeHandle};

/// What `ur_kernel_handle_t` points at.
#[derive(Debug)]
pub struct Kernel<D: HasCode> {
    program: Owned<Program<D>>,
    name: CString,
    /// The kernel on each device for which its program was built.
    on: Vec<OnDevice<D>>,
}
/// A kernel on one device, or on all devices that share its module.
#[derive(Debug)]
pub struct OnDevice<D: HasCode> {
    device: Owned<Device<D>>,
    function: Arc<Function<D>>,
    facts: FunctionFacts,
    limits: Limits,
    capabilities: Capabilities,
    /// Whether the source's limit of the group size is known; then a missing limit means that the source has none.
    pub(super) is_most_told: bool,
    /// The group size that was chosen last, and for which launch.
    chosen: ProcessMutex<Option<Chosen>>,
    /// Keeps the module loaded.
    module: Arc<Module<D>>,
}
/// Global size, local memory in bytes, and the group size chosen for them.
type Chosen = ([usize; 3], usize, [usize; 3]);

impl<D: HasCode> OnDevice<D> {
    fn new(
        (device, module): (Owned<Device<D>>, Arc<Module<D>>),
        function: Function<D>,
        (wanted, is_most_told): (Wanted, bool),
    ) -> Result<Self> {
        let (capabilities, most) = D::launches(&device)?;
        let facts = D::function_facts(&function)?;
        let wanted = Wanted {
            size: facts.required_group.or(wanted.size),
            sub_group: facts.sub_group.or(wanted.sub_group),
            ..wanted
        };
        let items = facts.items.unwrap_or(most.items);
        let warp = facts.multiple.unwrap_or(most.sub_group).max(1);
        let limits = Limits { items, group: most.group, grid: most.grid, warp, wanted };
        let (is_most_told, chosen) = (is_most_told || facts.is_all_told, ProcessMutex::default());
        let function = Arc::new(function);
        Ok(Self { device, function, facts, limits, capabilities, is_most_told, chosen, module })
    }
    /// The device; the first one if several share the module.
    pub fn device(&self) -> &Owned<Device<D>> {
        &self.device
    }
    /// The driver's function.
    pub fn function(&self) -> &Arc<Function<D>> {
        &self.function
    }
    /// The arguments that it takes.
    pub fn takes(&self) -> Taken<'_> {
        let sizes = self.facts.argument_sizes.as_deref();
        let count = self.facts.arguments.map(|n| n as usize).or(sizes.map(<[u32]>::len));
        Taken { count, sizes, longest: self.facts.longest_argument }
    }
    /// The module, which keeps it loaded.
    pub fn module(&self) -> &Arc<Module<D>> {
        &self.module
    }
    /// Its properties on this device.
    pub fn facts(&self) -> &FunctionFacts {
        &self.facts
    }
    /// The limits of launches of it.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
    /// The capabilities of the device.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
    /// The group size of a launch for which the caller passes none: the driver's suggestion, if that divides the range.
    ///
    /// # Errors
    /// `INVALID_WORK_GROUP_SIZE` if no group size fits. Returns the driver's error, mapped as in `error.rs`.
    pub fn choose(&self, range: &Range, local_memory: usize) -> Result<[usize; 3]> {
        if let Some((global, memory, local)) = *self.chosen.lock()?
            && (global, memory) == (range.global, local_memory)
        {
            return Ok(local);
        }
        let told = match self.limits.wanted.size {
            Some(_) => None,
            None => D::best_group(&self.function, range.global, local_memory)?,
        };
        let local = match told {
            Some(GroupChoice::Of(local)) if self.limits.check_local(range, local).is_ok() => local,
            Some(GroupChoice::Of(local)) => {
                self.limits.suggest(range, local.into_iter().fold(1, usize::saturating_mul))?
            }
            Some(GroupChoice::About(items)) => self.limits.suggest(range, items)?,
            None => self.limits.suggest(range, self.limits.items)?,
        };
        *self.chosen.lock()? = Some((range.global, local_memory, local));
        Ok(local)
    }
}

impl<D: HasCode> Kernel<D> {
    /// The kernel with this name.
    ///
    /// # Errors
    /// `INVALID_KERNEL_NAME` if there is none; `INVALID_PROGRAM_EXECUTABLE` unless the program is built. Returns the
    /// driver's error, mapped as in `error.rs`.
    pub fn new(program: Owned<Program<D>>, name: &CStr) -> Result<Owned<Self>> {
        let (mut on, wanted) = (vec![], program.wanted(name));
        for built in program.built()? {
            if let Some(function) = D::function(&built.1, name)? {
                on.push(OnDevice::new(built, function, wanted)?);
            }
        }
        if on.is_empty() {
            return Err(no_kernel(name));
        }
        Ok(Owned::new(Self { program, name: name.to_owned(), on }))
    }
    /// A kernel over a native function of one of the program's modules.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless the program is built; `INVALID_KERNEL` if the driver can tell that the function
    /// is of none of its modules. Returns the driver's error, mapped as in `error.rs`.
    pub(super) fn adopted(
        program: Owned<Program<D>>,
        native: NativeHandle,
        is_owned: bool,
    ) -> Result<Owned<Self>> {
        let mut refused = ErrorKind::InvalidFunction.into();
        for built in program.built()? {
            let (function, name) = match D::adopt_function(&built.1, native, is_owned) {
                Ok((Some(function), name)) => (function, name),
                Ok((None, name)) => return Self::new(program, &name),
                Err(error) if error.kind() == ErrorKind::InvalidFunction => {
                    refused = error;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let on = vec![OnDevice::new(built, function, program.wanted(&name))?];
            return Ok(Owned::new(Self { program, name, on }));
        }
        Err(refused.into())
    }
    /// The program that contains it.
    pub fn program(&self) -> &Owned<Program<D>> {
        &self.program
    }
    pub(super) fn context(&self) -> &Owned<Context<D>> {
        self.program.context()
    }
    /// Its name.
    pub(super) fn name(&self) -> &CStr {
        &self.name
    }
    /// The kernel on each device.
    pub(super) fn all(&self) -> &[OnDevice<D>] {
        &self.on
    }
    /// The kernel on the first device; its parameters are the same on all devices.
    pub fn any(&self) -> &OnDevice<D> {
        &self.on[0]
    }
    /// The kernel on a device, or on the device of which that is a part.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a device that its program was not made for; `INVALID_PROGRAM_EXECUTABLE` for one that it
    /// was not built for.
    pub fn on(&self, device: &Device<D>) -> Result<&OnDevice<D>> {
        if let Some(found) = self.on.iter().find(|one| std::ptr::eq(&**one.device, device)) {
            return Ok(found);
        }
        self.program.check(device)?;
        let shared = self.on.first().filter(|_| D::SHARES_MODULES);
        match (shared, device.parent()) {
            (Some(shared), _) => Ok(shared),
            (None, Some(parent)) => self.on(parent),
            (None, None) => Error::refuse(
                ErrorCode::InvalidProgramExecutable,
                "the kernel's program was not built for this device when the kernel was made",
            ),
        }
    }
}
body!(Kernel: HasCode, Kernel, InvalidKernel);
impl<D: HasCode> Drop for Kernel<D> {
    /// Deferred, because launches of it may be running.
    fn drop(&mut self) {
        let functions: Vec<_> = self.on.drain(..).map(|one| (one.function, one.module)).collect();
        leave::<D>(self.context().as_handle().addr(), functions);
    }
}
