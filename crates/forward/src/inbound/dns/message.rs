//! Messages of DNS (RFC 1035 4.1), as far as they are cut to what UDP takes.

/// Bytes of the header.
const HEADER: usize = 12;
/// Bytes of an answer by UDP to one who does not say what it takes (RFC 1035 4.2.1).
const PLAIN: usize = 512;
/// Bytes of an answer to one who takes more (EDNS): no packet of it is in fragments.
const WITH_OPTIONS: usize = 1232;
/// Flag of a message that is an answer, and of one that was cut, in their bytes.
const ANSWER: u8 = 0x80;
const CUT: u8 = 0x02;

/// Whether bytes begin as a question does.
pub(super) fn is_question(bytes: &[u8]) -> bool {
    bytes.len() > HEADER && bytes[2] & ANSWER == 0
}

/// Returns an answer as one by UDP: one that is too long has nothing but the question and says that it
/// was cut, so that it is asked for by TCP.
pub(super) fn fit(question: &[u8], answer: Vec<u8>) -> Vec<u8> {
    // Additional records of a question are its options, as a rule.
    let has_options = question
        .get(10..HEADER)
        .is_some_and(|count| count != [0, 0]);
    let max = if has_options { WITH_OPTIONS } else { PLAIN };
    let (Some(header), true) = (answer.first_chunk::<HEADER>(), answer.len() > max) else {
        return answer;
    };
    let mut cut = header.to_vec();
    cut[2] |= CUT;
    // One question, and no records.
    let asked = asked(question);
    cut[4..].fill(0);
    cut[5] = u8::from(asked.is_some());
    cut.extend(asked.unwrap_or_default());
    cut
}

/// Returns the first question of a message: name, type and class.
fn asked(message: &[u8]) -> Option<&[u8]> {
    let rest = message.get(HEADER..)?;
    let mut at = 0;
    loop {
        match usize::from(*rest.get(at)?) {
            0 => return rest.get(..at + 5),
            // A name in a question refers to none before.
            label @ 1..=63 => at += 1 + label,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAME: &[u8] = b"\x07example\x03org\0\0\x01\0\x01";

    fn question(additional: u8) -> Vec<u8> {
        let header = [7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, additional];
        [&header[..], NAME].concat()
    }

    #[test]
    fn an_answer_that_is_too_long_is_cut_to_its_question() {
        let header = [7, 8, 0x81, 0x80, 0, 1, 0, 60, 0, 1, 0, 1];
        for (additional, length, fits) in [
            (0, 500, true),
            (0, 501, false),
            (1, 501, true),
            (1, 1220, true),
            (1, 1221, false),
        ] {
            let answer = [&header[..], &vec![9; length]].concat();
            let fitted = fit(&question(additional), answer.clone());
            let cut = [&[7, 8, 0x83, 0x80, 0, 1, 0, 0, 0, 0, 0, 0][..], NAME].concat();
            assert_eq!(fitted, if fits { answer } else { cut }, "{length}");
        }
    }

    #[test]
    fn an_answer_is_no_question() {
        assert!(is_question(&question(0)));
        assert!(!is_question(&[7, 8, 0x81, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!is_question(&[0; HEADER]));
    }

    proptest! {
        #[test]
        fn anything_fits(
            question in prop::collection::vec(any::<u8>(), 0..600),
            answer in prop::collection::vec(any::<u8>(), 0..3000),
        ) {
            let fitted = fit(&question, answer.clone());
            prop_assert!(fitted.len() <= WITH_OPTIONS.max(question.len()));
            prop_assert_eq!(fitted.get(..2), answer.get(..2));
        }
    }
}
