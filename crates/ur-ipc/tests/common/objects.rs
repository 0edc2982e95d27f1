//! What peers share: memory with a text in it, offers of all kinds, and the results of opening them.
use super::*;

pub static MEMORY: Importer<File> = Importer::new(Kind::Memory, 7);
pub static PHYSICAL: Importer<File> = Importer::new(Kind::PhysicalMemory, 7);
pub static BYTES: Importer<Vec<u8>> = Importer::new(Kind::Memory, 8);
pub static EVENTS: Importer<arena::Slot> = Importer::new(Kind::Event, 7);
pub static IMPORTS: AtomicU32 = AtomicU32::new(0);
/// How many signals interrupted this process, in tests that interrupt it.
pub static SIGNALS: AtomicU64 = AtomicU64::new(0);

pub fn say(answer: impl std::fmt::Display) {
    println!("@@{answer}");
}
pub fn outcome<T>(result: Result<T>, ok: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => ok(value),
        Err(e) => format!("{:?}: {e}", e.kind()),
    }
}

/// Sealed memory with a text at its beginning.
pub fn memory(text: &str, bytes: u64) -> File {
    let fd = memfd_create("shared", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    let file = File::from(fd);
    file.set_len(bytes).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
    file
}
pub fn text_of(file: &File) -> String {
    let mut bytes = [0; 64];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
pub fn access_of(word: &str) -> Access {
    match word.split_once(':') {
        None => Access::SameUser,
        Some(("user", uid)) => Access::User(uid.parse().unwrap()),
        Some(("process", pid)) => Access::Process(Process::with_pid(pid.parse().unwrap()).unwrap()),
        _ => panic!("{word}"),
    }
}
pub fn offer(text: &str, object: u64, access: Access) -> Offer {
    let fd = Arc::new(memory(text, 4096).into());
    Offer {
        kind: Kind::Memory,
        backend: 7,
        device: DEVICE,
        object,
        offset: 16,
        length: 32,
        size: 4096,
        payload: Payload::Fd { fd, base: 0, exposes: 4096 },
        access,
    }
}
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
pub fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count() - 1 // without the one that reads the directory
}
pub fn watchers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
    tasks.filter_map(|task| name(task).ok()).filter(|name| name.trim() == "causeway").count()
}

pub fn is_ours(device: [u8; 16]) -> Result<(), Error> {
    same_device(device, DEVICE)
}
pub fn file_of(memory: &SharedMemory) -> File {
    File::from(memory.fd().try_clone().unwrap())
}

/// Opens and closes in many threads at once; returns how often that failed.
pub fn storm(tickets: &[&str]) -> String {
    let tickets: Vec<_> = tickets.iter().map(|ticket| unhex(ticket)).collect();
    let import = |arrived: Arrived, _: &()| match arrived.payload {
        ArrivedPayload::Memory { memory, .. } => Ok::<_, Error>(file_of(&memory)),
        other => panic!("{other:?}"),
    };
    let failed = AtomicU32::new(0);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (tickets, failed) = (&tickets, &failed);
            scope.spawn(move || {
                for round in 0..100 {
                    let ticket = &tickets[(thread + round) % tickets.len()];
                    match MEMORY.open(ticket, is_ours, import).map(|(opened, ())| opened) {
                        Ok(Opened::Remote(remote)) => assert!(!text_of(&remote).is_empty()),
                        Ok(Opened::Local { .. }) => panic!("not ours"),
                        Err(e) => {
                            assert_eq!(e.kind(), ErrorKind::Withdrawn, "{e}");
                            failed.fetch_add(1, Relaxed);
                        }
                    }
                }
            });
        }
    });
    format!("{} failed", failed.into_inner())
}

/// Makes a system call fail with EPERM in this thread and those that it starts.
pub fn deny(number: i64) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
    let arch: TargetArch = std::env::consts::ARCH.try_into().unwrap();
    let denied = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().cast_unsigned());
    let rules = [(number, Vec::new())].into_iter().collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch).unwrap();
    apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}
