//! What a peer does for each line that it is told. An answer that begins with `!` is a refusal: its code and sentence.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use super::{descriptors, memfds, ur::*};
use crate::call;
use std::{
    collections::HashMap,
    ffi::c_void,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::process::CommandExt},
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    ptr::null,
    sync::{Condvar, Mutex},
};

/// What a peer holds, by the names that it was told.
pub struct Stage {
    ur: Ur,
    queues: HashMap<String, ur_queue_handle_t>,
    objects: HashMap<String, Object>,
    /// What `Get` lent, by its bytes.
    given: HashMap<String, *mut c_void>,
    gates: HashMap<String, &'static Gate>,
    many: Vec<*mut c_void>,
    spare: Vec<OwnedFd>,
}
#[derive(Clone, Copy)]
struct Object {
    raw: *mut c_void,
    /// How large a mapping is.
    bytes: usize,
}
type Said = Outcome<String>;

fn ok() -> Said {
    Ok("ok".into())
}
fn number(word: &str) -> usize {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}
fn say(answer: &str) {
    println!("@@{answer}");
}
fn told(said: Said) -> String {
    said.unwrap_or_else(|Refused { code, sentence }| format!("!{code:?} {sentence}"))
}

fn queues(ur: Ur) -> HashMap<String, ur_queue_handle_t> {
    let ooo = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let flags = ur_queue_flags_t::default();
    let all = [("q", flags), ("r", flags), ("ooo", ooo)];
    all.map(|(name, flags)| (name.into(), ur.new_queue(flags))).into()
}

/// Holds a queue until it is opened.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);
unsafe extern "C" fn pass(gate: *mut c_void) {
    let gate = unsafe { &*gate.cast::<Gate>() };
    drop(gate.1.wait_while(gate.0.lock().unwrap(), |open| !*open).unwrap());
}

impl Stage {
    pub fn new() -> Self {
        let ur = Ur::new();
        let (objects, given, gates) = Default::default();
        Self { ur, queues: queues(ur), objects, given, gates, many: Vec::new(), spare: Vec::new() }
    }
    pub fn play(mut self) {
        for line in std::io::stdin().lines().map_while(std::io::Result::ok) {
            say(&self.answer(&line));
        }
    }
    /// The answer to a line, in this process.
    pub fn answer(&mut self, line: &str) -> String {
        told(self.act(&line.split(' ').collect::<Vec<_>>()))
    }
    fn act(&mut self, words: &[&str]) -> Said {
        match words[0] {
            "begin" => {
                say("begun");
                self.act(&words[1..])
            }
            "alloc" | "alloc-host" | "alloc-shared" | "free" | "alias" | "at" | "write"
            | "fill" | "read" | "all" | "usm" | "physical" | "map" | "unmap" | "facts"
            | "drop-physical" => self.memory(words),
            "get" | "put" | "put-copy" | "open" | "close" | "cycle" | "churn" | "many-get"
            | "many-share" | "many-put" | "many-open" | "many-close" => self.share(words),
            "fresh" | "then" | "descriptors" | "memfds" | "limit" | "fork" | "fork-hold"
            | "exec" | "exhaust" | "recover" | "untraceable" => self.process(words),
            _ => self.event(words),
        }
    }
    fn add(&mut self, name: &str, raw: *mut c_void, bytes: usize) -> Said {
        let old = self.objects.insert(name.into(), Object { raw, bytes });
        assert!(old.is_none(), "{name} twice");
        ok()
    }
    #[track_caller]
    fn raw(&self, name: &str) -> *mut c_void {
        self.objects.get(name).unwrap_or_else(|| panic!("no {name}")).raw
    }
    fn raws(&self, names: &[&str]) -> Vec<*mut c_void> {
        names.iter().map(|name| self.raw(name)).collect()
    }
    fn forget(&mut self, name: &str) -> Said {
        self.objects.remove(name).expect("it was there");
        ok()
    }
    fn queue(&self) -> ur_queue_handle_t {
        self.queues["q"]
    }
    fn allocate(&mut self, usm: Usm, name: &str, bytes: &str) -> Said {
        let raw = self.ur.alloc(usm, number(bytes))?;
        self.add(name, raw, number(bytes))
    }
    fn bytes(&self, name: &str, from: &str, count: &str) -> Outcome<Vec<u8>> {
        let mut bytes = vec![0; number(count)];
        let from = self.raw(name).wrapping_byte_add(number(from));
        self.ur.copy(self.queues["r"], bytes.as_mut_ptr().cast(), from, bytes.len())?;
        Ok(bytes)
    }
}
impl Stage {
    fn memory(&mut self, words: &[&str]) -> Said {
        let ur = self.ur;
        match *words {
            ["alloc", name, bytes] => self.allocate(Usm::Device, name, bytes),
            ["alloc-host", name, bytes] => self.allocate(Usm::Host, name, bytes),
            ["alloc-shared", name, bytes] => self.allocate(Usm::Shared, name, bytes),
            // An address inside of something, under a name of its own.
            ["alias", name, of, offset] => {
                let raw = self.raw(of).wrapping_byte_add(number(offset));
                self.add(name, raw, 0)
            }
            ["free", name] => {
                ur.free(self.raw(name))?;
                self.forget(name)
            }
            ["at", name] => Ok(format!("{:x}", self.raw(name).addr())),
            ["write", name, offset, text] => {
                let (bytes, to) =
                    (hex::decode(text).unwrap(), self.raw(name).wrapping_byte_add(number(offset)));
                ur.copy(self.queues["r"], to, bytes.as_ptr().cast(), bytes.len())?;
                ok()
            }
            ["fill", name, offset, count, byte] => {
                let bytes = vec![number(byte) as u8; number(count)];
                let to = self.raw(name).wrapping_byte_add(number(offset));
                ur.copy(self.queues["r"], to, bytes.as_ptr().cast(), bytes.len())?;
                ok()
            }
            ["read", name, offset, count] => Ok(hex::encode(&self.bytes(name, offset, count)?)),
            ["all", name, offset, count, byte] => {
                let bytes = self.bytes(name, offset, count)?;
                Ok(bytes.iter().all(|&b| usize::from(b) == number(byte)).to_string())
            }
            ["usm", name] => self.usm(name),
            ["physical", name, bytes, ref flag @ ..] => {
                let raw = ur.new_physical(number(bytes), flag.is_empty())?;
                self.add(name, raw, number(bytes))
            }
            ["map", name, object, bytes] => {
                let raw = ur.map(self.raw(object), number(bytes))?;
                self.add(name, raw, number(bytes))
            }
            ["unmap", name] => {
                ur.unmap(self.raw(name), self.objects[name].bytes)?;
                self.forget(name)
            }
            ["drop-physical", name] => {
                let object = ur_physical_mem_handle_t(self.raw(name));
                ur.check(call!(physical_mem.release(object)))?;
                self.forget(name)
            }
            ["facts", name] => self.facts(name),
            _ => panic!("no such command: {words:?}"),
        }
    }
    /// Type, distance from the base, and size of the allocation that an address is in.
    fn usm(&self, name: &str) -> Said {
        use ur_usm_alloc_info_t as Info;
        let (context, at) = (self.ur.context, self.raw(name).cast_const());
        let ask =
            |info| move |size, to, n| call!(usm.get_mem_alloc_info(context, at, info, size, to, n));
        let kind: u32 = self.ur.value(ask(Info::TYPE))?;
        let base: usize = self.ur.value(ask(Info::BASE_PTR))?;
        let size: usize = self.ur.value(ask(Info::SIZE))?;
        Ok(format!("{kind} {} {size}", at.addr().wrapping_sub(base)))
    }
    /// Size, flags and count of physical memory, and whether context and device are ours.
    fn facts(&self, name: &str) -> Said {
        use ur_physical_mem_info_t as Info;
        let object = ur_physical_mem_handle_t(self.raw(name));
        let ask = |info| move |size, to, n| call!(physical_mem.get_info(object, info, size, to, n));
        let size: usize = self.ur.value(ask(Info::SIZE))?;
        let words: [u32; 6] = self.ur.value(ask(Info::PROPERTIES))?;
        let refs: u32 = self.ur.value(ask(Info::REFERENCE_COUNT))?;
        let context: usize = self.ur.value(ask(Info::CONTEXT))?;
        let device: usize = self.ur.value(ask(Info::DEVICE))?;
        assert_eq!(words[0], ur_structure_type_t::PHYSICAL_MEM_PROPERTIES.0);
        let ours = context == self.ur.context.0.addr() && device == self.ur.device.0.addr();
        Ok(format!("{size} {} {refs} {ours}", words[4]))
    }
    fn share(&mut self, words: &[&str]) -> Said {
        let ur = self.ur;
        match *words {
            ["get", kind, name] => {
                let Given { data, bytes } = ur.get(Kind::named(kind), self.raw(name))?;
                let ticket = hex::encode(&bytes);
                self.given.insert(ticket.clone(), data);
                Ok(ticket)
            }
            ["put", kind, ticket] => {
                ur.put(Kind::named(kind), self.given[ticket])?;
                ok()
            }
            ["put-copy", kind, ticket] => {
                let copy = hex::decode(ticket).unwrap();
                ur.put(Kind::named(kind), copy.as_ptr().cast_mut().cast())?;
                ok()
            }
            ["open", kind, name, ticket] => {
                let raw = ur.open(Kind::named(kind), &hex::decode(ticket).unwrap())?;
                self.add(name, raw, 0)
            }
            ["close", kind, name] => {
                ur.close(Kind::named(kind), self.raw(name))?;
                self.forget(name)
            }
            ["cycle", kind, ticket, rounds] => {
                let (kind, bytes) = (Kind::named(kind), hex::decode(ticket).unwrap());
                for _ in 0..number(rounds) {
                    ur.close(kind, ur.open(kind, &bytes)?)?;
                }
                ok()
            }
            ["churn", ref tickets @ ..] => self.churn(tickets),
            ["many-get" | "many-share" | "many-put", count, bytes] => {
                let mut tickets = Vec::new();
                for index in 0..number(count) {
                    let at = ur.alloc(Usm::Device, number(bytes))?;
                    ur.copy(self.queue(), at, (&raw const index).cast(), 8)?;
                    tickets.push(hex::encode(&ur.get(Kind::Memory, at)?.bytes));
                }
                Ok(tickets.join(" "))
            }
            ["many-share", kind, name, count] => {
                let (kind, raw) = (Kind::named(kind), self.raw(name));
                for _ in 0..number(count) {
                    let Given { data, bytes } = ur.get(kind, raw)?;
                    self.given.insert(hex::encode(&bytes), data);
                }
                ok()
            }
            ["many-put", kind] => {
                let all = std::mem::take(&mut self.given);
                all.into_values().try_for_each(|data| ur.put(Kind::named(kind), data)).and(ok())
            }
            ["many-open", ref tickets @ ..] => {
                for (index, ticket) in tickets.iter().enumerate() {
                    let at = ur.open(Kind::Memory, &hex::decode(ticket).unwrap())?;
                    let mut read = usize::MAX;
                    ur.copy(self.queue(), (&raw mut read).cast(), at, 8)?;
                    assert_eq!(read, index, "a neighbour's bytes");
                    self.many.push(at);
                }
                ok()
            }
            ["many-close"] => {
                let all = std::mem::take(&mut self.many);
                all.into_iter().try_for_each(|at| ur.close(Kind::Memory, at)).and(ok())
            }
            _ => panic!("no such command: {words:?}"),
        }
    }
}
impl Stage {
    fn event(&mut self, words: &[&str]) -> Said {
        use ur_exp_event_flags_t as Flags;
        let ur = self.ur;
        match *words {
            ["event", name] => self.make(name, Flags::IPC_EXP),
            ["event-local", name] => self.make(name, Flags::default()),
            ["event-profiled", name] => self.make(name, Flags::ENABLE_PROFILING),
            ["event-both", name] => self.make(name, Flags::IPC_EXP | Flags::ENABLE_PROFILING),
            ["release", name] => {
                ur.close(Kind::Event, self.raw(name))?;
                self.forget(name)
            }
            ["retain", name] => {
                ur.check(call!(event.retain(ur_event_handle_t(self.raw(name)))))?;
                ok()
            }
            ["refs", name] => {
                let event = ur_event_handle_t(self.raw(name));
                let info = ur_event_info_t::REFERENCE_COUNT;
                let refs: u32 =
                    ur.value(|size, to, n| call!(event.get_info(event, info, size, to, n)))?;
                Ok(refs.to_string())
            }
            ["signal", queue, name, ref after @ ..] => {
                ur.signal(self.queues[queue], self.raw(name), &self.raws(after))?;
                ok()
            }
            ["follow", queue, name, ref after @ ..] => {
                let raw = ur.follow(self.queues[queue], &self.raws(after))?;
                self.add(name, raw, 0)
            }
            ["wait", ref names @ ..] => {
                ur.wait(&self.raws(names))?;
                ok()
            }
            ["status", name] => {
                let status = format!("{:?}", ur.status(self.raw(name))?);
                Ok(status.trim_start_matches("UR_EVENT_STATUS_").into())
            }
            ["finish", queue] => {
                ur.finish(self.queues[queue])?;
                ok()
            }
            // Copies after events, without waiting for it.
            ["copy", queue, to, from, bytes, ref after @ ..] => {
                let (after, none) = (self.raws(after), std::ptr::null_mut());
                let (n, list) = (after.len() as u32, after.as_ptr().cast());
                let list = if n == 0 { null() } else { list };
                let (queue, to, from) = (self.queues[queue], self.raw(to), self.raw(from));
                let bytes = number(bytes);
                let code = call!(enqueue.usm_memcpy(queue, false, to, from, bytes, n, list, none));
                ur.check(code)?;
                ok()
            }
            ["gate", queue, name] => self.gate(queue, name),
            ["ungate", name] => {
                let gate = self.gates.remove(name).expect("a gate");
                *gate.0.lock().unwrap() = true;
                gate.1.notify_all();
                ok()
            }
            ["idle"] => ok(),
            _ => panic!("no such command: {words:?}"),
        }
    }
    fn make(&mut self, name: &str, flags: ur_exp_event_flags_t) -> Said {
        let raw = self.ur.new_event(flags)?;
        self.add(name, raw, 0)
    }
    /// Nothing enqueued later is done before the gate is opened.
    fn gate(&mut self, queue: &str, name: &str) -> Said {
        let gate: &'static Gate = Box::leak(Box::default());
        let data = std::ptr::from_ref(gate).cast_mut().cast();
        let (queue, none) = (self.queues[queue], std::ptr::null_mut());
        self.ur.check(call!(enqueue_exp.host_task_exp(
            queue,
            Some(pass),
            data,
            null(),
            0,
            null(),
            none
        )))?;
        self.gates.insert(name.into(), gate);
        ok()
    }
    /// Opens, uses and closes, for ever: somebody is going to kill this process. A memory and an event, or none:
    /// then it exports.
    fn churn(&mut self, tickets: &[&str]) -> Said {
        let (ur, queue) = (self.ur, self.queue());
        say("churning");
        match *tickets {
            [memory, event] => loop {
                let (memory, event) = (hex::decode(memory).unwrap(), hex::decode(event).unwrap());
                let at = ur.open(Kind::Memory, &memory)?;
                ur.copy(queue, at, memory.as_ptr().cast(), memory.len())?;
                let event = ur.open(Kind::Event, &event)?;
                ur.signal(queue, event, &[])?;
                ur.wait(&[event])?;
                ur.close(Kind::Event, event)?;
                ur.close(Kind::Memory, at)?;
            },
            _ => loop {
                let at = ur.alloc(Usm::Device, 8192)?;
                let event = ur.new_event(ur_exp_event_flags_t::IPC_EXP)?;
                let given = [ur.get(Kind::Memory, at)?, ur.get(Kind::Event, event)?];
                say(&format!("{} {}", hex::encode(&given[0].bytes), hex::encode(&given[1].bytes)));
                for _ in 0..20 {
                    ur.copy(queue, at, given[0].bytes.as_ptr().cast(), 100)?;
                    ur.signal(queue, event, &[])?;
                }
                ur.put(Kind::Memory, given[0].data)?;
                ur.put(Kind::Event, given[1].data)?;
                ur.close(Kind::Event, event)?;
                ur.free(at)?;
            },
        }
    }
    fn process(&mut self, words: &[&str]) -> Said {
        match *words {
            // Context and queues anew, for a forked child.
            ["fresh", ref then @ ..] => {
                self.ur = Ur::new();
                self.queues = queues(self.ur);
                self.act(then)
            }
            // One after the other, until one is refused; the last one's answer.
            ["then", ref all @ ..] => all
                .iter()
                .try_fold(String::new(), |_, one| self.act(&one.split('~').collect::<Vec<_>>())),
            ["descriptors"] => Ok(descriptors().to_string()),
            ["memfds"] => Ok(memfds().to_string()),
            ["limit", descriptors] => {
                use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
                let current = Some(number(descriptors) as u64);
                setrlimit(Resource::Nofile, Rlimit { current, ..getrlimit(Resource::Nofile) })
                    .unwrap();
                ok()
            }
            // All descriptors are in use but so many.
            ["exhaust", but] => {
                self.process(&["limit", "256"])?;
                while let Ok(copy) = rustix::io::dup(std::io::stdin()) {
                    self.spare.push(copy);
                }
                self.spare.truncate(self.spare.len() - number(but));
                ok()
            }
            ["recover"] => {
                self.spare.clear();
                ok()
            }
            ["untraceable"] => {
                use rustix::process::{DumpableBehavior, set_dumpable_behavior};
                set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap();
                ok()
            }
            // A child does the rest of the line, and this process hands on what it says.
            ["fork", ref then @ ..] => {
                let (mut from, mut to) = std::io::pipe().unwrap();
                match unsafe { libc::fork() } {
                    0 => {
                        let act = AssertUnwindSafe(|| {
                            to.write_all(told(self.act(then)).as_bytes()).unwrap();
                        });
                        let panicked = catch_unwind(act).is_err();
                        unsafe { libc::_exit(i32::from(panicked)) }
                    }
                    child => {
                        drop(to);
                        let mut said = String::new();
                        from.read_to_string(&mut said).unwrap();
                        let mut status = -1;
                        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
                        assert_eq!((ended, status), (child, 0));
                        Ok(said)
                    }
                }
            }
            // A child that does nothing and lives on: its process id.
            ["fork-hold"] => match unsafe { libc::fork() } {
                0 => {
                    unsafe { libc::alarm(60) }; // ends it if nobody does
                    loop {
                        unsafe { libc::pause() };
                    }
                }
                child => Ok(child.to_string()),
            },
            ["exec"] => {
                let mut again = Command::new(std::env::current_exe().unwrap());
                panic!("{}", again.args(["role", "--exact", "--nocapture"]).exec());
            }
            _ => panic!("no such command: {words:?}"),
        }
    }
}
