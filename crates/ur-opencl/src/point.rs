//! Points: ends of commands, and events of the driver's that the application made. What processes owe each other, a queue
//! waits for through an event of the host's, which one watcher completes.
use super::{
    OpenCl,
    cl::*,
    driver::{RawContext, RawEvent},
    error,
    native::{event as native, own::Own},
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering::*},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    per_process::PerProcess,
};
use ur_hal::{ErrorKind, Profile, Status, Times, Wait};
use ur_ipc::arena::{Any, LocalWake, PendingSignal, Progress, wait_any};
use ur_lock::locked;

/// What the core knows as a point.
#[derive(Debug)]
pub struct End {
    event: Own<RawEvent>,
    /// Of what context. The event keeps it, so that no other has its name.
    context: RawContext,
    profile: Profile,
    submitted: u64,
    /// What other processes owe that it depends on. Intel's runtime completes markers whose dependency has failed as if it had
    /// not, so that failures are passed on here.
    behind: Vec<PendingSignal>,
    /// Whether it was seen to be complete.
    is_settled: AtomicBool,
}
impl End {
    /// Of a command of which these times are noted.
    pub(super) fn new(
        event: Own<RawEvent>,
        context: RawContext,
        (profile, submitted): (Profile, u64),
        behind: Vec<PendingSignal>,
    ) -> Arc<Self> {
        let is_settled = AtomicBool::new(false);
        Arc::new(Self { event, context, profile, submitted, behind, is_settled })
    }
    pub(super) fn event(&self) -> &Own<RawEvent> {
        &self.event
    }
    /// How far the command has come.
    pub(super) fn status(&self) -> Status {
        if self.is_settled() {
            return Status::Complete;
        }
        self.judged(native::status(&self.event))
    }
    fn judged(&self, said: Status) -> Status {
        match said {
            Status::Complete if self.is_doomed() => Status::Failed,
            Status::Complete => {
                self.is_settled.store(true, Release);
                said
            }
            other => other,
        }
    }
    /// Whether it was seen to be complete.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Acquire)
    }
    /// Whether something that it depends on has failed. Asks no driver.
    pub(super) fn is_doomed(&self) -> bool {
        self.behind.iter().any(|debt| debt.progress() == Progress::Failed)
    }
    /// What other processes owe that it depends on, as far as that is not paid.
    pub(super) fn debts(&self) -> impl Iterator<Item = &PendingSignal> {
        self.behind.iter().filter(|debt| debt.progress() != Progress::Complete)
    }
    /// Sleeps until it is over.
    ///
    /// # Errors
    /// Why it failed.
    pub(super) fn wait(&self) -> ur_hal::Result<()> {
        match self.is_settled() || self.judged(native::wait(&self.event)) == Status::Complete {
            true => Ok(()),
            false => Err(self.failure()),
        }
    }
    /// Why it failed. A device that cannot be used any more, or has run out of something, is the driver's own failure.
    fn failure(&self) -> ur_hal::Error {
        if self.is_doomed() {
            return failure().because(ur_ipc::ErrorKind::ExporterGone);
        }
        match native::raw_status(&self.event) {
            Ok(CL_DEVICE_NOT_AVAILABLE) => {
                let why = "the device was lost while it ran the command";
                ur_hal::Error::new(ErrorKind::DeviceLost, why).with_status(CL_DEVICE_NOT_AVAILABLE)
            }
            Ok(
                status @ (CL_OUT_OF_RESOURCES
                | CL_OUT_OF_HOST_MEMORY
                | CL_MEM_OBJECT_ALLOCATION_FAILURE),
            ) => error::failure("the command", status).into(),
            _ => failure(),
        }
    }
    /// When it was submitted, began and ended. A timestamp and a signal are one moment.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn times(&self) -> Result<Option<Times>> {
        if self.profile == Profile::Off {
            return Ok(None);
        }
        let span = match self.status() {
            Status::Complete => {
                let (began, ended) = native::span(&self.event)?;
                Some((if self.profile == Profile::Phases { began } else { ended }, ended))
            }
            _ => None,
        };
        Ok(Some(Times { submitted: self.submitted, span }))
    }
}
/// What is said of a command that did not run, since something before it failed.
pub(super) fn failure() -> ur_hal::Error {
    ur_hal::Error::new(ErrorKind::DependencyFailed, "what a command waits for has failed")
}

/// What a wait stands for in a queue of a context: an event of the driver's, and what has to be kept until the command is
/// there.
///
/// # Errors
/// The driver's own; `OUT_OF_RESOURCES` without a thread.
pub(super) fn awaited(
    wait: Wait<'_, OpenCl>,
    context: RawContext,
    kept: &mut Vec<Own<RawEvent>>,
) -> Result<RawEvent> {
    let stands_in = |settle_by: &dyn Fn(Own<RawEvent>) -> Result<()>| {
        let own = native::of_user(context)?;
        settle_by(own.clone()).inspect_err(|_| native::settle(&own, false))?;
        Ok::<_, Error>(own)
    };
    let own = match wait {
        Wait::Point(end) if end.context == context => return Ok(end.event.raw()),
        // Contexts of OpenCL do not know each other's events.
        Wait::Point(end) => stands_in(&|own| {
            let of = Arc::clone(end);
            native::call_when_over(&end.event, move |is_good| {
                native::settle(&own, is_good && !of.is_doomed());
            })
        })?,
        Wait::Word(debt) => stands_in(&|own| watch(debt.clone(), own))?,
    };
    let raw = own.raw();
    kept.push(own);
    Ok(raw)
}

/// Signals that are owed, each with its event; and whether the thread runs.
type Owed = (Vec<(PendingSignal, Own<RawEvent>)>, bool);
/// What the watcher looks at: signals that are owed, each with the event that queues wait for in its place.
#[derive(Default)]
struct Watcher {
    state: Mutex<Owed>,
    wake: LocalWake,
}
static WATCHER: PerProcess<Watcher> = PerProcess::new();
fn watch(debt: PendingSignal, event: Own<RawEvent>) -> Result<()> {
    let watcher = WATCHER.get();
    let mut state = locked(&watcher.state);
    if !state.1 {
        let name = "causeway-opencl";
        ur_mapping::start_thread(name, move || watcher.run())
            .map_err(|why| Error::no_thread(name, &why))?;
        state.1 = true;
    }
    state.0.push((debt, event));
    drop(state);
    watcher.wake.signal();
    Ok(())
}
impl Watcher {
    fn run(&self) {
        loop {
            let all = locked(&self.state).0.clone();
            let debts: Vec<_> = all.iter().map(|(debt, _)| debt).collect();
            let Any::Ready(_) = wait_any(&debts, &self.wake, None) else { continue };
            let mut state = locked(&self.state);
            let (over, open) = std::mem::take(&mut state.0)
                .into_iter()
                .partition(|(debt, _)| debt.progress() != Progress::Pending);
            state.0 = open;
            drop(state);
            let over: Vec<(PendingSignal, Own<RawEvent>)> = over;
            for (debt, event) in over {
                native::settle(&event, debt.progress() == Progress::Complete);
            }
        }
    }
}

/// A point over an event that C made in this context.
///
/// # Errors
/// `INVALID_VALUE` for one of another context; the driver's own.
pub(super) fn adopted(
    context: RawContext,
    raw: Option<RawEvent>,
    is_owned: bool,
) -> Result<Arc<End>> {
    use super::native::own::Tells;
    let raw = raw.ok_or(ErrorCode::InvalidValue)?;
    if raw.number(CL_EVENT_CONTEXT)? as usize != context.addr() {
        let why = "the native event is of another context";
        return Err(Error::new(ErrorCode::InvalidValue, why));
    }
    Ok(End::new(Own::adopted(raw, is_owned)?, context, (Profile::Off, 0), vec![]))
}
