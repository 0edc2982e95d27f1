//! Events of processes that hold each other up or die: on the software driver, which does then what Intel's does, or on the machine's
//! (`CAUSEWAY_LEVEL_ZERO=real`). Else the tests say so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/calls.rs"]
mod calls;
#[path = "c/gate.rs"]
mod gate;
#[path = "c/other.rs"]
mod other;

use c::*;
use calls::*;
use gate::Gate;
use other::Other;
use std::{
    ptr::{null, null_mut},
    time::{Duration, Instant},
};
use ur_sys::{ur_queue_flags_t as Flags, ur_result_t as R, *};

fn made(zero: &Zero) -> ur_event_handle_t {
    let (stype, flags) = (ur_structure_type_t::EXP_EVENT_DESC, ur_exp_event_flags_t::IPC_EXP);
    let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
    let mut event = NO_EVENT;
    let code = call!(event_exp.create_exp(zero.context, zero.device, &raw const desc, &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
/// Whether the device's events can be shared; else it is said that the test is skipped.
fn shares_events(zero: &Zero) -> bool {
    let (mut shares, name) = (0_u8, ur_device_info_t::IPC_EVENT_SUPPORT_EXP);
    let to = (&raw mut shares).cast();
    let code = call!(device.get_info(zero.device, name, 1usize, to, null_mut()));
    if (code, shares) != (R::SUCCESS, 1) {
        println!("skipped: this driver shares no events");
        return false;
    }
    true
}
fn ticket(event: ur_event_handle_t) -> String {
    let (mut bytes, mut size) = (null_mut(), 0);
    assert_eq!(call!(ipc_exp.get_event_handle_exp(event, &mut bytes, &mut size)), R::SUCCESS);
    hex::encode(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) })
}
fn open(zero: &Zero, ticket: &str) -> ur_event_handle_t {
    let ticket = hex::decode(ticket).unwrap();
    let (bytes, size, mut event) = (ticket.as_ptr().cast(), ticket.len(), NO_EVENT);
    let code = call!(ipc_exp.open_event_handle_exp(zero.context, bytes, size, &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
/// The other process: makes an event or opens one, owes it a signal, and pays.
#[test]
fn role() {
    if std::env::var_os("CAUSEWAY_ROLE").is_none() {
        return; // nobody's other process
    }
    let zero = Zero::new().expect("there is a device: the other process has it");
    let (held, gate) = (queue(&zero, Flags::default()), Gate::shut());
    let mut event = NO_EVENT;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let answer = match *line.split(' ').collect::<Vec<_>>() {
            ["make"] => {
                event = made(&zero);
                ticket(event)
            }
            ["open", ticket] => {
                event = open(&zero, ticket);
                "opened".to_string()
            }
            ["owe"] => {
                gate.hold(held);
                signal(held, event);
                "owed".to_string()
            }
            ["pay"] => {
                gate.open();
                assert_eq!(call!(queue.finish(held)), R::SUCCESS);
                "paid".to_string()
            }
            _ => panic!("{line:?} is nothing that is done here"),
        };
        println!("answer {answer}");
    }
    gate.open(); // also if nobody has asked for that: who failed waits for the end of this
    let_go(event);
    release(held);
}
/// Two processes that wait for each other's signals must not stop each other's copies.
#[test]
fn a_queue_that_waits_for_another_process_holds_up_no_copy_of_another_queue() {
    let name = "a_queue_that_waits_for_another_process_holds_up_no_copy_of_another_queue";
    if !is_inside_or_real(name, &[("ZE_SOFTWARE_SHARED_ENGINES", "1")]) {
        return;
    }
    let Some(zero) = Zero::new().filter(shares_events) else { return };
    let [from, to] = [4096; 2].map(|bytes| zero.device_memory(bytes));
    for flags in [Flags::default(), Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let mut peer = Other::new();
        let event = open(&zero, &peer.ask("make"));
        peer.ask("owe");
        let (waiting, other) = (queue(&zero, flags), queue(&zero, Flags::default()));
        let behind = copy(waiting, (to, from), &[event]);
        let again = copy(waiting, (to, from), &[behind]);
        let copied = copy(other, (to, from), &[]);
        let is_copied = is_complete_in_time(copied);
        assert_ne!(status(again), ur_event_status_t::COMPLETE);
        peer.ask("pay");
        [behind, again, copied].into_iter().for_each(wait);
        assert!(is_copied, "a copy that waits for the other process is in the way");
        [behind, again, copied, event].into_iter().for_each(let_go);
        [waiting, other].into_iter().for_each(release);
    }
    [from, to].into_iter().for_each(|at| zero.free(at));
}
/// Who owes the signal lives, who made the event does not: Intel's driver ends a process that has a list wait for it.
#[test]
fn no_list_waits_for_an_event_whose_exporter_has_ended_though_its_signaller_lives() {
    let name = "no_list_waits_for_an_event_whose_exporter_has_ended_though_its_signaller_lives";
    if !is_inside_or_real(name, &[("ZE_SOFTWARE_IPC_DEAD", "abort")]) {
        return;
    }
    let Some(zero) = Zero::new().filter(shares_events) else { return };
    let (mut exporter, mut signaller) = (Other::new(), Other::new());
    let ticket = exporter.ask("make");
    signaller.ask(&format!("open {ticket}"));
    let event = open(&zero, &ticket);
    signaller.ask("owe");
    exporter.kill();
    let waiting = queue(&zero, Flags::default());
    let (mut behind, list) = (NO_EVENT, [event]);
    let code = call!(enqueue.events_wait_with_barrier(waiting, 1, list.as_ptr(), &mut behind));
    assert_eq!((code, behind), (R::ERROR_IN_EVENT_LIST_EXEC_STATUS, NO_EVENT));
    // The host is told when the signal comes, for which it does not ask the driver.
    signaller.ask("pay");
    wait(event);
    wait(barrier(waiting, &[event]));
    let_go(event);
    release(waiting);
}
/// The driver cannot end what a list waits for in vain: that stays, and its queue is lost. Nothing else does.
#[test]
fn what_was_shared_with_peers_that_were_killed_is_given_back() {
    let name = "what_was_shared_with_peers_that_were_killed_is_given_back";
    if !is_inside(name, &[("ZE_SOFTWARE_IPC_DEAD", "abort")]) {
        return;
    }
    let Some(zero) = Zero::new().filter(shares_events) else { return };
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let round = |is_theirs: bool| {
        let mut peer = Other::new();
        let event = if is_theirs { open(&zero, &peer.ask("make")) } else { made(&zero) };
        if !is_theirs {
            peer.ask(&format!("open {}", ticket(event)));
        }
        peer.ask("owe");
        assert_ne!(status(event), ur_event_status_t::COMPLETE);
        let queue = queue(&zero, Flags::default());
        peer.kill();
        assert_eq!(call!(event.wait(1, &raw const event)), R::ERROR_IN_EVENT_LIST_EXEC_STATUS);
        let mut behind = NO_EVENT;
        let code = call!(enqueue.events_wait_with_barrier(queue, 1, &raw const event, &mut behind));
        assert_eq!((code, behind), (R::ERROR_IN_EVENT_LIST_EXEC_STATUS, NO_EVENT));
        let_go(event);
        release(queue);
    };
    for is_theirs in [true, false] {
        round(is_theirs);
        let before = ["fd", "task"].map(count);
        (0..20).for_each(|_| round(is_theirs));
        // What waits for deaths ends a little later.
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let now = ["fd", "task"].map(count);
            if now[0] <= before[0] + 4 && now[1] <= before[1] + 2 {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "descriptors and threads: {now:?}, after one: {before:?}"
            );
            std::thread::yield_now();
        }
    }
}
