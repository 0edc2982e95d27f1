//! Executes the steps of an item.
use super::{
    arithmetic,
    atomics::{self, Fault},
    item::{Frame, Item, Status},
    math,
    step::{Edge, Place, Step},
    types::Scalar,
    wide,
};

impl Item<'_> {
    /// Executes at most this many steps.
    pub fn run(&mut self, mut steps: u32) -> Result<(), Fault> {
        while self.status == Status::Ready && steps > 0 {
            self.step_once()?;
            steps -= 1;
        }
        Ok(())
    }
    fn step_once(&mut self) -> Result<(), Fault> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let steps = &frame.function.steps;
        let Some(step) = steps.get(frame.at) else {
            return Err("the kernel runs past its end".to_owned());
        };
        match step {
            Step::Jump(edge) => follow(frame, &mut self.registers, edge),
            Step::Branch { which, yes, no } => {
                let taken = if frame.get(&self.registers, *which) != 0 { yes } else { no };
                follow(frame, &mut self.registers, taken);
            }
            Step::Switch { on, cases, other } => {
                let value = frame.get(&self.registers, *on);
                let case = cases.iter().find(|(v, _)| *v == value).map_or(other, |(_, e)| e);
                follow(frame, &mut self.registers, case);
            }
            Step::Barrier => self.status = Status::Barrier,
            Step::Together(_) => self.status = Status::Together,
            Step::Call { callee, arguments, to, .. } => return self.call(callee, arguments, *to),
            Step::Return { from, lanes } => self.leave(*from, *lanes),
            Step::Unreachable => return Err("the kernel comes where it said none comes".to_owned()),
            _ => {
                compute(frame, &mut self.registers, step)?;
                frame.at += 1;
            }
        }
        Ok(())
    }
}
/// Follows an edge to another block. All moves happen at the same time.
fn follow(frame: &mut Frame<'_>, registers: &mut [u64], edge: &Edge) {
    match edge.moves.as_slice() {
        [] => {}
        [(to, from)] => registers[frame.base + *to as usize] = frame.get(registers, *from),
        moves => {
            let new: Vec<u64> = moves.iter().map(|(_, from)| frame.get(registers, *from)).collect();
            for ((to, _), number) in moves.iter().zip(new) {
                registers[frame.base + *to as usize] = number;
            }
        }
    }
    frame.at = edge.to;
}
/// Executes a step that does not affect the control flow.
fn compute(frame: &Frame<'_>, r: &mut [u64], step: &Step) -> Result<(), Fault> {
    let base = frame.base;
    macro_rules! each {
        ($to:expr, $lanes:expr, |$lane:ident| $value:expr) => {
            for $lane in 0..$lanes {
                let value = $value;
                r[base + ($to + $lane) as usize] = value;
            }
        };
    }
    macro_rules! get {
        ($place:expr) => {
            frame.get(r, $place)
        };
    }
    match *step {
        Step::Unary { op, scalar, to, a, lanes } => {
            each!(to, lanes, |l| arithmetic::unary(op, scalar, get!(a.lane(l))));
        }
        Step::Binary { op, scalar, to, a, b, lanes, each } => each!(to, lanes, |l| {
            arithmetic::binary(op, scalar, get!(a.lane(l)), get!(b.step(l, each)))
        }),
        Step::Convert { how, to, a, lanes } => each!(to, lanes, |l| how.of(get!(a.lane(l)))),
        Step::Select { to, which, each, a, b, lanes } => each!(to, lanes, |l| {
            let from = if get!(which.step(l, each)) != 0 { a } else { b };
            get!(from.lane(l))
        }),
        Step::Move { to, from, lanes } => each!(to, lanes, |l| get!(from.lane(l))),
        Step::Gather { to, ref from } => {
            each!(to, from.len() as u32, |l| get!(from[l as usize]));
        }
        Step::Extract { to, from, lanes, index } => {
            let at = get!(index).min(u64::from(lanes.max(1)) - 1) as u32;
            r[base + to as usize] = get!(from.lane(at));
        }
        Step::Insert { to, from, lanes, index, value } => {
            let at = get!(index);
            each!(to, lanes, |l| if u64::from(l) == at { get!(value) } else { get!(from.lane(l)) });
        }
        Step::Variable { to, at } => r[base + to as usize] = frame.memory.as_ptr() as u64 + at,
        Step::Address { to, base: from, bytes, ref strides } => {
            let mut address = get!(from).wrapping_add(bytes);
            for s in strides {
                let by = s.scalar.signed(get!(s.index)).cast_unsigned();
                address = address.wrapping_add(by.wrapping_mul(s.bytes));
            }
            r[base + to as usize] = address;
        }
        Step::Load { to, from, ref leaves } => {
            let at = get!(from);
            for (lane, leaf) in leaves.iter().enumerate() {
                r[base + to as usize + lane] =
                    atomics::read(at.wrapping_add(leaf.at), leaf.scalar)?;
            }
        }
        Step::Store { to, from, ref leaves } => {
            let at = get!(to);
            for (lane, leaf) in leaves.iter().enumerate() {
                let value = get!(from.lane(lane as u32));
                atomics::write(at.wrapping_add(leaf.at), leaf.scalar, value)?;
            }
        }
        Step::Copy { to, from, bytes } => atomics::copy(get!(to), get!(from), get!(bytes))?,
        Step::Atomic { op, scalar, to, at, value, expected } => {
            let was = atomics::atomic(op, scalar, get!(at), get!(value), get!(expected))?;
            r[base + to as usize] = was;
        }
        _ => return seldom(frame, r, step),
    }
    Ok(())
}
/// The less frequent steps of `compute`.
fn seldom(frame: &Frame<'_>, r: &mut [u64], step: &Step) -> Result<(), Fault> {
    let base = frame.base;
    let row = |r: &[u64], from: Place, lanes: u32| -> Vec<u64> {
        (0..lanes).map(|l| frame.get(r, from.lane(l))).collect()
    };
    match *step {
        Step::Reinterpret { from: (from, lanes), into: (into, made), to, a } => {
            let (each, new) = (from.bytes() as usize, into.bytes() as usize);
            let numbers = row(r, a, lanes).into_iter();
            let mut bytes: Vec<u8> =
                numbers.flat_map(|n| n.to_le_bytes()[..each].to_vec()).collect();
            bytes.resize(made as usize * new, 0);
            for (lane, part) in bytes.chunks_exact(new).enumerate() {
                let mut word = [0; 8];
                word[..new].copy_from_slice(part);
                r[base + to as usize + lane] = u64::from_le_bytes(word);
            }
        }
        Step::Fold { all, to, a, lanes } => {
            let numbers = row(r, a, lanes);
            let truth = if all { !numbers.contains(&0) } else { numbers.iter().any(|n| *n != 0) };
            r[base + to as usize] = u64::from(truth);
        }
        Step::Dot { scalar, to, a, b, lanes } => {
            let (x, y) = (row(r, a, lanes), row(r, b, lanes));
            let float = |n: &u64| arithmetic::float(scalar, *n);
            let sum = x.iter().zip(&y).map(|(x, y)| float(x) * float(y)).sum();
            r[base + to as usize] = arithmetic::bits(scalar, sum);
        }
        Step::Extended { op, scalar, to, a, b, lanes } => {
            for lane in 0..lanes {
                let (x, y) = (frame.get(r, a.lane(lane)), frame.get(r, b.lane(lane)));
                let (low, high) = arithmetic::extended(op, scalar, x, y);
                r[base + (to + lane) as usize] = low;
                r[base + (to + lanes + lane) as usize] = high;
            }
        }
        Step::Distance { to, a, b, bytes, scalar } => {
            let apart = frame.get(r, a).wrapping_sub(frame.get(r, b)).cast_signed();
            let count = apart / bytes.cast_signed();
            r[base + to as usize] = count.cast_unsigned() & scalar.mask();
        }
        Step::Math { op, scalar, to, ref arguments, lanes, leaf } => {
            return special(frame, r, (op, scalar, leaf), to, arguments, lanes);
        }
        Step::Spread { to, from, count, stride, bytes, strided_to } => {
            let [to, from, count, stride] = [to, from, count, stride].map(|p| frame.get(r, p));
            let (there, here) = if strided_to { (stride, 1) } else { (1, stride) };
            for n in 0..count {
                let at = |base: u64, step: u64| base.wrapping_add(n.wrapping_mul(step) * bytes);
                atomics::copy(at(to, there), at(from, here), bytes)?;
            }
        }
        Step::Wide { op, scalar, to, ref arguments, lanes } => {
            let rows: Vec<Vec<u64>> = arguments.iter().map(|a| row(r, *a, lanes)).collect();
            let second = rows.get(1).map_or(&[][..], Vec::as_slice);
            let made = wide::geometry(op, scalar, &rows[0], second);
            r[base + to as usize..][..made.len()].copy_from_slice(&made);
        }
        Step::Image { op, to, lanes, scalar, ref arguments } => {
            let rows: Vec<(Vec<u64>, Scalar)> =
                arguments.iter().map(|(at, lanes, kind)| (row(r, *at, *lanes), *kind)).collect();
            let made = super::picture::access(op, scalar, lanes, &rows)?;
            r[base + to as usize..][..made.len()].copy_from_slice(&made);
        }
        _ => return Err("a step that is none of an item by itself".to_owned()),
    }
    Ok(())
}
/// The extended instructions that work lane by lane.
fn special(
    frame: &Frame<'_>,
    r: &mut [u64],
    (op, scalar, leaf): (u32, Scalar, Scalar),
    to: u32,
    arguments: &[Place],
    lanes: u32,
) -> Result<(), Fault> {
    let at =
        |r: &[u64], n: usize, lane: u32| arguments.get(n).map_or(0, |p| frame.get(r, p.lane(lane)));
    for lane in 0..lanes {
        let (a, b) = (at(r, 0, lane), at(r, 1, lane));
        let made = match math::class(op) {
            Some(math::Class::Second(count)) => {
                let (first, second) = math::second(op, scalar, leaf, a, b);
                let pointer = at(r, count, 0);
                atomics::write(pointer + u64::from(lane) * leaf.bytes(), leaf, second)?;
                first
            }
            _ => math::each(op, scalar, leaf, a, b, at(r, 2, lane)),
        };
        r[frame.base + (to + lane) as usize] = made;
    }
    Ok(())
}
