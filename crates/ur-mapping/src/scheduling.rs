//! Whether a spinning thread would keep the thread that it waits for from running.
#![expect(unsafe_code, reason = "calls the C library")]

/// How many processors the system has online, at least 1; the affinity of this thread or process is not considered.
pub fn online_cpus() -> usize {
    // SAFETY: takes no pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(online).unwrap_or(1).max(1)
}

/// Whether the calling thread has a real-time policy (`SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`). Returns `true` if
/// the kernel does not tell.
pub fn scheduled_real_time() -> bool {
    // SAFETY: takes no pointers. Called by number, because some C libraries only pretend to implement it.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let policy = i32::try_from(policy).unwrap_or(-1) & !libc::SCHED_RESET_ON_FORK;
    !matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_as_many_processors_as_this_thread_may_use_or_more() {
        let usable = rustix::thread::sched_getaffinity(None).unwrap().count();
        assert!(online_cpus() >= usable as usize);
    }
    #[test]
    fn a_thread_under_an_ordinary_policy_is_not_of_real_time() {
        // As the kernel shows it: the policy is the 41st field, the 39th after the name.
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let policy = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(38).unwrap();
        assert_eq!(scheduled_real_time(), !["0", "3", "5"].contains(&policy));
    }
}
