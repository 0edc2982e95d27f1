//! What is looked at, what must be refused, forks and deaths.
use super::*;

impl Model {
    /// Everything that anybody has open is what was last written, and every event as it was last signalled.
    pub(super) fn look(&mut self) -> Went<()> {
        for hold in 0..self.holds.len() {
            let Hold { object, seat, from, ref name, .. } = self.holds[hold];
            let Object { kind, bytes, parts, latest, .. } = self.objects[object];
            if kind == Event {
                let status = match latest {
                    Latest::Complete => "COMPLETE",
                    Latest::Owed(_) => "SUBMITTED",
                    Latest::Error => "ERROR",
                };
                let line = format!("status {name}");
                same(&line, &self.must(seat, &line)?, status)?;
                continue;
            }
            // The first byte of every part is in one long copy for small memory, and in some parts of large memory.
            let part = from + (self.named + hold) % (PARTS - from);
            let at = (part - from) * (bytes / PARTS);
            let line = format!("read {} {at} 4", self.bytes_of(hold));
            same(&line, &self.must(seat, &line)?, &format!("{:02x}", parts[part]).repeat(4))?;
        }
        Ok(())
    }
    /// What may not be done with what one has is refused, and changes nothing.
    pub(super) fn misuse(&mut self, holder: u8) -> Went<()> {
        let Some(hold) = pick(&self.holds, holder, |_| true) else { return Ok(()) };
        let Hold { name, object, seat, is_made, .. } = self.holds[hold].clone();
        let is_away = self.objects[object].maker != (seat, true);
        match (self.objects[object].kind, is_made) {
            (Memory, true) => {
                let is_open = |other: &Hold| {
                    other.object == object
                        && other.seat == seat
                        && !other.is_made
                        && other.from == 0
                };
                if !self.holds.iter().any(is_open) {
                    self.refused(seat, &format!("close memory {name}"), "INVALID_VALUE")?;
                }
                self.refused(seat, &format!("get event {name}"), "INVALID_EVENT")
            }
            (Memory, false) if is_away => {
                self.refused(seat, &format!("get memory {name}"), "INVALID_VALUE")?;
                self.refused(seat, &format!("free {name}"), "INVALID_MEM_OBJECT")
            }
            (Memory, false) => Ok(()),
            (Physical, true) => {
                self.refused(seat, &format!("close physical {name}"), "INVALID_VALUE")
            }
            (Physical, false) => self.refused(seat, &format!("get event {name}"), "INVALID_EVENT"),
            (Event, true) => {
                self.refused(seat, &format!("get physical {name}"), "INVALID_MEM_OBJECT")
            }
            (Event, false) => self.refused(seat, &format!("get event {name}"), "INVALID_EVENT"),
        }
    }
    /// A child has its parent's tickets as anybody has them, and of its parent's objects none.
    pub(super) fn fork(&mut self, n: u8, seat: usize) -> Went<()> {
        if let Some(hold) = pick(&self.holds, n, |hold| hold.seat == seat) {
            let (at, name) = (self.bytes_of(hold), self.holds[hold].name.clone());
            match self.objects[self.holds[hold].object].kind {
                Event => self.refused(seat, &format!("fork status {name}"), "UNINITIALIZED")?,
                _ => self.refused(seat, &format!("fork read {at} 0 1"), "UNINITIALIZED")?,
            }
        }
        let Some(at) = pick(&self.tickets, n, |_| true) else { return Ok(()) };
        let ticket = &self.tickets[at];
        let (home, kind) = (&self.homes[ticket.home], self.kind_of(at));
        let Object { bytes, parts, latest, .. } = self.objects[home.object];
        let open = format!("open~{}~x~{}", kind.word(), ticket.bytes);
        if home.seat == seat && !ticket.is_put {
            // It put nothing of its parent's.
            let line = format!("fork put {} {}", kind.word(), ticket.bytes);
            self.refused(seat, &line, "INVALID_VALUE")?;
        }
        let ticket = &self.tickets[at];
        if !self.is_good(ticket) {
            return self.refused(seat, &format!("fork then fresh~idle {open}"), "INVALID_VALUE");
        }
        let byte = format!("{:02x}", parts[ticket.from]);
        let (line, expected) = match kind {
            Memory => (format!("fork then fresh~idle {open} read~x~0~1"), &*byte),
            Physical => (format!("fork then fresh~idle {open} map~y~x~{bytes} read~y~0~1"), &*byte),
            Event => (
                format!("fork then fresh~idle {open} status~x"),
                match latest {
                    Latest::Complete => "COMPLETE",
                    Latest::Owed(_) => "SUBMITTED",
                    Latest::Error => "ERROR",
                },
            ),
        };
        let answer = self.must(seat, &line)?;
        same("what the child sees", &answer, expected)
    }
    /// All that it had is gone, its tickets open nothing, and what it owed is known to be lost; what others have of its
    /// memory stays.
    pub(super) fn kill(&mut self, seat: usize) -> Went<()> {
        self.world.kill(seat);
        self.seats[seat].gate = None;
        self.holds.retain(|hold| hold.seat != seat);
        for home in self.homes.iter_mut().filter(|home| home.seat == seat) {
            home.seat = GONE;
        }
        for object in &mut self.objects {
            object.maker.1 &= object.maker.0 != seat;
            if object.latest == Latest::Owed(seat) {
                object.latest = Latest::Error;
            }
        }
        for hold in self.holds.clone() {
            if self.objects[hold.object].latest == Latest::Error {
                self.becomes(hold.seat, &format!("status {}", hold.name), |status| {
                    status == "ERROR"
                })?;
            }
        }
        Ok(())
    }
    /// Everybody once has one of everything, of everybody's: what is kept from then on is there.
    pub(super) fn warm_up(&mut self) -> Went<()> {
        let seats = self.seats.len();
        for seat in 0..seats {
            let first = self.tickets.len();
            for (kind, sizes) in [(Memory, 0..3), (Physical, 0..3), (Event, 0..1)] {
                for size in sizes {
                    self.create(seat, kind, size)?;
                    self.get(self.holds.len() as u8 - 1, 0)?;
                }
            }
            for ticket in first..self.tickets.len() {
                for by in 0..seats {
                    let (bytes, kind) = (&self.tickets[ticket].bytes, self.kind_of(ticket).word());
                    let line = format!("cycle {kind} {bytes} 1");
                    self.must(by, &line)?;
                }
                if self.kind_of(ticket) == Event {
                    self.owe_each_other(ticket)?;
                }
                self.put_back(ticket)?;
            }
            while !self.holds.is_empty() {
                self.let_go(Some(0))?;
            }
        }
        for seat in 0..seats {
            self.seats[seat].before = Some(self.counts(seat)?);
        }
        self.world.forget_from(0);
        self.tickets.clear(); // the sequence replays its own
        Ok(())
    }
    /// A queue keeps what it has once signalled by, and who has once waited for somebody keeps an eye on it.
    fn owe_each_other(&mut self, ticket: usize) -> Went<()> {
        let open = format!("open event x {}", self.tickets[ticket].bytes);
        let all = 0..self.seats.len();
        for by in all.clone() {
            self.must(by, &open)?;
        }
        for by in all.clone() {
            self.must(by, "gate q g")?;
            self.must(by, "signal q x")?;
            for other in all.clone().filter(|other| *other != by) {
                self.must(other, "follow q f x")?;
                self.must(other, "release f")?;
            }
            self.must(by, "ungate g")?;
            for waits in all.clone() {
                self.must(waits, "finish q")?;
            }
        }
        for by in all {
            self.must(by, "release x")?;
        }
        Ok(())
    }
    /// Descriptors and mappings of memfds, while something is shared: its socket is there, which it need not be else.
    fn counts(&mut self, seat: usize) -> Went<[usize; 2]> {
        let name = self.name();
        // What was waiting for commands to end is given back with the next allocation.
        self.must(seat, &format!("alloc {name} 808"))?;
        let ticket = self.must(seat, &format!("get memory {name}"))?;
        let mut counts = [0; 2];
        for (count, what) in counts.iter_mut().zip(["descriptors", "memfds"]) {
            *count = self.must(seat, what)?.parse().expect("a number");
        }
        self.must(seat, &format!("put memory {ticket}"))?;
        self.must(seat, &format!("free {name}"))?;
        Ok(counts)
    }
    pub(super) fn counts_are_back(&mut self, seat: usize) -> Went<()> {
        let before = self.seats[seat].before.expect("after the warm-up");
        let end = Instant::now() + self.patience;
        let said = self.world.said();
        loop {
            self.world.forget_from(said);
            let [fds, maps] = self.counts(seat)?;
            if fds <= before[0] && maps <= before[1] {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!(
                    "{seat} has {fds} descriptors and {maps} mappings of memfds, and had {before:?}"
                ));
            }
            thread::yield_now();
        }
    }
}
