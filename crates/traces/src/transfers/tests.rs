use super::*;

fn read(text: &str) -> Result<Recording, Problem> {
    parse(text, &Links::default()).map(Option::unwrap)
}

fn message(text: &str) -> String {
    let problem = read(text).unwrap_err();
    problem.in_file("f.csv".into(), text).to_string()
}

#[test]
fn our_log_has_what_was_recorded() {
    let text = "# of a phone\nt_s,down_mbps,up_mbps,power_mw,rsrp_dbm\n10,8,0,1500,-90\n\
                10.5,16,0.8,,-\n11.5,0,0,900,-91\n";
    let r = read(text).unwrap();
    assert_eq!((r.scope, r.connected), (Some(Scope::Device), false));
    let s = &r.transfers[0].samples;
    let ms: Vec<u128> = s.iter().map(|s| s.interval.length.as_millis()).collect();
    assert_eq!(ms, [500, 1000, 750]);
    assert_eq!(s[0].interval.down_bytes, 500_000.0);
    assert_eq!(
        (s[1].interval.down_bytes, s[1].interval.up_bytes),
        (2e6, 1e5)
    );
    assert_eq!((s[0].power_mw, s[1].power_mw), (Some(1500.0), None));
    assert_eq!(s[0].interval.signal.rsrp_dbm, Some(-90.0));
    assert_eq!(s[1].interval.signal.rsrp_dbm, None);
    assert_eq!(s[0].interval.airtime, None);
}

#[test]
fn airtime_of_a_medium_is_read() {
    let text = "t_s,down_mbps,sending_ms,collided_ms,frames_sent\n0,1,100,20,50\n1,1,0,0,0\n";
    let a = read(text).unwrap().transfers[0].samples[0].interval.airtime;
    let a = a.unwrap();
    assert_eq!((a.sending.as_millis(), a.collided.as_millis()), (100, 20));
    assert_eq!((a.frames_sent, a.receiving), (50, Duration::ZERO));
}

#[test]
fn links_are_chosen_by_name() {
    let text = "t_s,nr_mbps,wifi_mbps\n0,8,16\n1,8,16\n";
    let links = |down: Option<&str>, up: Option<&str>| Links {
        down: down.map(str::to_owned),
        up: up.map(str::to_owned),
    };
    let r = parse(text, &links(Some("nr"), Some("wifi")))
        .unwrap()
        .unwrap();
    let i = r.transfers[0].samples[0].interval;
    assert_eq!((i.down_bytes, i.up_bytes), (1e6, 2e6));
    assert!(message(text).contains("several links (nr, wifi): say which with --down and --up"));
    let unknown = parse(text, &links(Some("lte"), None)).unwrap_err();
    let unknown = unknown.in_file("f".into(), text).to_string();
    assert!(
        unknown.contains("no link is called \"lte\": expected one of nr, wifi"),
        "{unknown}"
    );
}

#[test]
fn published_forms_are_recognised() {
    let text = "throughput,time_since_start,avg_power,target bandwidth,direction,network type,provider\n\
                1.5,0.0,2700,1.0,downlink,LTE,V\n2.5,1.0,2800,1.0,downlink,LTE,V\n5,0.0,3000,5.0,uplink,LTE,V\n";
    let r = read(text).unwrap();
    let names: Vec<&str> = r.transfers.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["LTE downlink 1", "LTE uplink 5"]);
    assert_eq!(r.transfers[0].samples.len(), 2);
    assert!(r.connected && r.scope == Some(Scope::Device));
    let text = "nr_ssRsrp,hardware_power_full,nrStatus,downlink_Mbps,LTE_RSRP,nr_ssSinr,hardware_power,software_power,Timestamp,uplink_Mbps\n\
                -78,7494,CONNECTED,1.4,-65,20,5250,7355,189,193\n-78,7494,NONE,1.4,-65,20,5250,7355,189,193\n";
    let r = read(text).unwrap();
    let s = r.transfers[0].samples[0];
    assert_eq!(
        (s.power_mw, s.interval.signal.sinr_db),
        (Some(5250.0), Some(20.0))
    );
    assert_eq!((r.transfers[0].samples.len(), r.notes.len()), (1, 1));
    assert_eq!(parse("0,5\n1,6\n", &Links::default()), Ok(None));
    assert_eq!(parse("", &Links::default()), Ok(None));
}

#[test]
fn points_at_the_field_that_is_wrong() {
    for (text, place, said) in [
        (
            "t_s,down_mbps\n0,x\n",
            "f.csv:2:3: ",
            "\"x\": expected Mbit/s",
        ),
        (
            "t_s,down_mbps\n0,-1\n",
            "f.csv:2:3: ",
            "expected Mbit/s, 0 to",
        ),
        (
            "t_s,down_mbps\n1,1\n1,2\n",
            "f.csv:3:1: ",
            "does not come after",
        ),
        (
            "t_s,down_mbps\n0\n",
            "f.csv:2:1: ",
            "fields in this line: 1: expected 2",
        ),
        (
            "t_s,down_mbps,powr_mw\n0,1,2\n",
            "f.csv:1:15: ",
            "did you mean \"power_mw\"?",
        ),
        (
            "t_s,power_mw\n0,1\n",
            "f.csv:1:1: ",
            "expected a column down_mbps or up_mbps",
        ),
        ("t_s,down_mbps\n", "f.csv: ", "there are no samples"),
        (
            "t_s,down_mbps,down_mbps\n0,1,1\n",
            "f.csv:1:15: ",
            "a second column",
        ),
        (
            "throughput,time_since_start\n",
            "f.csv:1:1: ",
            "no column \"avg_power\"",
        ),
    ] {
        let e = message(text);
        assert!(e.starts_with(place) && e.contains(said), "{text:?}: {e}");
    }
}

#[test]
fn a_capacity_trace_is_taken_as_carried() {
    let trace = Trace::parse(b"0,8\n1,16\n", None).unwrap();
    let r = of_trace(&trace, &Links::default()).unwrap();
    let bytes: Vec<f64> = r.transfers[0]
        .samples
        .iter()
        .map(|s| s.interval.down_bytes)
        .collect();
    assert_eq!(bytes, [1e6, 2e6]);
    let mahimahi = Trace::parse(b"500\n1500\n2000\n", None).unwrap();
    let r = of_trace(&mahimahi, &Links::default()).unwrap();
    assert_eq!(r.transfers[0].samples.len(), 2);
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "(t_s|throughput|down_mbps|[0-9.,\n#é-]){0,40}") {
        let _ = parse(&text, &Links::default());
    }
}
