//! Who does the steps: one process, or several. Each answers line by line, and all that was said is kept.
use crate::common::{Peer, Place, stage::Stage};
use std::fmt::Write;

/// What has gone wrong.
pub type Went<T> = Result<T, String>;

enum Seats {
    One(Box<Stage>),
    Peers(Place, Vec<Peer>),
}
pub struct World {
    seats: Seats,
    said: Vec<String>,
}
impl World {
    /// This process.
    pub fn of_one() -> Self {
        Self { seats: Seats::One(Box::new(Stage::new())), said: Vec::new() }
    }
    pub fn of_peers(count: usize) -> Self {
        let place = Place::new();
        let peers = (0..count).map(|_| place.peer()).collect();
        Self { seats: Seats::Peers(place, peers), said: Vec::new() }
    }
    pub fn count(&self) -> usize {
        match &self.seats {
            Seats::One(_) => 1,
            Seats::Peers(_, peers) => peers.len(),
        }
    }
    /// The answer of whoever sits there.
    pub fn ask(&mut self, seat: usize, line: &str) -> Went<String> {
        let answer = match &mut self.seats {
            Seats::One(stage) => Ok(stage.answer(line)),
            Seats::Peers(_, peers) => peers[seat].answer(line),
        };
        let answer = answer.unwrap_or_else(|why| format!("?{why}"));
        self.said.push(format!("{seat}: {line} -> {answer}"));
        match answer.strip_prefix('?') {
            Some(why) => Err(format!("{why} in `{line}`")),
            None => Ok(answer),
        }
    }
    /// Another process takes the seat of one that is killed.
    pub fn kill(&mut self, seat: usize) {
        if let Seats::Peers(place, peers) = &mut self.seats {
            self.said.push(format!("{seat}: killed"));
            peers[seat].kill();
            peers[seat] = place.peer();
        }
    }
    /// How much was said.
    pub fn said(&self) -> usize {
        self.said.len()
    }
    /// Of what is asked again and again, the last time is enough.
    pub fn forget_from(&mut self, said: usize) {
        self.said.truncate(said);
    }
    /// What was said, with handles cut to what tells them apart, and without what only looks.
    pub fn script(&self) -> String {
        let mut script = String::new();
        let looks = [" read ", " status ", " descriptors ", " memfds "];
        for line in self.said.iter().enumerate() {
            let (n, line) = line;
            let is_look = looks.iter().any(|look| line[2..].starts_with(look));
            if is_look && n + 1 < self.said.len() {
                continue;
            }
            let short = |word: &str| match word.len() {
                ..80 => word.to_owned(),
                // Index and generation of the line in the ledger.
                _ => word
                    .split('~')
                    .map(|part| part.get(224..244).unwrap_or(part))
                    .collect::<Vec<_>>()
                    .join("~"),
            };
            let words: Vec<_> = line.split(' ').map(short).collect();
            let _ = writeln!(script, "  {}", words.join(" "));
        }
        script
    }
}
