//! The commands of a peer, one on each line. An answer that begins with `!` is a refusal (code and message),
//! one with `?` says that something is unsupported, one with `#` reports an error.
use crate::{
    ask,
    bench::{
        Bench, Subject, Usm,
        share::{Gate, KINDS, Kind},
    },
    case::{Stop, Verdict},
    info,
};
use std::{collections::HashMap, ffi::c_void};
use ur_sys::*;

/// Why a command was not executed.
pub enum Refusal {
    Code(ur_result_t, String),
    Stop(Stop),
}
impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}
pub type Said = Result<String, Refusal>;
pub fn ok() -> Said {
    Ok("ok".into())
}
pub fn wrong(why: impl Into<String>) -> Refusal {
    Refusal::Stop(Stop::failed(why))
}
pub fn number(word: &str) -> Result<usize, Refusal> {
    word.parse().map_err(|_| wrong(format!("{word} is no number")))
}
/// Decodes the bytes of a ticket. Tickets come from peers, which are this program.
pub fn unhex(text: &str) -> Vec<u8> {
    hex::decode(text).expect("peers answer in hexadecimal digits")
}

/// The objects of a peer, by the names in its commands.
pub struct Stage {
    pub bench: Bench,
    pub queues: HashMap<String, ur_queue_handle_t>,
    pub objects: HashMap<String, (Kind, *mut c_void)>,
    pub recorded: HashMap<String, ur_exp_command_buffer_handle_t>,
    /// The handles that `Get` returned, by their bytes.
    given: HashMap<String, *mut c_void>,
    gates: HashMap<String, Gate>,
    many: Vec<*mut c_void>,
    /// The handles that `Get` returned for objects that have been released.
    unput: Vec<*mut c_void>,
}

impl Stage {
    pub fn new(adapter: &'static crate::adapter::Adapter, subject: Subject) -> Self {
        let bench = Bench::new(adapter, subject);
        let (queues, objects, recorded, given, gates) = Default::default();
        Self { bench, queues, objects, recorded, given, gates, many: Vec::new(), unput: Vec::new() }
    }
    pub fn play(mut self) {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let words: Vec<_> = line.split(' ').collect();
            let said = self.told(&words);
            say(&said);
        }
    }
    pub fn told(&mut self, words: &[&str]) -> String {
        let said = self.act(words);
        Self::answer(said)
    }
    /// Formats a result as a line: refusals begin with `!`, missing features with `?`, errors with `#`.
    pub fn answer(said: Said) -> String {
        match said {
            Ok(answer) => answer,
            Err(Refusal::Code(code, sentence)) => format!("!{code:?} {sentence}"),
            Err(Refusal::Stop(Stop::Skipped(why))) => format!("?{why}"),
            Err(Refusal::Stop(Stop::Failed(why))) => format!("#{why}"),
        }
    }
    pub fn act(&mut self, words: &[&str]) -> Said {
        match words {
            ["begin", rest @ ..] => {
                say("begun");
                self.act(rest)
            }
            [
                "make" | "drop" | "address" | "alias" | "set" | "is" | "byte" | "at" | "usm"
                | "close-alias",
                ..,
            ] => self.memory(words),
            ["get" | "put" | "put-copy" | "open" | "close" | "cycle" | "churn", ..] => {
                self.share(words)
            }
            ["flood" | "many-get" | "many-open" | "many-close", ..] => self.many(words),
            ["unput" | "unput-sized" | "put-unput", ..] => self.unput(words),
            [
                "signal" | "follow" | "wait" | "status" | "finish" | "refs" | "gate" | "ungate"
                | "reusable" | "copy",
                ..,
            ] => self.event(words),
            ["record" | "run" | "call" | "calls" | "fence" | "inherit" | "fork-exit", ..] => {
                super::stage_queue::act(self, words)
            }
            ["swarm" | "swarm-get" | "swarm-signal" | "exit-busy", ..] => {
                super::stage_threads::act(self, words)
            }
            _ => super::stage_process::act(self, words),
        }
    }
    pub fn check(&self, code: ur_result_t) -> Result<(), Refusal> {
        match code {
            ur_result_t::SUCCESS => Ok(()),
            code => Err(Refusal::Code(code, self.bench.sentence())),
        }
    }
    pub fn object(&self, name: &str) -> Result<(Kind, *mut c_void), Refusal> {
        self.objects.get(name).copied().ok_or_else(|| wrong(format!("there is no {name}")))
    }
    pub fn raws(&self, names: &[&str]) -> Result<Vec<*mut c_void>, Refusal> {
        names.iter().map(|name| Ok(self.object(name)?.1)).collect()
    }
    pub fn queue(&mut self, name: &str) -> Result<ur_queue_handle_t, Refusal> {
        if let Some(queue) = self.queues.get(name) {
            return Ok(*queue);
        }
        let flags = match name {
            _ if name.starts_with("ooo") => ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE,
            _ => ur_queue_flags_t::default(),
        };
        let queue = self.bench.new_queue(flags)?;
        self.queues.insert(name.into(), queue);
        Ok(queue)
    }
    /// Accesses the bytes of shared memory; physical memory is mapped for the time of the access.
    fn with<T>(
        &self,
        name: &str,
        act: impl FnOnce(&Bench, *mut c_void, usize) -> Verdict<T>,
    ) -> Result<T, Refusal> {
        let (kind, raw) = self.object(name)?;
        match kind {
            Kind::Memory => Ok(act(&self.bench, raw, 5000)?),
            Kind::Event => Err(wrong("an event has no bytes")),
            Kind::Physical => {
                let bytes = self.bench.granularity()?;
                let at = self.bench.map(raw, bytes)?;
                let done = act(&self.bench, at, bytes)?;
                self.bench.unmap(at, bytes)?;
                Ok(done)
            }
        }
    }
    fn memory(&mut self, words: &[&str]) -> Said {
        match *words {
            ["make", kind, name] => {
                let kind = Kind::named(kind);
                self.bench.needs(kind.query())?;
                let raw = self.bench.shareable(kind)?;
                self.objects.insert(name.into(), (kind, raw));
                ok()
            }
            ["drop", name] => {
                let (kind, raw) = self.object(name)?;
                self.end(kind, raw)?;
                self.objects.remove(name);
                ok()
            }
            // The address of memory, or the value of another handle.
            ["address", name] => Ok(self.object(name)?.1.addr().to_string()),
            // Gives an address inside of memory a name of its own.
            ["alias", name, of, offset] => {
                let raw = self.object(of)?.1.wrapping_byte_add(number(offset)?);
                self.objects.insert(name.into(), (Kind::Memory, raw));
                ok()
            }
            ["set", name, byte] => {
                let byte = number(byte)? as u8;
                self.with(name, |b, at, bytes| b.write(at, &vec![byte; bytes.min(5000)]))?;
                ok()
            }
            ["byte", name, offset, byte] => {
                let (offset, byte) = (number(offset)?, number(byte)? as u8);
                self.with(name, |b, at, _| b.write(at.wrapping_byte_add(offset), &[byte]))?;
                ok()
            }
            ["is", name, byte] => {
                let byte = number(byte)? as u8;
                let read = self.with(name, |b, at, bytes| b.read(at, bytes.min(5000)))?;
                match read.iter().position(|n| *n != byte) {
                    None => ok(),
                    Some(at) => Err(wrong(format!("byte {at} is {}, not {byte}", read[at]))),
                }
            }
            // Reads one byte at an address.
            ["at", name, offset] => {
                let at = self.object(name)?.1.wrapping_byte_add(number(offset)?);
                Ok(self.bench.read(at, 1)?[0].to_string())
            }
            // The distance from the base, and the size of the allocation that contains an address.
            ["usm", name] => {
                use ur_usm_alloc_info_t as Info;
                let (context, at) = (self.bench.context()?, self.object(name)?.1.cast_const());
                let b = &self.bench;
                let base = info!(b, usm.get_mem_alloc_info(context, at, Info::BASE_PTR), usize);
                let size = info!(b, usm.get_mem_alloc_info(context, at, Info::SIZE), usize);
                Ok(format!("{} {size}", at.addr().wrapping_sub(base)))
            }
            _ => Err(wrong(format!("no such line: {words:?}"))),
        }
    }
    fn share(&mut self, words: &[&str]) -> Said {
        match *words {
            ["get", kind, name] => {
                let (code, given) = self.bench.get_code(Kind::named(kind), self.object(name)?.1)?;
                self.check(code)?;
                let ticket = hex::encode(&given.bytes);
                self.given.insert(ticket.clone(), given.data);
                Ok(ticket)
            }
            ["put", kind, ticket] => {
                let data = *self.given.get(ticket).ok_or_else(|| wrong("it was not got here"))?;
                self.check(self.bench.put_code(Kind::named(kind), data)?)?;
                ok()
            }
            ["put-copy", kind, ticket] => {
                let copy = unhex(ticket);
                let data = copy.as_ptr().cast_mut().cast();
                self.check(self.bench.put_code(Kind::named(kind), data)?)?;
                ok()
            }
            ["open", kind, name, ticket] => {
                let kind = Kind::named(kind);
                self.bench.needs(kind.query())?;
                let (code, raw) = self.bench.open_code(kind, &unhex(ticket))?;
                self.check(code)?;
                self.objects.insert(name.into(), (kind, raw));
                ok()
            }
            ["close", kind, name] => {
                let raw = self.object(name)?.1;
                self.check(self.bench.close_code(Kind::named(kind), raw)?)?;
                self.objects.remove(name);
                ok()
            }
            ["cycle", kind, ticket, rounds] => {
                let (kind, bytes) = (Kind::named(kind), unhex(ticket));
                for _ in 0..number(rounds)? {
                    let (code, raw) = self.bench.open_code(kind, &bytes)?;
                    self.check(code)?;
                    self.check(self.bench.close_code(kind, raw)?)?;
                }
                ok()
            }
            // Opens and closes in a loop, until this process is killed.
            ["churn", kind, ticket] => {
                let (kind, bytes) = (Kind::named(kind), unhex(ticket));
                say("churning");
                loop {
                    let (code, raw) = self.bench.open_code(kind, &bytes)?;
                    self.check(code)?;
                    if kind == Kind::Event {
                        let queue = self.queue("q")?;
                        self.bench.signal(queue, raw, &[])?;
                    }
                    self.check(self.bench.close_code(kind, raw)?)?;
                }
            }
            _ => Err(wrong(format!("no such line: {words:?}"))),
        }
    }
    /// Releases an object as its owner.
    fn end(&self, kind: Kind, raw: *mut c_void) -> Result<(), Refusal> {
        let b = &self.bench;
        let code = match kind {
            Kind::Memory => {
                let context = b.context()?;
                ask!(b, usm.free(context, raw))
            }
            Kind::Physical => ask!(b, physical_mem.release(ur_physical_mem_handle_t(raw))),
            Kind::Event => ask!(b, event.release(ur_event_handle_t(raw))),
        };
        self.check(code)
    }
    fn get_and_end(&mut self, kind: Kind, raw: *mut c_void) -> Result<(), Refusal> {
        let (code, given) = self.bench.get_code(kind, raw)?;
        self.check(code)?;
        self.unput.push(given.data);
        self.end(kind, raw)
    }
    fn unput(&mut self, words: &[&str]) -> Said {
        match *words {
            // Creates objects one after the other, gets a handle for each, and releases them without a put.
            ["unput", kind, count] => {
                let kind = Kind::named(kind);
                self.bench.needs(kind.query())?;
                for _ in 0..number(count)? {
                    let raw = self.bench.shareable(kind)?;
                    self.get_and_end(kind, raw)?;
                }
                ok()
            }
            ["unput-sized", count, bytes] => {
                self.bench.needs(Kind::Memory.query())?;
                let bytes = number(bytes)?;
                for _ in 0..number(count)? {
                    let raw = self.bench.alloc(Usm::Device, bytes)?;
                    self.bench.write(raw, &vec![7; bytes])?;
                    self.get_and_end(Kind::Memory, raw)?;
                }
                ok()
            }
            ["put-unput", kind] => {
                let kind = Kind::named(kind);
                for data in std::mem::take(&mut self.unput) {
                    self.check(self.bench.put_code(kind, data)?)?;
                }
                ok()
            }
            _ => Err(wrong(format!("no such line: {words:?}"))),
        }
    }
    fn many(&mut self, words: &[&str]) -> Said {
        match *words {
            // Gets many handles of one object, which exist at the same time, then puts them all.
            ["flood", kind, name, count] => {
                let (kind, raw) = (Kind::named(kind), self.object(name)?.1);
                let mut all = Vec::new();
                for _ in 0..number(count)? {
                    let (code, given) = self.bench.get_code(kind, raw)?;
                    self.check(code)?;
                    all.push(given.data);
                }
                for data in all {
                    self.check(self.bench.put_code(kind, data)?)?;
                }
                ok()
            }
            ["many-get", count, bytes] => {
                let (mut tickets, bytes) = (Vec::new(), number(bytes)?);
                for index in 0..number(count)? {
                    let at = self.bench.alloc(Usm::Device, bytes)?;
                    self.bench.write(at, &index.to_ne_bytes())?;
                    let (code, given) = self.bench.get_code(Kind::Memory, at)?;
                    self.check(code)?;
                    tickets.push(hex::encode(&given.bytes));
                }
                Ok(tickets.join(" "))
            }
            ["many-open", ref tickets @ ..] => {
                for (index, ticket) in tickets.iter().enumerate() {
                    let (code, at) = self.bench.open_code(Kind::Memory, &unhex(ticket))?;
                    self.check(code)?;
                    if self.bench.read(at, 8)? != index.to_ne_bytes() {
                        return Err(wrong(format!("open {index} shows a neighbour's bytes")));
                    }
                    self.many.push(at);
                }
                ok()
            }
            ["many-close"] => {
                for at in std::mem::take(&mut self.many) {
                    self.check(self.bench.close_code(Kind::Memory, at)?)?;
                }
                ok()
            }
            _ => Err(wrong(format!("no such line: {words:?}"))),
        }
    }
    fn event(&mut self, words: &[&str]) -> Said {
        match *words {
            // An event that cannot be shared.
            ["reusable", name] => {
                let raw = self.bench.new_event(ur_exp_event_flags_t::default())?;
                self.objects.insert(name.into(), (Kind::Event, raw));
                ok()
            }
            ["signal", queue, name, ref after @ ..] => {
                let (queue, after) = (self.queue(queue)?, self.raws(after)?);
                let event = self.object(name)?.1;
                self.check(self.bench.signal_code(queue, event, &after)?)?;
                ok()
            }
            ["follow", queue, name, ref after @ ..] => {
                let (queue, after) = (self.queue(queue)?, self.raws(after)?);
                let (code, raw) = self.bench.follow_code(queue, &after)?;
                if code == ur_result_t::ERROR_UNSUPPORTED_FEATURE {
                    self.bench.succeeded("urEnqueueEventsWait", code)?;
                }
                self.check(code)?;
                self.objects.insert(name.into(), (Kind::Event, raw));
                ok()
            }
            // A copy that is waited for in the call.
            ["copy", queue, ref after @ ..] => {
                let (queue, after) = (self.queue(queue)?, self.raws(after)?);
                self.check(self.bench.copy_behind_code(queue, &after)?)?;
                ok()
            }
            ["wait", ref names @ ..] => {
                self.check(self.bench.wait_code(&self.raws(names)?)?)?;
                ok()
            }
            ["status", name] => {
                let status = format!("{:?}", self.bench.status(self.object(name)?.1)?);
                Ok(status.trim_start_matches("UR_EVENT_STATUS_").into())
            }
            ["finish", queue] => {
                let queue = self.queue(queue)?;
                self.check(ask!(self.bench, queue.finish(queue)))?;
                ok()
            }
            ["refs", name] => {
                let event = ur_event_handle_t(self.object(name)?.1);
                let b = &self.bench;
                let refs = info!(b, event.get_info(event, ur_event_info_t::REFERENCE_COUNT), u32);
                Ok(refs.to_string())
            }
            ["gate", queue, name] => {
                let queue = self.queue(queue)?;
                let gate = self.bench.gate(queue)?;
                self.gates.insert(name.into(), gate);
                ok()
            }
            ["ungate", name] => {
                self.gates.remove(name).ok_or_else(|| wrong("no such gate"))?.open();
                ok()
            }
            _ => Err(wrong(format!("no such line: {words:?}"))),
        }
    }
    /// Starts with a new bench in a forked child, because the inherited objects belong to the parent. Some
    /// drivers do not work there.
    pub fn fresh(&mut self) -> Said {
        let bench = Bench::new(self.bench.adapter, self.bench.subject.clone());
        std::mem::forget(std::mem::replace(&mut self.bench, bench));
        self.queues.clear();
        self.bench.survives_fork()?;
        ok()
    }
}
pub fn say(answer: &str) {
    println!("{}{answer}", crate::worker::MARK);
}
/// The names of the three kinds.
pub fn kinds() -> [&'static str; 3] {
    KINDS.map(Kind::word)
}
