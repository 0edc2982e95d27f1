//! Which logical processors share NUMA nodes and caches, read from `/sys`. `partition.rs` makes devices of
//! them.
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::OnceLock,
};
use ur_hal::{AffinityDomains as Domain, Result};
use ur_lock::get_or_try;

/// The affinity domains, from the one that most processors share to the one that fewest do: the order in
/// which `NEXT_PARTITIONABLE` tries them.
pub(super) const DOMAINS: [Domain; 5] =
    [Domain::NUMA, Domain::L4_CACHE, Domain::L3_CACHE, Domain::L2_CACHE, Domain::L1_CACHE];

type Cpus = BTreeSet<usize>;

/// The groups of processors for each of `DOMAINS`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Topology {
    groups: [BTreeSet<Cpus>; DOMAINS.len()],
}

/// The topology of this machine. An attempt that failed is repeated by the next call.
///
/// # Errors
/// Returns an error if the kernel's files cannot be read, for example because no descriptor is left.
pub(super) fn topology() -> Result<&'static Topology> {
    static TOPOLOGY: OnceLock<Topology> = OnceLock::new();
    let read = get_or_try(&TOPOLOGY, || {
        Topology::read(Path::new("/sys/devices/system")).map_err(|(path, e)| {
            let doing = format!("read {}, which tells what processors share", path.display());
            ur_ipc::Error::system(doing, e)
        })
    });
    Ok(read?)
}

impl Topology {
    fn read(system: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let mut topology = Self::default();
        for node in numbered(&system.join("node"), "node")? {
            if let Some(cpus) = list(&node.join("cpulist"))? {
                topology.groups[0].insert(cpus);
            }
        }
        for cpu in numbered(&system.join("cpu"), "cpu")? {
            for cache in numbered(&cpu.join("cache"), "index")? {
                let level =
                    text(&cache.join("level"))?.and_then(|t| t.trim().parse::<usize>().ok());
                let at = level.and_then(|level| DOMAINS.len().checked_sub(level));
                let is_code = text(&cache.join("type"))?.is_some_and(|t| t.trim() == "Instruction");
                if let Some(at @ 1..) = at.filter(|_| !is_code)
                    && let Some(groups) = topology.groups.get_mut(at)
                    && let Some(cpus) = list(&cache.join("shared_cpu_list"))?
                {
                    groups.insert(cpus);
                }
            }
        }
        Ok(topology)
    }
    /// Divides `cpus` by what they share in `domain` (one of `DOMAINS`): disjoint parts, ordered by their
    /// first processor. Empty if a processor is in no group or in several.
    pub(super) fn split(&self, cpus: &[usize], domain: Domain) -> Vec<Vec<usize>> {
        let Some(at) = DOMAINS.iter().position(|d| *d == domain) else { return vec![] };
        let in_group = |group: &Cpus| -> Vec<usize> {
            cpus.iter().copied().filter(|cpu| group.contains(cpu)).collect()
        };
        let mut parts: Vec<_> =
            self.groups[at].iter().map(in_group).filter(|part| !part.is_empty()).collect();
        parts.sort();
        let covered: usize = parts.iter().map(Vec::len).sum();
        let distinct: Cpus = parts.iter().flatten().copied().collect();
        match covered == cpus.len() && distinct.len() == covered {
            true => parts,
            false => vec![],
        }
    }
}

type Read<T> = Result<T, (PathBuf, io::Error)>;
/// The text of a file; `None` if it does not exist or this process has no permission.
fn text(path: &Path) -> Read<Option<String>> {
    absent(path, fs::read_to_string(path))
}
fn absent<T>(path: &Path, outcome: io::Result<T>) -> Read<Option<T>> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match outcome {
        Ok(got) => Ok(Some(got)),
        Err(e) if matches!(e.kind(), NotFound | PermissionDenied | NotADirectory) => Ok(None),
        Err(e) => Err((path.into(), e)),
    }
}
/// The entries of `directory` whose names are `stem` and a number.
fn numbered(directory: &Path, stem: &str) -> Read<Vec<PathBuf>> {
    let Some(entries) = absent(directory, fs::read_dir(directory))? else { return Ok(vec![]) };
    let mut found = vec![];
    for entry in entries {
        let entry = entry.map_err(|e| (directory.into(), e))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(stem));
        if number.is_some_and(|n| n.parse::<usize>().is_ok()) {
            found.push(entry.path());
        }
    }
    Ok(found)
}
/// Reads a list of processors in the kernel's format: `0-3,8`.
fn list(path: &Path) -> Read<Option<Cpus>> {
    Ok(text(path)?.and_then(|text| cpus_of(text.trim())))
}
fn cpus_of(text: &str) -> Option<Cpus> {
    let mut cpus = Cpus::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        // More than any kernel supports: this is not a list.
        if last < first || last - first > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpus_of("0-2,8"), Some([0, 1, 2, 8].into()));
        assert_eq!(cpus_of("5"), Some([5].into()));
        assert_eq!(cpus_of(""), Some([].into()));
        for wrong in ["a", "3-1", "1-", "0-99999999"] {
            assert_eq!(cpus_of(wrong), None, "{wrong}");
        }
    }
    #[test]
    fn processors_are_split_by_what_they_share() {
        let mut topology = Topology::default();
        topology.groups[2] = [[0, 1, 4, 5].into(), [2, 3, 6, 7].into()].into();
        let split = topology.split(&[1, 2, 3, 5], Domain::L3_CACHE);
        assert_eq!(split, [vec![1, 5], vec![2, 3]]);
        assert!(topology.split(&[1, 2], Domain::NUMA).is_empty(), "nothing is known of nodes");
        assert!(topology.split(&[1, 9], Domain::L3_CACHE).is_empty(), "9 is in no group");
    }
    #[test]
    fn this_machine_can_be_read() {
        let topology = topology().unwrap();
        for groups in &topology.groups {
            assert!(groups.iter().all(|group| group.len() <= 1 << 16));
        }
        assert!(Topology::read(Path::new("/nowhere")).unwrap() == Topology::default());
    }
}
