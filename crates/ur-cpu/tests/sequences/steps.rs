//! How each step is done, and what has to come of it.
use super::*;

impl Model {
    pub(super) fn create(&mut self, seat: usize, kind: Kind, size: usize) -> Went<()> {
        if self.holds.len() >= MOST {
            return Ok(());
        }
        let bytes = match kind {
            Memory => [808, 40_000, 1 << 20][size],
            Physical => [1 << 16, 1 << 18, 1 << 20][size],
            Event => 0,
        };
        self.make(seat, kind, bytes)
    }
    fn make(&mut self, seat: usize, kind: Kind, bytes: usize) -> Went<()> {
        let name = self.name();
        match kind {
            Memory => self.must(seat, &format!("alloc {name} {bytes}"))?,
            Physical => {
                self.must(seat, &format!("physical {name} {bytes}"))?;
                self.must(seat, &format!("map {name}m {name} {bytes}"))?
            }
            Event => self.must(seat, &format!("event {name}"))?,
        };
        let (object, home) = (self.objects.len(), self.homes.len());
        let parts = [self.named as u8; PARTS];
        let (latest, maker) = (Latest::Complete, (seat, true));
        self.objects.push(Object { kind, bytes, parts, latest, maker });
        self.homes.push(Home { object, seat, handles: 1 });
        self.holds.push(Hold { name, home, object, seat, from: 0, is_made: true });
        self.fill(self.holds.len() - 1, self.named as u8)
    }
    fn fill(&mut self, hold: usize, byte: u8) -> Went<()> {
        let Hold { object, seat, from, .. } = self.holds[hold];
        let Object { kind, bytes, .. } = self.objects[object];
        if kind != Event {
            let (at, length) = (self.bytes_of(hold), bytes - from * (bytes / PARTS));
            self.must(seat, &format!("fill {at} 0 {length} {byte}"))?;
            self.objects[object].parts[from..].fill(byte);
        }
        Ok(())
    }
    pub(super) fn bytes_of(&self, hold: usize) -> String {
        let Hold { name, object, .. } = &self.holds[hold];
        match self.objects[*object].kind {
            Physical => format!("{name}m"),
            _ => name.clone(),
        }
    }
    pub(super) fn write(&mut self, holder: u8, byte: u8) -> Went<()> {
        let objects = &self.objects;
        match pick(&self.holds, holder, |hold| objects[hold.object].kind != Event) {
            Some(hold) => self.fill(hold, byte),
            None => Ok(()),
        }
    }
    /// Memory and events are shared where they were made, physical memory by everybody who has it.
    pub(super) fn get(&mut self, holder: u8, part: usize) -> Went<()> {
        let objects = &self.objects;
        let can = |hold: &Hold| hold.is_made || objects[hold.object].kind == Physical;
        let Some(hold) = pick(&self.holds, holder, can) else { return Ok(()) };
        let Hold { name, home, object, seat, .. } = self.holds[hold].clone();
        let kind = self.objects[object].kind;
        let from = if kind == Memory { part } else { 0 };
        let at = if from == 0 {
            name
        } else {
            let inner = self.name();
            let offset = from * (self.objects[object].bytes / PARTS);
            self.must(seat, &format!("alias {inner} {name} {offset}"))?;
            inner
        };
        let bytes = self.must(seat, &format!("get {} {at}", kind.word()))?;
        if self.tickets.iter().any(|ticket| ticket.bytes == bytes) {
            return Err("the same ticket twice".into());
        }
        self.tickets.push(Ticket { bytes, home, from, is_put: false });
        Ok(())
    }
    pub(super) fn kind_of(&self, ticket: usize) -> Kind {
        self.objects[self.homes[self.tickets[ticket].home].object].kind
    }
    pub(super) fn is_good(&self, ticket: &Ticket) -> bool {
        let home = &self.homes[ticket.home];
        !ticket.is_put && home.handles > 0 && home.seat != GONE
    }
    fn ticket(&self, n: u8, is_good: bool) -> Option<usize> {
        pick(&self.tickets, n, |ticket| self.is_good(ticket) == is_good)
    }
    pub(super) fn put(&mut self, n: u8) -> Went<()> {
        let homes = &self.homes;
        let can = |ticket: &Ticket| !ticket.is_put && homes[ticket.home].seat != GONE;
        pick(&self.tickets, n, can).map_or(Ok(()), |ticket| self.put_back(ticket))
    }
    pub(super) fn put_back(&mut self, ticket: usize) -> Went<()> {
        let (kind, seat) = (self.kind_of(ticket), self.homes[self.tickets[ticket].home].seat);
        let line = format!("put {} {}", kind.word(), self.tickets[ticket].bytes);
        self.must(seat, &line)?;
        self.tickets[ticket].is_put = true;
        Ok(())
    }
    pub(super) fn open(&mut self, n: u8, seat: usize) -> Went<()> {
        let Some(ticket) = self.ticket(n, true).filter(|_| self.holds.len() < MOST) else {
            return Ok(());
        };
        let (name, kind) = (self.name(), self.kind_of(ticket));
        let Ticket { ref bytes, home, from, .. } = self.tickets[ticket];
        self.must(seat, &format!("open {} {name} {bytes}", kind.word()))?;
        let object = self.homes[home].object;
        let is_home = self.homes[home].seat == seat;
        let mut own = home;
        match kind {
            // Opened at home, it is another handle of the same; elsewhere, something that can be shared in turn.
            Physical if is_home => self.homes[home].handles += 1,
            Physical => {
                own = self.homes.len();
                self.homes.push(Home { object, seat, handles: 1 });
            }
            _ => {}
        }
        if kind == Physical {
            let bytes = self.objects[object].bytes;
            self.must(seat, &format!("map {name}m {name} {bytes}"))?;
        }
        self.holds.push(Hold { name, home: own, object, seat, from, is_made: false });
        if kind == Memory && is_home { self.is_at_home(object) } else { Ok(()) }
    }
    /// What was opened last is the exporter's own address.
    fn is_at_home(&mut self, object: usize) -> Went<()> {
        let opened = self.holds[self.holds.len() - 1].clone();
        let made = self.holds.iter().find(|hold| hold.object == object && hold.is_made);
        let made = made.expect("a good ticket's object is not freed").name.clone();
        let (at, base) = (format!("at {}", opened.name), format!("at {made}"));
        let [at, base] = [self.must(opened.seat, &at)?, self.must(opened.seat, &base)?]
            .map(|at| usize::from_str_radix(&at, 16).expect("an address"));
        let offset = opened.from * (self.objects[object].bytes / PARTS);
        same("its distance from the object", &(at - base).to_string(), &offset.to_string())
    }
    pub(super) fn replay(&mut self, n: u8, seat: usize) -> Went<()> {
        let Some(ticket) = self.ticket(n, false) else { return Ok(()) };
        let (kind, bytes) = (self.kind_of(ticket), &self.tickets[ticket].bytes);
        let line = format!("open {} x {bytes}", kind.word());
        self.refused(seat, &line, "INVALID_VALUE")
    }
    /// Frees what was made, closes what was opened.
    pub(super) fn let_go(&mut self, hold: Option<usize>) -> Went<()> {
        let Some(hold) = hold else { return Ok(()) };
        let at = self.bytes_of(hold);
        let Hold { name, home, object, seat, is_made, .. } = self.holds.remove(hold);
        let kind = self.objects[object].kind;
        if kind == Physical {
            self.ungate(seat)?; // an unmapping waits for the commands before it
            self.must(seat, &format!("unmap {at}"))?;
        }
        match (kind, is_made) {
            (Memory, true) => self.must(seat, &format!("free {name}"))?,
            (Physical, true) => self.must(seat, &format!("drop-physical {name}"))?,
            (Event, true) => self.must(seat, &format!("release {name}"))?,
            (_, false) => self.must(seat, &format!("close {} {name}", kind.word()))?,
        };
        if is_made || kind == Physical {
            self.homes[home].handles -= 1;
        }
        Ok(())
    }
    pub(super) fn again(&mut self, n: u8) -> Went<()> {
        let Some(hold) = pick(&self.holds, n, |hold| hold.is_made) else { return Ok(()) };
        let Hold { object, seat, .. } = self.holds[hold];
        let Object { kind, bytes, .. } = self.objects[object];
        self.let_go(Some(hold))?;
        self.make(seat, kind, bytes)
    }
    /// Whoever has an event signals it, behind its gate or at once. Where its maker is gone, only who has signalled
    /// there before may go on, and that is for the tests of death.
    pub(super) fn signal(&mut self, n: u8) -> Went<()> {
        let objects = &self.objects;
        let can = |hold: &Hold| objects[hold.object].kind == Event && objects[hold.object].maker.1;
        let Some(hold) = pick(&self.holds, n, can) else { return Ok(()) };
        let Hold { name, object, seat, .. } = self.holds[hold].clone();
        self.must(seat, &format!("signal q {name}"))?;
        self.objects[object].latest = match self.seats[seat].gate {
            Some(_) => Latest::Owed(seat),
            None => {
                self.must(seat, "finish q")?;
                Latest::Complete
            }
        };
        Ok(())
    }
    pub(super) fn gate(&mut self, seat: usize) -> Went<()> {
        if self.seats[seat].gate.is_none() {
            let gate = self.name();
            self.must(seat, &format!("gate q {gate}"))?;
            self.seats[seat].gate = Some(gate);
        }
        Ok(())
    }
    pub(super) fn ungate(&mut self, seat: usize) -> Went<()> {
        let Some(gate) = self.seats[seat].gate.take() else { return Ok(()) };
        self.must(seat, &format!("ungate {gate}"))?;
        self.must(seat, "finish q")?;
        for object in &mut self.objects {
            if object.latest == Latest::Owed(seat) {
                object.latest = Latest::Complete;
            }
        }
        Ok(())
    }
}
