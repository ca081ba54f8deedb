//! `/proc/PID/maps`: which file's code lies where in a process. Pure: text in, values out.

/// A stretch of memory that holds code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file's device, as `fe:01`.
    pub device: String,
    /// The file's number on it; 0 where there is no file.
    pub inode: u64,
    /// The file's path as the process's own mount namespace has it, or what the kernel calls memory without a file.
    pub path: String,
}

/// What a mapping's code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backing {
    /// A file's.
    File,
    /// Made at run time.
    RunTime,
    /// The kernel's, lent to the process: `[vdso]`, `[vsyscall]`.
    Lent,
}

/// What the kernel appends to the path of a file that is no longer there by that name.
const DELETED: &str = " (deleted)";

/// The mappings with code, by address.
pub(crate) fn executable(text: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = text.lines().filter_map(mapping).collect();
    mappings.sort_unstable_by_key(|mapping| mapping.start);
    mappings
}

/// `7f75e5ae4000-7f75e5b0a000 r-xp 00026000 fe:00 12345    /lib/libc.so.6`; `None` for one without code.
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let device = fields.next()?;
    let inode = fields.next()?;
    let path = fields.next().unwrap_or_default().trim_start();
    (permissions.as_bytes().get(2) == Some(&b'x')).then_some(())?;
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        device: device.to_owned(),
        inode: inode.parse().ok()?,
        // The kernel writes a line end in a name so; nothing else is changed.
        path: path.replace("\\012", "\n"),
    })
}

impl Mapping {
    /// What its code is.
    pub(crate) fn backing(&self) -> Backing {
        let shared_memory = ["/memfd:", "/SYSV", "/dev/", "//anon"];
        if self.path.starts_with("[vdso") || self.path.starts_with("[vsyscall") {
            Backing::Lent
        } else if self.inode == 0 || !self.path.starts_with('/') {
            Backing::RunTime
        } else if shared_memory.iter().any(|name| self.path.starts_with(name)) {
            // Where a program that makes code at run time writes it through a second mapping.
            Backing::RunTime
        } else {
            Backing::File
        }
    }

    /// Whether the file is no longer there by its name: removed, or replaced by another.
    pub(crate) fn is_deleted(&self) -> bool {
        self.path.ends_with(DELETED)
    }

    /// The file's name without folders.
    pub(crate) fn module(&self) -> &str {
        let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00400000-00b72000 r--p 00000000 fe:00 99                         /usr/bin/node
00b72000-025fe000 r-xp 00772000 fe:00 99                         /usr/bin/node
7f0000000000-7f0000001000 rwxp 00000000 00:00 0 
7f0000002000-7f0000003000 r-xp 00000000 00:00 0                          [anon:v8]
7f0000004000-7f0000005000 r-xp 00001000 fe:00 7                  /opt/my app/lib a.so (deleted)
7f0000006000-7f0000007000 r-xp 00000000 00:01 8                  /memfd:code (deleted)
7fff00000000-7fff00001000 r-xp 00000000 00:00 0                          [vdso]
cut off
";

    #[test]
    fn only_code_is_kept_and_each_kind_told_apart() {
        let found = executable(TEXT);
        let kinds: Vec<(u64, Backing, &str)> =
            found.iter().map(|mapping| (mapping.start, mapping.backing(), mapping.module())).collect();
        let expected = [
            (0xb72000, Backing::File, "node"),
            (0x7f00_0000_0000, Backing::RunTime, ""),
            (0x7f00_0000_2000, Backing::RunTime, "[anon:v8]"),
            (0x7f00_0000_4000, Backing::File, "lib a.so"),
            (0x7f00_0000_6000, Backing::RunTime, "memfd:code"),
            (0x7fff_0000_0000, Backing::Lent, "[vdso]"),
        ];
        assert_eq!(kinds, expected);
        assert!(found[3].is_deleted() && !found[0].is_deleted());
    }
}
