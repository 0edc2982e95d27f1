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

fn refused<T>(code: ErrorCode, why: String) -> Result<T> {
    Err(Error::new(code, why))
}
fn three(given: &[usize], rest: usize) -> [usize; 3] {
    let mut all = [rest; 3];
    all.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    all
}

impl Range {
    /// A range as the caller passes it; missing dimensions have size 1 and offset 0.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a range whose number of items or whose last global id does not fit `usize`.
    pub fn new(offset: Option<&[usize]>, global: &[usize]) -> Result<Self> {
        let (offset, global) = (three(offset.unwrap_or_default(), 0), three(global, 1));
        let items = global.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        match items.is_some() && (0..3).all(|d| offset[d].checked_add(global[d]).is_some()) {
            true => Ok(Self { offset, global }),
            false => refused(
                ErrorCode::InvalidValue,
                format!("{global:?} items from {offset:?} on are more than can be counted"),
            ),
        }
    }
    /// Whether it contains no items, which SYCL allows.
    pub fn is_empty(&self) -> bool {
        self.global.contains(&0)
    }
}

impl Limits {
    /// Checks the group size that the caller passes.
    ///
    /// # Errors
    /// `INVALID_WORK_GROUP_SIZE` if it does not divide the range, exceeds the limits of the device or the kernel, or
    /// differs from the size that the kernel requires.
    pub fn local(&self, range: &Range, local: &[usize]) -> Result<[usize; 3]> {
        let (local, global) = (three(local, 1), range.global);
        let wrong = |why: String| refused(ErrorCode::InvalidWorkGroupSize, why);
        if local.contains(&0) || (0..3).any(|d| !global[d].is_multiple_of(local[d])) {
            return wrong(format!("groups of {local:?} items do not divide {global:?}"));
        }
        if self.wanted.size.is_some_and(|size| size != local) {
            let size = self.wanted.size.unwrap_or_default();
            return wrong(format!(
                "the kernel was made for groups of {size:?} items, not {local:?}"
            ));
        }
        let (most, each) = (self.most(), self.each());
        let items = local.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if items.is_none_or(|items| items > most) || (0..3).any(|d| local[d] > each[d]) {
            return wrong(format!(
                "a group of {local:?} items: this kernel runs at most {most} in one here, and {each:?}"
            ));
        }
        Ok(local)
    }
    /// Chooses a group size that divides the range and has about `best` items.
    ///
    /// # Errors
    /// As for `local`, if the kernel requires a size; otherwise if no allowed group size is large enough to stay below
    /// the largest number of groups.
    pub fn suggest(&self, range: &Range, best: usize) -> Result<[usize; 3]> {
        if let Some(size) = self.wanted.size {
            return self.local(range, &size);
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
    /// The number of groups with the size `local`.
    ///
    /// # Errors
    /// `INVALID_WORK_GROUP_SIZE` for more groups than the device supports.
    pub fn groups(&self, range: &Range, local: [usize; 3]) -> Result<[usize; 3]> {
        let groups = [0, 1, 2].map(|d| range.global[d] / local[d]);
        match (0..3).all(|d| groups[d] <= self.grid[d]) {
            true => Ok(groups),
            false => self.too_many(range.global),
        }
    }
    fn most(&self) -> usize {
        self.wanted.most_in_all.map_or(self.items, |most| most.min(self.items)).max(1)
    }
    fn each(&self) -> [usize; 3] {
        let wanted = self.wanted.most.unwrap_or([usize::MAX; 3]);
        [0, 1, 2].map(|d| self.group[d].min(wanted[d]).max(1))
    }
    fn too_many<T>(&self, global: [usize; 3]) -> Result<T> {
        let grid = self.grid;
        refused(
            ErrorCode::InvalidWorkGroupSize,
            format!(
                "{global:?} items need more than {grid:?} groups, which is the limit: use larger groups"
            ),
        )
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
        true => refused(
            ErrorCode::InvalidValue,
            format!("clusters of {cluster:?} groups do not divide the {groups:?} that there are"),
        ),
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
        Range::new(None, global).unwrap()
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
                        assert_eq!(LIMITS.local(&global, &local).unwrap(), local);
                        LIMITS.groups(&global, local).unwrap();
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
        assert_eq!(code(exact.local(&range(&[64, 64]), &[4, 4])), ErrorCode::InvalidWorkGroupSize);
        let small = made(Wanted { most_in_all: Some(16), ..Wanted::default() });
        assert_eq!(small.suggest(&range(&[64, 64]), 1024).unwrap(), [16, 1, 1]);
        assert_eq!(code(small.local(&range(&[64]), &[32])), ErrorCode::InvalidWorkGroupSize);
        let narrow = made(Wanted { most: Some([4, 2, 1]), ..Wanted::default() });
        assert_eq!(narrow.suggest(&range(&[64, 64, 64]), 1024).unwrap(), [4, 2, 1]);
        assert_eq!(code(narrow.local(&range(&[64]), &[8])), ErrorCode::InvalidWorkGroupSize);
    }
    #[test]
    fn ranges_and_groups_that_there_cannot_be_are_refused() {
        assert_eq!(code(Range::new(None, &[usize::MAX, 2])), ErrorCode::InvalidValue);
        assert_eq!(code(Range::new(Some(&[usize::MAX]), &[2])), ErrorCode::InvalidValue);
        assert!(range(&[2, 0]).is_empty() && !range(&[2]).is_empty());
        for (global, local) in
            [(&[7][..], &[2][..]), (&[8], &[0]), (&[2048], &[2048]), (&[1, 1, 128], &[1, 1, 128])]
        {
            assert_eq!(code(LIMITS.local(&range(global), local)), ErrorCode::InvalidWorkGroupSize);
        }
        assert_eq!(
            code(LIMITS.groups(&range(&[1, 65536]), [1; 3])),
            ErrorCode::InvalidWorkGroupSize
        );
        assert_eq!(
            code(LIMITS.suggest(&range(&[1, 1_000_003]), 8)),
            ErrorCode::InvalidWorkGroupSize
        );
        check_cluster([2, 1, 1], [4, 1, 1]).unwrap();
        assert_eq!(code(check_cluster([3, 1, 1], [4, 1, 1])), ErrorCode::InvalidValue);
        assert_eq!(code(check_cluster([0, 1, 1], [4, 1, 1])), ErrorCode::InvalidValue);
    }
}
