//! The calls for which no safe wrapper exists: some socket options. The only unsafe code of this
//! crate.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `SOL_MPTCP` of `linux/socket.h`.
pub(crate) const SOL_MPTCP: libc::c_int = 284;
/// `MPTCP_INFO` of `linux/mptcp.h`.
pub(crate) const MPTCP_INFO: libc::c_int = 1;
const MPTCP_FULL_INFO: libc::c_int = 4;

/// Size of the kernel's `struct mptcp_subflow_info`: an id, then two socket
/// addresses of 128 bytes each.
pub(crate) const SUBFLOW_INFO_LEN: usize = 8 + 2 * 128;
/// Room for one `struct tcp_info` (248 bytes in Linux 6.18, it grows at the end).
pub(crate) const TCP_INFO_LEN: usize = 512;
/// Room for `struct mptcp_info` (96 bytes in Linux 6.18, it grows at the end).
pub(crate) const MPTCP_INFO_LEN: usize = 256;

/// Reads an option into `value` and says how many bytes the kernel wrote.
pub(crate) fn get(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: `value` is valid for writing `length` bytes, which is at most its
    // length; the kernel writes no more than that and updates `length`.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(length as usize)
}

/// Sets an option whose value is a number.
pub(crate) fn set_int(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as an int has from `value`, which outlives the call.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match rc {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `struct mptcp_full_info` of `linux/mptcp.h`.
#[repr(C, align(8))]
struct FullInfo {
    size_tcpinfo_kernel: u32,
    size_tcpinfo_user: u32,
    size_sfinfo_kernel: u32,
    size_sfinfo_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    subflow_info: u64,
    tcp_info: u64,
    mptcp_info: [u8; MPTCP_INFO_LEN],
}

/// Raw answer of `MPTCP_FULL_INFO`, each part as long as the kernel made it.
pub(crate) struct RawFullInfo {
    /// `struct mptcp_info`.
    pub(crate) mptcp: Vec<u8>,
    /// A `struct mptcp_subflow_info` and a `struct tcp_info` per subflow.
    pub(crate) subflows: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Reads `MPTCP_FULL_INFO` for at most `room` subflows.
pub(crate) fn full_info(fd: BorrowedFd<'_>, room: usize) -> io::Result<RawFullInfo> {
    let mut subflows = vec![0u8; room * SUBFLOW_INFO_LEN];
    let mut tcp = vec![0u8; room * TCP_INFO_LEN];
    let mut info = FullInfo {
        size_tcpinfo_kernel: 0,
        size_tcpinfo_user: TCP_INFO_LEN as u32,
        size_sfinfo_kernel: 0,
        size_sfinfo_user: SUBFLOW_INFO_LEN as u32,
        num_subflows: 0,
        size_arrays_user: u32::try_from(room).unwrap_or(u32::MAX),
        subflow_info: subflows.as_mut_ptr() as u64,
        tcp_info: tcp.as_mut_ptr() as u64,
        mptcp_info: [0; MPTCP_INFO_LEN],
    };
    let header = size_of::<FullInfo>() - MPTCP_INFO_LEN;
    let mut length = size_of::<FullInfo>() as libc::socklen_t;
    // SAFETY: `info` is valid for `length` bytes and laid out as the kernel's
    // struct. The two arrays it points to hold `room` elements of the sizes that
    // it names, stay allocated during the call and are not otherwise used in it.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            SOL_MPTCP,
            MPTCP_FULL_INFO,
            (&raw mut info).cast(),
            &mut length,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    let count = (info.num_subflows as usize).min(room);
    // An element is as long as the shorter of the two sides' structs, which is
    // what the kernel leaves in the sizes that we gave.
    let subflow_len = (info.size_sfinfo_user as usize).min(SUBFLOW_INFO_LEN);
    let tcp_len = (info.size_tcpinfo_user as usize).min(TCP_INFO_LEN);
    let mptcp_len = (length as usize).saturating_sub(header).min(MPTCP_INFO_LEN);
    Ok(RawFullInfo {
        mptcp: info.mptcp_info[..mptcp_len].to_vec(),
        subflows: (0..count)
            .map(|i| {
                let s = i * subflow_len;
                let t = i * tcp_len;
                (
                    subflows[s..s + subflow_len].to_vec(),
                    tcp[t..t + tcp_len].to_vec(),
                )
            })
            .collect(),
    })
}
