//! Launches: the arguments that C describes are judged, and handed to the driver without a copy of ours: it
//! copies them during the call. Which kernel, and over what range, is `launch.rs`'s.
#![expect(unsafe_code, reason = "reads C's arguments and calls into the vendor's driver")]
use super::{
    super::{
        Device, Mem, Sampler,
        driver::{
            Dialect,
            layout::{LaunchAttribute, LaunchConfig},
        },
        mem::kernel_argument,
    },
    module::Function,
    stream::Stream,
};
use std::{ffi::c_void, ptr::null_mut};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Owned,
};
use ur_core::kernels::arguments::{Argument, LONGEST, check_all, read};
use ur_sys::{ur_exp_kernel_arg_properties_t, ur_exp_kernel_arg_type_t as T, ur_mem_flags_t};

/// Arguments that need no memory of the heap.
const INLINE: usize = 32;
/// What an argument that C left out, where the driver does not tell how many there are, is read from.
static NOTHING: [u64; LONGEST.div_ceil(8)] = [0; LONGEST.div_ceil(8)];
/// Local memory of two arguments is not closer than this where each has as much.
const ALIGNMENT: usize = 128;

/// Groups, items of a group, bytes of dynamic local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Groups.
    pub grid: [u32; 3],
    /// Items of a group.
    pub block: [u32; 3],
    /// Bytes of dynamic local memory.
    pub shared: u32,
}
/// What else is asked of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Whether all groups are to run at once, so that they can wait for each other.
    pub cooperative: bool,
    /// Groups of a cluster.
    pub cluster: Option<[u32; 3]>,
}

/// The arguments of a launch, judged. They are where C has them, and there only until its call returns.
#[derive(Debug)]
pub struct Arguments<'call> {
    given: &'call [ur_exp_kernel_arg_properties_t],
    /// Where the first one's local memory starts.
    first: usize,
    /// Where the last one's ends.
    local: usize,
}
impl<'call> Arguments<'call> {
    /// Judges what C describes; `parameters` are the sizes that the kernel has, if they are known, and the
    /// first `reserved` bytes of dynamic local memory are others'.
    ///
    /// # Errors
    /// `INVALID_KERNEL_ARGS` unless there is one for each index; `INVALID_KERNEL_ARGUMENT_SIZE`;
    /// `INVALID_ENUMERATION`, `INVALID_MEM_OBJECT`, `INVALID_SAMPLER`; `OUT_OF_RESOURCES` for more local
    /// memory than can be counted.
    pub fn new<D: Dialect>(
        given: &'call [ur_exp_kernel_arg_properties_t],
        parameters: Option<&[u32]>,
        reserved: usize,
    ) -> Result<Self> {
        check_all::<Mem<D>, Sampler<D>>(given, parameters.map(<[u32]>::len), parameters)?;
        let mut local = reserved;
        for one in given.iter().filter(|one| one.r#type == T::LOCAL) {
            local = place(local, one.size).map(|(_, end)| end).ok_or_else(too_much)?;
        }
        Ok(Self { given, first: reserved, local })
    }
    /// Bytes of dynamic local memory that a group needs.
    pub fn local(&self) -> usize {
        self.local
    }
}
fn too_much() -> Error {
    Error::new(
        ErrorCode::OutOfResources,
        "the local memory of the arguments is more than there can be",
    )
}
/// Where local memory of so many bytes starts and ends, if `taken` bytes are taken.
fn place(taken: usize, bytes: usize) -> Option<(usize, usize)> {
    let alignment = bytes.max(1).checked_next_power_of_two()?.min(ALIGNMENT);
    let start = taken.checked_next_multiple_of(alignment)?;
    Some((start, start.checked_add(bytes).filter(|&end| end <= i32::MAX as usize)?))
}
impl<D: Dialect> Stream<D> {
    /// Launches `function`, of a module that stays loaded until it is done, with `offset` as an argument
    /// behind the others if there is one. A context is current, and the stream is of it.
    ///
    /// # Errors
    /// The driver's own; what memory objects answer.
    pub fn launch(
        &self,
        device: &Owned<Device<D>>,
        function: Function<D>,
        shape: &Shape,
        extras: Extras,
        arguments: &Arguments<'_>,
        offset: Option<[u32; 3]>,
    ) -> Result<()> {
        let count = arguments.given.len() + 1;
        // Behind what there is come zeros: the driver reads as many as the kernel has.
        let (mut words, mut pointers) = ([0; INLINE], [NOTHING.as_ptr().cast_mut().cast(); INLINE]);
        let (mut more_words, mut more_pointers);
        let (words, pointers): (&mut [u64], &mut [*mut c_void]) = if count < INLINE {
            (&mut words, &mut pointers)
        } else {
            more_words = vec![0; count];
            more_pointers = vec![NOTHING.as_ptr().cast_mut().cast(); count.max(4 * INLINE)];
            (&mut more_words, &mut more_pointers)
        };
        let mut local = arguments.first;
        for (one, word) in arguments.given.iter().zip(words) {
            let place = &mut pointers[one.index as usize];
            *word = match read::<Mem<D>, Sampler<D>>(one)? {
                Argument::Value(bytes) => {
                    *place = bytes.as_ptr().cast_mut().cast();
                    continue;
                }
                Argument::Address(at) => at as u64,
                Argument::Memory(None) => 0,
                Argument::Memory(Some((mem, flags))) => {
                    let writes = !flags.contains(ur_mem_flags_t::READ_ONLY) && !mem.is_read_only();
                    kernel_argument(&mem, device, self, writes)?
                }
                Argument::Local(bytes) => {
                    let (start, end) = self::place(local, bytes).ok_or_else(too_much)?;
                    local = end;
                    start as u64
                }
                Argument::Sampler(sampler) => u64::from(sampler.word()),
            };
            *place = std::ptr::from_mut(word).cast();
        }
        if let Some(offset) = &offset {
            pointers[count - 1] = std::ptr::from_ref(offset).cast_mut().cast();
        }
        self.start(function, shape, extras, pointers)
    }
    fn start(
        &self,
        function: Function<D>,
        shape: &Shape,
        extras: Extras,
        pointers: &mut [*mut c_void],
    ) -> Result<()> {
        let (function, pointers, extra) = (function.raw(), pointers.as_mut_ptr(), null_mut());
        let Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared } = *shape;
        if extras == Extras::default() {
            let stream = self.raw();
            // SAFETY: a loaded kernel, arguments of the sizes that it has, live during the call.
            let outcome = unsafe {
                D::driver()
                    .launch(function, gx, gy, gz, bx, by, bz, shared, stream, pointers, extra)
            };
            return outcome.ok::<D>();
        }
        let (attributes, count) = attributes(extras);
        let config = LaunchConfig {
            grid: shape.grid,
            block: shape.block,
            shared,
            stream: self.raw(),
            attributes: attributes.as_ptr(),
            count,
        };
        // SAFETY: as above; the configuration lives during the call.
        unsafe { D::driver().launch_ex(&raw const config, function, pointers, extra) }.ok::<D>()
    }
}
/// What is asked for as the driver takes it, and how much of it is.
fn attributes(extras: Extras) -> ([LaunchAttribute; 2], u32) {
    let none = LaunchAttribute { id: 0, pad: 0, value: [0; 16] };
    let (mut all, mut count) = ([none; 2], 0);
    let cluster = extras.cluster.map(|[x, y, z]| (4, [x, y, z]));
    for (id, value) in extras.cooperative.then_some((2, [1, 0, 0])).into_iter().chain(cluster) {
        all[count].id = id;
        all[count].value[..3].copy_from_slice(&value);
        count += 1;
    }
    (all, count as u32)
}

#[cfg(test)]
mod tests {
    use super::{super::super::driver::Cuda, *};
    use ur_sys::{ur_exp_kernel_arg_value_t as V, ur_structure_type_t};

    fn argument(index: u32, r#type: T, size: usize, value: V) -> ur_exp_kernel_arg_properties_t {
        let stype = ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES;
        ur_exp_kernel_arg_properties_t { stype, pNext: null_mut(), r#type, index, size, value }
    }
    static SEVEN: u32 = 7;
    fn value(index: u32, size: usize) -> ur_exp_kernel_arg_properties_t {
        argument(index, T::VALUE, size, V { value: (&raw const SEVEN).cast() })
    }
    fn local(index: u32, size: usize) -> ur_exp_kernel_arg_properties_t {
        argument(index, T::LOCAL, size, V { value: null_mut() })
    }
    fn judge(given: &[ur_exp_kernel_arg_properties_t], sizes: Option<&[u32]>) -> Result<usize> {
        Arguments::new::<Cuda>(given, sizes, 0).map(|arguments| arguments.local())
    }
    fn code(given: &[ur_exp_kernel_arg_properties_t], sizes: Option<&[u32]>) -> ErrorCode {
        judge(given, sizes).unwrap_err().code()
    }
    #[test]
    fn each_index_is_there_once_in_any_order() {
        judge(&[value(0, 4), value(1, 4), value(2, 4)], None).unwrap();
        judge(&[value(2, 4), value(0, 4), value(1, 4)], None).unwrap();
        for indices in [[0, 0], [0, 2], [1, 1], [1, 2], [u32::MAX, 0]] {
            let given = indices.map(|index| value(index, 4));
            assert_eq!(code(&given, None), ErrorCode::InvalidKernelArgs, "{indices:?}");
        }
    }
    #[test]
    fn arguments_have_the_sizes_that_the_kernel_has() {
        let pointer = argument(1, T::POINTER, 8, V { pointer: null_mut() });
        let given = [value(0, 4), pointer, local(2, 64)];
        assert_eq!(judge(&given, Some(&[4, 8, 4])).unwrap(), 64);
        assert_eq!(judge(&given, Some(&[4, 8, 8])).unwrap(), 64);
        for sizes in [[8, 8, 4], [2, 8, 4], [4, 4, 4], [4, 8, 12]] {
            assert_eq!(code(&given, Some(&sizes)), ErrorCode::InvalidKernelArgumentSize);
        }
        assert_eq!(code(&given, Some(&[4, 8])), ErrorCode::InvalidKernelArgs);
        assert_eq!(code(&[], Some(&[4])), ErrorCode::InvalidKernelArgs);
        let null = argument(0, T::VALUE, 4, V { value: null_mut() });
        for wrong in [value(0, 0), value(0, LONGEST + 1), null] {
            assert_eq!(code(&[wrong], None), ErrorCode::InvalidKernelArgumentSize);
        }
        let strange = argument(0, T(9), 4, V { value: null_mut() });
        assert_eq!(code(&[strange], None), ErrorCode::InvalidEnumeration);
        assert_eq!(code(&[strange], Some(&[4, 4])), ErrorCode::InvalidEnumeration);
    }
    #[test]
    fn local_memory_is_one_block_of_aligned_parts() {
        assert_eq!(place(0, 4), Some((0, 4)));
        assert_eq!(place(4, 12), Some((16, 28)));
        assert_eq!(place(28, 4096), Some((128, 4224)));
        assert_eq!(place(129, 0), Some((129, 129)));
        assert_eq!(place(1, usize::MAX), None);
        assert_eq!(place(0, 1 << 31), None);
        assert_eq!(judge(&[local(0, 4), local(1, 12), local(2, 4096)], None).unwrap(), 4224);
        let behind = [local(0, 8)];
        assert_eq!(Arguments::new::<Cuda>(&behind, None, 100).unwrap().local(), 112);
        assert_eq!(code(&[local(0, 1 << 30), local(1, 1 << 30)], None), ErrorCode::OutOfResources);
    }
    #[test]
    fn what_else_is_asked_for_becomes_attributes() {
        assert_eq!(attributes(Extras::default()).1, 0);
        let (all, count) = attributes(Extras { cooperative: true, cluster: Some([2, 3, 4]) });
        assert_eq!((count, all[0].id, all[0].value[0]), (2, 2, 1));
        assert_eq!((all[1].id, &all[1].value[..4]), (4, &[2, 3, 4, 0][..]));
        let (all, count) = attributes(Extras { cooperative: false, cluster: Some([1, 1, 1]) });
        assert_eq!((count, all[0].id), (1, 4));
    }
}
