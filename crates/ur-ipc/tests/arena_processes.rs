//! Signals, waits and deaths across real processes: the test binary runs itself in a role and inherits the two
//! descriptors of an arena. Sending descriptors through the broker is tested elsewhere.
use libtest_mimic::{Arguments, Trial};
use rustix::{
    fd::{AsRawFd, OwnedFd},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    error::Error as StdError,
    fmt::Write as _,
    fs::OpenOptions,
    io::{BufRead, BufReader, Write as _, stdin},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio},
    slice,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use ur_ipc::{
    Access, Error, ErrorKind,
    arena::{
        self, Arena, Captured, Counter, Link, LocalWake, PendingSignal, Progress, Slot, wait_any,
    },
};

type Tested<T = ()> = Result<T, Box<dyn StdError>>;
const ROLE: &str = "ARENA_TEST_ROLE";
const HOPS: usize = 1000;
const KILLS: usize = 50;

fn main() -> ExitCode {
    match std::env::var(ROLE) {
        Ok(role) => {
            play(&role).expect("the role goes well");
            ExitCode::SUCCESS
        }
        Err(_) => {
            let trial = |name: &str, test: fn() -> Tested| {
                Trial::test(name, move || test().map_err(|e| e.to_string().into()))
            };
            let trials = vec![
                trial("a_gated_chain_hops_between_two_processes", chain),
                trial("a_process_killed_between_its_swap_and_its_wake_leaves_nobody_asleep", swap),
                trial("a_process_killed_before_it_publishes_leaves_the_event_as_it_was", publish),
                trial("a_process_killed_holding_the_waiter_bit_harms_nobody", waiter_bit),
                trial("a_process_killed_at_any_moment_leaves_nobody_asleep", any_moment),
            ];
            libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
        }
    }
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(20))
}
fn debt(slot: &Slot) -> Tested<PendingSignal> {
    match slot.capture()? {
        Captured::PendingSignal(debt) => Ok(debt),
        Captured::Complete => Err("nothing is owed where something should be".into()),
    }
}
fn owe(slot: &Slot, counter: &Counter) -> u64 {
    let value = counter.reserve();
    slot.publish(counter, value);
    value
}

// The parent's side.

/// A child process in its role, which has joined the arena.
struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    arena: Arena,
    participant: u32,
}
impl Peer {
    /// Starts the role with these events open, one counter granted, and possibly a point at which it is to be killed.
    fn start(role: &str, slots: &[Slot], kill_at: Option<&str>) -> Tested<Self> {
        let arena = slots[0].arena().clone();
        let (arena_fd, ledger_fd) = arena.descriptors()?;
        // Duplicates, which unlike the originals are not close-on-exec.
        let (a, l): (OwnedFd, OwnedFd) = (rustix::io::dup(arena_fd)?, rustix::io::dup(ledger_fd)?);
        let mut command = Command::new(std::env::current_exe()?);
        command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(kill_at.map(|at| ("CAUSEWAY_KILL_AT", at)));
        let mut child = command.spawn()?;
        let pid = Pid::from_raw(i32::try_from(child.id())?).ok_or("no pid")?;
        let participant = arena.join(pidfd_open(pid, PidfdFlags::empty())?)?;
        let (counter, epoch) = arena.grant_counter(participant)?;
        let instance = u128::from_le_bytes(arena.instance());
        let (a, l) = (a.as_raw_fd(), l.as_raw_fd());
        let mut config =
            format!("{a} {l} {instance} {} {participant} {counter} {epoch}", arena.number());
        for slot in slots {
            arena.slot_opened(participant, slot.index(), slot.generation())?;
            write!(config, " {} {}", slot.index(), slot.generation())?;
        }
        let mut to = child.stdin.take().ok_or("no pipe")?;
        let from = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        writeln!(to, "{config}")?;
        let mut peer = Self { child, to, from, arena, participant };
        peer.hear("ready")?; // it has opened the descriptors by now
        Ok(peer)
    }
    fn hear(&mut self, expected: &str) -> Tested {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        if line.trim() != expected {
            return Err(format!("heard {line:?}, not {expected:?}").into());
        }
        Ok(())
    }
    fn tell(&mut self, word: &str) -> Tested {
        writeln!(self.to, "{word}")?;
        Ok(())
    }
    /// Does what the watcher thread does when the pidfd reports the death.
    fn mark_owner_dead(mut self) -> Tested<ExitStatus> {
        let status = self.child.wait()?;
        self.arena.participant_died(self.participant);
        Ok(status)
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        // The process has ended already if the test succeeded.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn was_killed(status: ExitStatus) -> Tested {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(9) => Ok(()),
        _ => Err(format!("it ended by {status}, not at the kill point").into()),
    }
}

fn chain() -> Tested {
    let slots = (0..=HOPS).map(|_| arena::slot(Access::SameUser)).collect::<Result<Vec<_>, _>>()?;
    let counter = slots[0].arena().take_counter()?;
    let mut peer = Peer::start("chain", &slots, None)?;
    let values: Vec<_> = slots.iter().step_by(2).map(|slot| owe(slot, &counter)).collect();
    peer.tell("published")?;
    peer.hear("published")?;
    let debts = slots[1..].iter().step_by(2).map(debt).collect::<Tested<Vec<_>>>()?;
    peer.hear("captured")?;
    if debts.iter().any(|debt| debt.progress() != Progress::Pending) {
        return Err("the chain moved before its gate opened".into());
    }
    let start = Instant::now();
    counter.complete(values[0]);
    for (debt, value) in debts.iter().zip(&values[1..]) {
        if debt.wait(soon()) != Progress::Complete {
            return Err("the chain broke".into());
        }
        counter.complete(*value);
    }
    peer.hear("done")?;
    let hop = start.elapsed() / u32::try_from(HOPS)?;
    println!("a hop of the gated chain: {hop:?}");
    Ok(())
}

fn swap() -> Tested {
    let slot = arena::slot(Access::SameUser)?;
    let mut peer =
        Peer::start("pay when waited for", slice::from_ref(&slot), Some("complete.before_wake"))?;
    peer.hear("published")?;
    let debt = debt(&slot)?;
    let waiter = thread::spawn(move || (debt.wait(soon()), Instant::now()));
    peer.tell("pay")?;
    let start = Instant::now();
    was_killed(peer.mark_owner_dead()?)?;
    let (progress, end) = waiter.join().map_err(|_| "the waiter panicked")?;
    if progress != Progress::Complete {
        return Err(format!("it had paid, and the wait ended {progress:?}").into());
    }
    // Woken by the owner, and not by the check that every sleeping thread makes after a second.
    let took = end.saturating_duration_since(start);
    if took > Duration::from_millis(800) {
        Err(format!("only after {took:?}").into())
    } else {
        Ok(())
    }
}

fn publish() -> Tested {
    let slot = arena::slot(Access::SameUser)?;
    let peer = Peer::start("pay when waited for", slice::from_ref(&slot), Some("publish.before"))?;
    was_killed(peer.mark_owner_dead()?)?;
    match slot.capture()? {
        Captured::Complete => Ok(()),
        Captured::PendingSignal(debt) => Err(format!("{debt:?} of a signal that never was").into()),
    }
}

fn waiter_bit() -> Tested {
    let slot = arena::slot(Access::SameUser)?;
    let counter = slot.arena().take_counter()?;
    let value = owe(&slot, &counter);
    let dying = Peer::start("wait", slice::from_ref(&slot), Some("wait.after_waiters_bit"))?;
    let mut living = Peer::start("wait", slice::from_ref(&slot), None)?;
    living.hear("captured")?;
    was_killed(dying.mark_owner_dead()?)?;
    if !counter.is_waited_for() {
        return Err("the bit was not left behind".into());
    }
    counter.complete(value);
    living.hear("Complete")?;
    match living.mark_owner_dead()?.success() {
        true => Ok(()),
        false => Err("the other waiter failed".into()),
    }
}

fn any_moment() -> Tested {
    let slot = arena::slot(Access::SameUser)?;
    for kill in 0..KILLS {
        let mut peer = Peer::start("signal for ever", slice::from_ref(&slot), None)?;
        let (waited, wake) = (slot.clone(), Arc::new(LocalWake::new()));
        let called = wake.clone();
        // Waits for pending signals in two ways alternately, until none is pending any more or it is interrupted.
        let waiter = thread::spawn(move || {
            let mut signals = 0_u64;
            loop {
                let Captured::PendingSignal(debt) = waited.capture().map_err(|e| e.to_string())?
                else {
                    if wait_any::<PendingSignal>(&[], &called, Some(Instant::now()))
                        == arena::Any::Woken
                    {
                        return Ok(signals);
                    }
                    continue;
                };
                let progress = if signals.is_multiple_of(2) {
                    debt.wait(soon())
                } else {
                    let _ = wait_any(&[&debt], &LocalWake::new(), soon());
                    debt.progress()
                };
                match progress {
                    Progress::Complete => signals += 1,
                    Progress::Failed => return Ok(signals),
                    Progress::Pending => return Err(format!("{debt:?} is waited for in vain")),
                }
            }
        });
        peer.hear("signalling")?;
        // A varying moment: the number of spins is odd and grows, so that no two kills come at the same point by
        // design.
        let spins = 1 + kill * 7919 % 20_011 * 50;
        (0..spins).for_each(|_| std::hint::spin_loop());
        peer.child.kill()?;
        let start = Instant::now();
        peer.mark_owner_dead()?;
        wake.signal();
        waiter.join().map_err(|_| "the waiter panicked")??;
        if start.elapsed() > Duration::from_millis(900) {
            return Err(format!("kill {kill}: known only after {:?}", start.elapsed()).into());
        }
    }
    Ok(())
}

// The child's side.

/// A link that has one counter, which was granted in advance.
struct Granted(Mutex<Option<(u16, u32)>>);
impl Link for Granted {
    fn take_counter(&self) -> Result<(u16, u32), Error> {
        let granted = self.0.lock().unwrap().take();
        granted.ok_or_else(|| Error::new(ErrorKind::Full, "one counter was granted, no more"))
    }
    fn release_counter(&self, _: u16) {}
    fn slot_closed(&self, _: u16, _: u32) {}
    fn watch(&self, _: u16, _: u32) -> Result<bool, Error> {
        Ok(true)
    }
}

fn say(word: &str) {
    println!("{word}");
}
fn listen() -> Tested<String> {
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    Ok(line)
}
/// Joins the arena that the parent describes.
fn join() -> Tested<(Arena, Vec<Slot>)> {
    let line = listen()?;
    let mut numbers = line.split_ascii_whitespace();
    let mut next = || numbers.next().ok_or("the parent said too little");
    let inherited = |number: &str, write| {
        OpenOptions::new().read(true).write(write).open(format!("/proc/self/fd/{number}"))
    };
    let arena = OwnedFd::from(inherited(next()?, true)?);
    let ledger = OwnedFd::from(inherited(next()?, false)?);
    let instance = next()?.parse::<u128>()?.to_le_bytes();
    let (number, participant) = (next()?.parse()?, next()?.parse()?);
    let link = Granted(Mutex::new(Some((next()?.parse()?, next()?.parse()?))));
    let arena = Arena::joined(&arena, &ledger, instance, number, participant, Arc::new(link))?;
    let mut slots = Vec::new();
    while let Ok(index) = next() {
        slots.push(arena.open_slot(index.parse()?, next()?.parse()?)?);
    }
    Ok((arena, slots))
}

fn play(role: &str) -> Tested {
    let (arena, slots) = join()?;
    let take = || arena.take_counter();
    say("ready");
    match role {
        "chain" => {
            let counter = take()?;
            listen()?;
            let odd = slots[1..].iter().step_by(2);
            let values: Vec<_> = odd.map(|slot| owe(slot, &counter)).collect();
            say("published");
            let debts = slots.iter().step_by(2).map(debt).collect::<Tested<Vec<_>>>()?;
            say("captured");
            for (debt, value) in debts.iter().zip(&values) {
                assert_eq!(debt.wait(soon()), Progress::Complete);
                counter.complete(*value);
            }
            assert_eq!(debts[values.len()].wait(soon()), Progress::Complete);
            say("done");
        }
        "pay when waited for" => {
            let counter = take()?;
            let value = owe(&slots[0], &counter);
            say("published");
            listen()?;
            let deadline = soon();
            while !counter.is_waited_for() && Some(Instant::now()) < deadline {
                thread::yield_now();
            }
            counter.complete(value);
        }
        "wait" => {
            let debt = debt(&slots[0])?;
            say("captured");
            say(&format!("{:?}", debt.wait(soon())));
        }
        "signal for ever" => {
            let counter = take()?;
            say("signalling");
            loop {
                let value = owe(&slots[0], &counter);
                counter.complete(value);
            }
        }
        other => return Err(format!("no such role: {other}").into()),
    }
    Ok(())
}
