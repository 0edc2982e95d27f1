//! What went wrong once, mostly because two things happened at the same time.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{ur::*, *};
use std::{
    ffi::c_void,
    path::PathBuf,
    ptr::{null, null_mut},
    sync::Barrier,
    thread,
};

#[test]
fn role() {
    common::role();
}
/// An exporter for a process that is alone.
fn exporter() -> Peer {
    Peer::start(&PathBuf::from(std::env::var_os("CAUSEWAY_DIR").unwrap()), |_| {})
}
/// A handle that threads hand about, as C programs do.
#[derive(Clone, Copy)]
struct Shared(*mut c_void);
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}
#[derive(Clone, Copy)]
struct Program(Ur);
unsafe impl Send for Program {}
unsafe impl Sync for Program {}
impl Program {
    fn open(&self, kind: Kind, ticket: &[u8]) -> Outcome<Shared> {
        self.0.open(kind, ticket).map(Shared)
    }
    fn close(&self, kind: Kind, object: Shared) {
        self.0.close(kind, object.0).unwrap();
    }
}

/// Each thread joined the exporter's arena under a number of its own; all but one left it again, and with it the events
/// that they had opened. Their releases were then taken for nonsense, and the exporter hung up.
#[test]
fn threads_that_open_their_first_events_of_an_exporter_at_once_keep_them() {
    const THREADS: usize = 6;
    alone(|| {
        let program = Program(Ur::new());
        let mut exporter = exporter();
        let tickets: Vec<_> = (0..THREADS)
            .map(|n| {
                exporter.must(&format!("event e{n}"));
                hex::decode(exporter.must(&format!("get event e{n}"))).unwrap()
            })
            .collect();
        for round in 0..100 {
            let start = Barrier::new(THREADS);
            let open = |ticket: &Vec<u8>| {
                start.wait();
                program.open(Kind::Event, ticket).unwrap()
            };
            let open = &open;
            let opened: Vec<Shared> = thread::scope(|scope| {
                let threads: Vec<_> =
                    tickets.iter().map(|t| scope.spawn(move || open(t))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            for event in &opened[1..] {
                program.close(Kind::Event, *event);
            }
            exporter.must("gate q g");
            exporter.must("signal q e0");
            assert_eq!(program.0.status(opened[0].0), Ok(ur_event_status_t::SUBMITTED), "{round}");
            exporter.must("ungate g");
            program.0.wait(&[opened[0].0]).unwrap();
            program.close(Kind::Event, opened[0]);
        }
    });
}

/// A queue kept what it had signalled by: the memory and the connection of every exporter, dead ones too.
#[test]
fn a_queue_keeps_nothing_of_exporters_that_are_dead() {
    alone(|| {
        let ur = Ur::new();
        let queue = ur.new_queue(ur_queue_flags_t::default());
        let meet = || {
            let mut exporter = exporter();
            exporter.must("event e");
            let ticket = hex::decode(exporter.must("get event e")).unwrap();
            let event = ur.open(Kind::Event, &ticket).unwrap();
            ur.signal(queue, event, &[]).unwrap();
            ur.wait(&[event]).unwrap();
            exporter.kill();
            eventually("its death is known", || ur.open(Kind::Event, &ticket).is_err());
            ur.close(Kind::Event, event).unwrap();
        };
        meet();
        meet();
        let few = (descriptors(), memfds());
        (0..6).for_each(|_| meet());
        eventually("what was the dead ones' is gone", || (descriptors(), memfds()) <= few);
    });
}

/// Sizes that no machine has are refused with the code for that, whatever the kernel calls it.
#[test]
fn no_size_is_too_large_to_be_refused_as_such() {
    alone(|| {
        let ur = Ur::new();
        for bytes in [usize::MAX & !4095, 1 << 63, (1 << 63) - 4096, 1 << 62, 1 << 46] {
            let refused = ur.new_physical(bytes, true).unwrap_err();
            assert_eq!(
                refused.code,
                ur_result_t::ERROR_OUT_OF_DEVICE_MEMORY,
                "{bytes:#x} {refused:?}"
            );
            let mut at = null_mut();
            let code = call!(virtual_mem.reserve(ur.context, null(), bytes, &mut at));
            assert!(at.is_null() || code == ur_result_t::SUCCESS);
            for usm in [Usm::Device, Usm::Host, Usm::Shared] {
                let refused = ur.alloc(usm, bytes).unwrap_err();
                assert_eq!(refused.code, ur_result_t::ERROR_INVALID_USM_SIZE, "{refused:?}");
            }
        }
    });
}

/// A range is within one allocation or touches none.
#[test]
fn a_range_that_begins_before_an_allocation_does_not_run_into_it() {
    alone(|| {
        let ur = Ur::new();
        let queue = ur.new_queue(ur_queue_flags_t::default());
        let all: Vec<_> = (0..64).map(|_| ur.alloc(Usm::Device, 100).unwrap()).collect();
        let mut host = [0_u8; 256];
        for pair in all.windows(2).filter(|pair| pair[0] < pair[1]) {
            let behind = pair[0].wrapping_byte_add(100);
            let refused = ur.copy(queue, host.as_mut_ptr().cast(), behind, 100).unwrap_err();
            assert_eq!(refused.code, ur_result_t::ERROR_INVALID_SIZE);
        }
    });
}
