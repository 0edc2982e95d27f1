//! What a module becomes before it runs: functions as lists of steps on numbered registers.
use super::{
    arithmetic::{Binary, Unary},
    atomics::Atomic,
    collective::Collective,
    types::{Leaf, Scalar},
};
use std::sync::Arc;

/// Where a number is: a register of the frame, of the constants, or one of the two kinds of addresses that differ from
/// group to group and from item to item. The two uppermost bits tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub u32);
impl Place {
    pub const KIND: u32 = 3 << 30;
    pub const FRAME: u32 = 0;
    pub const CONSTANT: u32 = 1 << 30;
    /// An address: so many bytes into the group's memory.
    pub const GROUP: u32 = 2 << 30;
    /// An address: so many bytes into the item's builtin variables.
    pub const ITEM: u32 = 3 << 30;
    /// The number so many after this one.
    pub fn lane(self, lane: u32) -> Place {
        Place(self.0 + lane)
    }
    /// One number for all lanes, or one for each.
    pub fn step(self, lane: u32, each: bool) -> Place {
        if each { self.lane(lane) } else { self }
    }
}
/// A way from block to block: where it leads, and which registers take which values at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    pub to: usize,
    pub moves: Vec<(u32, Place)>,
}
/// One index of an address: the number, how wide it is, and the bytes from one to the next.
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
/// One thing to do. `to` is the first register of the result.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Unary {
        op: Unary,
        scalar: Scalar,
        to: u32,
        a: Place,
        lanes: u32,
    },
    /// `each` says whether the second operand has a number for each lane.
    Binary {
        op: Binary,
        scalar: Scalar,
        to: u32,
        a: Place,
        b: Place,
        lanes: u32,
        each: bool,
    },
    /// From one kind of number to another.
    Convert {
        how: super::convert::Conversion,
        to: u32,
        a: Place,
        lanes: u32,
    },
    /// The same bits, as numbers of another width.
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
    /// One register from each place.
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
    /// Any or all of the lanes.
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
    /// Sum or product with what does not fit, low part first.
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
    /// The difference of two addresses in elements.
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
    /// So many elements of so many bytes, one after the other on one side and with a stride on the other.
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
    /// All items of the group come here before one goes on.
    Barrier,
    /// All items of the group or of the subgroup do this together.
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
/// A function: its steps, its registers, the bytes of its variables, where its parameters go.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub steps: Vec<Step>,
    pub registers: u32,
    pub bytes: u64,
    /// The first register and the number of registers of each.
    pub parameters: Vec<(u32, u32)>,
    /// Registers of the result.
    pub result: u32,
}
