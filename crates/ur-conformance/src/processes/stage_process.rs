//! Commands by which a peer changes itself or attacks shared memory: limits, forks, seals.
#![expect(unsafe_code, reason = "fork, and a filter of system calls")]
use super::stage::{Said, Stage, number, ok, wrong};
use rustix::{
    fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags},
    process::{DumpableBehavior, Resource, Rlimit},
};
use std::{
    fs,
    io::{Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt as _,
    },
    path::PathBuf,
    sync::Mutex,
    time::{Duration, Instant},
};
use ur_lock::locked;

static SPARE: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

pub fn act(stage: &mut Stage, words: &[&str]) -> Said {
    match *words {
        // Only shows that the peer still answers.
        ["idle"] => ok(),
        ["descriptors"] => Ok(listed("/proc/self/fd")?.len().to_string()),
        ["kept"] => Ok(kept()?.to_string()),
        ["pid"] => Ok(std::process::id().to_string()),
        ["limit", descriptors] => {
            let current = Some(number(descriptors)? as u64);
            let limit = rustix::process::getrlimit(Resource::Nofile);
            rustix::process::setrlimit(Resource::Nofile, Rlimit { current, ..limit })
                .map_err(|e| wrong(e.to_string()))?;
            ok()
        }
        // Limits the address space to what is used now plus this many MiB.
        ["limit-addresses", more] => {
            settle();
            let text = fs::read_to_string("/proc/self/statm").map_err(|e| wrong(e.to_string()))?;
            let pages = number(text.split(' ').next().unwrap_or(""))?;
            let bytes = pages * rustix::param::page_size() + (number(more)? << 20);
            limit_addresses(Some(bytes as u64))
        }
        ["unlimit-addresses"] => limit_addresses(rustix::process::getrlimit(Resource::As).maximum),
        ["fill-maps"] => fill_maps(),
        // Opens as many descriptors as the limit allows, until `empty-descriptors`. Other threads may close some that
        // they have for a moment: those are filled, too, until no more came for a while.
        ["fill-descriptors"] => {
            let (mut spare, mut quiet) = (locked(&SPARE), 0);
            while quiet < 20 {
                let before = spare.len();
                while let Ok(copy) = std::io::stdin().as_fd().try_clone_to_owned() {
                    spare.push(copy);
                }
                quiet = if spare.len() == before { quiet + 1 } else { 0 };
                std::thread::sleep(Duration::from_millis(10));
            }
            ok()
        }
        ["empty-descriptors"] => {
            locked(&SPARE).clear();
            ok()
        }
        ["untraceable"] => {
            let to = DumpableBehavior::NotDumpable;
            rustix::process::set_dumpable_behavior(to).map_err(|e| wrong(e.to_string()))?;
            ok()
        }
        ["no-getfd"] => no_getfd(),
        ["tamper", how] => tamper(how),
        // A forked child executes the rest of the line with objects of its own, and this process passes its
        // answer on.
        ["fork", ref then @ ..] => fork(stage, then),
        // A forked child takes over the commands; this process waits until the child ends.
        ["fork-on"] => fork_on(stage),
        // Forks a child that only sleeps; the answer is its process id.
        ["fork-hold"] => {
            // SAFETY: the child makes only system calls.
            match unsafe { libc::fork() } {
                0 => idle(),
                child if child > 0 => Ok(child.to_string()),
                _ => Err(wrong("no process could be forked")),
            }
        }
        _ => Err(wrong(format!("no such line: {words:?}"))),
    }
}
/// Waits up to a second until the other threads of this process sleep: the C library ends a program in which
/// a newly started thread finds no memory for its thread-local values.
fn settle() {
    let me = rustix::thread::gettid().as_raw_nonzero().to_string();
    let sleeps = |thread: &fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name may contain any character; a thread that has ended has no text.
        text.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
    };
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        let Ok(threads) = fs::read_dir("/proc/self/task") else { return };
        if threads.flatten().all(|thread| thread.file_name() == *me || sleeps(&thread)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
fn limit_addresses(current: Option<u64>) -> Said {
    let limit = rustix::process::getrlimit(Resource::As);
    rustix::process::setrlimit(Resource::As, Rlimit { current, ..limit })
        .map_err(|e| wrong(e.to_string()))?;
    ok()
}
/// The maximal number of mappings to try: more than the kernel's default limit.
const MAPS: usize = 100_000;
/// Creates mappings until the kernel refuses another one; they are never unmapped.
fn fill_maps() -> Said {
    let page = rustix::param::page_size();
    let (none, read) = (libc::PROT_NONE, libc::PROT_READ);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: creates new mappings, at addresses that the kernel chooses.
    let map = |bytes| unsafe { libc::mmap(std::ptr::null_mut(), bytes, none, flags, -1, 0) };
    let whole = map(MAPS * page);
    if whole == libc::MAP_FAILED {
        return Err(wrong("no addresses"));
    }
    for at in (1..MAPS).step_by(2) {
        // SAFETY: the page belongs to the mapping above, which is not used otherwise.
        if unsafe { libc::mprotect(whole.wrapping_byte_add(at * page), page, read) } != 0 {
            // Use up the last mappings with separate ones, which are not adjacent to others and so are not
            // merged with them.
            while map(page) != libc::MAP_FAILED {
                // SAFETY: as above.
                unsafe { libc::mprotect(whole.wrapping_byte_add((at - 1) * page), page, read) };
            }
            return ok();
        }
    }
    Err(super::stage::Refusal::Stop(crate::case::Stop::skipped(format!(
        "this kernel allows more than {MAPS} mappings"
    ))))
}
fn listed(folder: &str) -> Result<Vec<PathBuf>, super::stage::Refusal> {
    let entries = fs::read_dir(folder).map_err(|e| wrong(format!("{folder}: {e}")))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}
/// Returns how many bytes of memory this process holds: private and shared pages, and unmapped memory behind
/// its descriptors.
fn kept() -> Result<u64, super::stage::Refusal> {
    let status = fs::read_to_string("/proc/self/status").map_err(|e| wrong(e.to_string()))?;
    let kibibytes = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let ours = status.lines().filter(|l| l.starts_with("RssAnon") || l.starts_with("RssShmem"));
    let mapped: u64 = ours.filter_map(kibibytes).sum();
    let behind = listed("/proc/self/fd")?.into_iter().filter_map(|fd| fs::metadata(fd).ok());
    let nameless = behind.filter(|file| file.is_file() && file.nlink() == 0);
    Ok(mapped * 1024 + nameless.map(|file| file.blocks() * 512).sum::<u64>())
}
fn idle() -> ! {
    // SAFETY: only sets a timer, which ends the process if it is not killed before.
    unsafe { libc::alarm(60) };
    loop {
        // SAFETY: the call has no preconditions.
        unsafe { libc::pause() };
    }
}
fn fork(stage: &mut Stage, then: &[&str]) -> Said {
    let (mut from, mut to) = std::io::pipe().map_err(|e| wrong(e.to_string()))?;
    // SAFETY: no other thread of this program holds a lock that the child takes.
    match unsafe { libc::fork() } {
        0 => {
            drop(from);
            let said = match stage.fresh() {
                Ok(_) => stage.told(then),
                refused => Stage::answer(refused),
            };
            let failed = to.write_all(said.as_bytes()).is_err();
            // SAFETY: ends the child without running the exit handlers of the parent.
            unsafe { libc::_exit(i32::from(failed)) }
        }
        child if child > 0 => {
            drop(to);
            let mut said = String::new();
            from.read_to_string(&mut said).map_err(|e| wrong(e.to_string()))?;
            let mut status = 0;
            // SAFETY: `child` is a child of this process, and `status` is writable.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            match (status, said.split_at_checked(1)) {
                (0, Some(("#", why))) => Err(wrong(why)),
                (0, _) => Ok(said),
                _ => Err(wrong(format!("the forked child ended with status {status}"))),
            }
        }
        _ => Err(wrong("no process could be forked")),
    }
}
fn fork_on(stage: &mut Stage) -> Said {
    // SAFETY: no other thread of this program holds a lock that the child takes.
    match unsafe { libc::fork() } {
        0 => stage.fresh(),
        child if child > 0 => {
            let mut status = 0;
            // SAFETY: `child` is a child of this process, and `status` is writable.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            // SAFETY: ends this process without running exit handlers that the child may have run.
            unsafe { libc::_exit(i32::from(status != 0)) }
        }
        _ => Err(wrong("no process could be forked")),
    }
}
/// Makes `pidfd_getfd` fail from here on, as in a container.
fn no_getfd() -> Said {
    let filter =
        |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let denied = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = [
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_pidfd_getfd as u32, 0, 1),
        filter(libc::BPF_RET | libc::BPF_K, denied, 0, 0),
        filter(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the call only restricts this process.
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let (set, tsync) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the filter program is complete and lives until the call returns.
    let set = unsafe { libc::syscall(libc::SYS_seccomp, set, tsync, &raw const program) };
    if promised == 0 && set == 0 { ok() } else { Err(wrong("the filter was not taken")) }
}
/// Attacks received memory as a hostile importer would; the answer counts the refused attempts.
fn tamper(how: &str) -> Said {
    let (mut refused, mut done) = (0, 0);
    for descriptor in memfds() {
        let outcome = match how {
            "truncate" => rustix::fs::ftruncate(&descriptor, 0),
            "grow" => {
                let size = rustix::fs::fstat(&descriptor).map_or(0, |stat| stat.st_size as u64);
                rustix::fs::ftruncate(&descriptor, size + (64 << 20))
            }
            "punch" => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&descriptor, flags, 0, 4096)
            }
            "seal" => rustix::fs::fcntl_add_seals(&descriptor, SealFlags::WRITE),
            "freeze" => rustix::fs::fcntl_add_seals(&descriptor, SealFlags::FUTURE_WRITE),
            "reopen" => reopen(&descriptor),
            _ => return Err(wrong(format!("no such tampering: {how}"))),
        };
        *if outcome.is_ok() { &mut done } else { &mut refused } += 1;
    }
    Ok(format!("{refused} refused {done} done"))
}
fn reopen(descriptor: &OwnedFd) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
    let again = rustix::fs::open(path, OFlags::RDWR, Mode::empty())?;
    rustix::fs::ftruncate(&again, 0)
}
/// Opens anew all memory files of other processes that this process has open or mapped.
fn memfds() -> Vec<OwnedFd> {
    // Create a memfd of our own first, to check that this works.
    let looks = rustix::fs::memfd_create("looks", MemfdFlags::CLOEXEC).is_ok();
    let places = ["/proc/self/fd", "/proc/self/map_files"];
    let all = places.iter().flat_map(|folder| listed(folder).unwrap_or_default());
    let is_memfd = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:"))
    };
    let open = |path: PathBuf| {
        let writable = rustix::fs::open(&path, OFlags::RDWR, Mode::empty());
        writable.or_else(|_| rustix::fs::open(&path, OFlags::RDONLY, Mode::empty())).ok()
    };
    all.filter(|path| looks && is_memfd(path)).filter_map(open).collect()
}
