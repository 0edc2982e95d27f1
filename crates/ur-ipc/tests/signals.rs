//! Thousands of signals to importer and exporter, as profilers and language runtimes send them: they must not affect
//! the results of system calls. `CAUSEWAY_TEST_OPENS` sets the number of opens; a million takes minutes.
#![expect(unsafe_code, reason = "asks the C library for signals")]
mod common;
use common::*;
use rustix::{
    fd::OwnedFd,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
    process::Signal,
};
use std::{
    mem::zeroed,
    ptr::null_mut,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

const RATE: &str = "CAUSEWAY_TEST_SIGNALS";
/// How long an open may take according to its documentation, and what a busy machine adds to that.
const DOCUMENTED: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_millis(700);

#[test]
fn role() {
    if let Some(rate) = std::env::var_os(RATE) {
        interrupt(rate.to_str().unwrap().parse().unwrap());
    }
    common::role();
}
use common::{no_clone as cloned, no_fork as forked};

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Relaxed);
}
/// Interrupts this thread `rate` times a second, whatever it waits for, without system calls being restarted.
fn interrupt(rate: i64) {
    // SAFETY: zeros are a valid action: no flags, no mask.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = count as *const () as usize;
    // SAFETY: an initialised action, whose handler only uses an atomic.
    assert_eq!(unsafe { libc::sigaction(libc::SIGPROF, &raw const action, null_mut()) }, 0);
    // SAFETY: zeros are a valid event.
    let mut event: libc::sigevent = unsafe { zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = libc::SIGPROF;
    // SAFETY: takes no arguments.
    event.sigev_notify_thread_id = unsafe { libc::gettid() };
    let mut timer = null_mut();
    let (event, place) = (&raw mut event, &raw mut timer);
    // SAFETY: an initialised event, and a place for the timer.
    assert_eq!(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, event, place) }, 0);
    let every = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000_000 / rate };
    let times = libc::itimerspec { it_interval: every, it_value: every };
    // SAFETY: the timer made above, and initialised times.
    assert_eq!(unsafe { libc::timer_settime(timer, 0, &raw const times, null_mut()) }, 0);
}
fn interrupted(place: &Place, rate: u32) -> Peer {
    Peer::start(&place.0, |command| {
        command.env(RATE, rate.to_string());
    })
}
#[track_caller]
fn was_interrupted(peer: &mut Peer) {
    assert_ne!(peer.ask("signals"), "0");
}

fn opens(rate: u32) {
    let place = Place::new();
    let (mut exporter, mut importer) = (interrupted(&place, rate), interrupted(&place, rate));
    let memory = exporter.ask("export hello 1 same");
    let physical = exporter.ask("export-physical bulk");
    exporter.ask("slot e");
    let event = exporter.ask("export-slot e");
    let opens = std::env::var("CAUSEWAY_TEST_OPENS").ok().and_then(|opens| opens.parse().ok());
    let mut left: u32 = opens.unwrap_or(10_000) / 4;
    while left > 0 {
        let now = left.min(500); // within the time for one answer
        left -= now;
        let said = importer.ask(&format!("open-often {now} {memory} {physical} {event}"));
        assert_eq!(said, "all well");
    }
    was_interrupted(&mut importer);
    was_interrupted(&mut exporter);
    eventually("all is given back", || exporter.ask("leased 1") == "false");
}
#[test]
fn all_kinds_are_opened_waited_for_and_closed_under_a_thousand_signals_a_second() {
    opens(1000);
}
#[test]
fn all_kinds_are_opened_waited_for_and_closed_under_ten_thousand_signals_a_second() {
    opens(10_000);
}
#[test]
fn under_signals_an_exporter_is_connected_to_and_an_event_waited_for() {
    let place = Place::new();
    let (mut exporter, mut importer) = (interrupted(&place, 10_000), interrupted(&place, 10_000));
    for round in 0..100 {
        let ticket = exporter.ask("export hello 1 same");
        assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32", "{round}");
        exporter.ask("slot e");
        let event = exporter.ask("export-slot e");
        assert!(importer.ask(&format!("open-event {event}")).starts_with("event"), "{round}");
        exporter.ask("signal e");
        assert_eq!(importer.ask(&format!("wait {event} 15000")), "waiting");
        exporter.ask("complete");
        assert_eq!(importer.hear(), "Complete", "{round}");
        importer.ask(&format!("close {ticket}"));
        importer.ask(&format!("close-event {event}"));
        exporter.ask(&format!("put {ticket}"));
        exporter.ask(&format!("put {event}"));
        eventually("the broker ends: the next open connects anew", || place.names().is_empty());
    }
    was_interrupted(&mut importer);
}

#[track_caller]
fn ends_in_time(importer: &mut Peer, ticket: &str) {
    let asked = Instant::now();
    let said = importer.ask(&format!("open {ticket}"));
    let took = asked.elapsed();
    assert!(said.starts_with("TimedOut"), "{said}");
    assert!(took + Duration::from_millis(50) > DOCUMENTED && took < DOCUMENTED + SLACK, "{took:?}");
    was_interrupted(importer);
}
#[test]
fn under_signals_an_open_ends_in_time_though_the_exporter_is_stopped() {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), interrupted(&place, 10_000));
    let one = exporter.ask("export one 1 same");
    let other = exporter.ask("export other 2 same");
    assert_eq!(importer.ask(&format!("open {one}")), "remote one 16 32");
    exporter.signal(Signal::STOP);
    ends_in_time(&mut importer, &other);
    assert_eq!(importer.ask(&format!("open {one}")), "remote one 16 32", "it lives");
    exporter.signal(Signal::CONT);
    assert_eq!(importer.ask(&format!("open {other}")), "remote other 16 32");
}
#[test]
fn under_signals_an_open_ends_in_time_though_nobody_is_let_in() {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), interrupted(&place, 10_000));
    let ticket = exporter.ask("export hello 1 same");
    exporter.signal(Signal::STOP);
    let address = SocketAddrUnix::new(place.socket()).unwrap();
    let mut queue: Vec<OwnedFd> = Vec::new();
    let full = loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        match connect(&socket, &address) {
            Ok(()) => queue.push(socket),
            Err(full) => break full,
        }
    };
    assert_eq!(full, rustix::io::Errno::AGAIN);
    ends_in_time(&mut importer, &ticket);
    drop(queue);
    exporter.signal(Signal::CONT);
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
}
