use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::mutate::Mutator;

/// Puts a message together: flags, question, and records with owner, type, TTL and data.
fn message(flags: u16, question: &[u8], records: &[(&[u8], u16, u32, &[u8])]) -> Vec<u8> {
    let mut m = vec![0x12, 0x34];
    for field in [flags, 1, records.len() as u16, 0, 0] {
        m.extend(field.to_be_bytes());
    }
    m.extend(question);
    m.extend([0, 1, 0, 1]);
    for (owner, kind, ttl, data) in records {
        m.extend(*owner);
        m.extend(kind.to_be_bytes());
        m.extend([0, 1]);
        m.extend(ttl.to_be_bytes());
        m.extend((data.len() as u16).to_be_bytes());
        m.extend(*data);
    }
    m
}

const OK: u16 = 0x8180;
const WWW: &[u8] = b"\x03www\x07Example\x03org\0";
const CDN: &[u8] = b"\x03cdn\x07example\x03net\0";
/// The question's name, by where it stands.
const SAME: &[u8] = &[0xc0, 12];

fn typical() -> Vec<u8> {
    message(
        OK,
        WWW,
        &[
            (SAME, 5, 60, CDN),
            (CDN, 1, 300, &[198, 51, 100, 7]),
            (
                CDN,
                28,
                30,
                &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            ),
            (CDN, 16, 300, b"\x01x"),
            (b"\x04evil\0", 1, 300, &[203, 0, 113, 1]),
        ],
    )
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn addresses_are_those_that_the_question_leads_to() {
    let answer = read(&typical()).unwrap();
    assert_eq!(answer.name, "www.example.org");
    let secs = Duration::from_secs;
    let wanted = [
        (ip("198.51.100.7"), secs(60)),
        (ip("2001:db8::1"), secs(30)),
    ];
    assert_eq!(answer.addresses, wanted);
    // Of another name than the one that its alias leads to.
    let aside = message(
        OK,
        WWW,
        &[(SAME, 5, 60, CDN), (SAME, 1, 60, &[10, 0, 0, 1])],
    );
    assert_eq!(read(&aside).unwrap().addresses, []);
    // Round in circles.
    let circle = message(OK, WWW, &[(SAME, 5, 60, CDN), (CDN, 5, 60, SAME)]);
    assert_eq!(read(&circle).unwrap().addresses, []);
    // A TTL with the upper bit set is 0: RFC 2181 8.
    let old = message(OK, WWW, &[(SAME, 1, 1 << 31, &[10, 0, 0, 1])]);
    assert_eq!(read(&old).unwrap().addresses, [(ip("10.0.0.1"), secs(0))]);
}

#[test]
fn what_is_no_answer_is_refused() {
    let own: &[(&[u8], u16, u32, &[u8])] = &[(SAME, 1, 60, &[10, 0, 0, 1])];
    assert_eq!(read(&message(0x0100, WWW, own)), Err(DnsError::NoAnswer));
    assert_eq!(read(&message(OK | 3, WWW, own)), Err(DnsError::NoAnswer));
    let mut two = message(OK, WWW, own);
    two[5] = 2;
    assert_eq!(read(&two), Err(DnsError::Questions));
    let long = message(OK, WWW, &[(SAME, 1, 60, &[10, 0, 0, 1, 2])]);
    assert_eq!(read(&long), Err(DnsError::Record));
    // To itself, and further back.
    let itself = message(OK, &[0xc0, 12], own);
    assert_eq!(read(&itself), Err(DnsError::Name));
    let back = message(OK, WWW, &[(&[0xc0, 40], 1, 60, &[10, 0, 0, 1])]);
    assert_eq!(read(&back), Err(DnsError::Name));
    let endless: Vec<u8> = [&b"\x3f"[..], &[b'a'; 63]].concat().repeat(4);
    let endless = [&endless[..], &[0]].concat();
    assert_eq!(read(&message(OK, &endless, &[])), Err(DnsError::Name));
    let all = typical();
    for n in 0..all.len() {
        assert!(read(&all[..n]).is_err(), "{n}");
    }
}

#[test]
fn octets_that_no_host_name_has_are_written_so_that_they_compare_with_none() {
    let odd = message(OK, b"\x05a.b\0c\x03org\0", &[]);
    assert_eq!(read(&odd).unwrap().name, "a\\046b\\000c.org");
}

#[test]
fn patterns_include_names_and_those_below() {
    let of = |pattern: &str| pattern.parse::<Domain>().unwrap();
    let one = of("Example.org.");
    assert!(one.includes("example.org") && one.includes("EXAMPLE.ORG."));
    assert!(!one.includes("www.example.org") && !one.includes("xexample.org"));
    let below = of("*.example.org");
    assert!(below.includes("www.example.org") && below.includes("a.b.Example.org"));
    for other in [
        "example.org",
        ".example.org",
        "xexample.org",
        "org",
        "",
        "é.example.or",
    ] {
        assert!(!below.includes(other), "{other}");
    }
    assert_eq!(below.to_string(), "*.example.org");
    for wrong in [
        "",
        "*",
        "*.",
        "a..b",
        "a b",
        "*.*.org",
        "é.org",
        &"a".repeat(64),
    ] {
        assert!(wrong.parse::<Domain>().is_err(), "{wrong}");
    }
}

#[test]
fn changed_answers_are_read_or_refused() {
    let mutated = Mutator::new(1, [typical()]).take(50_000);
    let read = mutated.filter(|m| read(m).is_ok()).count();
    assert!(read > 1000, "{read}: most of the reader is not reached");
}

proptest! {
    #[test]
    fn any_octets_are_read_or_refused(m in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&m);
    }

    #[test]
    fn a_name_is_of_its_own_pattern(name in "[a-z0-9-]{1,12}(\\.[a-z0-9-]{1,12}){0,4}", front in "[a-z]{1,5}") {
        let one: Domain = name.parse().unwrap();
        prop_assert!(one.includes(&name));
        let below: Domain = format!("*.{name}").parse().unwrap();
        let name_below = format!("{front}.{name}");
        prop_assert!(below.includes(&name_below) && !below.includes(&name));
        prop_assert!(!one.includes(&name_below));
    }
}
