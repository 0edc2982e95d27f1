//! What a case gets: the adapter, its device, a context, and one object of each kind on demand. Everything is
//! created through the C ABI; objects created on first use are released with the bench.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod make;
pub mod share;

use crate::{
    adapter::Adapter,
    ask,
    case::{Stop, Verdict},
    entry_path::EntryPath,
    raw::Word,
};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    ffi::{CStr, c_void},
    path::PathBuf,
    ptr::{null, null_mut},
    sync::atomic::{AtomicBool, Ordering},
};
use ur_sys::*;

/// The adapter and the device to judge.
#[derive(Clone, Debug)]
pub struct Subject {
    pub adapter: PathBuf,
    pub device: usize,
    /// The interface through which it is called.
    pub entry_path: EntryPath,
    /// If set, one reference to the adapter is never released.
    pub keep: bool,
}

/// Kinds of USM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usm {
    Device,
    Host,
    Shared,
}
pub const USM: [Usm; 3] = [Usm::Device, Usm::Host, Usm::Shared];

/// An empty wait list.
pub const NO_LIST: (u32, *const ur_event_handle_t) = (0, null());

pub struct Bench {
    pub adapter: &'static Adapter,
    pub subject: Subject,
    made: RefCell<Vec<(String, *mut c_void)>>,
    found: RefCell<HashMap<&'static str, *mut c_void>>,
    promised: Cell<bool>,
}

/// Returns the entry that releases an object of a kind.
pub fn release_entry(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Adapter" => "urAdapterRelease",
        "Context" => "urContextRelease",
        "Queue" => "urQueueRelease",
        "Event" | "ProfiledEvent" | "EventInError" => "urEventRelease",
        "Mem" | "OtherMem" | "Image" | "OtherImage" => "urMemRelease",
        "Sampler" => "urSamplerRelease",
        "PhysicalMem" => "urPhysicalMemRelease",
        "UsmPool" => "urUSMPoolRelease",
        "Program" => "urProgramRelease",
        "Kernel" | "IdleKernel" => "urKernelRelease",
        "ExpCommandBuffer" | "FinalizedCommandBuffer" | "UpdatableCommandBuffer" => {
            "urCommandBufferReleaseExp"
        }
        "ExpGraph" => "urGraphDestroyExp",
        "ExpExecutableGraph" => "urGraphExecutableGraphDestroyExp",
        _ => return None,
    })
}
/// A pointer or handle as an argument.
pub fn word(at: *const c_void) -> Word {
    Word::One(at.expose_provenance() as u64)
}

/// Fails if an entry succeeded but returned a null pointer.
pub fn exists(made: *const c_void) -> Verdict {
    crate::ensure!(!made.is_null(), "an entry succeeds and gives nothing");
    Ok(())
}
/// Lists handles through an entry that is called twice: for the count, then for the handles.
fn first<H: Copy>(
    none: H,
    mut get: impl FnMut(u32, *mut H, *mut u32) -> Verdict<ur_result_t>,
) -> Verdict<Vec<H>> {
    let mut count = 0;
    let code = get(0, null_mut(), &mut count)?;
    if code == ur_result_t::ERROR_DEVICE_NOT_FOUND || code == ur_result_t::SUCCESS && count == 0 {
        return Ok(Vec::new());
    }
    crate::same!(code, ur_result_t::SUCCESS, "counting what there is");
    let count_of = usize::try_from(count).expect("no more than memory holds");
    let mut all = vec![none; count_of];
    let code = get(count, all.as_mut_ptr(), null_mut())?;
    crate::same!(code, ur_result_t::SUCCESS, "listing what there is");
    Ok(all)
}

impl Bench {
    pub fn new(adapter: &'static Adapter, subject: Subject) -> Self {
        let (made, found, promised) = Default::default();
        Self { adapter, subject, made, found, promised }
    }
    /// From here on UNSUPPORTED_FEATURE is a failure, because the device reports the capability `info`; skips
    /// the case if the device does not report it.
    pub fn needs(&self, info: ur_device_info_t) -> Verdict {
        let (device, mut has, mut size) = (self.device()?, 0_u8, 0_usize);
        let to = (&raw mut has).cast();
        let code = ask!(self, device.get_info(device, info, 1, to, &mut size));
        if code != ur_result_t::SUCCESS || has == 0 {
            return Err(Stop::skipped(format!("the device answers no to {info:?}")));
        }
        self.promised.set(true);
        Ok(())
    }
    pub fn promise(&self) {
        self.promised.set(true);
    }
    /// Judges a call that must succeed.
    pub fn succeeded(&self, entry: &str, code: ur_result_t) -> Verdict {
        match code {
            ur_result_t::SUCCESS => Ok(()),
            ur_result_t::ERROR_UNSUPPORTED_FEATURE if !self.promised.get() => {
                Err(Stop::skipped(format!("{entry} is not supported: {}", self.sentence())))
            }
            code => Err(Stop::Failed(format!("{entry} answered {code:?}: {}", self.sentence()))),
        }
    }
    /// Judges a call that must be refused with `expected`.
    pub fn was_refused(&self, entry: &str, code: ur_result_t, expected: ur_result_t) -> Verdict {
        if code == expected {
            return Ok(());
        }
        if code == ur_result_t::ERROR_UNSUPPORTED_FEATURE && !self.promised.get() {
            return Err(Stop::skipped(format!("{entry} is not supported: {}", self.sentence())));
        }
        let why = format!("{entry} answered {code:?} where {expected:?} was expected");
        Err(Stop::Failed(why))
    }
    /// The message of this thread's last failure; empty if there is none.
    pub fn sentence(&self) -> String {
        let entry = self.adapter.tables.adapter.get_last_error;
        let (Some(entry), Ok(adapter)) = (entry, self.handle()) else { return String::new() };
        let (mut message, mut errno) = (null(), 0);
        let code = unsafe { entry(adapter, &mut message, &mut errno) };
        if code != ur_result_t::SUCCESS || message.is_null() {
            return String::new();
        }
        unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
    }
}
/// Tests with several threads on the same objects.
impl Bench {
    /// Runs `act` in `count` threads at once. Each gets a bench of its own with this bench's context, queue
    /// and other objects that exist already, and the thread's index.
    ///
    /// # Errors
    /// Returns the first error of any thread.
    pub fn together(&self, count: usize, act: impl Fn(&Self, usize) -> Verdict + Sync) -> Verdict {
        self.platform()?;
        self.queue()?;
        let found: Vec<_> =
            self.found.borrow().iter().map(|(kind, at)| (*kind, at.expose_provenance())).collect();
        let (adapter, subject, promised) = (self.adapter, &self.subject, self.promised.get());
        let verdicts = crate::rules::together::all_at_once((0..count).collect(), |index| {
            let bench = Self::new(adapter, subject.clone());
            let handle = |at: usize| std::ptr::with_exposed_provenance_mut(at);
            bench.found.replace(found.iter().map(|(kind, at)| (*kind, handle(*at))).collect());
            bench.promised.set(promised);
            act(&bench, index)
        })?;
        verdicts.into_iter().collect()
    }
}
/// Objects that exist only once.
impl Bench {
    fn once(
        &self,
        what: &'static str,
        find: impl FnOnce() -> Verdict<*mut c_void>,
    ) -> Verdict<*mut c_void> {
        if let Some(found) = self.found.borrow().get(what) {
            return Ok(*found);
        }
        let found = find()?;
        self.found.borrow_mut().insert(what, found);
        if release_entry(what).is_some() {
            self.made.borrow_mut().push((what.to_owned(), found));
        }
        Ok(found)
    }
    pub fn handle(&self) -> Verdict<ur_adapter_handle_t> {
        let found = self.once("Adapter", || {
            let mut count = 0;
            let code = ask!(self, adapter.get(0, null_mut(), &mut count));
            if code != ur_result_t::SUCCESS {
                // An adapter without its driver may return an error here.
                let why = format!("urAdapterGet answers {code:?}: the adapter is of no use here");
                return Err(Stop::skipped(why));
            }
            let list = || {
                first(ur_adapter_handle_t::NULL, |n, to, count| {
                    Ok(ask!(self, adapter.get(n, to, count)))
                })
            };
            static KEPT: AtomicBool = AtomicBool::new(false);
            if self.subject.keep && !KEPT.swap(true, Ordering::Relaxed) {
                list()?;
            }
            let all = list()?;
            let one = all.first().ok_or_else(|| Stop::skipped("urAdapterGet lists no adapter"))?;
            Ok(one.0)
        })?;
        Ok(ur_adapter_handle_t(found))
    }
    pub fn platforms(&self) -> Verdict<Vec<ur_platform_handle_t>> {
        let adapter = self.handle()?;
        first(ur_platform_handle_t::NULL, |n, to, count| {
            Ok(ask!(self, platform.get(adapter, n, to, count)))
        })
    }
    pub fn devices(&self, platform: ur_platform_handle_t) -> Verdict<Vec<ur_device_handle_t>> {
        let all = ur_device_type_t::ALL;
        first(ur_device_handle_t::NULL, |n, to, count| {
            Ok(ask!(self, device.get(platform, all, n, to, count)))
        })
    }
    /// Skips the case if the driver does not survive a fork. In a forked child such an adapter returns
    /// UNINITIALIZED when platforms or devices are listed.
    pub fn survives_fork(&self) -> Verdict {
        let (adapter, mut count) = (self.handle()?, 0);
        let settled = |entry: &str, code| match code {
            ur_result_t::ERROR_UNINITIALIZED => Err(Stop::skipped(format!(
                "the driver does not survive a fork: {entry} answers {code:?} in the child: {}",
                self.sentence()
            ))),
            _ => Ok(()),
        };
        let code = ask!(self, platform.get(adapter, 0, null_mut(), &mut count));
        settled("urPlatformGet", code)?;
        for platform in self.platforms()? {
            let all = ur_device_type_t::ALL;
            let code = ask!(self, device.get(platform, all, 0, null_mut(), &mut count));
            settled("urDeviceGet", code)?;
        }
        Ok(())
    }
    /// Returns the platform of the chosen device, and the device.
    fn choose(&self) -> Verdict<(ur_platform_handle_t, ur_device_handle_t)> {
        let mut all = Vec::new();
        for platform in self.platforms()? {
            all.extend(self.devices(platform)?.into_iter().map(|device| (platform, device)));
        }
        let count = all.len();
        all.get(self.subject.device).copied().ok_or_else(|| {
            Stop::skipped(match count {
                0 => "the adapter has no device".into(),
                n => format!("the adapter has only {n} devices"),
            })
        })
    }
    pub fn platform(&self) -> Verdict<ur_platform_handle_t> {
        let found = self.once("Platform", || {
            if let Ok((platform, _)) = self.choose() {
                return Ok(platform.0);
            }
            let all = self.platforms()?;
            Ok(all.first().ok_or_else(|| Stop::skipped("the adapter has no platform"))?.0)
        })?;
        Ok(ur_platform_handle_t(found))
    }
    pub fn device(&self) -> Verdict<ur_device_handle_t> {
        Ok(ur_device_handle_t(self.once("Device", || Ok(self.choose()?.1.0))?))
    }
    pub fn context(&self) -> Verdict<ur_context_handle_t> {
        Ok(ur_context_handle_t(self.once("Context", || Ok(self.new_context()?.0))?))
    }
    /// An in-order queue.
    pub fn queue(&self) -> Verdict<ur_queue_handle_t> {
        let flags = ur_queue_flags_t::default();
        Ok(ur_queue_handle_t(self.once("Queue", || Ok(self.new_queue(flags)?.0))?))
    }
    /// Returns an object of a kind, by its name in the specification; `Image` is an additional kind. It is
    /// created on first use.
    pub fn object(&self, kind: &str) -> Verdict<*mut c_void> {
        let known = self.made.borrow().iter().find(|(k, _)| k == kind).map(|(_, at)| *at);
        match (kind, known) {
            (_, Some(at)) => Ok(at),
            ("Adapter", _) => Ok(self.handle()?.0),
            ("Platform", _) => Ok(self.platform()?.0),
            ("Device", _) => Ok(self.device()?.0),
            ("Context", _) => Ok(self.context()?.0),
            ("Queue", _) => Ok(self.queue()?.0),
            _ => {
                let at = self.make(kind)?;
                self.made.borrow_mut().push((kind.to_owned(), at));
                Ok(at)
            }
        }
    }
}
impl Drop for Bench {
    /// Releases the objects in the reverse order of their creation.
    fn drop(&mut self) {
        for (kind, at) in self.made.take().into_iter().rev() {
            if let Some(entry) = release_entry(&kind) {
                self.adapter.call(entry, &[word(at)]);
            }
        }
    }
}

/// The value of a fixed-size property: `info!(bench, queue.get_info(queue, name), u32)`.
#[macro_export]
macro_rules! info {
    ($bench:expr, $table:ident . $slot:ident ( $($argument:expr),* ), $type:ty) => {{
        let (mut value, mut size) = (<$type as Default>::default(), 0_usize);
        let (to, bytes) = ((&raw mut value).cast::<std::ffi::c_void>(), size_of::<$type>());
        $crate::must!($bench, $table.$slot($($argument,)* bytes, to, &mut size));
        $crate::same!(size, bytes, concat!("the size that ", stringify!($slot), " reports"));
        value
    }};
}
