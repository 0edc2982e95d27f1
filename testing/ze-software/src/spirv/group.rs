//! Runs all groups of a launch. All items of up to `OPEN` groups take turns, so that items and groups that
//! wait for each other make progress.
use super::{
    atomics::{self, Fault},
    collective::{Collective, Part},
    item::{Item, Status},
    program::{Kernel, Program},
    seat::{Grid, Seat},
    step::Step,
};
use std::{collections::VecDeque, sync::Arc};

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// The bytes of a value, an address or a handle.
    Bytes(Arc<[u8]>),
    /// The size of group memory in bytes.
    Local(u64),
}
/// A launch without the number of groups.
#[derive(Clone)]
pub struct Launch {
    /// The module.
    pub program: Arc<Program>,
    /// One of the module's kernels.
    pub kernel: Arc<Kernel>,
    /// One argument for each parameter.
    pub arguments: Vec<Argument>,
    /// The size of a group, in items.
    pub size: [u32; 3],
    /// The global offset.
    pub offset: [u32; 3],
}
/// The size of a subgroup, unless the kernel requires another one.
pub const SUBGROUP: u32 = 16;
/// How many steps an item runs in each turn.
const SHARE: u32 = 10_000;
/// The number of groups that can be active at the same time.
const OPEN: usize = 256;
/// The initial state of an item: the kernel's function and the values of its registers.
struct Start<'p> {
    program: &'p Program,
    function: usize,
    grid: Grid,
    numbers: Vec<(u32, u64)>,
    /// Registers and their addresses, relative to the group's memory.
    locals: Vec<(u32, u64)>,
    /// Registers for the address of the item's own copy of an argument, and the bytes to copy.
    copies: Vec<(u32, &'p [u8])>,
    /// The size of the group's memory in bytes.
    bytes: u64,
}
impl<'p> Start<'p> {
    fn new(launch: &'p Launch, grid: Grid) -> Start<'p> {
        let (program, kernel) = (&*launch.program, &*launch.kernel);
        let mut start = Start {
            program,
            function: kernel.function,
            grid,
            numbers: Vec::new(),
            locals: Vec::new(),
            copies: Vec::new(),
            bytes: program.group_bytes.next_multiple_of(128),
        };
        let registers = &program.functions[kernel.function].parameters;
        for (n, (argument, (to, _))) in launch.arguments.iter().zip(registers).enumerate() {
            match argument {
                Argument::Local(bytes) => {
                    start.locals.push((*to, start.bytes));
                    start.bytes = (start.bytes + bytes).next_multiple_of(128);
                }
                Argument::Bytes(bytes) if kernel.by_value(n) => start.copies.push((*to, bytes)),
                Argument::Bytes(bytes) => {
                    start.numbers.extend((*to..).zip(kernel.numbers(n, bytes)))
                }
            }
        }
        start
    }
}
struct Group<'p> {
    items: Vec<Item<'p>>,
    grid: Grid,
    /// The memory of the group's variables and of the items' copies of arguments.
    _memory: Vec<Vec<u128>>,
}
impl<'p> Group<'p> {
    fn new(start: &Start<'p>, at: [u32; 3]) -> Group<'p> {
        let mut memory = vec![vec![0_u128; start.bytes as usize / 16 + 8]];
        let base = (memory[0].as_mut_ptr() as u64).next_multiple_of(128);
        let mut items = Vec::with_capacity(start.grid.items() as usize);
        for index in 0..start.grid.items() {
            let seat = Seat { grid: start.grid, group: at, index };
            let mut item = Item::new(start.program, start.function, base, seat);
            start.numbers.iter().for_each(|(to, number)| item.give(*to, *number));
            start.locals.iter().for_each(|(to, by)| item.give(*to, base + by));
            for (to, bytes) in &start.copies {
                let mut own: Vec<u128> = vec![0; bytes.len().div_ceil(16).max(1)];
                let address = own.as_mut_ptr() as u64;
                // The destination is as large as the source, so this cannot fail.
                let done = atomics::copy(address, bytes.as_ptr() as u64, bytes.len() as u64);
                debug_assert!(done.is_ok());
                memory.push(own);
                item.give(*to, address);
            }
            items.push(item);
        }
        Group { items, grid: start.grid, _memory: memory }
    }
    /// Runs a turn of each item; true if the group has finished.
    fn turn(&mut self) -> Result<bool, Fault> {
        for item in &mut self.items {
            item.run(SHARE)?;
        }
        if self.items.iter().any(|i| i.status == Status::Ready) {
            return Ok(false);
        }
        if self.items.iter().all(|i| i.status == Status::Done) {
            return Ok(true);
        }
        self.together()?;
        Ok(false)
    }
    /// Executes collective instructions when no item can continue alone.
    fn together(&mut self) -> Result<(), Fault> {
        let mut moved = false;
        let size = self.grid.subgroup as usize;
        for first in (0..self.items.len()).step_by(size) {
            let last = self.items.len().min(first + size);
            moved |= self.meet(first..last, true)?;
        }
        if moved {
            return Ok(());
        }
        let waits = self.items.iter().filter(|i| i.status != Status::Done);
        if waits.clone().all(|i| i.status == Status::Barrier) {
            self.items.iter_mut().filter(|i| i.status == Status::Barrier).for_each(Item::release);
            return Ok(());
        }
        if waits.clone().any(|i| i.status == Status::Barrier)
            || !self.meet(0..self.items.len(), false)?
        {
            return Err("items of a group wait for different things, and for ever".to_owned());
        }
        Ok(())
    }
    /// Executes one collective instruction for those of these items that have arrived at it.
    fn meet(&mut self, range: std::ops::Range<usize>, subgroup: bool) -> Result<bool, Fault> {
        let first = range.start;
        let items = &mut self.items[range];
        let waits = |i: &Item<'p>| -> Option<&'p Collective> {
            match (i.status, i.step()) {
                (Status::Together, Some(Step::Together(c))) if c.subgroup == subgroup => Some(c),
                _ => None,
            }
        };
        let Some((at, what)) = items.iter().find_map(|i| Some((i.at(), waits(i)?))) else {
            return Ok(false);
        };
        let mut parts = Vec::new();
        let mut who = Vec::new();
        for (n, item) in items.iter().enumerate().filter(|(_, i)| i.at() == at) {
            let row = |(place, lanes): &(_, u32)| -> Vec<u64> {
                (0..*lanes).map(|l| item.get(super::step::Place::lane(*place, l))).collect()
            };
            let operands = what.operands.iter().map(row).collect();
            let local = self.grid.local((first + n) as u32);
            parts.push(Part { index: n as u32, local, operands });
            who.push(n);
        }
        for (n, numbers) in who.into_iter().zip(what.results(&parts)) {
            items[n].finish(what.to, &numbers);
        }
        Ok(true)
    }
}
impl Launch {
    /// Runs all groups.
    ///
    /// # Errors
    /// A sentence with the reason why the kernel failed.
    pub fn run(&self, groups: [u32; 3]) -> Result<(), Fault> {
        // The module was checked when it was built. If a check is missing and the interpreter panics, only
        // this kernel fails, and the thread that runs the commands goes on.
        let run = std::panic::AssertUnwindSafe(|| self.run_groups(groups));
        let caught = std::panic::catch_unwind(run);
        caught.unwrap_or_else(|_| Err("the kernel does what no kernel may".to_owned()))
    }
    fn run_groups(&self, groups: [u32; 3]) -> Result<(), Fault> {
        let subgroup = self.kernel.subgroup.unwrap_or(SUBGROUP).max(1);
        let grid = Grid { groups, size: self.size, offset: self.offset, subgroup };
        if self.size.contains(&0) || groups.contains(&0) {
            return Ok(());
        }
        let start = Start::new(self, grid);
        let [x, y, z] = groups;
        let places = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
        let mut open = VecDeque::new();
        for at in places {
            let mut group = Group::new(&start, at);
            if !group.turn()? {
                open.push_back(group);
            }
            while open.len() >= OPEN {
                rotate(&mut open)?;
            }
        }
        while !open.is_empty() {
            rotate(&mut open)?;
        }
        Ok(())
    }
}
fn rotate(open: &mut VecDeque<Group<'_>>) -> Result<(), Fault> {
    if let Some(mut group) = open.pop_front()
        && !group.turn()?
    {
        open.push_back(group);
    }
    Ok(())
}
