//! What `/proc` and `/sys` tell about this machine. Facts that do not change are read once; the others are read at each
//! call.
use std::{fs, io, sync::OnceLock};
use ur_adapter::error::Result;

/// The facts that do not change while a process runs.
#[derive(Debug, Clone)]
pub struct Host {
    /// Marketing name of the processor.
    pub name: String,
    /// The processor's vendor string (`AuthenticAMD`, `GenuineIntel`, …).
    pub vendor: String,
    /// How many logical processors this process may use.
    pub cores: u32,
    /// Their numbers, ascending. There are `cores` of them; if a control group grants less time than there are
    /// processors, only the first ones are listed.
    pub cpus: Vec<usize>,
    /// Highest clock in MHz; the current one if the kernel does not tell the highest; 0 if it tells none.
    pub clock_mhz: u32,
    /// The line size in bytes of the last-level cache.
    pub line: u32,
    /// The size in bytes of the last-level cache; 0 if the kernel does not tell.
    pub cache: u64,
    /// How many bytes of memory this process can have at most.
    pub memory: u64,
    features: String,
}

/// The number of threads of this process that can run at once.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
/// The facts of this machine.
pub fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(Host::read)
}

/// Identifies this kind of processor. It is the same in every process of the host, also in containers that hide `/proc`
/// or `/sys`. As a partial set of facts would identify another processor, a failure is returned and the next call tries
/// again.
///
/// # Errors
/// If the kernel's files cannot be read, for example because no descriptor is left.
pub fn uuid() -> Result<[u8; 16]> {
    static UUID: OnceLock<[u8; 16]> = OnceLock::new();
    if let Some(uuid) = UUID.get() {
        return Ok(*uuid);
    }
    let identity = identity()?;
    Ok(*UUID.get_or_init(|| digest(&identity)))
}
/// The processor's identity as text, from `/proc/cpuinfo` if that exists.
fn identity() -> Result<String> {
    let cpuinfo = read("/proc/cpuinfo")?;
    Ok(cpuinfo.as_deref().and_then(listed_identity).or_else(own_identity).unwrap_or_default())
}
/// Vendor, family, model, name and stepping on x86, and the corresponding fields on other architectures.
fn listed_identity(cpuinfo: &str) -> Option<String> {
    const NAMES: [&str; 10] = [
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "CPU implementer",
        "CPU architecture",
        "CPU variant",
        "CPU part",
        "CPU revision",
    ];
    let fields: Vec<_> = NAMES.into_iter().filter_map(|name| first_field(cpuinfo, name)).collect();
    (!fields.is_empty()).then(|| fields.join("\n"))
}
/// The same text where there is no `/proc`, from the CPUID instruction, which is the kernel's source too.
#[cfg(target_arch = "x86_64")]
fn own_identity() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    let text = |words: &[u32]| {
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (maker, signature) = (__cpuid(0), __cpuid(1).eax);
    let maker = text(&[maker.ebx, maker.edx, maker.ecx]);
    let (family, model) = (signature >> 8 & 0xf, signature >> 4 & 0xf);
    let whole_family = if family == 0xf { family + (signature >> 20 & 0xff) } else { family };
    let model = if whole_family >= 6 { model | (signature >> 16 & 0xf) << 4 } else { model };
    if __cpuid(0x8000_0000).eax < 0x8000_0004 {
        return None;
    }
    let name = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(__cpuid);
    let name: Vec<_> =
        name.iter().flat_map(|part| [part.eax, part.ebx, part.ecx, part.edx]).collect();
    let (name, stepping) = (text(&name), signature & 0xf);
    Some(format!("{maker}\n{whole_family}\n{model}\n{name}\n{stepping}"))
}
#[cfg(not(target_arch = "x86_64"))]
fn own_identity() -> Option<String> {
    None
}
/// Identifies a part of this processor, as distinct from other parts and from the whole.
///
/// # Errors
/// As for [`uuid`].
pub fn part_uuid(cpus: &[usize]) -> Result<[u8; 16]> {
    uuid().map(|whole| digest(&format!("{whole:?}{cpus:?}")))
}
/// A file's text; `None` if the file does not exist or this process may not read it.
fn read(path: &str) -> Result<Option<String>> {
    use io::ErrorKind::{NotFound, PermissionDenied};
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), NotFound | PermissionDenied) => Ok(None),
        Err(e) => {
            let doing = format!("read {path}, which tells this device from others");
            Err(ur_ipc::Error::system(doing, e).into())
        }
    }
}

impl Host {
    fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| first_field(&cpuinfo, name);
        let name = field("model name")
            .or_else(|| field("Processor"))
            .unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH));
        let vendor = field("vendor_id").or_else(|| field("CPU implementer"));
        let vendor = vendor.unwrap_or_else(|| "unknown".into());
        let (line, cache) = last_level_cache();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            name,
            vendor,
            cores: cores as u32,
            cpus: own_cpus(cores),
            clock_mhz: clock_mhz(&cpuinfo),
            line,
            cache,
            memory: total_memory(),
            features: field("flags").or_else(|| field("Features")).unwrap_or_default(),
        }
    }
    /// Whether the kernel lists `feature` among the processor's flags.
    pub fn has(&self, feature: &str) -> bool {
        self.features.split_whitespace().any(|f| f == feature)
    }
    /// The width in bytes of the widest vector register.
    pub fn vector_bytes(&self) -> u32 {
        match () {
            () if self.has("avx512f") => 64,
            () if self.has("avx") => 32,
            () => 16,
        }
    }
}

/// How many bytes of memory are available without swapping; `None` if the system does not tell, as in a container without
/// `/proc`, or while this process has no descriptor left to read it with.
pub fn free_memory() -> Option<u64> {
    let machine = meminfo("MemAvailable")?;
    let left = |group: Group| {
        let (limit, used) = (group.number("memory.max")?, group.number("memory.current")?);
        let used = used.saturating_sub(cached(&group.text("memory.stat")?));
        Some(limit.saturating_sub(used))
    };
    Some(Group::own().and_then(left).map_or(machine, |left| machine.min(left)))
}
/// What a control group has of the contents of files, which is memory in use to it, but which the kernel gives up for others.
fn cached(stat: &str) -> u64 {
    let field = |line: &str| {
        let (name, bytes) = line.split_once(' ')?;
        ["active_file", "inactive_file"].contains(&name).then(|| bytes.parse().ok())?
    };
    stat.lines().filter_map(field).fold(0, u64::saturating_add)
}

/// The numbers of the first `count` logical processors on which this thread may run.
fn own_cpus(count: usize) -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    // Fails only if the kernel supports more processors than the set has bits.
    let Ok(set) = sched_getaffinity(None) else { return (0..count).collect() };
    let mine: Vec<_> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).take(count).collect();
    if mine.len() == count { mine } else { (0..count).collect() }
}

fn first_field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|l| l.split(':').next().is_some_and(|n| n.trim() == name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}
fn read_line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|s| s.trim().to_string())
}
fn clock_mhz(cpuinfo: &str) -> u32 {
    let highest = read_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if let Some(khz) = highest.and_then(|s| s.parse::<u32>().ok()) {
        return khz / 1000;
    }
    let now = first_field(cpuinfo, "cpu MHz").and_then(|s| s.parse::<f64>().ok());
    now.map_or(0, |mhz| mhz as u32)
}
/// Line size and size of the highest cache level of the first processor.
fn last_level_cache() -> (u32, u64) {
    let levels = (0..8).filter_map(|i| {
        let file = |f| read_line(&format!("/sys/devices/system/cpu/cpu0/cache/index{i}/{f}"));
        let level: u32 = file("level")?.parse().ok()?;
        let line: u32 = file("coherency_line_size")?.parse().ok()?;
        Some((level, line, kibibytes(&file("size")?)?))
    });
    levels.max_by_key(|l| l.0).map_or((64, 0), |(_, line, size)| (line, size))
}
/// `512K` or `32M` as bytes.
fn kibibytes(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        _ => return None,
    };
    digits.parse::<u64>().ok().map(|n| n << shift)
}
fn meminfo(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let value = first_field(&text, name)?;
    value.strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}
/// The machine's memory in bytes, or the limit of this process's control group if that is less.
fn total_memory() -> u64 {
    const UNKNOWN: u64 = 1 << 30;
    let told = ur_mapping::machine_memory(); // needs no descriptor
    let machine = told.or_else(|| meminfo("MemTotal")).unwrap_or(UNKNOWN);
    let limit = Group::own().and_then(|group| group.number("memory.max"));
    limit.map_or(machine, |limit| machine.min(limit))
}
/// This process's control group, by its folder.
struct Group(String);
impl Group {
    fn own() -> Option<Self> {
        let text = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = text.lines().find_map(|l| l.strip_prefix("0::"))?;
        Some(Self(format!("/sys/fs/cgroup{path}")))
    }
    fn text(&self, file: &str) -> Option<String> {
        read_line(&format!("{}/{file}", self.0))
    }
    /// `None` for "max".
    fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.parse().ok()
    }
}
/// The 128-bit FNV-1a hash of a text: an identity, not a secret.
pub fn digest(text: &str) -> [u8; 16] {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    text.bytes().fold(START, |h, b| (h ^ u128::from(b)).wrapping_mul(PRIME)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_name_cores_and_memory() {
        let host = host();
        assert!(!host.name.is_empty());
        assert!(host.cores >= 1);
        assert!(host.memory > 1 << 24, "{}", host.memory);
        assert!(free_memory().is_none_or(|free| free <= host.memory));
        assert_ne!(uuid().unwrap(), [0; 16]);
    }
    /// A process in a container without `/proc` must compute the same device identity as all others.
    #[test]
    fn without_proc_the_processor_says_the_same_of_itself() {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        match (listed_identity(&cpuinfo), own_identity()) {
            (Some(listed), Some(own)) => assert_eq!(listed, own),
            _ => {
                println!("skipped: this system has no /proc, or this processor no words of its own")
            }
        }
    }
    #[test]
    fn the_contents_of_files_are_no_memory_that_is_in_use() {
        let stat = "anon 4096\nfile 12288\nshmem 8192\ninactive_anon 1\nactive_file 300\ninactive_file 4000\n";
        assert_eq!(cached(stat), 4300);
        assert_eq!(cached("active_file\ninactive_file x\n"), 0);
    }
    #[test]
    fn cache_sizes_are_read_with_their_unit() {
        assert_eq!(kibibytes("512K"), Some(512 << 10));
        assert_eq!(kibibytes("32M"), Some(32 << 20));
        assert_eq!(kibibytes("32"), None);
        assert_eq!(kibibytes("x"), None);
    }
    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 2\nmodel name\t: Foo: Bar\n";
        assert_eq!(first_field(text, "model name").as_deref(), Some("Foo: Bar"));
        assert_eq!(first_field(text, "model").as_deref(), Some("2"));
        assert_eq!(first_field(text, "name"), None);
    }
}
