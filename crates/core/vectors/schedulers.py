"""The vectors of the packet schedulers, for generate.py: what each decides in a situation.

Written from the papers (README.md derives each rule); exact throughout, and without a bound
that the papers do not have.
"""

from fractions import Fraction as F

from draw import Draw


def path(cwnd, in_flight, srtt_us, rttvar_us=0, segment=1400, lost=0, ident=0, **more):
    """Windows in packets of `segment` bytes."""
    return {
        "id": ident,
        "cwnd": cwnd,
        "in_flight": in_flight,
        "srtt_us": srtt_us,
        "rttvar_us": rttvar_us,
        "segment_bytes": segment,
        "lost": lost,
        **more,
    }


def situation(paths, waiting=1400, send_window=1 << 30, now_us=0):
    """Paths get their ids by place where they have none."""
    paths = [{**p, "id": p["id"] or i + 1} for i, p in enumerate(paths)]
    return {"now_us": now_us, "waiting_bytes": waiting, "send_window_bytes": send_window, "paths": paths}


def has_room(p):
    return p["in_flight"] < p["cwnd"]


def members(paths):
    """Numbers of the paths that take part: backups only where there is nothing else."""
    usable = [i for i, p in enumerate(paths) if p.get("usable", True)]
    first = [i for i in usable if not paths[i].get("backup", False)]
    return first or usable


def fastest(paths, among):
    return min(among, key=lambda i: paths[i]["srtt_us"], default=None)


def fast_and_next(paths):
    fast = fastest(paths, members(paths))
    return fast, fastest(paths, [i for i in members(paths) if has_room(paths[i])])


class MinRtt:
    def decide(self, s):
        return fast_and_next(s["paths"])[1], {}


class Blest:
    """Equations (2) to (4), and lambda as the authors move it."""

    def __init__(self):
        self.scale, self.moved, self.lost = F(1), 0, {}

    def move(self, now, slow):
        before = self.lost.setdefault(slow["id"], slow["lost"])
        if now - self.moved < slow["srtt_us"]:
            return
        more = slow["lost"] > before
        self.scale = min(self.scale + F(4, 100), F(13, 10)) if more else max(self.scale - F(1, 100), F(1))
        self.moved, self.lost[slow["id"]] = now, slow["lost"]

    def decide(self, s):
        paths = s["paths"]
        fast, pick = fast_and_next(paths)
        if pick is None or pick == fast:
            return pick, {}
        f, slow = paths[fast], paths[pick]
        self.move(s["now_us"], slow)
        rtts = -(-slow["srtt_us"] // f["srtt_us"])
        x = f["segment_bytes"] * sum(f["cwnd"] + k for k in range(rtts))
        room = s["send_window_bytes"] - slow["segment_bytes"] * (slow["in_flight"] + 1)
        told = {"fast_bytes": x, "lambda_thousandths": int(self.scale * 1000)}
        return (None if x * self.scale > room else pick), told


class Ecf:
    """Algorithm 1."""

    def __init__(self):
        self.waiting = False

    def decide(self, s):
        paths = s["paths"]
        fast, pick = fast_and_next(paths)
        if pick is None or pick == fast:
            return pick, {}
        f, slow = paths[fast], paths[pick]
        k = -(-s["waiting_bytes"] // f["segment_bytes"])
        delta = max(f["rttvar_us"], slow["rttvar_us"])
        beta = F(1, 4) if self.waiting else 0
        if (1 + F(k, f["cwnd"])) * f["srtt_us"] >= (1 + beta) * (slow["srtt_us"] + delta):
            self.waiting = False
        elif F(k, slow["cwnd"]) * slow["srtt_us"] >= 2 * f["srtt_us"] + delta:
            self.waiting = True
            return None, {"waiting": True}
        return pick, {"waiting": self.waiting}


def wrr_turns(weights, segment, n):
    """WF2Q with quanta for packets: of the paths that are not ahead of the fluid, the one
    whose quantum the fluid would finish first. All have room."""
    quantum = 10 * segment
    weights = {i: F(w) for i, w in enumerate(weights) if w > 0}
    served = {i: F(0) for i in weights}
    turns = []
    for _ in range(n):
        fluid = sum(served.values()) / sum(weights.values())
        behind = [i for i in served if served[i] / weights[i] <= fluid]
        turns.append(min(behind, key=lambda i: (served[i] + quantum) / weights[i]))
        served[turns[-1]] += quantum
    return turns


def case(name, scheduler, situations):
    """One scheduler through the situations, in order."""
    steps = []
    for s in situations:
        send, told = scheduler.decide(s)
        steps.append({**s, "send": send, **told})
    return {"name": name, "steps": steps}


# ---- situations ----


def blest_edge(f, slow, scale=1000, by=0):
    """The least send window that lets `slow` be used, and `by` bytes more."""
    rtts = -(-slow["srtt_us"] // f["srtt_us"])
    x = F(f["segment_bytes"] * rtts * (2 * f["cwnd"] + rtts - 1), 2) * F(scale, 1000)
    return -(-x.numerator // x.denominator) + slow["segment_bytes"] * (slow["in_flight"] + 1) + by


def blest_cases():
    full, slow = path(10, 10, 10_000), path(10, 3, 40_000)
    s = situation
    one = lambda name, *a, **k: case(name, Blest(), [s(*a, **k)])
    yield one("room on the fastest: it is used", [path(10, 9, 10_000), slow], send_window=1)
    yield one("no room anywhere", [full, path(10, 10, 40_000)])
    yield one("the window just suffices", [full, slow], send_window=blest_edge(full, slow))
    yield one("a byte less", [full, slow], send_window=blest_edge(full, slow, by=-1))
    yield one("no window at all", [full, slow], send_window=0)
    near = path(10, 0, 10_000)
    yield one("as fast: one round trip", [full, near], send_window=blest_edge(full, near))
    far = path(10, 3, 40_001)
    yield one("a round trip that is begun counts whole", [full, far], send_window=blest_edge(full, slow))
    wide = path(10, 3, 40_000, segment=9000)
    yield one("S has larger packets", [full, wide], send_window=blest_edge(full, wide))
    yield one("S has larger packets, a byte less", [full, wide], send_window=blest_edge(full, wide, by=-1))
    third = [full, path(10, 10, 20_000), slow]
    yield one("the second is full too: the third", third, send_window=blest_edge(full, slow))
    backup = path(10, 0, 5_000, backup=True)
    yield one("backups stand back", [full, slow, backup], send_window=blest_edge(full, slow))
    yield one("paths that are lost do not count", [path(9, 9, 1_000, usable=False), full, slow], send_window=blest_edge(full, slow))

    def sequence(name, steps):
        """Steps: time in ms, path S, send window."""
        return case(name, Blest(), [s([full, p], send_window=w, now_us=t * 1000) for t, p, w in steps])

    lossy = lambda n: {**slow, "lost": n}
    edge = blest_edge(full, slow)
    up = lambda n, t=41, w=edge: [(t * k, lossy(k if k <= n else n), w) for k in range(12)]
    yield sequence("a loss costs four steps without", up(1))
    yield sequence("two losses, eight", [*up(2), *((41 * k, lossy(2), edge) for k in range(12, 16))])
    yield sequence("lambda moves once a round trip", up(11, 10))
    yield sequence("lambda ends at 1.3", up(11, 41, blest_edge(full, slow, 1300)))
    yield sequence("lambda ends at 1.3, a byte less", up(11, 41, blest_edge(full, slow, 1300, -1)))
    yield sequence("losses of before do not count", [(41 * k, lossy(7), edge) for k in range(3)])
    other = path(10, 3, 40_000, lost=5, ident=9)
    turns = [(41 * k, (lossy(2), other)[k % 2], edge) for k in range(6)]
    yield sequence("each path's losses are its own", turns)
    d = Draw(20162016)
    for k in range(100):
        f = random_path(d, full=True)
        slows = [random_path(d) for _ in range(1 + d.below(3))]
        window = d.spread(1, 1 << 30)
        if k % 3 == 0:
            least = min(slows, key=lambda p: p["srtt_us"])
            a, b = sorted([f, least], key=lambda p: p["srtt_us"])
            window = max(blest_edge(a, b, by=d.below(3) - 1), 0)
        steps, now = [], 0
        for _ in range(1 + d.below(6)):
            now += d.spread(1_000, 1_000_000)
            steps.append(s([f, *slows], send_window=window, now_us=now))
            slows = [{**p, "lost": p["lost"] + d.below(2)} for p in slows]
        yield case(f"random {k}", Blest(), steps)


def ecf_cases():
    s = situation
    f, slow = path(10, 10, 10_000), path(10, 0, 100_000)
    packets = lambda n: n * 1400

    def sequence(name, paths, waits):
        return case(name, Ecf(), [s(paths, waiting=w) for w in waits])

    yield sequence("room on the fastest: it is used", [path(10, 9, 10_000), slow], [packets(500)])
    yield sequence("no room anywhere", [f, path(10, 10, 100_000)], [packets(50)])
    yield sequence("f is done earlier: wait", [f, slow], [packets(20)])
    yield sequence("s is done before f has room again", [f, slow], [packets(1)])
    yield sequence("s as soon as f has room twice over", [f, slow], [packets(2)])
    yield sequence("f is not done earlier", [f, slow], [packets(90)])
    yield sequence("f is done a packet earlier", [f, slow], [packets(89)])
    yield sequence("a begun packet is one", [f, slow], [packets(89) + 1])
    yield sequence("once waiting, 25 % more", [f, slow], [packets(n) for n in (89, 90, 114, 115, 114, 90, 89)])
    yield sequence("a short rest leaves the waiting as it is", [f, slow], [packets(n) for n in (20, 1, 100, 115, 100)])
    shaky = {**slow, "rttvar_us": 5_000}
    yield sequence("delta of s", [f, shaky], [packets(n) for n in (94, 95)])
    yield sequence("delta of s, the other side", [f, {**slow, "rttvar_us": 5_001}], [packets(2), packets(3)])
    yield sequence("delta of f, when it is larger", [{**f, "rttvar_us": 7_000}, shaky], [packets(n) for n in (96, 97, 2, 3)])
    wide = path(10, 0, 100_000, segment=9000)
    yield sequence("k counts packets of f", [f, wide], [packets(89), packets(90)])
    odd = path(3, 3, 10_001), path(7, 0, 99_998)
    yield sequence("quarters that are not whole", odd, [packets(n) for n in (26, 27, 28, 34, 35, 36)])
    backup = path(10, 0, 5_000, backup=True)
    yield sequence("backups stand back", [f, slow, backup], [packets(20)])
    d = Draw(20172017)
    for k in range(100):
        paths = [random_path(d, full=True), *(random_path(d) for _ in range(1 + d.below(3)))]
        base = d.spread(1, 1 << 27)
        waits = [max(base // (1 + d.below(8)), 1) for _ in range(1 + d.below(6))]
        if k % 3 == 0:
            # About where f stops being done earlier.
            a, b = sorted(paths, key=lambda p: p["srtt_us"])[:2]
            n = a["cwnd"] * (b["srtt_us"] - a["srtt_us"]) // a["srtt_us"]
            waits = [max((n + j) * a["segment_bytes"], 1) for j in (-1, 0, 1, n // 4, n // 4 + 1, 0)]
        yield sequence(f"random {k}", paths, waits)


def minrtt_cases():
    s = situation
    three = lambda *used: [path(10, used[0], 30_000), path(10, used[1], 10_000), path(10, used[2], 20_000)]
    for name, used in [("all have room", (0, 0, 0)), ("the fastest is full", (0, 10, 0)), ("two are full", (0, 10, 10)), ("all are full", (10, 10, 10)), ("one packet fits", (9, 9, 9))]:
        yield case(name, MinRtt(), [s(three(*used))])
    d = Draw(20112016)
    for k in range(100):
        paths = []
        for _ in range(1 + d.below(6)):
            p = random_path(d, full=d.below(3) == 0)
            paths.append({**p, "backup": d.below(4) == 0, "usable": d.below(5) > 0})
        yield case(f"random {k}", MinRtt(), [s(paths)])


def wrr_cases():
    def turns(name, weights, n, segment=1400):
        found = wrr_turns(weights, segment, n)
        return {"name": name, "weights": weights, "segment_bytes": segment, "turns": found}

    yield turns("alike", [1, 1, 1], 9)
    yield turns("3 to 1", [3, 1], 16)
    yield turns("7:2:1", [7, 2, 1], 30)
    yield turns("342:1190:12", [342, 1190, 12], 1544)
    yield turns("weight 0 stands back", [1, 0, 2], 9)
    yield turns("fractions", [0.5, 0.25, 2], 22)
    yield turns("packets of 9000 bytes", [5, 3], 24, 9000)
    d = Draw(19961996)
    for k in range(100):
        weights = [d.spread(1, 1000) for _ in range(2 + d.below(5))]
        yield turns(f"random {k}", weights, 100)


def random_path(d, full=False):
    cwnd = d.spread(1, 2_000)
    p = path(cwnd, cwnd if full else d.below(cwnd), d.spread(1_000, 300_000), d.spread(1, 100_000), lost=d.below(9))
    p["segment_bytes"] = (1200, 1400, 1452, 9000)[d.below(4)]
    return p


def files():
    """Every file, by scheduler."""
    all_cases = {"minrtt": minrtt_cases, "blest": blest_cases, "ecf": ecf_cases, "wrr": wrr_cases}
    return {name: list(make()) for name, make in all_cases.items()}
