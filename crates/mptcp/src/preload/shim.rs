//! The library that LD_PRELOAD puts into a program: every TCP socket that the
//! program opens becomes an MPTCP socket, or stays what it was where the kernel
//! refuses; with the congestion control that `BRAID_CONGESTION` names, if it names
//! one. Built on its own by the crate's build script; depends on libc only.
#![no_std]

use core::ffi::{c_char, c_int, c_void};

const AF_INET: c_int = 2;
const AF_INET6: c_int = 10;
const SOCK_STREAM: c_int = 1;
/// Bits of the type above which flags (SOCK_CLOEXEC, SOCK_NONBLOCK) stand.
const TYPE_MASK: c_int = 0xf;
const IPPROTO_TCP: c_int = 6;
const IPPROTO_MPTCP: c_int = 262;
const TCP_CONGESTION: c_int = 13;
/// `RTLD_NEXT` of dlfcn.h.
const NEXT: *mut c_void = -1isize as *mut c_void;

type Socket = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn abort() -> !;
    fn getenv(name: *const c_char) -> *const c_char;
    fn strlen(text: *const c_char) -> usize;
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: u32) -> c_int;
}

/// socket(2), as the program calls it.
///
/// # Safety
/// As socket(2): any arguments are fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: the name is a C string, and libc has this function.
    let next = unsafe { dlsym(NEXT, c"socket".as_ptr()) };
    if next.is_null() {
        // SAFETY: abort has no conditions. Nothing can be opened without socket.
        unsafe { abort() };
    }
    // SAFETY: what the next library calls `socket` has socket's signature.
    let next: Socket = unsafe { core::mem::transmute(next) };
    let tcp = (domain == AF_INET || domain == AF_INET6)
        && kind & TYPE_MASK == SOCK_STREAM
        && (protocol == 0 || protocol == IPPROTO_TCP);
    if tcp {
        // SAFETY: as socket(2).
        let fd = unsafe { next(domain, kind, IPPROTO_MPTCP) };
        if fd >= 0 {
            choose_congestion_control(fd);
            return fd;
        }
    }
    // SAFETY: as socket(2).
    unsafe { next(domain, kind, protocol) }
}

/// For all subflows, those joined later too. Where it fails, the socket keeps the
/// one it has.
fn choose_congestion_control(fd: c_int) {
    // SAFETY: the name is a C string; nobody changes the environment while others
    // read it, which POSIX asks of the program.
    let chosen = unsafe { getenv(c"BRAID_CONGESTION".as_ptr()) };
    if chosen.is_null() {
        return;
    }
    // SAFETY: a variable's value is a C string, and the kernel reads its bytes only.
    unsafe {
        let len = u32::try_from(strlen(chosen)).unwrap_or(0);
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, chosen.cast(), len);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: abort has no conditions.
    unsafe { abort() }
}
