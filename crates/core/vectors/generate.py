#!/usr/bin/env python3
"""Computes the test vectors of congestion controls, schedulers and power models with exact rationals.

Written from the specifications alone (README.md beside this file derives each
formula); shares nothing with the Rust, kernel C and eBPF forms it judges.

    python3 crates/core/vectors/generate.py           write cc/, sched/ and energy/
    python3 crates/core/vectors/generate.py --check   fail where a file differs
"""

import json
import pathlib
import sys
from fractions import Fraction as F

HERE = pathlib.Path(__file__).parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import power  # noqa: E402
import schedulers  # noqa: E402
from draw import Draw  # noqa: E402


def number(v):
    """A rational as text, and the nearest double for those who compare floats."""
    v = F(v)
    return {"exact": f"{v.numerator}/{v.denominator}", "value": float(v)}


def path(cwnd, srtt_us, l1=0, l2=0):
    return {"cwnd": cwnd, "srtt_us": srtt_us, "l1_bytes": l1, "l2_bytes": l2}


def rate(p):
    """x_p = w_p / rtt_p, packets per microsecond."""
    return F(p["cwnd"], p["srtt_us"])


# ---- the increase for one acknowledged packet, and the window after a loss ----


def reno_ack(paths, me):
    return F(1, paths[me]["cwnd"])


def halve(paths, me, floor):
    return max(F(paths[me]["cwnd"], 2), F(floor))


def reno_loss(paths, me):
    return halve(paths, me, 2)


def lia_ack(paths, me):
    total = sum(p["cwnd"] for p in paths)
    best = max(F(p["cwnd"], p["srtt_us"] ** 2) for p in paths)
    alpha = total * best / sum(rate(p) for p in paths) ** 2
    return min(alpha / total, F(1, paths[me]["cwnd"]))


lia_loss = reno_loss


def olia_alpha(paths, me):
    def l(p):
        return max(p["l1_bytes"], p["l2_bytes"])

    quality = [F(l(p) ** 2, p["srtt_us"]) for p in paths]
    best = {i for i, q in enumerate(quality) if q == max(quality)}
    widest = max(p["cwnd"] for p in paths)
    max_w = {i for i, p in enumerate(paths) if p["cwnd"] == widest}
    collected = best - max_w
    if me in collected:
        return F(1, len(paths) * len(collected))
    if me in max_w and collected:
        return -F(1, len(paths) * len(max_w))
    return F(0)


def olia_ack(paths, me):
    p = paths[me]
    first = F(p["cwnd"], p["srtt_us"] ** 2) / sum(rate(q) for q in paths) ** 2
    return first + olia_alpha(paths, me) / p["cwnd"]


def olia_loss(paths, me):
    return halve(paths, me, 1 if len(paths) > 1 else 2)


def balia_alpha(paths, me):
    return max(rate(p) for p in paths) / rate(paths[me])


def balia_ack(paths, me):
    x, a = rate(paths[me]), balia_alpha(paths, me)
    total = sum(rate(p) for p in paths)
    return x / (paths[me]["srtt_us"] * total**2) * (1 + a) / 2 * (4 + a) / 5


def balia_loss(paths, me):
    w = F(paths[me]["cwnd"])
    left = w - w / 2 * min(balia_alpha(paths, me), F(3, 2))
    return max(left, F(1 if len(paths) > 1 else 2))


# ---- wVegas: one step at the end of a round trip ----

GAMMA = 1
MIN_ALPHA = 1
MIN_CWND = 2


def wvegas_round(s):
    cwnd, ssthresh = F(s["cwnd"]), F(s["ssthresh"])
    base, rtt = s["base_rtt_us"], s["rtt_us"]
    alpha, queue = F(s["alpha"]["exact"]), s["queue_delay_us"]
    own_rate = None
    diff = (cwnd / base - cwnd / rtt) * base
    if cwnd < ssthresh:
        if diff > GAMMA:
            ssthresh = cwnd - 1
    else:
        if diff >= alpha:
            own_rate = cwnd / rtt
            total = own_rate + sum(F(o["exact"]) for o in s["sibling_rates"])
            alpha = max(own_rate / total * s["total_alpha"], F(MIN_ALPHA))
        if diff > alpha:
            cwnd -= 1
            ssthresh = min(ssthresh, cwnd - 1)
        elif diff < alpha:
            cwnd += 1
        delay = rtt - base
        if queue == 0 or delay < queue:
            queue = delay
        if delay > 0 and delay >= 2 * queue:
            cwnd = cwnd * base / (2 * rtt)
            queue = 0
    return {
        "cwnd": number(max(cwnd, MIN_CWND)),
        "ssthresh": number(ssthresh),
        "alpha": number(alpha),
        "queue_delay_us": queue,
        "rate": None if own_rate is None else number(own_rate),
    }


# ---- states ----


def named_states():
    mb = 1_000_000
    return [
        ("one path", [path(10, 20_000, 0, mb)], 0),
        ("two equal paths", [path(10, 20_000)] * 2, 0),
        ("four equal paths", [path(25, 30_000)] * 4, 3),
        ("equal windows, the other ten times as far", [path(20, 10_000), path(20, 100_000)], 0),
        ("equal windows, this one ten times as far", [path(20, 10_000), path(20, 100_000)], 1),
        ("Wi-Fi beside 3G, RFC 6356 section 2", [path(20, 10_000), path(100, 100_000)], 1),
        ("collected: best by loss, small window", [path(30, 20_000, mb, 0), path(10, 20_000, 3 * mb, 0)], 1),
        ("gives way: largest window, another is best", [path(30, 20_000, mb, 0), path(10, 20_000, 3 * mb, 0)], 0),
        ("the best path has the largest window", [path(30, 20_000, 3 * mb, 0), path(10, 20_000, mb, 0)], 0),
        ("neither best nor largest", [path(30, 20_000, mb, 0), path(10, 20_000, 3 * mb, 0), path(5, 20_000)], 2),
        ("two collected", [path(30, 20_000), path(10, 20_000, mb, mb), path(10, 20_000, 0, mb)], 1),
        ("two largest give way", [path(30, 20_000), path(30, 20_000), path(10, 20_000, mb, 0)], 1),
        ("since the last loss counts when it is more", [path(30, 20_000, 2 * mb, 0), path(10, 20_000, mb, 5 * mb)], 1),
        ("best by rtt where the losses are alike", [path(30, 40_000, mb, mb), path(10, 10_000, mb, mb)], 1),
        ("l^2/rtt, not l/rtt^2, ranks", [path(30, 10_000, mb, 0), path(10, 40_000, 3 * mb, 0)], 1),
        ("nothing lost yet, all are best", [path(30, 20_000), path(10, 20_000)], 1),
        ("BALIA takes three quarters where alpha is 1.5 or more", [path(10, 10_000), path(10, 100_000)], 1),
        ("BALIA between: alpha 1.2", [path(12, 10_000), path(10, 10_000)], 1),
        ("smallest windows", [path(1, 20_000), path(1, 20_000)], 0),
        ("smallest window alone", [path(1, 20_000)], 0),
        ("three packets", [path(3, 20_000), path(3, 20_000)], 0),
        ("largest windows, shortest round trips", [path(1 << 20, 10, 1 << 45, 1 << 40)] * 8, 5),
        ("largest windows, longest round trips", [path(1 << 20, 10_000_000, 1 << 45, 0)] * 8, 5),
        ("everything apart", [path(1, 10_000_000, 1, 1), path(1 << 20, 10, 1 << 47, 7)], 0),
        ("everything apart, from the other side", [path(1, 10_000_000, 1, 1), path(1 << 20, 10, 1 << 47, 7)], 1),
    ]


def random_states(n):
    d = Draw(20112011)
    for k in range(n):
        count = 1 + d.below(5)
        wide = k % 3 == 0  # the whole range; else what radio accesses show
        paths = []
        for _ in range(count):
            cwnd = d.spread(1, 1 << 20) if wide else d.spread(2, 2_000)
            srtt = d.spread(10, 10_000_000) if wide else d.spread(1_000, 300_000)
            paths.append(path(cwnd, srtt, d.spread(1, 1 << 34), d.spread(1, 1 << 34)))
        yield f"random {k}", paths, d.below(count)


def coupled(ack, loss, extra):
    cases = []
    for name, paths, me in [*named_states(), *random_states(150)]:
        case = {"name": name, "paths": paths, "self": me}
        case["increase_per_acked_packet"] = number(ack(paths, me))
        case["window_after_loss"] = number(loss(paths, me))
        for key, f in extra.items():
            case[key] = number(f(paths, me))
        cases.append(case)
    return cases


def vegas_state(cwnd, ssthresh, base, rtt, alpha, queue, siblings, total=10):
    return {
        "cwnd": cwnd,
        "ssthresh": ssthresh,
        "base_rtt_us": base,
        "rtt_us": rtt,
        "alpha": number(alpha),
        "queue_delay_us": queue,
        "sibling_rates": [number(r) for r in siblings],
        "total_alpha": total,
    }


def wvegas_cases():
    s = vegas_state
    r = F(50, 20_000)
    named = [
        ("slow start, no queue", s(20, 100, 20_000, 20_000, 2, 0, [])),
        ("slow start, one packet queued stays", s(20, 100, 19_000, 20_000, 2, 0, [])),
        ("slow start ends when more than gamma queues", s(20, 100, 18_000, 20_000, 2, 0, [])),
        ("grows below alpha", s(50, 40, 20_000, 20_500, 2, 400, [])),
        ("a path alone has all of total_alpha", s(50, 40, 18_000, 20_000, 2, 2_000, [])),
        ("steady at alpha", s(50, 40, 16_000, 20_000, 10, 4_000, [])),
        ("shrinks above alpha", s(100, 40, 16_000, 20_000, 10, 4_000, [])),
        ("shrinking ends slow start for good", s(100, 100, 16_000, 20_000, 10, 4_000, [])),
        ("half the rate, half of alpha", s(50, 40, 16_000, 20_000, 10, 4_000, [r])),
        ("a tenth of the rate: the least alpha", s(10, 5, 10_000, 20_000, 2, 10_000, [9 * F(10, 20_000), 81 * F(10, 20_000)])),
        ("the queue is drained", s(100, 40, 16_000, 20_000, 10, 1_000, [])),
        ("a queue just under twice is not", s(100, 40, 16_000, 20_000, 10, 2_001, [])),
        ("a shorter queue is remembered", s(100, 40, 19_000, 20_000, 10, 5_000, [])),
        ("no queue, nothing to drain", s(100, 40, 20_000, 20_000, 10, 0, [])),
        ("never below two packets", s(2, 2, 100, 20_000, 1, 1_000, [r, r])),
        ("another total_alpha", s(50, 40, 16_000, 20_000, 2, 4_000, [r], 4)),
    ]
    d = Draw(20122012)
    cases = [(name, state) for name, state in named]
    for k in range(150):
        base = d.spread(10, 5_000_000) if k % 3 == 0 else d.spread(1_000, 150_000)
        cwnd = d.spread(2, 1 << 20) if k % 3 == 0 else d.spread(2, 2_000)
        rtt = min(base + d.below(max(base // 4, 1) + 1), 10_000_000)
        siblings = [F(d.spread(1, 2_000), d.spread(1_000, 300_000)) for _ in range(d.below(4))]
        ssthresh = cwnd * 2 if d.below(3) == 0 else max(cwnd // 2, 2)
        queue = 0 if d.below(3) == 0 else 1 + d.below(max(rtt - base, 1) * 2)
        alpha = F(1 + d.below(10 << 16), 1 << 16)
        state = s(cwnd, ssthresh, base, rtt, max(alpha, F(1)), queue, siblings)
        cases.append((f"random {k}", state))
    return [{"name": n, "state": st, "after": wvegas_round(st)} for n, st in cases]


def main():
    controls = {
        "reno": coupled(reno_ack, reno_loss, {}),
        "lia": coupled(lia_ack, lia_loss, {}),
        "olia": coupled(olia_ack, olia_loss, {"alpha": olia_alpha}),
        "balia": coupled(balia_ack, balia_loss, {"alpha": balia_alpha}),
        "wvegas": wvegas_cases(),
    }
    files = {("cc", name): cases for name, cases in controls.items()}
    files |= {("sched", name): cases for name, cases in schedulers.files().items()}
    files |= {("energy", name): cases for name, cases in power.files().items()}
    stale = []
    for (kind, name), cases in files.items():
        lines = ",\n".join(json.dumps(c) for c in cases)
        text = f'{{"algorithm": "{name}", "cases": [\n{lines}\n]}}\n'
        file = HERE / kind / f"{name}.json"
        if "--check" in sys.argv[1:]:
            if not file.exists() or file.read_text() != text:
                stale.append(str(file))
        else:
            file.write_text(text)
    if stale:
        sys.exit(f"not what generate.py computes: {', '.join(stale)}; run it without --check")


if __name__ == "__main__":
    main()
