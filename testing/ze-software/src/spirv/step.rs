//! The form in which a module runs: functions as lists of steps, which work on numbered registers.
use super::{
    arithmetic::{Binary, Unary},
    atomics::Atomic,
    collective::Collective,
    types::{Leaf, Scalar},
};
use std::sync::Arc;

/// The location of a number: a register of the frame, a constant, or an address relative to the memory of the
/// group or of the item. The two highest bits tell which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub u32);
impl Place {
    pub const KIND: u32 = 3 << 30;
    pub const FRAME: u32 = 0;
    pub const CONSTANT: u32 = 1 << 30;
    /// An address, as an offset in bytes into the group's memory.
    pub const GROUP: u32 = 2 << 30;
    /// An address, as an offset in bytes into the item's builtin variables.
    pub const ITEM: u32 = 3 << 30;
    /// The place `lane` numbers after this one.
    pub fn lane(self, lane: u32) -> Place {
        Place(self.0 + lane)
    }
    /// The place for a lane: the same for all lanes, or, if `each`, one for each lane.
    pub fn step(self, lane: u32, each: bool) -> Place {
        if each { self.lane(lane) } else { self }
    }
}
/// An edge between blocks: the target step, and the registers to set, all at the same time.
#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    pub to: usize,
    pub moves: Vec<(u32, Place)>,
}
/// An index in an address: its place, its type, and the distance of elements in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    pub index: Place,
    pub scalar: Scalar,
    pub bytes: u64,
}
#[derive(Clone, Debug)]
pub(super) enum Callee {
    Known(usize),
    Address(Place),
}
/// A step. `to` is the first register of the result.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Unary {
        op: Unary,
        scalar: Scalar,
        to: u32,
        a: Place,
        lanes: u32,
    },
    /// `each`: whether the second operand has a number for each lane.
    Binary {
        op: Binary,
        scalar: Scalar,
        to: u32,
        a: Place,
        b: Place,
        lanes: u32,
        each: bool,
    },
    /// Converts between types of numbers.
    Convert {
        how: super::convert::Conversion,
        to: u32,
        a: Place,
        lanes: u32,
    },
    /// The same bits as numbers of another width.
    Reinterpret {
        from: (Scalar, u32),
        into: (Scalar, u32),
        to: u32,
        a: Place,
    },
    Select {
        to: u32,
        which: Place,
        each: bool,
        a: Place,
        b: Place,
        lanes: u32,
    },
    Move {
        to: u32,
        from: Place,
        lanes: u32,
    },
    /// Copies one register from each place.
    Gather {
        to: u32,
        from: Vec<Place>,
    },
    Extract {
        to: u32,
        from: Place,
        lanes: u32,
        index: Place,
    },
    Insert {
        to: u32,
        from: Place,
        lanes: u32,
        index: Place,
        value: Place,
    },
    /// Whether any or all lanes are true.
    Fold {
        all: bool,
        to: u32,
        a: Place,
        lanes: u32,
    },
    Dot {
        scalar: Scalar,
        to: u32,
        a: Place,
        b: Place,
        lanes: u32,
    },
    /// A sum, difference or product in two parts, the low part first.
    Extended {
        op: u16,
        scalar: Scalar,
        to: u32,
        a: Place,
        b: Place,
        lanes: u32,
    },
    Address {
        to: u32,
        base: Place,
        bytes: u64,
        strides: Vec<Stride>,
    },
    /// The difference of two addresses, in elements.
    Distance {
        to: u32,
        a: Place,
        b: Place,
        bytes: u64,
        scalar: Scalar,
    },
    Load {
        to: u32,
        from: Place,
        leaves: Arc<[Leaf]>,
    },
    Store {
        to: Place,
        from: Place,
        leaves: Arc<[Leaf]>,
    },
    Copy {
        to: Place,
        from: Place,
        bytes: Place,
    },
    /// Copies `count` elements of `bytes` bytes. They are contiguous on one side, and have a stride on the
    /// other.
    Spread {
        to: Place,
        from: Place,
        count: Place,
        stride: Place,
        bytes: u64,
        strided_to: bool,
    },
    /// The address of a variable of the function.
    Variable {
        to: u32,
        at: u64,
    },
    Call {
        callee: Callee,
        arguments: Vec<(Place, u32)>,
        to: u32,
    },
    Math {
        op: u32,
        scalar: Scalar,
        to: u32,
        arguments: Vec<Place>,
        lanes: u32,
        leaf: Scalar,
    },
    Wide {
        op: u32,
        scalar: Scalar,
        to: u32,
        arguments: Vec<Place>,
        lanes: u32,
    },
    Atomic {
        op: Atomic,
        scalar: Scalar,
        to: u32,
        at: Place,
        value: Place,
        expected: Place,
    },
    /// A barrier of all items of the group.
    Barrier,
    /// An instruction that all items of the group or subgroup execute together.
    Together(Box<Collective>),
    Image {
        op: u16,
        to: u32,
        lanes: u32,
        scalar: Scalar,
        arguments: Vec<(Place, u32, Scalar)>,
    },
    Jump(Edge),
    Branch {
        which: Place,
        yes: Edge,
        no: Edge,
    },
    Switch {
        on: Place,
        cases: Vec<(u64, Edge)>,
        other: Edge,
    },
    Return {
        from: Place,
        lanes: u32,
    },
    Unreachable,
}
/// A function: its steps, its number of registers, the size of its variables in bytes, and its parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub steps: Vec<Step>,
    pub registers: u32,
    pub bytes: u64,
    /// The first register and the number of registers of each parameter.
    pub parameters: Vec<(u32, u32)>,
    /// The number of registers of the result.
    pub result: u32,
}
