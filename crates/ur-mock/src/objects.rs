//! The objects behind the mock's handles. Each object remembers the objects and the numbers it was created
//! with, keeps those objects alive, and returns both from queries.
use super::{said, table::MOCK_TABLE};
use std::{
    ffi::c_void,
    ptr::with_exposed_provenance_mut,
    sync::{Arc, OnceLock},
};
use ur_adapter::default_answers::{Claim, Query, Shape};
use ur_adapter::{
    error::{ErrorCode, Result},
    info::Answer,
    object::{Backend, Body, Borrowed, Kind, Object, Owned, Slab, Tag},
};

/// The object behind every handle of this adapter.
#[derive(Debug)]
pub struct Mocked<const KIND: u16>(Story);

/// How an object was created.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The objects it was created from: their kinds and handles, nearest first.
    kin: Vec<(u16, usize)>,
    /// The objects behind those handles, kept alive.
    alive: Vec<Arc<dyn Alive>>,
    /// The numbers it was created with, by the names of their parameters.
    notes: Vec<(String, u64)>,
}

/// An object that another keeps alive.
trait Alive: std::fmt::Debug + Send + Sync {}
impl<T: Body> Alive for Owned<T> {}

/// An object or list of objects that another object is created from.
pub trait Kin {
    /// Adds it to `story`.
    fn tell(&self, story: &mut Story);
}
impl<const KIND: u16> Kin for Owned<Mocked<KIND>>
where
    Mocked<KIND>: Body,
{
    fn tell(&self, story: &mut Story) {
        story.kin.push((KIND, self.address()));
        story.kin.extend(&self.0.kin);
        story.alive.push(Arc::new(self.clone()));
    }
}
impl<const KIND: u16> Kin for Borrowed<'_, Mocked<KIND>>
where
    Mocked<KIND>: Body,
{
    fn tell(&self, story: &mut Story) {
        // An object that another thread is releasing is left out.
        if let Ok(owned) = self.own() {
            owned.tell(story);
        }
    }
}
impl<T: Kin> Kin for Option<T> {
    fn tell(&self, story: &mut Story) {
        self.iter().for_each(|one| one.tell(story));
    }
}
impl<T: Kin> Kin for &[T] {
    fn tell(&self, story: &mut Story) {
        self.iter().for_each(|one| one.tell(story));
    }
}

impl Story {
    /// Records objects that the new object is created from.
    pub fn of(&mut self, others: &impl Kin) {
        others.tell(self);
    }
    /// Records a number that the new object is created with.
    pub fn note(&mut self, name: &str, number: impl Into<u64>) {
        self.notes.push((word(name), number.into()));
    }
    /// Creates an object with this story.
    pub fn make<T: Body + From<Self>>(&self) -> Owned<T> {
        Owned::new(self.clone().into())
    }
    fn noted(&self, name: &str) -> Option<u64> {
        self.notes.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }
    fn handles(&self, kind: Kind) -> Vec<*mut c_void> {
        let same = self.kin.iter().filter(|(of, _)| *of == kind as u16);
        same.map(|(_, at)| with_exposed_provenance_mut(*at)).collect()
    }
}

/// Queries of a mock object.
pub trait Told {
    /// Answers from the object's story, else with a plausible default.
    ///
    /// # Errors
    /// Returns `INVALID_SIZE` if the buffer is too small, and `UNSUPPORTED_ENUMERATION` where the
    /// specification does not define the answer's type.
    fn answer(&self, name: impl Query, answer: &mut Answer<'_>) -> Result<()>;
    /// The handle's address, which is also the native handle.
    fn address(&self) -> usize;
}
impl<const KIND: u16> Told for Object<Mocked<KIND>> {
    fn answer(&self, name: impl Query, answer: &mut Answer<'_>) -> Result<()> {
        let shape = name.shape().ok_or(ErrorCode::UnsupportedEnumeration)?;
        let title = name.title().unwrap_or_default();
        let about = word(title.split_once("_INFO_").map_or(title, |(_, about)| about));
        let number = match about.as_str() {
            "REFERENCECOUNT" => Some(u64::from(self.api_refs())),
            about => self.0.noted(about).or_else(|| said::number(title)),
        };
        match (shape, number) {
            (Shape::Text, _) => answer.str(said::text(title)),
            (Shape::Truth, Some(one)) => answer.bool(one != 0),
            (Shape::Number(8), Some(number)) => answer.value(&number),
            (Shape::Number(_) | Shape::Flags(_) | Shape::Enumerator(_), Some(number)) => {
                answer.value(&u32::try_from(number).unwrap_or(u32::MAX))
            }
            (Shape::List, _) => answer.slice(said::list(title)),
            _ => shape.answer(Claim::Everything, |kind| self.related(kind, title), answer),
        }
    }
    fn address(&self) -> usize {
        self.as_handle().expose_provenance()
    }
}
impl<const KIND: u16> Mocked<KIND> {
    fn related(&self, kind: Kind, title: &str) -> Vec<*mut c_void> {
        let known = self.0.handles(kind);
        match kind {
            _ if !known.is_empty() || title == "UR_DEVICE_INFO_PARENT_DEVICE" => known,
            Kind::Adapter => vec![the_adapter().as_handle().cast()],
            Kind::Platform => vec![the_platform().as_handle().cast()],
            Kind::Device => vec![the_device().as_handle().cast()],
            _ => vec![],
        }
    }
    /// Whether the object exists for the life of the process, regardless of reference counts.
    fn is_root(&self) -> bool {
        let part = self.0.kin.iter().any(|(of, _)| *of == Kind::Device as u16);
        KIND == Kind::Platform as u16 || KIND == Kind::Device as u16 && !part
    }
}

/// Normalizes the names of parameters, members and enumerators, so that they can be compared.
fn word(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_uppercase()).collect()
}

/// The error code for a handle that is not of this kind.
const fn invalid(kind: Kind) -> ErrorCode {
    match kind {
        Kind::Platform => ErrorCode::InvalidPlatform,
        Kind::Device => ErrorCode::InvalidDevice,
        Kind::Context => ErrorCode::InvalidContext,
        Kind::Queue => ErrorCode::InvalidQueue,
        Kind::Event => ErrorCode::InvalidEvent,
        Kind::Program => ErrorCode::InvalidProgram,
        Kind::Kernel => ErrorCode::InvalidKernel,
        Kind::Sampler => ErrorCode::InvalidSampler,
        Kind::Mem | Kind::PhysicalMem => ErrorCode::InvalidMemObject,
        Kind::CommandBuffer => ErrorCode::InvalidCommandBufferExp,
        Kind::CommandBufferCommand => ErrorCode::InvalidCommandBufferCommandHandleExp,
        Kind::Graph | Kind::ExecutableGraph => ErrorCode::InvalidGraph,
        Kind::Adapter | Kind::UsmPool | Kind::ExternalMem | Kind::ExternalSemaphore => {
            ErrorCode::InvalidValue
        }
    }
}

/// The kinds of objects, each with a slab of its own.
macro_rules! kinds { ($($object:ident = $kind:ident;)*) => { $(
    /// The object behind a handle of this name.
    pub type $object = Mocked<{ Kind::$kind as u16 }>;
    impl Body for $object {
        const TAG: Tag = Tag::new(Backend::Mock, Kind::$kind);
        const INVALID: ErrorCode = invalid(Kind::$kind);
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<$object> = Slab::new(&MOCK_TABLE);
            &SLAB
        }
        fn is_counted(&self) -> bool {
            !self.is_root()
        }
    }
)* } }
kinds! {
    Adapter = Adapter;
    Platform = Platform;
    Device = Device;
    Context = Context;
    Queue = Queue;
    Event = Event;
    Program = Program;
    Kernel = Kernel;
    Sampler = Sampler;
    Mem = Mem;
    PhysicalMem = PhysicalMem;
    UsmPool = UsmPool;
    ExpExternalMem = ExternalMem;
    ExpExternalSemaphore = ExternalSemaphore;
    ExpCommandBuffer = CommandBuffer;
    ExpCommandBufferCommand = CommandBufferCommand;
    ExpGraph = Graph;
    ExpExecutableGraph = ExecutableGraph;
}
impl<const KIND: u16> From<Story> for Mocked<KIND> {
    fn from(story: Story) -> Self {
        Self(story)
    }
}

/// Objects of which a process has only one.
macro_rules! ones { ($($one:ident: $t:ty;)*) => { $(
    /// Returns the only object of its kind.
    pub fn $one() -> Owned<$t> {
        static ONE: OnceLock<Owned<$t>> = OnceLock::new();
        ONE.get_or_init(|| Story::default().make()).clone()
    }
)* } }
ones! {
    the_adapter: Adapter;
    the_platform: Platform;
    the_device: Device;
}
