//! Formats numbers for people.
use std::time::Duration;

/// A size in the largest binary unit of which there is at least one.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 || value >= 100.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A duration in the unit that leaves one to four digits before the point.
pub fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", duration.as_secs_f64()),
    }
}

/// A rate in bytes per second.
pub fn rate(count: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(1e-9);
    format!("{}/s", bytes((count as f64 / seconds) as u64))
}

/// A count with commas between thousands.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_size() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(256 << 20), "256 MiB");
        assert_eq!(duration(Duration::from_nanos(420)), "420 ns");
        assert_eq!(duration(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(rate(3 << 30, Duration::from_secs(2)), "1.5 GiB/s");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
