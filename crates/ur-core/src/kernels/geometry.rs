//! Ranges, group sizes and clusters: checks what the caller passes against the limits of device and kernel, and chooses
//! group sizes that the caller leaves open. Nothing here calls the driver.
use super::metadata::Wanted;
use ur_adapter::error::{Error, ErrorCode, Result};

/// The limits of launches of a kernel on its device.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Items of one group.
    pub items: usize,
    /// Items of one group in each dimension.
    pub group: [usize; 3],
    /// Groups in each dimension.
    pub grid: [usize; 3],
    /// Items that execute in lockstep; good group sizes are multiples of it.
    pub warp: usize,
    /// What the kernel's source specifies.
    pub wanted: Wanted,
}
/// The items of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The global offset.
    pub offset: [usize; 3],
    /// The global size.
    pub global: [usize; 3],
}

/// A refusal. The sentence is made out of the way of launches that are not refused.
#[cold]
fn refused<T>(code: ErrorCode, why: impl FnOnce() -> String) -> Result<T> {
    Error::refuse(code, why())
}
/// One value for each dimension. Unlike `array::map`, it leaves them in registers.
#[inline(always)]
fn each<T>(of: impl Fn(usize) -> T) -> [T; 3] {
    [of(0), of(1), of(2)]
}
#[inline(always)]
fn all(is: impl Fn(usize) -> bool) -> bool {
    is(0) && is(1) && is(2)
}
fn three(given: &[usize], rest: usize) -> [usize; 3] {
    each(|d| given.get(d).copied().unwrap_or(rest))
}
fn product([x, y, z]: [usize; 3]) -> Option<usize> {
    x.checked_mul(y)?.checked_mul(z)
}
/// `n / size`; `None` if there is a rest. Most sizes are 1, and a division takes longer than everything else here.
fn divided(n: usize, size: usize) -> Option<usize> {
    match size {
        0 => None,
        1 => Some(n),
        _ => n.is_multiple_of(size).then(|| n / size),
    }
}

/// Sizes are not returned beside an error: they would pass through memory, which takes longer than checking them.
impl Range {
    /// A range as the caller passes it; missing dimensions have size 1 and offset 0.
    #[inline(always)]
    pub fn of(offset: Option<&[usize]>, global: &[usize]) -> Self {
        Self { offset: three(offset.unwrap_or_default(), 0), global: three(global, 1) }
    }
    /// # Errors
    /// `INVALID_VALUE` for a range whose number of items or whose last global id does not fit `usize`.
    #[inline(always)]
    pub fn check(&self) -> Result<()> {
        let Self { offset, global } = *self;
        let has_ends = all(|d| offset[d].checked_add(global[d]).is_some());
        match product(global).is_some() && has_ends {
            true => Ok(()),
            false => refused(ErrorCode::InvalidValue, || {
                format!("{global:?} items from {offset:?} on are more than can be counted")
            }),
        }
    }
    /// Whether it contains no items, which SYCL allows.
    pub fn is_empty(&self) -> bool {
        !all(|d| self.global[d] != 0)
    }
    /// A group size as the caller passes it; missing dimensions have size 1.
    #[inline(always)]
    pub fn local(local: &[usize]) -> [usize; 3] {
        three(local, 1)
    }
    /// The number of groups of a size that divides the range.
    #[inline(always)]
    pub fn groups(&self, local: [usize; 3]) -> [usize; 3] {
        each(|d| divided(self.global[d], local[d]).unwrap_or(usize::MAX))
    }
}

impl Limits {
    /// Checks a group size.
    ///
    /// # Errors
    /// `INVALID_WORK_GROUP_SIZE` if it does not divide the range, exceeds the limits of the device or the kernel, or
    /// differs from the size that the kernel requires.
    #[inline(always)]
    pub fn check_local(&self, range: &Range, local: [usize; 3]) -> Result<()> {
        let global = range.global;
        let (most, each) = (self.most(), self.each());
        let is_divided = all(|d| divided(global[d], local[d]).is_some());
        let is_wanted = self.wanted.size.is_none_or(|size| all(|d| size[d] == local[d]));
        let is_small = all(|d| local[d] <= each[d]);
        if is_divided && is_wanted && is_small && product(local).is_some_and(|all| all <= most) {
            return Ok(());
        }
        refused(ErrorCode::InvalidWorkGroupSize, || match self.wanted.size {
            _ if !is_divided => format!("groups of {local:?} items do not divide {global:?}"),
            Some(size) if !is_wanted => {
                format!("the kernel was made for groups of {size:?} items, not {local:?}")
            }
            _ => format!(
                "a group of {local:?} items: this kernel runs at most {most} in one here, and {each:?}"
            ),
        })
    }
    /// Chooses a group size that divides the range and has about `best` items.
    ///
    /// # Errors
    /// As for `check_local`, if the kernel requires a size; otherwise if no allowed group size is large enough to stay below
    /// the largest number of groups.
    pub fn suggest(&self, range: &Range, best: usize) -> Result<[usize; 3]> {
        if let Some(size) = self.wanted.size {
            return self.check_local(range, size).map(|()| size);
        }
        let (global, each) = (range.global.map(|n| n.max(1)), self.each());
        // The smallest size that keeps the number of groups below the limit, which can be small in the second and third
        // dimension.
        let least = |d: usize| {
            let from = global[d].div_ceil(self.grid[d]);
            (from..=each[d]).find(|&n| global[d].is_multiple_of(n))
        };
        let most = self.most();
        let (Some(x), Some(y), Some(z)) = (least(0), least(1), least(2)) else {
            return self.too_many(global);
        };
        if x.saturating_mul(y).saturating_mul(z) > most {
            return self.too_many(global);
        }
        let room = |others: usize, d: usize| (best.clamp(1, most) / others).min(each[d]);
        let first = fitting(global[0], room(y * z, 0), self.warp).max(x);
        let second = fitting(global[1], room(first * z, 1), 1).max(y);
        let third = fitting(global[2], room(first * second, 2), 1).max(z);
        Ok([first, second, third])
    }
    /// Checks the number of groups of a range.
    ///
    /// # Errors
    /// `INVALID_WORK_GROUP_SIZE` for more groups than the device supports.
    #[inline(always)]
    pub fn check_groups(&self, range: &Range, groups: [usize; 3]) -> Result<()> {
        match all(|d| groups[d] <= self.grid[d]) {
            true => Ok(()),
            false => self.too_many(range.global),
        }
    }
    fn most(&self) -> usize {
        self.wanted.most_in_all.map_or(self.items, |most| most.min(self.items)).max(1)
    }
    fn each(&self) -> [usize; 3] {
        let wanted = self.wanted.most.unwrap_or([usize::MAX; 3]);
        each(|d| self.group[d].min(wanted[d]).max(1))
    }
    fn too_many<T>(&self, global: [usize; 3]) -> Result<T> {
        let grid = self.grid;
        refused(ErrorCode::InvalidWorkGroupSize, || {
            format!(
                "{global:?} items need more than {grid:?} groups, which is the limit: use larger groups"
            )
        })
    }
}
/// The largest divisor of `n` that is at most `most` and a multiple of `step`; if there is none, the largest divisor
/// that is at most `most`.
fn fitting(n: usize, most: usize, step: usize) -> usize {
    let most = most.min(n).max(1);
    let mut in_step = (1..=most / step).rev().map(|k| k * step);
    in_step
        .find(|&size| n.is_multiple_of(size))
        .or_else(|| (1..=most).rev().find(|&size| n.is_multiple_of(size)))
        .unwrap_or(1)
}
/// Checks the cluster size of a launch, in groups.
///
/// # Errors
/// `INVALID_VALUE` for clusters that do not divide the groups.
pub fn check_cluster(cluster: [u32; 3], groups: [usize; 3]) -> Result<()> {
    match cluster.contains(&0) || (0..3).any(|d| !groups[d].is_multiple_of(cluster[d] as usize)) {
        false => Ok(()),
        true => refused(ErrorCode::InvalidValue, || {
            format!("clusters of {cluster:?} groups do not divide the {groups:?} that there are")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        items: 1024,
        group: [1024, 1024, 64],
        grid: [0x7fff_ffff, 65535, 65535],
        warp: 32,
        wanted: Wanted { size: None, most: None, most_in_all: None, sub_group: None },
    };
    fn range(global: &[usize]) -> Range {
        let range = Range::of(None, global);
        range.check().unwrap();
        range
    }
    fn groups(range: &Range, local: [usize; 3]) -> Result<()> {
        LIMITS.check_groups(range, range.groups(local))
    }
    fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
        result.unwrap_err().code()
    }
    #[test]
    fn sizes_that_are_left_to_us_divide_the_range_and_are_allowed() {
        let all = [1, 2, 31, 32, 33, 96, 97, 1000, 1024, 4096, 65537, 1_000_003, 1 << 20];
        for x in all {
            for y in [1, 3, 64, 65536, 100_000] {
                for z in [1, 5, 128] {
                    for best in [1, 128, 768, 1024] {
                        let global = range(&[x, y, z]);
                        let local = LIMITS.suggest(&global, best).unwrap();
                        LIMITS.check_local(&global, local).unwrap();
                        groups(&global, local).unwrap();
                    }
                }
            }
        }
    }
    #[test]
    fn whole_warps_and_as_many_items_as_are_best_are_preferred() {
        let suggest = |global: &[usize], best| LIMITS.suggest(&range(global), best).unwrap();
        assert_eq!(suggest(&[1 << 20], 768), [512, 1, 1]);
        assert_eq!(suggest(&[960], 1024), [960, 1, 1]);
        assert_eq!(suggest(&[1000], 512), [500, 1, 1]); // no multiple of 32 divides it
        assert_eq!(suggest(&[3200], 1024), [800, 1, 1]);
        assert_eq!(suggest(&[16, 16, 16], 1024), [16, 16, 4]);
        assert_eq!(suggest(&[64, 1 << 20], 64), [2, 32, 1]); // 32, or there would be too many groups
        assert_eq!(suggest(&[7], 1024), [7, 1, 1]);
    }
    #[test]
    fn what_the_kernel_was_made_for_is_kept() {
        let made = |wanted| Limits { wanted, ..LIMITS };
        let exact = made(Wanted { size: Some([8, 4, 1]), ..Wanted::default() });
        assert_eq!(exact.suggest(&range(&[64, 64]), 1024).unwrap(), [8, 4, 1]);
        assert_eq!(code(exact.suggest(&range(&[63, 64]), 1024)), ErrorCode::InvalidWorkGroupSize);
        assert_eq!(
            code(exact.check_local(&range(&[64, 64]), [4, 4, 1])),
            ErrorCode::InvalidWorkGroupSize
        );
        let small = made(Wanted { most_in_all: Some(16), ..Wanted::default() });
        assert_eq!(small.suggest(&range(&[64, 64]), 1024).unwrap(), [16, 1, 1]);
        assert_eq!(
            code(small.check_local(&range(&[64]), [32, 1, 1])),
            ErrorCode::InvalidWorkGroupSize
        );
        let narrow = made(Wanted { most: Some([4, 2, 1]), ..Wanted::default() });
        assert_eq!(narrow.suggest(&range(&[64, 64, 64]), 1024).unwrap(), [4, 2, 1]);
        assert_eq!(
            code(narrow.check_local(&range(&[64]), [8, 1, 1])),
            ErrorCode::InvalidWorkGroupSize
        );
    }
    #[test]
    fn ranges_and_groups_that_there_cannot_be_are_refused() {
        assert_eq!(code(Range::of(None, &[usize::MAX, 2]).check()), ErrorCode::InvalidValue);
        assert_eq!(code(Range::of(Some(&[usize::MAX]), &[2]).check()), ErrorCode::InvalidValue);
        assert!(range(&[2, 0]).is_empty() && !range(&[2]).is_empty());
        for (global, local) in
            [(&[7][..], &[2][..]), (&[8], &[0]), (&[2048], &[2048]), (&[1, 1, 128], &[1, 1, 128])]
        {
            let checked = LIMITS.check_local(&range(global), Range::local(local));
            assert_eq!(code(checked), ErrorCode::InvalidWorkGroupSize);
        }
        assert_eq!(code(groups(&range(&[1, 65536]), [1; 3])), ErrorCode::InvalidWorkGroupSize);
        assert_eq!(
            code(LIMITS.suggest(&range(&[1, 1_000_003]), 8)),
            ErrorCode::InvalidWorkGroupSize
        );
        check_cluster([2, 1, 1], [4, 1, 1]).unwrap();
        assert_eq!(code(check_cluster([3, 1, 1], [4, 1, 1])), ErrorCode::InvalidValue);
        assert_eq!(code(check_cluster([0, 1, 1], [4, 1, 1])), ErrorCode::InvalidValue);
    }
}
