//! The shared libraries that a program loads.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Every program on Linux loads these.
const RUNTIME: [&str; 6] =
    ["libc.so", "libm.so", "libgcc_s.so", "libpthread.so", "libdl.so", "librt.so"];

/// Returns the size in bytes of the libraries that a program loads besides the C runtime; `None` if `ldd` fails.
pub(super) fn size_of_libraries(program: &Path) -> Option<u64> {
    let output = Command::new("ldd").arg(program).output().ok()?;
    let report = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    paths_of(&report).map(|path| Some(fs::metadata(path).ok()?.len())).sum()
}

/// Returns the paths in the report of `ldd`, without those of the C runtime. The loader and the kernel's part have no
/// arrow.
fn paths_of(report: &str) -> impl Iterator<Item = &str> {
    report.lines().filter_map(|line| {
        let (name, found) = line.trim().split_once(" => ")?;
        let (path, _) = found.split_once(" (")?;
        (!RUNTIME.iter().any(|runtime| name.starts_with(runtime))).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_no_library_of_a_program() {
        let report = "\tlinux-vdso.so.1 (0x00007f59d0812000)\n\
                      \tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f59d0773000)\n\
                      \tlibcrypto.so.3 => /lib/x86_64-linux-gnu/libcrypto.so.3 (0x00007f59cfe00000)\n\
                      \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f59d0753000)\n\
                      \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f59cfc1e000)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f59d082f000)\n";
        let paths: Vec<&str> = paths_of(report).collect();
        let lib = "/lib/x86_64-linux-gnu";
        assert_eq!(paths, [format!("{lib}/libssl.so.3"), format!("{lib}/libcrypto.so.3")]);
    }

    #[test]
    fn missing_libraries_are_not_zero() {
        let report = "\tlibother.so.1 => /nowhere/libother.so.1 (0x00007f59d0773000)\n";
        let sizes = paths_of(report).map(|path| Some(fs::metadata(path).ok()?.len()));
        assert_eq!(sizes.sum::<Option<u64>>(), None);
    }
}
