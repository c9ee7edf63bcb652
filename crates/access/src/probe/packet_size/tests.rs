use super::*;
use proptest::prelude::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + Duration::from_secs(1000) + ms(n)
}

const V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 2, 2));

fn v6() -> IpAddr {
    "2001:db8::2".parse().unwrap()
}

/// A path that carries packets up to a size that changes, and loses some.
struct Link {
    address: IpAddr,
    rtt: u64,
    /// Size from that time on.
    carries: Vec<(u64, u32)>,
    /// Every so many packets one is lost; 0 for none.
    lose: u32,
    /// Rate, and when the link is free again.
    kbps: Option<u64>,
    flows: bool,
    free: u64,
    sent: u32,
    bytes: usize,
    back: Vec<(u64, u32, usize)>,
}

impl Link {
    fn new(address: IpAddr, rtt: u64, carries: &[(u64, u32)]) -> Self {
        Self {
            address,
            rtt,
            carries: carries.to_vec(),
            lose: 0,
            kbps: None,
            flows: false,
            free: 0,
            sent: 0,
            bytes: 0,
            back: vec![],
        }
    }

    fn go(&mut self, sizes: &mut Sizes, from: u64, until: u64) {
        let flows = self.flows;
        let reach = |_| {
            let rtt = Duration::ZERO;
            Some(Reach { rtt, flows })
        };
        let headers = if self.address.is_ipv4() { 28 } else { 48 };
        for t in from..until {
            let due: Vec<_> = self.back.extract_if(.., |b| b.0 <= t).collect();
            for (_, number, length) in due {
                sizes.answer(self.address, number, length, at(t));
            }
            if t % 5 != 0 {
                continue;
            }
            for ask in sizes.tick(&reach, at(t)) {
                self.sent += 1;
                self.bytes += ask.length;
                let now = self.carries.iter().rev().find(|(from, _)| *from <= t);
                let lost = self.lose > 0 && self.sent.is_multiple_of(self.lose);
                if let Some(kbps) = self.kbps.filter(|_| !lost) {
                    self.free = self.free.max(t) + ask.length as u64 * 8 / kbps;
                }
                if !lost && ask.length as u32 + headers <= now.unwrap().1 {
                    let back = self.free.max(t) + self.rtt;
                    self.back.push((back, ask.number, ask.length));
                }
            }
        }
    }
}

fn watched(address: IpAddr, mtu: u32) -> Sizes {
    let mut s = Sizes::default();
    s.watch(&BTreeMap::from([(address, mtu)]), at(0));
    s
}

proptest! {
    #[test]
    fn round_trips(session: u64, number: u32, length in 33usize..2000, request: bool) {
        let kind = if request { Kind::Request } else { Kind::Response };
        let p = SizeProbe { kind, session, number, length };
        prop_assert_eq!(SizeProbe::parse(&p.emit()), Some(p));
        prop_assert_eq!(p.response().emit().len(), length);
        prop_assert_eq!(probe::Probe::parse(&p.emit()), None);
    }

    #[test]
    fn garbage_is_refused(b in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Some(p) = SizeProbe::parse(&b) {
            prop_assert_eq!(p.emit(), b);
        }
    }

    /// To the byte, within two seconds of usual round trips.
    #[test]
    fn a_smaller_path_is_found(carries in 576u32..1500, rtt in 1u64..100) {
        let mut s = watched(V4, 1500);
        Link::new(V4, rtt, &[(0, carries)]).go(&mut s, 0, 1_500);
        prop_assert_eq!(s.limit(V4).map(|l| (l.bytes, l.interface)), Some((carries, 1500)));
        prop_assert!(!s.searches(V4, at(1_500)));
    }

    #[test]
    fn a_smaller_path_is_found_over_ipv6(carries in 1280u32..1500, rtt in 1u64..100) {
        let mut s = watched(v6(), 1500);
        Link::new(v6(), rtt, &[(0, carries)]).go(&mut s, 0, 1_500);
        prop_assert_eq!(s.limit(v6()).map(|l| l.bytes), Some(carries));
    }

    /// On a slow path, large packets take their time.
    #[test]
    fn a_slow_path_is_not_taken_for_a_narrow_one(kbps in 60u64..2_000, rtt in 1u64..300) {
        let mut s = watched(V4, 1500);
        let mut link = Link::new(V4, rtt, &[(0, 1500)]);
        link.kbps = Some(kbps);
        link.go(&mut s, 0, 10_000);
        // Not even where the first probe is lost.
        s.suspect(V4, at(10_000), at(10_000));
        link.lose = 2;
        link.go(&mut s, 10_000, 10_010);
        link.lose = 0;
        link.go(&mut s, 10_010, 20_000);
        prop_assert_eq!(s.limit(V4), None);
    }

    /// Losses make the result smaller by a little at most, and never larger than what passes.
    #[test]
    fn losses_limit_nothing_by_much(
        carries in prop::sample::select(vec![1400u32, 1430, 1492, 1500]), lose in 5u32..20,
    ) {
        let mut s = watched(V4, 1500);
        let mut link = Link::new(V4, 30, &[(0, carries)]);
        link.lose = lose;
        link.go(&mut s, 0, 20_000);
        let found = s.limit(V4).map_or(1500, |l| l.bytes);
        prop_assert!(found <= carries && found + 120 >= carries, "{found} of {carries}");
    }
}

#[test]
fn a_path_that_carries_all_costs_three_packets() {
    let mut s = watched(V4, 1500);
    let mut link = Link::new(V4, 30, &[(0, 1500)]);
    link.go(&mut s, 0, 60_000);
    assert_eq!((link.sent, s.limit(V4)), (3, None));
}

#[test]
fn where_data_flows_losses_of_probes_are_of_no_account() {
    let mut s = watched(V4, 1500);
    // A queue that is full drops what is large.
    let mut link = Link::new(V4, 30, &[(0, 700), (40_000, 1400), (50_000, 900)]);
    link.flows = true;
    link.go(&mut s, 0, 20_000);
    assert_eq!((link.sent, s.limit(V4)), (0, None));
    // It begins in the midst of a search, or ends.
    link.flows = false;
    link.go(&mut s, 20_000, 20_100);
    link.flows = true;
    link.go(&mut s, 20_100, 40_000);
    assert_eq!(s.limit(V4), None);
    link.flows = false;
    link.go(&mut s, 40_000, 50_000);
    assert_eq!(s.limit(V4).map(|l| l.bytes), Some(1400));
    link.flows = true;
    link.go(&mut s, 50_000, 90_000);
    assert_eq!(s.limit(V4).map(|l| l.bytes), Some(1400));
}

#[test]
fn one_that_grows_back_is_used_whole_again() {
    let mut s = watched(V4, 1500);
    let mut link = Link::new(V4, 30, &[(0, 1400), (30_000, 1500)]);
    link.go(&mut s, 0, 29_000);
    let limit = s.limit(V4).unwrap();
    assert!(limit.bytes == 1400 && limit.since < at(2_000), "{limit:?}");
    link.go(&mut s, 29_000, 62_000);
    assert_eq!(s.limit(V4), None);
}

#[test]
fn one_that_shrinks_is_searched_on_suspicion() {
    let mut s = watched(V4, 1500);
    let mut link = Link::new(V4, 30, &[(0, 1500), (10_000, 1430)]);
    link.go(&mut s, 0, 11_000);
    s.suspect(V4, at(10_010), at(11_000));
    assert!(s.searches(V4, at(11_000)));
    link.go(&mut s, 11_000, 12_500);
    assert_eq!(s.limit(V4).map(|l| l.bytes), Some(1430));
    // One search is enough for what goes on to make no progress.
    let before = link.sent;
    s.suspect(V4, at(10_010), at(12_500));
    link.go(&mut s, 12_500, 13_000);
    assert_eq!(link.sent, before);
    // What falls silent after a search is another matter, however soon.
    link.carries.push((12_600, 1400));
    s.suspect(V4, at(12_610), at(13_100));
    link.go(&mut s, 13_100, 14_500);
    assert_eq!(s.limit(V4).map(|l| l.bytes), Some(1400));
}

#[test]
fn a_path_that_dies_or_a_proxy_that_knows_no_sizes_limits_nothing() {
    let mut s = watched(V4, 1500);
    let mut link = Link::new(V4, 30, &[(0, 1400), (60, 0)]);
    link.go(&mut s, 0, 60_000);
    assert_eq!(s.limit(V4), None);
    assert!(link.sent < 60, "{}", link.sent);
    // Nothing is sent while it is silent.
    let mut s = watched(V4, 1500);
    assert_eq!(s.tick(&|_| None, at(0)), []);
}

#[test]
fn an_interface_with_another_mtu_is_searched_anew() {
    let mut s = watched(V4, 1500);
    let mut link = Link::new(V4, 30, &[(0, 1400)]);
    link.go(&mut s, 0, 3_000);
    assert!(s.limit(V4).is_some());
    s.watch(&BTreeMap::from([(V4, 1280)]), at(3_000));
    assert_eq!(s.limit(V4), None);
    link.go(&mut s, 3_000, 6_000);
    assert_eq!(s.limit(V4), None);
    s.watch(&BTreeMap::new(), at(6_000));
    assert_eq!(s.due(), Time::MAX);
}
