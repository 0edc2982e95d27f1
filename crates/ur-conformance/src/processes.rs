//! Sharing between processes, tested across processes: an exporter, importers and third parties that exchange
//! nothing but handle bytes.
mod behind;
mod borders;
mod death;
mod events;
mod family;
mod hostile;
mod lifetime;
mod limits;
mod memory;
mod paused;
mod peer;
mod scale;
mod stage;
mod stage_process;
mod stage_queue;
mod stage_threads;
mod steps;
mod unput;

use crate::{
    adapter::Adapter,
    bench::{Bench, Subject, share::Kind},
    case::{Case, Verdict},
};

/// A kind of object that processes share, with its entries.
#[derive(Clone, Copy)]
pub struct Shared {
    pub kind: &'static str,
    pub family: &'static str,
    pub get: &'static str,
    pub put: &'static str,
    pub open: &'static str,
    pub close: &'static str,
}
pub const SHARED: [Shared; 3] = [
    Shared {
        kind: "memory",
        family: "ipc_memory",
        get: "urIPCGetMemHandleExp",
        put: "urIPCPutMemHandleExp",
        open: "urIPCOpenMemHandleExp",
        close: "urIPCCloseMemHandleExp",
    },
    Shared {
        kind: "physical",
        family: "ipc_physical",
        get: "urIPCGetPhysMemHandleExp",
        put: "urIPCPutPhysMemHandleExp",
        open: "urIPCOpenPhysMemHandleExp",
        close: "urIPCClosePhysMemHandleExp",
    },
    Shared {
        kind: "event",
        family: "ipc_event",
        get: "urIPCGetEventHandleExp",
        put: "urIPCPutEventHandleExp",
        open: "urIPCOpenEventHandleExp",
        close: "urEventRelease",
    },
];
type Judge = fn(&Bench, &Shared) -> Verdict;
impl Shared {
    /// Whether its objects have contents.
    pub fn has_bytes(&self) -> bool {
        self.kind != "event"
    }
    fn case(&'static self, entry: &'static str, rule: &str, name: &str, judge: Judge) -> Case {
        Case::new(self.family, entry, rule, name, move |bench| judge(bench, self))
    }
}

pub fn cases() -> Vec<Case> {
    let parts = [
        lifetime::cases(),
        memory::cases(),
        events::cases(),
        hostile::cases(),
        death::cases(),
        behind::cases(),
        borders::cases(),
        limits::cases(),
        paused::cases(),
        scale::cases(),
        steps::cases(),
        family::cases(),
        unput::cases(),
    ];
    parts.into_iter().flatten().collect()
}

/// Creates an event in error: the process that should have completed its signal died.
pub fn event_in_error(bench: &Bench) -> Verdict<*mut std::ffi::c_void> {
    bench.needs(ur_sys::ur_device_info_t::IPC_EVENT_SUPPORT_EXP)?;
    let place = peer::Place::new(bench)?;
    let mut exporter = place.neighbour()?;
    let ticket = exporter.shares("event", "it")?;
    let event = bench.open(Kind::Event, &stage::unhex(&ticket))?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    exporter.kill()?;
    peer::eventually("the event is in error", || {
        bench.status(event).is_ok_and(|status| status == ur_sys::ur_event_status_t::ERROR)
    })?;
    Ok(event)
}

/// Runs a peer: it executes commands until its input ends.
pub fn peer(subject: &Subject) -> Result<(), String> {
    // The peer does not outlive its parent.
    let signal = Some(rustix::process::Signal::KILL);
    rustix::process::set_parent_process_death_signal(signal).map_err(|e| e.to_string())?;
    let adapter: &'static Adapter =
        Box::leak(Box::new(Adapter::load(&subject.adapter, &subject.entry_path)?));
    stage::Stage::new(adapter, subject.clone()).play();
    Ok(())
}
