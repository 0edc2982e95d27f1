//! A visitor who says whatever comes to mind to a broker that has memory and an event to hand out. Afterwards the
//! broker holds no lease and no descriptor for it.
#![no_main]
mod common;
use std::sync::OnceLock;
use ur_ipc::{ENVELOPE_LEN, fuzzing::Visit};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

libfuzzer_sys::fuzz_target!(|script: &[u8]| {
    static BEFORE: OnceLock<usize> = OnceLock::new();
    let stage = common::stage();
    let tickets = [&stage.memory, &stage.physical, &stage.event];
    {
        let Some(mut visit) = Visit::new() else { return };
        let mut read = 0;
        for (n, said) in script.chunks(64).enumerate() {
            let &[how, rights, ref rest @ ..] = said else { break };
            let rights = usize::from(rights % 4);
            let heard = if how & 1 == 0 {
                visit.say(rest, rights)
            } else {
                // A request: what is asked, its number, which nonce was read; its ticket is a good one, perhaps damaged.
                let mut fields = rest.to_vec();
                fields.resize(HEADER, 0);
                fields[0] %= 11;
                fields[1] = 0;
                if how & 2 != 0 {
                    fields[10..18].copy_from_slice(&u64::to_le_bytes(read));
                }
                let mut ticket = tickets[n % 3].clone();
                if how & 4 != 0 {
                    let at = usize::from(*rest.last().unwrap_or(&0)) % ENVELOPE_LEN;
                    ticket[at] ^= how;
                    ticket = ur_ipc::fuzzing::with_checksum(&ticket);
                }
                fields.extend(ticket);
                visit.ask(&fields, rights)
            };
            match heard {
                Some(nonce) if nonce != 0 => read = nonce,
                Some(_) => {}
                None => break,
            }
        }
    }
    let now = descriptors();
    // The first visit opens what stays: the watcher's own.
    assert!(now <= *BEFORE.get_or_init(|| now + 8), "{now} descriptors are open");
});

/// Bytes of a request between its version and its ticket.
const HEADER: usize = 2 + 8 + 8 + 8 + 4 + 4 + 4 + 2;
