//! A complete driver for an invented device: its memory consists of vectors at invented addresses, and each stream has
//! a thread that executes its commands. It shows what the trait requires; the tests of the trait use it.
use std::{
    convert::Infallible,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{Sender, channel},
    },
    thread,
    time::Instant,
};
use ur_hal::*;
use ur_ipc::arena::{Counter, PendingSignal, Progress};
use ur_lock::{locked, unpoisoned};

fn now() -> u64 {
    static START: Mutex<Option<Instant>> = Mutex::new(None);
    locked(&START).get_or_insert_with(Instant::now).elapsed().as_nanos() as u64
}

/// The driver.
#[derive(Debug)]
pub struct InMemory;

type Bytes = Arc<Mutex<Vec<u8>>>;
/// All memory of the device.
static MEMORY: Mutex<AddressMap<Bytes>> = Mutex::new(AddressMap::new());
const DEVICE_BYTES: usize = 1 << 30;
const ALIGNMENT: usize = 4096;

/// Memory of the device, released on drop.
#[derive(Debug)]
pub struct Allocation(Range);
impl Memory for Allocation {
    fn range(&self) -> Range {
        self.0
    }
}
impl Drop for Allocation {
    fn drop(&mut self) {
        let gone = locked(&MEMORY).remove(self.0.start());
        drop(gone);
    }
}
/// The vector that contains a range, and the offset of the range in it.
fn bytes_at(range: Range) -> Result<(Bytes, usize)> {
    let memory = locked(&MEMORY);
    let Ok(Some(whole)) = memory.within(range) else {
        let why = format!("{range:?} is not within one allocation");
        return Err(Error::new(ErrorKind::InvalidValue, why));
    };
    let bytes = memory.starting_at(whole.start()).map(Arc::clone);
    Ok((
        bytes.expect("`within` names a range of the map"),
        range.start().get() - whole.start().get(),
    ))
}
/// Reads memory of the device, for tests.
pub fn read(range: Range) -> Result<Vec<u8>> {
    let (bytes, from) = bytes_at(range)?;
    Ok(locked(&bytes)[from..from + range.bytes()].to_vec())
}
/// Writes memory of the device, for tests.
pub fn write(at: Address, what: &[u8]) -> Result<()> {
    let (bytes, to) = bytes_at(Range::new(at, what.len())?)?;
    locked(&bytes)[to..to + what.len()].copy_from_slice(what);
    Ok(())
}

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Point(Arc<End>);
#[derive(Debug)]
struct End {
    state: Mutex<(Status, Option<Times>)>,
    moved: Condvar,
}
impl Point {
    fn new(profile: Profile) -> Self {
        let times = Times { submitted: now(), span: None };
        let times = (profile != Profile::Off).then_some(times);
        Self(Arc::new(End { state: Mutex::new((Status::Submitted, times)), moved: Condvar::new() }))
    }
    fn status(&self) -> Status {
        locked(&self.0.state).0
    }
    fn settle(&self, status: Status, span: (u64, u64)) {
        let mut state = locked(&self.0.state);
        state.0 = status;
        if let Some(times) = &mut state.1 {
            times.span = (status == Status::Complete).then_some(span);
        }
        self.0.moved.notify_all();
    }
    fn wait(&self, deadline: Option<Instant>) -> Status {
        let mut state = locked(&self.0.state);
        while !state.0.is_final() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => break,
                Some(left) => unpoisoned(self.0.moved.wait_timeout(state, left)).0,
                None => unpoisoned(self.0.moved.wait(state)),
            };
        }
        state.0
    }
}

/// What a command does, with a copy of what it refers to.
#[derive(Clone, Debug)]
enum Work {
    Nothing,
    /// Copies each range to the address beside it.
    Copy(Vec<(Address, Range)>),
    /// Writes bytes.
    Write(Vec<(Address, Vec<u8>)>),
    Call(HostCall),
    All(Vec<Work>),
}
impl Work {
    fn of(command: &Command<'_, InMemory>) -> Result<Self> {
        Ok(match *command {
            Command::Barrier | Command::Timestamp | Command::Signal(_) => Self::Nothing,
            Command::Prefetch { .. } | Command::Advise { .. } => Self::Nothing,
            Command::Copy { to, from, bytes } => Self::Copy(vec![(to, Range::new(from, bytes)?)]),
            Command::Copy2d { to, from, width, height } => {
                let row = |n| Ok((to.row(n, width)?.start(), from.row(n, width)?));
                Self::Copy((0..height).map(row).collect::<Result<_>>()?)
            }
            Command::Copy3d(copy) => Self::Copy(box_rows(copy)?),
            Command::Fill { to, pattern } => {
                Self::Write(vec![(to.start(), repeated(pattern, to.bytes()))])
            }
            Command::Fill2d { to, width, height, pattern } => {
                let rows = RowPattern::new(pattern, width);
                let row = |n| Ok((to.row(n, width)?.start(), rows.bytes(n, 1)));
                Self::Write((0..height).map(row).collect::<Result<_>>()?)
            }
            Command::HostCall(call) => Self::Call(call.clone()),
            Command::Native(call) => {
                call.call()?;
                Self::Nothing
            }
            Command::ImageCopy(_) | Command::Launch(_) => {
                return Error::unsupported("code and images");
            }
            Command::AllocAsync { .. } | Command::FreeAsync(_) => {
                return Error::unsupported("memory in a stream's order");
            }
        })
    }
    fn run(&self) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            // Read everything before writing anything, because the two may overlap.
            Self::Copy(parts) => {
                let read = parts.iter().map(|(to, from)| Ok((*to, read(*from)?)));
                read.collect::<Result<Vec<_>>>()?.iter().try_for_each(|(to, what)| write(*to, what))
            }
            Self::Write(parts) => parts.iter().try_for_each(|(to, what)| write(*to, what)),
            Self::Call(call) => {
                call.call();
                Ok(())
            }
            Self::All(all) => all.iter().try_for_each(Self::run),
        }
    }
}
fn repeated(pattern: Pattern<'_>, bytes: usize) -> Vec<u8> {
    pattern.bytes().iter().copied().cycle().take(bytes).collect()
}
fn box_rows(copy: &BoxCopy) -> Result<Vec<(Address, Range)>> {
    let [width, height, depth] = copy.region;
    let row = |(base, span): (Address, BoxSpan), y, z| {
        Range::new(base.offset(span.start + y * span.row + z * span.slice)?, width)
    };
    let places = (0..depth).flat_map(|z| (0..height).map(move |y| (y, z)));
    places.map(|(y, z)| Ok((row(copy.to, y, z)?.start(), row(copy.from, y, z)?))).collect()
}

/// Commands that are submitted as one.
#[derive(Debug, Default)]
pub struct Graph(Vec<Work>);

/// One command for the thread of a stream.
struct Job {
    points: Vec<Point>,
    words: Vec<PendingSignal>,
    work: Work,
    signal: Option<(Arc<Counter>, u64)>,
    end: Point,
}
impl Job {
    /// Waits for the dependencies, and then runs the command. A failure is stored in `has_failed` before the command
    /// becomes final, so that a thread which waits for the point and then for the stream gets the error.
    fn run(self, has_failed: &Mutex<bool>) {
        let depends_on_failure = self.points.iter().any(|one| one.wait(None) == Status::Failed)
            || self.words.iter().any(|one| one.wait(None) == Progress::Failed);
        let begun = now();
        let status = match !depends_on_failure && self.work.run().is_ok() {
            true => Status::Complete,
            false => Status::Failed,
        };
        if let Some((counter, value)) = &self.signal {
            if status == Status::Complete { counter.complete(*value) } else { counter.fail() }
        }
        if status == Status::Failed {
            *locked(has_failed) = true;
        }
        self.end.settle(status, (begun, now()));
    }
}
/// A stream, which executes commands one after another.
#[derive(Debug)]
pub struct Stream {
    jobs: Sender<Job>,
    last: Mutex<Option<Point>>,
    has_failed: Arc<Mutex<bool>>,
}
impl Stream {
    fn start() -> Result<Self> {
        let (jobs, arriving) = channel::<Job>();
        let has_failed = Arc::new(Mutex::new(false));
        let failed = Arc::clone(&has_failed);
        let work = move || {
            for job in arriving {
                job.run(&failed);
            }
        };
        let started = thread::Builder::new().name("in-memory-stream".into()).spawn(work);
        started.map_err(|error| Error::new(ErrorKind::OutOfResources, error.to_string()))?;
        Ok(Self { jobs, last: Mutex::new(None), has_failed })
    }
    /// Submits what `work` makes of the command, after the command's waits.
    fn put(
        &self,
        submission: &Submission<'_, InMemory>,
        work: impl FnOnce(&Command<'_, InMemory>) -> Result<Work>,
    ) -> Result<Point> {
        let (mut points, mut words) = (vec![], vec![]);
        for wait in submission.waits {
            match wait {
                Wait::Point(point) => points.push((*point).clone()),
                Wait::End(_) => return Error::unsupported("waits for ends"),
                Wait::Word(debt) => words.push((*debt).clone()),
            }
        }
        let signal = match *submission.command {
            Command::Signal(Signal::Word(counter, value)) => Some((Arc::clone(counter), value)),
            _ => None,
        };
        if let Command::Native(_) = submission.command {
            points.iter().for_each(|point| _ = point.wait(None));
        }
        let work = work(submission.command)?;
        let end = Point::new(submission.profile);
        let mut last = locked(&self.last); // held while sending, so that `last` is the job sent last
        let job = Job { points, words, work, signal, end: end.clone() };
        self.jobs.send(job).map_err(|_| Error::from(ErrorKind::DeviceLost))?;
        *last = Some(end.clone());
        drop(last);
        if submission.completion.is_awaited() {
            InMemory::wait(&end, None)?;
        }
        Ok(end)
    }
}

impl Types for InMemory {
    type Device = u32;
    type Context = Vec<u32>;
    type Allocation = Allocation;
    type Reservation = Allocation;
    type Physical = Infallible;
    type Stream = Stream;
    type Point = Point;
    type Module = Infallible;
    type Function = Infallible;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Graph;
}
impl Shares for InMemory {
    type Opened = Infallible;
    type Foreign = Infallible;
}
impl Allocates for InMemory {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    fn memory_size(_: &u32) -> Result<usize> {
        Ok(DEVICE_BYTES)
    }
    fn zero(_: &Vec<u32>, _: &u32, range: Range) -> Result<()> {
        write(range.start(), &vec![0; range.bytes()])
    }
    fn copy(_: &Vec<u32>, to: Address, from: Address, bytes: usize) -> Result<()> {
        write(to, &read(Range::new(from, bytes)?)?)
    }
    fn allocate(_: &Vec<u32>, _: &u32, request: MemoryRequest) -> Result<Allocation> {
        static NEXT: AtomicUsize = AtomicUsize::new(1 << 40);
        if request.bytes > DEVICE_BYTES {
            let why = format!("the device has {DEVICE_BYTES} bytes");
            return Err(Error::new(ErrorKind::OutOfDeviceMemory, why));
        }
        let room = request.bytes.next_multiple_of(ALIGNMENT) + ALIGNMENT;
        let start = Address::new(NEXT.fetch_add(room, Relaxed)).ok_or(ErrorKind::Unknown)?;
        let range = Range::new(start, request.bytes)?;
        let bytes = Arc::new(Mutex::new(vec![0; request.bytes]));
        locked(&MEMORY).insert(range, bytes);
        Ok(Allocation(range))
    }
}
impl Pins for InMemory {
    type Pinned = ();
    fn pin(_: &Vec<u32>, _: Range, _: Access) -> Result<()> {
        Ok(())
    }
}
impl ReachesPeers for InMemory {}
impl MakesBuffers for InMemory {
    type Buffer = Infallible;
}
impl MakesImages for InMemory {}
impl MakesSamplers for InMemory {}
impl VirtualMemory for InMemory {}
impl Modules for InMemory {
    type Code = Infallible;
    type Target = ();
}
impl Streams for InMemory {
    type ArrivedPoint = Infallible;
    fn finish_device(_: &u32) -> Result<()> {
        Ok(())
    }
    fn event_sharing(_: &u32) -> EventSharing {
        EventSharing::Words
    }
    fn stream(_: &Vec<u32>, _: &u32, _: StreamRequest) -> Result<Stream> {
        Stream::start() // always in-order, which an out-of-order stream may be too
    }
    fn submit(stream: &Stream, submission: &Submission<'_, Self>) -> Result<Option<Point>> {
        let end = stream.put(submission, Work::of)?;
        Ok(submission.completion.wants_point().then_some(end))
    }
    fn is_idle(stream: &Stream) -> Result<bool> {
        Ok(locked(&stream.last).as_ref().is_none_or(|last| last.status().is_final()))
    }
    fn finish(stream: &Stream) -> Result<()> {
        let last = locked(&stream.last).clone();
        last.map(|last| last.wait(None));
        match std::mem::take(&mut *locked(&stream.has_failed)) {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::DependencyFailed, "a command of the stream failed")),
        }
    }
    fn status(point: &Point) -> Result<Status> {
        Ok(point.status())
    }
    fn wait(point: &Point, deadline: Option<Instant>) -> Result<bool> {
        match point.wait(deadline) {
            Status::Failed => Err(ErrorKind::DependencyFailed.into()),
            status => Ok(status == Status::Complete),
        }
    }
    fn times(point: &Point) -> Result<Option<Times>> {
        Ok(locked(&point.0.state).1)
    }
}
impl OpensDevices for InMemory {
    const NAME: &'static str = "in-memory";
    fn devices() -> Result<Vec<u32>> {
        Ok(vec![0])
    }
    fn platform(_: &u32) -> Result<PlatformFacts> {
        let [name, vendor, version] = ["in memory", "nobody", "1.0"].map(String::from);
        Ok(PlatformFacts { name, vendor, version, extensions: String::new(), handle: None })
    }
    fn uuid(device: &u32) -> Result<[u8; 16]> {
        Ok([*device as u8; 16])
    }
    fn clocks(_: &u32) -> Result<Clocks> {
        let now = now();
        Ok(Clocks { device: now, host: now })
    }
    fn open(devices: &[u32]) -> Result<Vec<u32>> {
        Ok(devices.to_vec())
    }
}
impl NativeHandles for InMemory {}
impl DescribesDevices for InMemory {
    fn kind(_: &u32) -> DeviceKind {
        DeviceKind::Mca
    }
    fn facts(device: &u32) -> Result<DeviceFacts> {
        Ok(DeviceFacts {
            name: format!("invented device {device}"),
            vendor: "nobody".into(),
            driver_version: "1.0".into(),
            compute_units: 1,
            ..DeviceFacts::default()
        })
    }
}
impl PartitionsDevices for InMemory {}
impl Graphs for InMemory {
    const HAS_GRAPHS: bool = true;
    fn check_recordable(_: &Vec<u32>, _: &u32, command: &Command<'_, Self>) -> Result<()> {
        match command.is_recordable() {
            true => Ok(()),
            false => Err(ErrorKind::InvalidOperation.into()),
        }
    }
    fn graph(_: &Vec<u32>, _: &u32) -> Result<Graph> {
        Ok(Graph::default())
    }
    fn append(graph: &mut Graph, command: &Arc<Recorded<Self>>) -> Result<()> {
        graph.0.push(command.lend(Work::of)?);
        Ok(())
    }
    fn close(_: &mut Graph) -> Result<()> {
        Ok(())
    }
    fn change(graph: &mut Graph, commands: &[Arc<Recorded<Self>>]) -> Result<Option<Graph>> {
        graph.0 = commands.iter().map(|one| one.lend(Work::of)).collect::<Result<_>>()?;
        Ok(None)
    }
    fn execute(
        graph: &mut Graph,
        stream: &Stream,
        submission: &Submission<'_, Self>,
        (signals, _): (usize, Profile),
    ) -> Result<Execution<Self>> {
        let end = stream.put(submission, |_| Ok(Work::All(graph.0.clone())))?;
        let signalled = vec![end.clone(); signals];
        Ok((submission.completion.wants_point().then_some(end), signalled))
    }
}
