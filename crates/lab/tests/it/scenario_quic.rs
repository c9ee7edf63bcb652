//! Keys of cases with `engine = "mpquic"`.

use std::path::Path;

use braid_api::{Acks, Lane};
use braid_lab::scenario::{Engine, Mpquic, Overrides, Scenario};

fn parse(engine: &str, keys: &str) -> Result<Scenario, String> {
    let text = format!(
        "name = \"q\"\nduration = \"10 s\"\n[access.nr]\nkind = \"5g\"\n\
         down = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\n[[case]]\nname = \"c\"\n\
         engine = \"{engine}\"\n{keys}\ntraffic = \"bulk\"\n"
    );
    read(&text)
}

fn read(text: &str) -> Result<Scenario, String> {
    let (here, none) = (Path::new("."), Overrides::default());
    Scenario::parse(text, Path::new("q.toml"), here, &none).map_err(|e| e.to_string())
}

#[test]
fn keys_are_read() {
    let of = |keys: &str| parse("mpquic", keys).unwrap().cases.remove(0);
    let (plain, all) = (
        of(""),
        of(
            "lane = \"datagram\"\nreinject = false\nresume = false\nexpect = 0.5\n\
             expect_error_db = 3\nexpect_every = \"500 ms\"\nacks = \"in-turn\"\nsend_window = \"1.25 MB\"",
        ),
    );
    let engine = |lane, reinject, resume| {
        Engine::Mpquic(Mpquic {
            lane,
            reinject,
            resume,
            acks: Acks::Fastest,
            send_window: None,
        })
    };
    assert_eq!(plain.engine, engine(Lane::Datagram, true, true));
    assert_eq!(plain.expect, None);
    let others = Engine::Mpquic(Mpquic {
        lane: Lane::Datagram,
        reinject: false,
        resume: false,
        acks: Acks::InTurn,
        send_window: Some(1_250_000),
    });
    assert_eq!(all.engine, others);
    let expect = all.expect.unwrap();
    assert_eq!((expect.factor, expect.error_db), (0.5, 3.0));
    assert_eq!(expect.every, Some(std::time::Duration::from_millis(500)));
    let stream = of("lane = \"stream\"");
    assert_eq!(stream.engine, engine(Lane::Stream, false, true));
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    for (engine, keys, why) in [
        ("mpquic", "lane = \"fast\"", "unknown lane \"fast\""),
        (
            "mpquic",
            "acks = \"slowest\"",
            "unknown way of acknowledgements \"slowest\"",
        ),
        ("mpquic", "send_window = \"1 kB\"", "65536 B or more"),
        (
            "mpquic",
            "lane = \"stream\"\nacks = \"in-turn\"",
            "only the datagram lane",
        ),
        (
            "mpquic",
            "lane = \"stream\"\nsend_window = \"1 MB\"",
            "only the datagram lane",
        ),
        (
            "mptcp",
            "send_window = \"1 MB\"",
            "only engine = \"mpquic\"",
        ),
        ("mpquic", "expect = 0", "a factor above 0"),
        ("mpquic", "expect = 101", "a factor above 0"),
        ("mpquic", "expect_error_db = 3", "needs `expect`"),
        ("mpquic", "expect_every = \"1 s\"", "needs `expect`"),
        (
            "mpquic",
            "expect = 1\nexpect_every = \"10 ms\"",
            "100ms or more",
        ),
        ("mpquic", "expect = 1\nexpect_error_db = 21", "0 to 20 dB"),
        ("mptcp", "expect_error_db = 3", "only engine = \"mpquic\""),
        (
            "mpquic",
            "lane = \"stream\"\nexpect = 1",
            "only on the datagram lane",
        ),
        (
            "mpquic",
            "lane = \"stream\"\nreinject = true",
            "only the datagram lane",
        ),
        ("mpquic", "num_segments = 2", "turns of one packet"),
        (
            "mptcp",
            "resume = true",
            "only engine = \"mpquic\" has this",
        ),
        ("mptcp", "expect = 1", "only engine = \"mpquic\" has this"),
        (
            "tcp",
            "access = \"nr\"\nlane = \"datagram\"",
            "only engine = \"mpquic\" has this",
        ),
    ] {
        let said = parse(engine, keys).unwrap_err();
        assert!(said.starts_with("q.toml:"), "{said}");
        assert!(said.contains(why), "{keys}: {said}");
    }
}

/// Weights, and those that an event sets: somebody has to carry.
#[test]
fn weights_of_zero_everywhere_are_refused() {
    let with = |weights: &str, event: &str| {
        let keys = format!("scheduler = \"wrr\"\nweights = {{ {weights} }}\ntraffic = \"bulk\"");
        let event = format!("[[event]]\nat = \"3 s\"\nweights = {{ {event} }}");
        let text = format!(
            "name = \"q\"\nduration = \"10 s\"\n[access]\nnr.kind = \"5g\"\n\
             nr.down.rate = \"9 Mbit/s\"\nwifi.kind = \"wifi\"\nwifi.down.rate = \"9 Mbit/s\"\n\
             {event}\n[[case]]\nname = \"c\"\nengine = \"mpquic\"\n{keys}\n"
        );
        read(&text).map(drop)
    };
    assert_eq!(with("nr = 0", "wifi = 2"), Ok(()));
    assert_eq!(with("nr = 0, wifi = 1", "nr = 1, wifi = 0"), Ok(()));
    for (weights, event, why) in [
        ("nr = 0, wifi = 0", "nr = 1", "with these weights no access"),
        ("nr = 0, wifi = 1", "wifi = 0", "from 3s on no access"),
    ] {
        let refused = with(weights, event).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}
