//! Octets that are read from the front, with their place in the container.

/// Reason why octets are no container, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("octet {offset}: {what}")]
pub struct DecodeError {
    /// Place of the octet, from 0.
    pub offset: usize,
    /// Description of what is wrong there, or was expected.
    pub what: String,
}

/// Makes the error about a place.
pub(super) fn wrong(offset: usize, what: impl Into<String>) -> DecodeError {
    let what = what.into();
    DecodeError { offset, what }
}

/// Octets that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    left: &'a [u8],
    /// Place of the first of them.
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            left: bytes,
            offset: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.left.len()
    }

    /// Returns the place of the next octet.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Makes the error about the next octet.
    pub(super) fn wrong(&self, what: impl Into<String>) -> DecodeError {
        wrong(self.offset, what)
    }

    /// Takes all that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        let all = std::mem::take(&mut self.left);
        self.offset += all.len();
        all
    }

    /// Takes so many octets of `what`.
    pub(super) fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], DecodeError> {
        let Some((taken, left)) = self.left.split_at_checked(n) else {
            let (end, there) = (self.offset + self.len(), self.len());
            let what =
                format!("it ends within {what}: expected {n} octets of it, and there are {there}");
            return Err(wrong(end, what));
        };
        self.left = left;
        self.offset += n;
        Ok(taken)
    }

    /// Takes so many octets of `what`, to be read on their own.
    pub(super) fn part(&mut self, n: usize, what: &str) -> Result<Self, DecodeError> {
        let offset = self.offset;
        let left = self.take(n, what)?;
        Ok(Self { left, offset })
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, DecodeError> {
        self.array(what).map(|[octet]| octet)
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_be_bytes)
    }

    /// Takes a length of one octet, and so many octets.
    pub(super) fn counted(&mut self, what: &str) -> Result<Vec<u8>, DecodeError> {
        let length = self.u8(what)?;
        self.take(length.into(), what).map(<[u8]>::to_vec)
    }

    /// Checks that nothing is left behind `what`.
    pub(super) fn end(&self, what: &str) -> Result<(), DecodeError> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(self.wrong(format!("{} octets too many in {what}", self.len()))),
        }
    }
}
