//! A work-item: it runs its steps until it ends, waits for other items, or has used up its turn.
use super::{
    atomics::{self, Fault},
    program::Program,
    seat::Seat,
    step::{Callee, Function, Place, Step},
    types::Scalar,
};
use std::sync::atomic::Ordering::Relaxed;

/// Whether an item can continue, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    /// Waits for the other items of the group.
    Barrier,
    /// Waits for other items to execute the current step together.
    Together,
    Done,
}
pub(super) struct Frame<'p> {
    pub program: &'p Program,
    pub function: &'p Function,
    /// The next step.
    pub at: usize,
    /// The first register of the frame.
    pub base: usize,
    /// The memory of the function's variables.
    pub memory: Vec<u128>,
    /// The caller's register for the result.
    to: usize,
    group: u64,
    item: u64,
}
impl Frame<'_> {
    pub fn get(&self, registers: &[u64], place: Place) -> u64 {
        let at = place.0 & !Place::KIND;
        match place.0 & Place::KIND {
            Place::FRAME => registers[self.base + at as usize],
            Place::CONSTANT => self.program.constants[at as usize].load(Relaxed),
            Place::GROUP => self.group + u64::from(at),
            _ => self.item + u64::from(at),
        }
    }
}
/// The limit for the depth of calls.
const DEEPEST: usize = 512;

pub(super) struct Item<'p> {
    pub(super) frames: Vec<Frame<'p>>,
    pub(super) registers: Vec<u64>,
    /// The result of the outermost function.
    pub result: Vec<u64>,
    seat: Seat,
    /// The builtin variables for each module whose functions run: the module and their memory.
    variables: Vec<(*const Program, Vec<u128>)>,
    pub status: Status,
}
impl<'p> Item<'p> {
    /// An item at the beginning of a function. `group` is the address of the group's variables.
    pub fn new(program: &'p Program, function: usize, group: u64, seat: Seat) -> Item<'p> {
        let mut item = Item {
            frames: Vec::new(),
            registers: Vec::new(),
            result: Vec::new(),
            seat,
            variables: Vec::new(),
            status: Status::Ready,
        };
        item.enter(program, &program.functions[function], 0, group);
        item
    }
    /// Sets a register of the outermost function.
    pub fn give(&mut self, register: u32, number: u64) {
        self.registers[register as usize] = number;
    }
    /// The current function and step.
    pub fn at(&self) -> Option<(*const Function, usize)> {
        self.frames.last().map(|f| (std::ptr::from_ref(f.function), f.at))
    }
    /// The current step.
    pub fn step(&self) -> Option<&'p Step> {
        self.frames.last().map(|f| &f.function.steps[f.at])
    }
    pub fn get(&self, place: Place) -> u64 {
        self.frames.last().map_or(0, |f| f.get(&self.registers, place))
    }
    /// Completes a collective step.
    pub fn finish(&mut self, to: u32, numbers: &[u64]) {
        if let Some(frame) = self.frames.last_mut() {
            let to = frame.base + to as usize;
            self.registers[to..to + numbers.len()].copy_from_slice(numbers);
            frame.at += 1;
        }
        self.status = Status::Ready;
    }
    /// Continues after a barrier.
    pub fn release(&mut self) {
        self.finish(0, &[]);
    }
    fn variables_of(&mut self, program: &'p Program) -> u64 {
        let which = std::ptr::from_ref(program);
        if let Some((_, memory)) = self.variables.iter().find(|(p, _)| *p == which) {
            return memory.as_ptr() as u64;
        }
        let mut memory = vec![0_u128; program.item_bytes.div_ceil(16) as usize];
        let address = memory.as_mut_ptr() as u64;
        for builtin in &program.builtins {
            for lane in 0..builtin.lanes {
                let at = address + builtin.at + u64::from(lane) * builtin.bytes;
                let scalar = Scalar::Int(8 * builtin.bytes as u8);
                // The memory belongs to the item and is large enough, so this cannot fail.
                let done = atomics::write(at, scalar, self.seat.says(builtin.which, lane));
                debug_assert!(done.is_ok());
            }
        }
        self.variables.push((which, memory));
        address
    }
    fn enter(&mut self, program: &'p Program, function: &'p Function, to: usize, group: u64) {
        let base = self.registers.len();
        self.registers.resize(base + function.registers as usize, 0);
        let memory = vec![0; function.bytes.div_ceil(16) as usize];
        let item = match program.builtins.is_empty() {
            true => 0,
            false => self.variables_of(program),
        };
        self.frames.push(Frame { program, function, at: 0, base, memory, to, group, item });
    }
    pub fn call(
        &mut self,
        callee: &Callee,
        arguments: &[(Place, u32)],
        to: u32,
    ) -> Result<(), Fault> {
        if self.frames.len() >= DEEPEST {
            return Err(format!("{DEEPEST} calls inside each other are too many"));
        }
        let frame = self.frames.last_mut().expect("a step is done in a frame");
        let (mut program, mut group) = (frame.program, frame.group);
        let mut n = match callee {
            Callee::Known(n) => *n,
            Callee::Address(place) => program.function_at(frame.get(&self.registers, *place))?,
        };
        if let Some(import) = program.imports.get(&n) {
            let found = import.found.get();
            let found = found.ok_or_else(|| format!("{} is called and not linked", import.name))?;
            (program, n, group) = (&found.0, found.1, 0);
        }
        let function = &program.functions[n];
        let count: u32 = function.parameters.iter().map(|(_, lanes)| lanes).sum();
        let mut given = Vec::with_capacity(count as usize);
        for (place, lanes) in arguments {
            given.extend((0..*lanes).map(|l| frame.get(&self.registers, place.lane(l))));
        }
        if given.len() != count as usize {
            return Err("a function is called with other arguments than its own".to_owned());
        }
        frame.at += 1;
        let to = frame.base + to as usize;
        self.enter(program, function, to, group);
        let base = self.registers.len() - function.registers as usize;
        let mut from = given.as_slice();
        for (register, lanes) in &function.parameters {
            let (now, later) = from.split_at(*lanes as usize);
            let at = base + *register as usize;
            self.registers[at..at + now.len()].copy_from_slice(now);
            from = later;
        }
        Ok(())
    }
    pub fn leave(&mut self, from: Place, lanes: u32) {
        let Some(frame) = self.frames.pop() else { return };
        let numbers = (0..lanes).map(|l| frame.get(&self.registers, from.lane(l)));
        let numbers: Vec<u64> = numbers.collect();
        self.registers.truncate(frame.base);
        if self.frames.is_empty() {
            self.result = numbers;
            self.status = Status::Done;
        } else {
            self.registers[frame.to..frame.to + numbers.len()].copy_from_slice(&numbers);
        }
    }
}

/// The result of the program's last function, which computes a constant: it has no parameters and does not
/// depend on the item.
pub(super) fn evaluate(program: &Program) -> Result<Vec<u64>, Fault> {
    let last = program.functions.len() - 1;
    let mut item = Item::new(program, last, 0, Seat::NOWHERE);
    item.frames[0].item = 0; // keeps addresses of an item's variables relative
    item.run(64)?;
    Ok(item.result)
}
