//! The position of an item in its launch, which determines its builtin variables.

/// The dimensions of a launch.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub groups: [u32; 3],
    pub size: [u32; 3],
    pub offset: [u32; 3],
    pub subgroup: u32,
}
impl Grid {
    pub fn items(&self) -> u32 {
        self.size.iter().product()
    }
    pub fn local(&self, index: u32) -> [u64; 3] {
        let [x, y, _] = self.size;
        [index % x, index / x % y, index / (x * y)].map(u64::from)
    }
    /// A component of a builtin variable.
    fn says(&self, group: [u32; 3], index: u32, which: u32, lane: u32) -> u64 {
        let lane = lane.min(2) as usize;
        let [groups, size, offset] =
            [self.groups, self.size, self.offset].map(|s| s.map(u64::from));
        let (group, local) = (group.map(u64::from), self.local(index));
        let (count, sub) = (self.items(), self.subgroup);
        let global = |n: usize| group[n] * size[n] + local[n];
        match which {
            24 => groups[lane],
            25 | 32 => size[lane],
            26 => group[lane],
            27 => local[lane],
            28 => global(lane) + offset[lane],
            29 => u64::from(index),
            30 => 3,
            31 => groups[lane] * size[lane],
            33 => offset[lane],
            34 => {
                let [x, y] = [0, 1].map(|n| groups[n] * size[n]);
                (global(2) * y + global(1)) * x + global(0)
            }
            36 => u64::from(sub.min(count - index / sub * sub)),
            37 => u64::from(sub),
            38 | 39 => u64::from(count.div_ceil(sub)),
            40 => u64::from(index / sub),
            41 => u64::from(index % sub),
            4416..=4420 => mask(which, index % sub, sub, lane),
            _ => 0,
        }
    }
}
/// The subgroup masks for item `me`: equal, greater or equal, greater, less or equal, less.
fn mask(which: u32, me: u32, size: u32, lane: usize) -> u64 {
    let holds = |n: u32| match which {
        4416 => n == me,
        4417 => n >= me,
        4418 => n > me,
        4419 => n <= me,
        _ => n < me,
    };
    (0..size.min(32)).filter(|n| lane == 0 && holds(*n)).fold(0, |mask, n| mask | 1 << n)
}
/// The position of an item.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    pub grid: Grid,
    pub group: [u32; 3],
    pub index: u32,
}
impl Seat {
    /// The position for constants, which are computed without a launch.
    pub const NOWHERE: Seat = Seat {
        grid: Grid { groups: [1; 3], size: [1; 3], offset: [0; 3], subgroup: 1 },
        group: [0; 3],
        index: 0,
    };
    /// A component of a builtin variable.
    pub fn says(&self, which: u32, lane: u32) -> u64 {
        self.grid.says(self.group, self.index, which, lane)
    }
}
