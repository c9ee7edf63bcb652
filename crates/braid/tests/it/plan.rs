//! Handovers of a path plan on the real clock, each with a new address: both
//! multipath engines go on over them, and no byte is lost.

use crate::support::{self, lab, summary};

/// Interface 1 changes cell and address at 3 s and 6 s, interface 2 is gone from
/// 4 s to 5 s and then elsewhere.
const PLAN: &str = "t_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address
0,1,up,op1,1800,A,20,10,1
0,2,up,op2,2100,K,30,15,1
3,1,handover,op1,1800,B,25,12,2
3.05,1,up,op1,1800,B,25,12,2
4,2,down,,,,,,
5,2,handover,op2,2100,L,30,10,2
5.05,2,up,op2,2100,L,30,10,2
6,1,handover,op1,800,C,20,10,3
6.05,1,up,op1,800,C,20,10,3
60,,end,,,,,,
";
const SCENARIO: &str = r#"
name = "plan"
duration = "9 s"
[plan]
file = "two.plan.csv"
[[case]]
name = "mpquic"
engine = "mpquic"
traffic = "bulk"
[[case]]
name = "mptcp"
engine = "mptcp"
path_manager = "braid"
cc = "cubic"
traffic = "bulk"
"#;

#[test]
fn engines_follow_interfaces_to_new_addresses() {
    let dir = support::folder();
    std::fs::write(dir.path().join("two.plan.csv"), PLAN).unwrap();
    if lab::real(&mut lab::of_text(dir.path(), SCENARIO)).is_none() {
        return;
    }
    let timeline = lab::timeline(&dir.path().join("out"));
    for case in summary(&dir.path().join("out")).cases {
        let name = &case.name;
        assert_eq!((case.intact, &case.failed), (Some(true), &None), "{name}");
        // Each interface carries after each of its changes; a machine that is busy
        // may take its time.
        for (access, from) in [("if1", 4.0), ("if2", 7.0), ("if1", 7.0)] {
            let late = timeline.iter().filter(|r| {
                r.case == *name && r.access == access && (from..from + 2.0).contains(&r.t_s)
            });
            let bytes: u64 = late.map(|r| r.bytes).sum();
            assert!(
                bytes > 500_000,
                "{name}: {bytes} bytes on {access} after {from} s"
            );
        }
    }
}
