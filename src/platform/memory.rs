//! Gives back what only the start of the program needed.
//!
//! A program this size has most of its code mapped in large pieces around the little that the start touches: the command
//! line alone brings in megabytes. A process that then only passes messages on for days, as the bridge does, need not
//! keep them.

/// Drops the pages of our own code from this process. Those that are used again come back from the file by themselves.
#[cfg(target_os = "linux")]
pub fn forget_start() {
    let (Ok(maps), Ok(own)) = (std::fs::read_to_string("/proc/self/maps"), std::env::current_exe()) else {
        return;
    };
    for (start, length) in unwritten_in(&maps, &own.to_string_lossy()) {
        // SAFETY: the range is a private mapping of our file that was never writable, so nothing has changed it: the
        // kernel reads dropped pages from the file again at the next use. Failing changes nothing.
        let dropped = unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        if dropped != 0 {
            tracing::debug!("pages of the start could not be given back");
        }
    }
}

/// Not done on this system.
#[cfg(not(target_os = "linux"))]
pub fn forget_start() {}

/// Start and length of the never written mappings of the file `own` in the text of `/proc/self/maps`: its code, and the
/// constants at its beginning. Constants further on hold addresses, which the start wrote into them.
#[cfg(target_os = "linux")]
fn unwritten_in(maps: &str, own: &str) -> Vec<(usize, usize)> {
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let unwritten = rest.starts_with("r-xp ") || rest.starts_with("r--p 00000000 ");
        if !unwritten || !line.ends_with(own) {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        Some((start, end.checked_sub(start)?))
    };
    maps.lines().filter_map(range).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Dropping anything but code would lose what was written there.
    #[test]
    fn only_code_that_nothing_has_written_is_dropped() {
        let maps = "1000-3000 r--p 00000000 08:01 7 /bin/own\n3000-8000 r-xp 00002000 08:01 7 /bin/own\n\
                    8000-9000 r--p 00007000 08:01 7 /bin/own\n9000-a000 rw-p 00008000 08:01 7 /bin/own\n\
                    a000-b000 r-xp 00000000 08:01 9 /lib/other.so\nb000-c000 rwxp 00000000 00:00 0\n";
        assert_eq!(unwritten_in(maps, "/bin/own"), [(0x1000, 0x2000), (0x3000, 0x5000)]);
    }

    #[test]
    fn the_program_goes_on() {
        forget_start();
        assert!(!std::fs::read_to_string("/proc/self/maps").unwrap().is_empty());
    }
}
