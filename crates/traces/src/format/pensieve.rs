//! Seconds and Mbit/s separated by white space: the format that Pensieve (SIGCOMM 2017) and the
//! simulators after it cook the FCC's and Norway's recordings into.

use super::super::error::LineError;
use super::{Parsed, paired};

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, LineError> {
    paired::columns(bytes, &["link"], "seconds and Mbit/s")
}

#[cfg(test)]
mod tests {
    use super::super::super::{Capacity, Trace};
    use super::super::Format;

    #[test]
    fn reads_seconds_and_rates() {
        let t = Trace::parse(b"0.5 1.25\n1.5\t2\n3.5 0.75\n", None).unwrap();
        assert_eq!((t.format, t.columns()), (Format::Pensieve, vec!["link"]));
        let Capacity::Steps { columns, .. } = &t.capacity else {
            panic!("not sampled")
        };
        assert_eq!(columns[0].rates[0].as_bps(), 1_250_000);
        let e = Trace::parse(b"0.5 1.25\n1.5\n", None).err().unwrap();
        assert!(
            e.line == Some(2) && e.msg.contains("seconds and Mbit/s"),
            "{e}"
        );
    }
}
