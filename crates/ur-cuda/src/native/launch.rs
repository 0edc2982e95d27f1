//! Kernel launches. The driver copies the arguments during the call, so they are passed without a further
//! copy.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        Family,
        driver::{
            Dialect,
            layout::{LaunchAttribute, LaunchConfig},
        },
    },
    module::Function,
    stream::{Stream, taking},
};
use std::{cell::RefCell, ffi::c_void, ptr::null_mut};
use ur_hal::{
    Address, Argument, ErrorKind, LONGEST_ARGUMENT as LONGEST, Launch, Result, place_local,
};

/// Up to this many arguments are passed without a heap allocation.
const INLINE: usize = 32;
/// Zeros, read for arguments that the application did not set, if the number of parameters is unknown.
static NOTHING: [u64; LONGEST.div_ceil(8)] = [0; LONGEST.div_ceil(8)];
fn nothing() -> *mut c_void {
    NOTHING.as_ptr().cast_mut().cast()
}
/// Calls `launch` with these pointers to arguments, and behind them pointers to zeros: as many in all as a kernel can
/// have parameters, each of which has at least one byte. The driver reads one pointer for each parameter of the kernel,
/// however many arguments the application passes.
fn with_all<R>(
    pointers: &[*mut c_void],
    launch: impl FnOnce(&mut [*mut c_void]) -> Result<R>,
) -> Result<R> {
    thread_local! {
        /// Between launches all of them point at zeros.
        static ALL: RefCell<Vec<*mut c_void>> = const { RefCell::new(vec![]) };
    }
    ALL.with_borrow_mut(|all| {
        all.resize(LONGEST.max(pointers.len()), nothing());
        all[..pointers.len()].copy_from_slice(pointers);
        let outcome = launch(all);
        all[..pointers.len()].fill(nothing());
        outcome
    })
}

impl<D: Dialect> Stream<D> {
    /// Launches a function. Its module must stay loaded until the launch is complete. A context must be
    /// current, and the stream must belong to it.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an offset of more than 32 bits; else the driver's error.
    pub fn launch(&self, launch: &Launch<'_, Family<D>>) -> Result<()> {
        // This variant of the kernel takes the global offset as a last argument.
        let twin = launch.function.twin().zip(launch.geometry.offset_words()?);
        let (function, offset) =
            twin.map_or((launch.function.function(), None), |(twin, words)| (twin, Some(words)));
        let count = launch.arguments.len() + 1;
        let (mut words, mut pointers) = ([0; INLINE], [nothing(); INLINE]);
        let (mut more_words, mut more_pointers);
        let (words, pointers): (&mut [u64], &mut [*mut c_void]) = if count < INLINE {
            (&mut words, &mut pointers[..count])
        } else {
            more_words = vec![0; count];
            more_pointers = vec![nothing(); count];
            (&mut more_words, &mut more_pointers)
        };
        let mut local = launch.local_memory;
        for ((one, word), place) in launch.arguments.iter().zip(words).zip(&mut *pointers) {
            *word = match *one {
                Argument::Value(bytes) => {
                    *place = bytes.as_ptr().cast_mut().cast();
                    continue;
                }
                Argument::Address(at) => at.map_or(0, Address::get) as u64,
                Argument::Image(image, _) => image.array().surface()?,
                Argument::Local(bytes) => {
                    let (start, end) =
                        place_local(local, bytes).ok_or(ErrorKind::OutOfResources)?;
                    local = end;
                    start as u64
                }
                Argument::Sampler(word) => u64::from(**word),
            };
            *place = std::ptr::from_mut(word).cast();
        }
        if let Some(offset) = &offset {
            pointers[count - 1] = std::ptr::from_ref(offset).cast_mut().cast();
        }
        match launch.function.knows_parameters() {
            true => self.start(function, launch, local, pointers), // the core has compared their number
            false => with_all(pointers, |all| self.start(function, launch, local, all)),
        }
    }
    /// Launches a function with `shared` bytes of dynamic local memory, and with these pointers to its arguments.
    fn start(
        &self,
        function: Function<D>,
        launch: &Launch<'_, Family<D>>,
        shared: usize,
        pointers: &mut [*mut c_void],
    ) -> Result<()> {
        let (function, pointers, extra) = (function.raw(), pointers.as_mut_ptr(), null_mut());
        let (grid, block) = (launch.geometry.group_words(), launch.geometry.local);
        let (stream, shared) = (self.raw(), shared as u32);
        if !launch.is_cooperative && launch.cluster.is_none() {
            let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
            // SAFETY: the kernel is loaded; the arguments have the sizes of its parameters and live during
            // the call.
            let outcome = unsafe {
                D::driver()
                    .launch(function, gx, gy, gz, bx, by, bz, shared, stream, pointers, extra)
            };
            return taking(outcome);
        }
        let (attributes, count) = attributes(launch.is_cooperative, launch.cluster);
        let attributes = attributes.as_ptr();
        let config = LaunchConfig { grid, block, shared, stream, attributes, count };
        // SAFETY: as above; the configuration lives during the call.
        taking(unsafe { D::driver().launch_ex(&raw const config, function, pointers, extra) })
    }
}
/// The driver's launch attributes, and their number: whether all groups must be resident at once, so that they can wait
/// for each other, and the work-groups of a cluster in each dimension.
fn attributes(is_cooperative: bool, cluster: Option<[u32; 3]>) -> ([LaunchAttribute; 2], u32) {
    let none = LaunchAttribute { id: 0, pad: 0, value: [0; 16] };
    let (mut all, mut count) = ([none; 2], 0);
    let cluster = cluster.map(|[x, y, z]| (4, [x, y, z]));
    for (id, value) in is_cooperative.then_some((2, [1, 0, 0])).into_iter().chain(cluster) {
        all[count].id = id;
        all[count].value[..3].copy_from_slice(&value);
        count += 1;
    }
    (all, count as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_unknown_parameters_finds_zeros_for_each_that_was_not_passed() {
        let mut word = 7_u64;
        let given = std::ptr::from_mut(&mut word).cast::<c_void>();
        for count in [40, 1, LONGEST + 1, 0] {
            let (passed, zeros) = with_all(&vec![given; count], |all| {
                let of = |wanted| all.iter().filter(|&&one| one == wanted).count();
                Ok((of(given), of(nothing())))
            })
            .unwrap();
            assert_eq!(passed, count);
            assert!(passed + zeros >= LONGEST, "{count}: {zeros}");
        }
    }

    #[test]
    fn what_else_is_asked_for_becomes_attributes() {
        assert_eq!(attributes(false, None).1, 0);
        let (all, count) = attributes(true, Some([2, 3, 4]));
        assert_eq!((count, all[0].id, all[0].value[0]), (2, 2, 1));
        assert_eq!((all[1].id, &all[1].value[..4]), (4, &[2, 3, 4, 0][..]));
        let (all, count) = attributes(false, Some([1, 1, 1]));
        assert_eq!((count, all[0].id), (1, 4));
    }
}
