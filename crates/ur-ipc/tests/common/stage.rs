//! The commands that a peer executes.
use super::*;

/// What a peer holds.
#[derive(Default)]
pub struct Stage {
    exports: HashMap<String, Export>,
    opened: Vec<(String, Remote<File>)>,
    events: Vec<(String, Remote<arena::Slot>)>,
    slots: HashMap<String, arena::Slot>,
    counters: Vec<(arena::Counter, u64)>,
    hoard: Vec<arena::Counter>,
    others: Vec<Box<dyn std::any::Any>>,
    spare: Vec<OwnedFd>,
    aside: Option<thread::JoinHandle<arena::Progress>>,
    ahead: Option<Ahead>,
    slow_frees: Option<std::sync::MutexGuard<'static, ()>>,
}
/// Locked while the function that is told of ended leases is to take long.
static FREES: Mutex<()> = Mutex::new(());
static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Stage {
    pub fn play(mut self) {
        on_notice(|sentence| NOTICES.lock().unwrap().push(sentence.to_string()));
        on_leases_gone(|object, _| {
            say(format!("lease of {object} gone"));
            drop(FREES.lock());
        })
        .unwrap();
        for line in std::io::stdin().lines().map_while(std::io::Result::ok) {
            let words: Vec<_> = line.split(' ').collect();
            if words[0] == "quietly" {
                self.act(&words[1..]);
            } else {
                say(self.act(&words));
            }
        }
    }
    fn act(&mut self, words: &[&str]) -> String {
        match *words {
            ["export", text, object, access] => {
                self.export(offer(text, object.parse().unwrap(), access_of(access)))
            }
            ["export-physical", text] => self
                .export(Offer { kind: Kind::PhysicalMemory, ..offer(text, 1, Access::SameUser) }),
            ["export-part", text, base] => {
                let fd = Arc::new(memory(text, 3 * 4096).into());
                let base = base.parse().unwrap();
                let payload = Payload::Fd { fd, base, exposes: 3 * 4096 };
                self.export(Offer { payload, ..offer(text, 2, Access::SameUser) })
            }
            ["export-bytes", text] => {
                let payload = Payload::Bytes(text.as_bytes().into());
                self.export(Offer { payload, backend: 8, ..offer(text, 3, Access::SameUser) })
            }
            // Objects whose payloads are their own numbers as text.
            ["export-numbers", count] => {
                let exports = (0..count.parse().unwrap()).map(|n: u64| {
                    let payload = Payload::Bytes(n.to_string().as_bytes().into());
                    let offer = offer("", 2000 + n, Access::SameUser);
                    self.export(Offer { payload, backend: 8, ..offer })
                });
                exports.collect::<Vec<_>>().join(" ")
            }
            ["ahead", ref tickets @ ..] => {
                let tickets: Vec<_> = tickets.iter().map(|ticket| unhex(ticket)).collect();
                self.ahead = Some(Ahead::of(tickets.iter().map(Vec::as_slice)));
                "ok".into()
            }
            ["fetch-ahead"] => {
                self.ahead.as_ref().unwrap().fetch(|| false);
                "fetched".into()
            }
            ["not-ahead"] => {
                self.ahead = None;
                "ok".into()
            }
            ["export-driver", base, exposes] => {
                // Not a memfd that could be verified: only its driver knows what it is.
                let fd = Arc::new(std::fs::File::open("/dev/null").unwrap().into());
                let (base, exposes) = (base.parse().unwrap(), exposes.parse().unwrap());
                let payload = Payload::Driver { fd, base, exposes, bytes: b"driver"[..].into() };
                self.export(Offer { payload, backend: 8, ..offer("", 4, Access::SameUser) })
            }
            // As many descriptors as stated, each of memory that contains its own number as text.
            ["export-run", count] => {
                let one = |n: usize| Arc::new(memory(&format!("<{n}>"), 64).into());
                let fds = (0..count.parse().unwrap()).map(one).collect();
                let bytes = b"run"[..].into();
                let payload = Payload::DriverRun { fds, base: 0, exposes: 1 << 20, bytes };
                self.export(Offer { payload, backend: 8, ..offer("", 5, Access::SameUser) })
            }
            // Objects in one memory, each of which begins with its number as text.
            ["export-pooled", count] => {
                let count: u64 = count.parse().unwrap();
                let file = memory("", count * 4096);
                let number = |n: u64| file.write_all_at(format!("<{n}>").as_bytes(), n * 4096);
                (0..count).try_for_each(number).unwrap();
                let fd: Arc<OwnedFd> = Arc::new(file.into());
                let exports = (0..count).map(|n| {
                    let (fd, exposes) = (fd.clone(), count * 4096);
                    let payload = Payload::Fd { fd, base: n * 4096, exposes };
                    self.export(Offer { payload, ..offer("", 900 + n, Access::SameUser) })
                });
                exports.collect::<Vec<_>>().join(" ")
            }
            // How many of them show their own numbers, and in how many memories they are.
            ["open-pooled", ref tickets @ ..] => {
                static POOLED: Importer<(Arc<SharedMemory>, u64)> = Importer::new(Kind::Memory, 7);
                let import = |arrived: Arrived, (): &()| match arrived.payload {
                    ArrivedPayload::Memory { memory, base } => Ok::<_, Error>((memory, base)),
                    other => panic!("{other:?}"),
                };
                let (mut memories, mut right) = (std::collections::HashSet::new(), 0);
                for (n, ticket) in tickets.iter().enumerate() {
                    let Ok((Opened::Remote(remote), ())) =
                        POOLED.open(&unhex(ticket), is_ours, import)
                    else {
                        return "refused".into();
                    };
                    let mut bytes = [0; 8];
                    file_of(&remote.0).read_exact_at(&mut bytes, remote.1).unwrap();
                    let text = String::from_utf8_lossy(&bytes);
                    right += usize::from(text.trim_end_matches('\0') == format!("<{n}>"));
                    memories.insert(remote.0.id());
                    self.others.push(Box::new(remote));
                }
                format!("{right} in {}", memories.len())
            }
            ["close-others"] => {
                self.others.clear();
                "ok".into()
            }
            ["slot", name] => {
                let slot = arena::slot(Access::SameUser).unwrap();
                self.slots.insert(name.into(), slot);
                "ok".into()
            }
            ["release-slot", name] => self.slots.remove(name).map_or("none", |_| "ok").into(),
            ["export-slot", name] => {
                let payload = Payload::Event(self.slots[name].clone());
                let object = self.slots[name].index().into();
                let whole =
                    Offer { kind: Kind::Event, payload, object, ..offer("", 0, Access::SameUser) };
                self.export(Offer { offset: 0, length: 0, size: 0, ..whole })
            }
            ["put", ticket] => self.exports.remove(ticket).map_or("none", |_| "ok").into(),
            ["free", object] => {
                freed(object.parse().unwrap(), Kind::Memory);
                "ok".into()
            }
            ["slow-frees", slow] => {
                self.slow_frees = (slow == "yes").then(|| FREES.lock().unwrap());
                "ok".into()
            }
            ["leased", object] => leased(object.parse().unwrap(), Kind::Memory).to_string(),
            ["standing", ticket] => outcome(self.exports[ticket].current(), |()| "stands".into()),
            ["open", ticket] => self.open(&MEMORY, ticket),
            ["open-physical", ticket] => self.open(&PHYSICAL, ticket),
            ["open-elsewhere", ticket] => {
                let elsewhere = |device| same_device(device, [0; 16]);
                let opened = MEMORY.open(&unhex(ticket), elsewhere, |_, ()| unreachable!());
                outcome(opened, |_: (Opened<File>, ())| "opened".into())
            }
            ["open-bytes", ticket] => {
                let import = |arrived: Arrived, _: &()| match arrived.payload {
                    ArrivedPayload::Bytes(bytes) => Ok::<_, Error>(bytes),
                    other => panic!("{other:?}"),
                };
                outcome(BYTES.open(&unhex(ticket), is_ours, import), |(opened, ())| match opened {
                    Opened::Remote(remote) => {
                        let text = String::from_utf8_lossy(&remote).into_owned();
                        self.others.push(Box::new(remote));
                        format!("bytes {text}")
                    }
                    Opened::Local { object, .. } => format!("local {object}"),
                })
            }
            // By four threads: how many payloads are the tickets' own numbers.
            ["open-numbers", ref tickets @ ..] => {
                let import = |arrived: Arrived, _: &()| match arrived.payload {
                    ArrivedPayload::Bytes(bytes) => Ok::<_, Error>(bytes),
                    other => panic!("{other:?}"),
                };
                let next = std::sync::atomic::AtomicUsize::new(0);
                let work = || {
                    let mut opened = Vec::new();
                    while let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                        && let Some(ticket) = tickets.get(at)
                        && let Ok((Opened::Remote(remote), ())) =
                            BYTES.open(&unhex(ticket), is_ours, import)
                    {
                        opened.push((at, remote));
                    }
                    opened
                };
                let opened: Vec<_> = thread::scope(|scope| {
                    let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
                    threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
                });
                let right =
                    opened.iter().filter(|(n, remote)| ***remote == *n.to_string().as_bytes());
                let right = right.count();
                self.others.push(Box::new(opened));
                format!("{right} right")
            }
            ["open-driver", ticket] => {
                let import = |arrived: Arrived, _: &()| match arrived.payload {
                    ArrivedPayload::Driver { base, exposes, bytes, .. } => {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        Ok::<_, Error>(format!("{text} {base} {exposes} {}", arrived.size).into())
                    }
                    other => panic!("{other:?}"),
                };
                outcome(BYTES.open(&unhex(ticket), is_ours, import), |(opened, ())| match opened {
                    Opened::Remote(remote) => String::from_utf8_lossy(&remote).into_owned(),
                    Opened::Local { object, .. } => format!("local {object}"),
                })
            }
            ["open-run", ticket] => {
                let import = |arrived: Arrived, _: &()| match arrived.payload {
                    ArrivedPayload::DriverRun { fds, bytes, .. } => {
                        let is_own = |(n, fd): (usize, OwnedFd)| {
                            text_of(&File::from(fd)).starts_with(&format!("<{n}>"))
                        };
                        let (count, bytes) = (fds.len(), String::from_utf8_lossy(&bytes));
                        let right = fds.into_iter().enumerate().all(is_own);
                        Ok::<_, Error>(format!("{bytes} {count} {right}").into())
                    }
                    other => panic!("{other:?}"),
                };
                outcome(BYTES.open(&unhex(ticket), is_ours, import), |(opened, ())| match opened {
                    Opened::Remote(remote) => String::from_utf8_lossy(&remote).into_owned(),
                    Opened::Local { object, .. } => format!("local {object}"),
                })
            }
            ["open-event", ticket] => self.open_event(ticket),
            ["close", ticket] => match self.opened.iter().position(|(t, _)| t == ticket) {
                Some(at) => {
                    self.opened.remove(at);
                    "ok".into()
                }
                None => "none".into(),
            },
            ["close-event", ticket] => {
                let before = self.events.len();
                self.events.retain(|(t, _)| t != ticket);
                (before - self.events.len()).to_string()
            }
            ["close-bytes"] => {
                self.others.clear();
                "ok".into()
            }
            ["write", ticket, text] => {
                let remote = &self.opened.iter().find(|(t, _)| t == ticket).unwrap().1;
                remote.write_all_at(text.as_bytes(), 0).unwrap();
                "ok".into()
            }
            ["read", ticket] => text_of(&self.opened.iter().find(|(t, _)| t == ticket).unwrap().1),
            ["current", ticket] => {
                let remote = &self.opened.iter().find(|(t, _)| t == ticket).unwrap().1;
                outcome(remote.current(), |()| "current".into())
            }
            ["exporter-alive", ticket] => {
                let remote = &self.opened.iter().find(|(t, _)| t == ticket).unwrap().1;
                remote.exporter_alive().to_string()
            }
            ["same", one, other] => {
                let find = |ticket| &self.opened.iter().find(|(t, _)| t == ticket).unwrap().1;
                find(one).same_object(find(other)).to_string()
            }
            ["signals"] => SIGNALS.load(Relaxed).to_string(),
            ["open-often", rounds, memory, physical, event] => {
                let tickets = [memory, physical, event];
                (0..rounds.parse().unwrap())
                    .find_map(|round| {
                        self.open_all(tickets).err().map(|e| format!("round {round}: {e}"))
                    })
                    .unwrap_or_else(|| "all well".into())
            }
            ["imports"] => IMPORTS.load(Relaxed).to_string(),
            ["descriptors"] => descriptors().to_string(),
            ["watchers"] => watchers().to_string(),
            ["instance"] => instance().unwrap().to_string(),
            // Uses up all descriptors except for the stated number.
            ["exhaust", but] => {
                use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
                let limit = Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) };
                setrlimit(Resource::Nofile, limit).unwrap();
                while let Ok(copy) = std::io::stdin().as_fd().try_clone_to_owned() {
                    self.spare.push(copy);
                }
                self.spare.truncate(self.spare.len() - but.parse::<usize>().unwrap());
                "ok".into()
            }
            ["recover"] => {
                self.spare.clear();
                "ok".into()
            }
            ["storm", ref tickets @ ..] => storm(tickets),
            ["open-for", ticket, microseconds] => self.time_opens(ticket, microseconds),
            ["signal", ref names @ ..] => self.signal(names),
            ["complete"] => {
                for (counter, value) in self.counters.drain(..) {
                    counter.complete(value);
                }
                "ok".into()
            }
            // Keeps all of them.
            ["take-counters", name, most] => {
                let (arena, most) = (self.slot(name).arena().clone(), most.parse().unwrap());
                let mut refusal = None;
                while self.hoard.len() < most && refusal.is_none() {
                    match arena.take_counter() {
                        Ok(counter) => self.hoard.push(counter),
                        Err(e) => refusal = Some(format!("{:?}: {e}", e.kind())),
                    }
                }
                format!("{} {}", self.hoard.len(), refusal.unwrap_or_default())
            }
            // Drops nothing: what it holds is not given back.
            ["exit"] => std::process::exit(0),
            ["wait", ticket, milliseconds] => self.wait(ticket, milliseconds),
            // Waits in another thread; "waited" reports the result.
            ["wait-aside", ticket] => {
                let debt = match self.slot(ticket).capture() {
                    Ok(arena::Captured::PendingSignal(debt)) => debt,
                    other => return format!("{other:?}"),
                };
                self.aside =
                    Some(thread::spawn(move || debt.wait(Some(Instant::now() + PATIENCE))));
                "waiting".into()
            }
            ["waited"] => match self.aside.take() {
                Some(aside) => format!("{:?}", aside.join().unwrap()),
                None => "nothing".into(),
            },
            ["is-waiting"] => {
                self.aside.as_ref().is_some_and(|aside| !aside.is_finished()).to_string()
            }
            // Runs in a forked child; its answer comes before the parent's, which is the child's exit status.
            ["fork", ref then @ ..] => crate::forked(false, || say(self.act(then))),
            // Runs in a forked child, which then stays; its pid is the answer.
            ["fork-and-stay", ref then @ ..] => crate::forked(true, || say(self.act(then))),
            ["clone-and-stay"] => crate::cloned(),
            ["exec"] => {
                let mut command = Command::new("sleep");
                command.arg("1000").stdout(Stdio::null());
                std::os::unix::process::CommandExt::exec(&mut command).to_string()
            }
            // From now on the kernel denies this call, as filters of containers do.
            ["no-pidfd-open"] => {
                deny(434 /* pidfd_open, everywhere */);
                "ok".into()
            }
            ["no-limits"] => {
                deny(libc::SYS_prlimit64);
                "ok".into()
            }
            ["limit-descriptors", limit] => {
                use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
                let current = Some(limit.parse().unwrap());
                let limit = Rlimit { current, ..getrlimit(Resource::Nofile) };
                setrlimit(Resource::Nofile, limit).unwrap();
                "ok".into()
            }
            // Some of these connections may be refused again.
            ["connect-silently", path, count] => {
                use rustix::net::*;
                for _ in 0..count.parse().unwrap() {
                    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
                    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
                    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
                    self.spare.push(socket);
                }
                "ok".into()
            }
            // This user already has all the threads that it may have.
            ["no-threads"] => {
                use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
                let limit = Rlimit { current: Some(1), ..getrlimit(Resource::Nproc) };
                setrlimit(Resource::Nproc, limit).unwrap();
                "ok".into()
            }
            ["chdir", path] => {
                std::env::set_current_dir(path).unwrap();
                "ok".into()
            }
            // Ends all its connections, as a fault that nobody has thought of would.
            ["hang-up"] => {
                use rustix::{net, process};
                let own = process::pidfd_open(process::getpid(), process::PidfdFlags::empty());
                let own = own.unwrap();
                let copy =
                    |number| process::pidfd_getfd(&own, number, process::PidfdGetfdFlags::empty());
                for fd in (3..256).filter_map(|number| copy(number).ok()) {
                    let _no_connection = net::shutdown(fd, net::Shutdown::Both);
                }
                "ok".into()
            }
            ["notices"] => NOTICES.lock().unwrap().join(" / "),
            ["idle"] => "ok".into(),
            _ => panic!("no such command: {words:?}"),
        }
    }
    fn export(&mut self, offer: Offer) -> String {
        outcome(export(offer), |export| {
            let ticket = hex(export.bytes());
            self.exports.insert(ticket.clone(), export);
            ticket
        })
    }
    /// Makes four opens: of memory, the second time while it is open, of physical memory, and of an event, which is
    /// signalled and waited for. Everything is closed again.
    fn open_all(
        &mut self,
        [memory, physical, event]: [&str; 3],
    ) -> std::result::Result<(), String> {
        let expect = |said: String, begin: &str| match said.starts_with(begin) {
            true => Ok(()),
            false => Err(said),
        };
        expect(self.open(&MEMORY, memory), "remote ")?;
        expect(self.open(&MEMORY, memory), "remote ")?;
        expect(self.open(&PHYSICAL, physical), "remote ")?;
        self.opened
            .iter()
            .try_for_each(|(_, remote)| remote.current())
            .map_err(|e| e.to_string())?;
        expect(self.open_event(event), "event ")?;
        expect(self.signal(&[event]), "ok")?;
        let captured = self.slot(event).capture().map_err(|e| e.to_string())?;
        let (counter, value) = self.counters.pop().expect("signalled above");
        let completing = thread::scope(|scope| {
            scope.spawn(|| counter.complete(value));
            match captured {
                arena::Captured::PendingSignal(debt) => debt.wait(Some(Instant::now() + PATIENCE)),
                arena::Captured::Complete => arena::Progress::Complete,
            }
        });
        expect(format!("{completing:?}"), "Complete")?;
        self.opened.clear();
        self.events.clear();
        Ok(())
    }
    fn open(&mut self, importer: &Importer<File>, ticket: &str) -> String {
        let import = |arrived: Arrived, _: &()| match arrived.payload {
            ArrivedPayload::Memory { memory, base } => {
                IMPORTS.fetch_add(1, Relaxed);
                assert!(base + arrived.size <= memory.bytes());
                Ok::<_, Error>(file_of(&memory))
            }
            other => panic!("{other:?}"),
        };
        outcome(importer.open(&unhex(ticket), is_ours, import), |(opened, ())| match opened {
            Opened::Local { object, offset, length } => format!("local {object} {offset} {length}"),
            Opened::Remote(remote) => {
                let (offset, length) = (remote.offset(), remote.length());
                let answer = format!("remote {} {offset} {length}", text_of(&remote));
                self.opened.push((ticket.into(), remote));
                answer
            }
        })
    }
    fn open_event(&mut self, ticket: &str) -> String {
        let import = |arrived: Arrived, _: &()| match arrived.payload {
            ArrivedPayload::Event(slot) => Ok::<_, Error>(slot),
            other => panic!("{other:?}"),
        };
        outcome(EVENTS.open(&unhex(ticket), is_ours, import), |(opened, ())| match opened {
            Opened::Local { object, .. } => format!("local {object}"),
            Opened::Remote(remote) => {
                let answer = format!("event {}", remote.index());
                self.events.push((ticket.into(), remote));
                answer
            }
        })
    }
    /// The event with that ticket or that name.
    fn slot(&self, name: &str) -> arena::Slot {
        let opened = self.events.iter().find(|(ticket, _)| ticket == name);
        opened.map_or_else(|| self.slots[name].clone(), |(_, remote)| (**remote).clone())
    }
    /// Submits a signal to each of the events, to be completed later.
    fn signal(&mut self, names: &[&str]) -> String {
        for name in names {
            let slot = self.slot(name);
            let counter = match slot.arena().take_counter() {
                Ok(counter) => counter,
                Err(e) => return format!("{:?}: {e}", e.kind()),
            };
            let value = counter.reserve();
            slot.publish(&counter, value);
            self.counters.push((counter, value));
        }
        "ok".into()
    }
    /// Answers "waiting" once the signal is captured, then the result of the wait.
    fn wait(&mut self, name: &str, milliseconds: &str) -> String {
        let debt = match self.slot(name).capture() {
            Ok(arena::Captured::Complete) => return "complete at once".into(),
            Ok(arena::Captured::PendingSignal(debt)) => debt,
            Err(e) => return format!("{:?}: {e}", e.kind()),
        };
        say("waiting");
        let patience = Duration::from_millis(milliseconds.parse().unwrap());
        format!("{:?}", debt.wait(Some(Instant::now() + patience)))
    }
    /// The median time of many opens of something that is open already.
    fn time_opens(&mut self, ticket: &str, microseconds: &str) -> String {
        let bytes = unhex(ticket);
        let mut times: Vec<_> = (0..2001)
            .map(|_| {
                let start = Instant::now();
                let opened = MEMORY.open(&bytes, is_ours, |_, ()| unreachable!("it is open"));
                let took = start.elapsed();
                let opened: Result<(Opened<File>, ())> = opened;
                assert!(matches!(opened, Ok((Opened::Remote(_), ()))));
                took
            })
            .collect();
        times.sort();
        let within = times[1000] <= Duration::from_micros(microseconds.parse().unwrap());
        format!("{} {:?}", if within { "within" } else { "slow" }, times[1000])
    }
}
