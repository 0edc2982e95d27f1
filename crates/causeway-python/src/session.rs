//! Devices in use: one context and one queue for each device of the process, made when it is first named.
use crate::failure::{Failure, Result};
use causeway::{Backend, Buffer, Context, Device, ErrorKind, Export, Queue, fork_count};
use pyo3::{Py, PyAny};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// A queue over a stream of another library.
pub struct OverStream {
    pub queue: Queue,
    /// The library's object, which keeps the stream alive: when memory is freed, the driver is asked whether the stream is done
    /// with it. A stream that is named by its handle alone must live as long as the process uses the device.
    pub _stream: Option<Py<PyAny>>,
}

/// A device in use.
pub struct Session {
    pub context: Context,
    pub queue: Queue,
    pub backend: Backend,
    /// Which of its backend's devices it is.
    pub ordinal: i32,
    pub uuid: Option<String>,
    /// Bytes that the device has.
    pub memory: u64,
    /// The `fork_count` of the process that it was made in.
    fork: u64,
    /// Queues over streams of other libraries, by the streams' handles. They stay.
    pub streams: Mutex<HashMap<usize, OverStream>>,
}

/// DLPack's numbers of kinds of devices.
pub const DL_CPU: i32 = 1;
pub const DL_CUDA: i32 = 2;
pub const DL_CUDA_HOST: i32 = 3;
const DL_ROCM: i32 = 10;
const DL_ONE_API: i32 = 14;

/// An export that nobody is told of, by the `fork_count` of the process that made it.
static KEPT: Mutex<(u64, Option<Export<Buffer<u8>>>)> = Mutex::new((0, None));

/// Has this process stay reachable from its first export until its end: where nothing is exported, the runtime closes its
/// socket, and the next export takes as long as the first.
pub fn stay_reachable() -> Result<()> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.0 == fork_count() {
        return Ok(());
    }
    let export = Buffer::new(&Session::cpu()?.context, 1)?.share()?;
    std::mem::forget(kept.1.replace(export)); // what a forked child inherited is its parent's
    kept.0 = fork_count();
    Ok(())
}

/// The sessions of the process with this `fork_count`.
static SESSIONS: Mutex<(u64, Vec<Arc<Session>>)> = Mutex::new((0, Vec::new()));

impl Session {
    /// The one of a device.
    pub fn of(device: &Device) -> Result<Arc<Self>> {
        let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.0 != fork_count() {
            // A forked child's are its parent's still: nothing of them may be used or given back here.
            std::mem::forget(std::mem::take(&mut sessions.1));
            sessions.0 = fork_count();
        }
        if let Some(known) = sessions.1.iter().find(|known| known.context.device() == *device) {
            return Ok(known.clone());
        }
        let context = Context::new(device)?;
        let queue = Queue::new(&context)?;
        let backend = device.platform()?.backend()?;
        let all = of_backend(backend)?;
        let ordinal = all.iter().position(|one| one == device).unwrap_or(0);
        let uuid = match device.uuid() {
            Err(error) if error.kind() == ErrorKind::Unsupported => None,
            uuid => Some(uuid?),
        };
        let ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
        let memory = device.global_memory().unwrap_or(0);
        let streams = Mutex::default();
        let new = Arc::new(Self {
            context,
            queue,
            backend,
            ordinal,
            uuid,
            memory,
            fork: sessions.0,
            streams,
        });
        sessions.1.push(new.clone());
        Ok(new)
    }
    /// A device that is in use already, without a question to its adapter.
    fn in_use(is_it: impl Fn(&Self) -> bool) -> Option<Arc<Self>> {
        let sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.1.iter().find(|known| is_it(known));
        known.filter(|_| sessions.0 == fork_count()).cloned()
    }
    /// The host's own memory.
    pub fn cpu() -> Result<Arc<Self>> {
        Self::nth(Backend::NativeCpu, 0, "cpu")
    }
    /// `cpu`, `cuda`, `cuda:1`, `level_zero:0`, …; without a name the CPU.
    pub fn named(name: Option<&str>) -> Result<Arc<Self>> {
        let Some(name) = name else { return Self::cpu() };
        let (backend, ordinal) = name.split_once(':').unwrap_or((name, "0"));
        let backend = if backend == "cpu" { Backend::NativeCpu } else { backend.parse()? };
        let ordinal = ordinal.parse().map_err(|_| no_device(name))?;
        Self::nth(backend, ordinal, name)
    }
    /// The device that DLPack calls this.
    pub fn of_dlpack(kind: i32, ordinal: i32) -> Result<Arc<Self>> {
        let backend = match kind {
            DL_CPU | DL_CUDA_HOST => Backend::NativeCpu,
            DL_CUDA => Backend::Cuda,
            DL_ROCM => Backend::Hip,
            DL_ONE_API => Backend::LevelZero,
            _ => {
                let sentence = format!("memory of DLPack's kind of device {kind} cannot be shared");
                return Err(Failure::new("Unsupported", sentence));
            }
        };
        let ordinal = usize::try_from(ordinal).unwrap_or(0);
        Self::nth(backend, ordinal, &format!("{backend}:{ordinal}"))
    }
    fn nth(backend: Backend, ordinal: usize, name: &str) -> Result<Arc<Self>> {
        let is_it = |known: &Self| {
            known.backend == backend && usize::try_from(known.ordinal) == Ok(ordinal)
        };
        if let Some(known) = Self::in_use(is_it) {
            return Ok(known);
        }
        if ordinal == 0 {
            return Self::of(&Device::first_with(backend)?);
        }
        Self::of(of_backend(backend)?.get(ordinal).ok_or_else(|| no_device(name))?)
    }
    /// The device that a ticket is for.
    pub fn for_ticket(backend: &str, uuid: Option<&str>) -> Result<Arc<Self>> {
        let backend: Backend = backend.parse().map_err(|_| Failure::damaged())?;
        let is_it = |known: &Self| {
            known.backend == backend && uuid.is_some() && known.uuid.as_deref() == uuid
        };
        if let Some(known) = Self::in_use(is_it) {
            return Ok(known);
        }
        for device in of_backend(backend)? {
            if uuid.is_some_and(|uuid| device.uuid().is_ok_and(|found| found == uuid)) {
                return Self::of(&device);
            }
        }
        // The adapter compares for itself, and says what is different.
        Self::of(&Device::first_with(backend)?)
    }
    /// Refuses what a forked child has inherited: the driver's objects are its parent's.
    pub fn usable(&self) -> Result<()> {
        if self.fork == fork_count() {
            return Ok(());
        }
        let sentence = "this belongs to the parent of this forked process, which cannot use it: share it in the parent, pass the ticket (a str) instead of the array, and open that here";
        Err(Failure::new("Forked", sentence))
    }
    pub fn is_cpu(&self) -> bool {
        self.backend == Backend::NativeCpu
    }
    pub fn name(&self) -> String {
        match self.backend {
            Backend::NativeCpu => "cpu".into(),
            backend => format!("{backend}:{}", self.ordinal),
        }
    }
    /// What DLPack calls it.
    pub fn dlpack(&self) -> (i32, i32) {
        let kind = match self.backend {
            Backend::Cuda => DL_CUDA,
            Backend::Hip => DL_ROCM,
            Backend::LevelZero | Backend::OpenCl => DL_ONE_API,
            _ => DL_CPU,
        };
        (kind, if kind == DL_CPU { 0 } else { self.ordinal })
    }
}

/// Waits until the queues of this process have given the signals that others may wait for: they end with it.
pub fn finish_all(timeout: Duration) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.0 == fork_count() {
        *kept = (0, None);
    }
    drop(kept);
    let sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if sessions.0 == fork_count() {
        for session in &sessions.1 {
            let _ = session.queue.finish_timeout(timeout); // nobody is left to tell
        }
    }
}

fn of_backend(backend: Backend) -> Result<Vec<Device>> {
    let mut found = Vec::new();
    for device in Device::all()? {
        if device.platform()?.backend()? == backend {
            found.push(device);
        }
    }
    Ok(found)
}
fn no_device(name: &str) -> Failure {
    let sentence =
        format!("there is no device {name}: causeway_ipc.devices() lists those there are");
    Failure::new("WrongDevice", sentence)
}
