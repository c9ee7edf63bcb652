"""Vectors of the power models: a case is one radio, its steps follow one another.

The radio is written here as a walk over its states with whole microseconds, and every energy is an
exact sum; README.md has the formulas.
"""

from fractions import Fraction as F

from draw import Draw


def number(v):
    v = F(v)
    return {"exact": f"{v.numerator}/{v.denominator}", "value": float(v)}


def walk(steps, promotion_ms, tail_ms):
    """Seconds per step: promotion, active, a list of (from, to) in the tail, idle."""
    state, left, quiet = "idle", F(0), F(0)
    for step in steps:
        time = F(step["length_ms"], 1000)
        air = step.get("airtime", {})
        on_air = sum(air.get(k, 0) for k in ("sending_us", "collided_us", "receiving_us"))
        data = step["down_bytes"] > 0 or step["up_bytes"] > 0 or on_air > 0
        out = {"promotion": F(0), "active": F(0), "tail": (F(0), F(0)), "idle": F(0)}
        if state == "idle" and data:
            state, left = "promotion", F(promotion_ms) / 1000
        if state == "promotion":
            part = min(left, time)
            out["promotion"] = part
            left, time = left - part, time - part
            if left == 0:
                state, quiet = "connected", F(0)
        if state == "connected" and data:
            out["active"], time, quiet = time, F(0), F(0)
        elif state == "connected":
            end = min(F(tail_ms) / 1000, quiet + time)
            end = max(end, quiet)
            out["tail"] = (quiet, end)
            time, quiet = time - (end - quiet), end
            if time > 0:
                state = "idle"
        out["idle"] = time
        yield step, out


def mbit(step):
    return F(8 * step["down_bytes"], 10**6), F(8 * step["up_bytes"], 10**6)


def within(tail, low, high):
    return max(min(tail[1], high) - max(tail[0], low), F(0))


def exact(p):
    """Parameters are decimal fractions of few places."""
    return {k: F(str(v)) if isinstance(v, (int, float)) else v for k, v in p.items()}


def shift(term, value):
    if term is None or value is None:
        return F(0)
    t = exact(term)
    return t["mw_per_db"] * (min(max(F(str(value)), t["min"]), t["max"]) - t["reference"])


def affine(p, steps):
    q = exact(p)
    for step, s in walk(steps, q["promotion_ms"], q["tail_ms"]):
        down, up = mbit(step)
        base = q["base_mw"] + shift(p.get("rsrp"), step.get("rsrp_dbm"))
        base = max(base + shift(p.get("sinr"), step.get("sinr_db")), q["idle_mw"])
        base += q["uplink_mw"] if up > down else 0
        yield (
            base * s["active"] + q["down_mw_per_mbps"] * down + q["up_mw_per_mbps"] * up,
            q["promotion_mw"] * s["promotion"],
            q["tail_mw"] * (s["tail"][1] - s["tail"][0]),
            q["idle_mw"] * s["idle"],
        )


def cycle(length, on, power, off, none):
    if length == 0:
        return none
    on = min(on, length)
    return (power * on + off * (length - on)) / length


def drx(p, steps):
    q = exact(p)
    on = q["connected_mw"]
    cycles = cycle(q["cycle_ms"], q["on_ms"], on, q["sleep_mw"], on)
    paging = cycle(q["paging_cycle_ms"], q["paging_on_ms"], on, q["idle_mw"], q["idle_mw"])
    tail = q["tail_ms"] / 1000
    first = min(q["inactivity_ms"] / 1000, tail)
    longest = max(q["tail_ms"], q["inactive_until_ms"])
    for step, s in walk(steps, q["promotion_ms"], longest):
        down, up = mbit(step)
        power = on + (q["uplink_mw"] if up > down else 0)
        yield (
            power * s["active"] + q["down_mw_per_mbps"] * down + q["up_mw_per_mbps"] * up,
            q["promotion_mw"] * s["promotion"],
            on * within(s["tail"], 0, first)
            + cycles * within(s["tail"], first, tail)
            + paging * within(s["tail"], tail, F(10**9)),
            paging * s["idle"],
        )


def gap(ms):
    best = 45 * ms
    if ms >= 6:
        best = min(best, 20 * ms + 100)
    if ms >= 20:
        best = min(best, ms + 450)
    return best


def nr38840(p, steps):
    q = exact(p)
    scale = F(4, 10) + F(6, 10) * (q["bandwidth_mhz"] - 20) / 80
    scale *= F(7, 10) if p["rx_antennas"] == 2 else 1
    pdcch = max(100 * scale, F(50))
    pdsch = max(300 * scale, pdcch)
    send = 250 + 450 * q["tx_power_dbm"] / 23
    c, on = q["cycle_ms"], min(q["on_ms"], q["cycle_ms"])
    cycles = (pdcch * on + gap(c - on)) / c if c else pdcch
    c = q["paging_cycle_ms"]
    slot = min(F(1, 2), c)
    paging = (max(170 * scale, pdcch) * slot + gap(c - slot)) / c if c else F(1)
    tail = q["tail_ms"] / 1000
    first = min(q["inactivity_ms"] / 1000, tail)
    for step, s in walk(steps, 0, q["tail_ms"]):
        down, up = mbit(step)
        received = min(down / q["peak_down_mbps"], s["active"])
        sent = min(up / q["peak_up_mbps"], s["active"])
        unit = q["unit_mw"]
        yield (
            unit * (pdcch * s["active"] + (pdsch - pdcch) * received + send * sent),
            F(0),
            unit * (pdcch * within(s["tail"], 0, first) + cycles * within(s["tail"], first, tail)),
            unit * paging * s["idle"],
        )


def wifi_airtime(p, steps):
    q = exact(p)
    for step, s in walk(steps, 0, q["tail_ms"]):
        down, up = mbit(step)
        if "airtime" in step:
            a = step["airtime"]
            sending = F(a["sending_us"] + a["collided_us"], 10**6)
            receiving = F(a["receiving_us"], 10**6)
            frames = F(a["frames_sent"]), F(a["frames_received"])
        else:
            sending, receiving = up / q["channel_mbps"], down / q["channel_mbps"]
            frames = F(step["up_bytes"], 1500), F(step["down_bytes"], 1500)
        time = F(step["length_ms"], 1000)
        if sending + receiving > time:
            share = time / (sending + receiving)
            sending, receiving = sending * share, receiving * share
        waiting = max(s["active"] - sending - receiving, F(0))
        tolls = q["frame_sent_uj"] * frames[0] + q["frame_received_uj"] * frames[1]
        on_air = q["send_mw"] * sending + q["receive_mw"] * receiving
        yield (
            on_air + q["awake_mw"] * waiting + tolls / 1000,
            F(0),
            q["awake_mw"] * (s["tail"][1] - s["tail"][0]),
            q["idle_mw"] * s["idle"],
        )


def paper002(p, steps):
    q = exact(p)
    for step, s in walk(steps, 0, 0):
        mb = F(step["down_bytes"] + step["up_bytes"], 10**6)
        yield (q["joules_per_mb"] * mb * 1000 + q["in_use_mw"] * s["active"], F(0), F(0), F(0))


def traffic(d, signal, air):
    """Bursts and silences, of magnitudes that radios show."""
    steps = []
    for _ in range(3 + d.below(6)):
        length = d.spread(1, 20_000)
        quiet = d.below(3) == 0
        most = length * 30  # 240 Mbit/s
        step = {
            "length_ms": length,
            "down_bytes": 0 if quiet else d.below(most),
            "up_bytes": 0 if quiet or d.below(2) else d.below(most // 4 + 1),
        }
        if signal and d.below(3):
            step["rsrp_dbm"] = -130 + d.below(90)
            step["sinr_db"] = -15 + d.below(50)
        if air and not quiet and d.below(2):
            third = length * 333
            step["airtime"] = {
                "sending_us": d.below(third),
                "collided_us": d.below(third // 4 + 1),
                "receiving_us": d.below(third),
                "frames_sent": d.below(5000),
                "frames_received": d.below(5000),
            }
        steps.append(step)
    return steps


def power(d, most=4000):
    return d.below(most * 10) / 10


def drawn_affine(d):
    p = {
        "base_mw": power(d),
        "down_mw_per_mbps": power(d, 20),
        "up_mw_per_mbps": power(d, 90),
        "uplink_mw": power(d, 500) if d.below(2) else 0,
        "promotion_ms": d.below(2000),
        "promotion_mw": power(d),
        "tail_ms": d.below(12_000),
        "tail_mw": power(d),
        "idle_mw": power(d, 50),
    }
    if d.below(2):
        p["rsrp"] = {"mw_per_db": -power(d, 70), "reference": -85, "min": -118, "max": -58}
    if d.below(2):
        p["sinr"] = {"mw_per_db": power(d, 70), "reference": 12, "min": -7, "max": 26}
    return p


def drawn_drx(d):
    tail = d.below(12_000)
    return {
        "connected_mw": power(d),
        "down_mw_per_mbps": power(d, 20),
        "up_mw_per_mbps": power(d, 90),
        "uplink_mw": power(d, 500) if d.below(2) else 0,
        "promotion_ms": d.below(2000),
        "promotion_mw": power(d),
        "inactivity_ms": d.below(300),
        "cycle_ms": [0, 20, 40, 320][d.below(4)],
        "on_ms": d.below(30),
        "sleep_mw": power(d, 200),
        "tail_ms": tail,
        "inactive_until_ms": tail + d.below(5000) if d.below(2) else 0,
        "paging_cycle_ms": [0, 320, 1280][d.below(3)],
        "paging_on_ms": d.below(40),
        "idle_mw": power(d, 50),
    }


def drawn_nr38840(d):
    return {
        "unit_mw": power(d, 12),
        "peak_down_mbps": 1 + d.below(2000),
        "peak_up_mbps": 1 + d.below(300),
        "bandwidth_mhz": [10, 20, 40, 80, 100][d.below(5)],
        "rx_antennas": [2, 4][d.below(2)],
        "tx_power_dbm": d.below(24),
        "inactivity_ms": d.below(300),
        "cycle_ms": [0, 10, 20, 40, 160, 320][d.below(6)],
        "on_ms": d.below(30),
        "tail_ms": d.below(12_000),
        "paging_cycle_ms": [0, 320, 1280][d.below(3)],
    }


def drawn_wifi(d):
    return {
        "awake_mw": power(d, 900),
        "receive_mw": power(d, 1000),
        "send_mw": power(d, 2000),
        "frame_received_uj": power(d, 900),
        "frame_sent_uj": power(d, 900),
        "tail_ms": d.below(500),
        "idle_mw": power(d, 100),
        "channel_mbps": 1 + d.below(600),
    }


def drawn_paper002(d):
    return {"joules_per_mb": d.below(200) / 100, "in_use_mw": power(d, 500)}


def cases(model, drawn, seed, signal=False, air=False):
    """Drawn cases, and before them one of a burst, a silence past every timer, and another burst."""
    d = Draw(seed)
    burst = {"length_ms": 1000, "down_bytes": 1_250_000, "up_bytes": 25_000}
    silent = {"length_ms": 60_000, "down_bytes": 0, "up_bytes": 0}
    upload = {"length_ms": 5000, "down_bytes": 25_000, "up_bytes": 1_250_000}
    named = [("burst, silence, upload", drawn(d), [burst, silent, upload])]
    for k in range(49):
        named.append((f"drawn {k}", drawn(d), traffic(d, signal, air)))
    out = []
    for name, parameters, steps in named:
        answers = []
        for step, mj in zip(steps, model(parameters, steps)):
            keys = ("active_joules", "promotion_joules", "tail_joules", "idle_joules")
            answers.append(step | {k: number(v / 1000) for k, v in zip(keys, mj)})
        out.append({"name": name, "parameters": parameters, "steps": answers})
    return out


def files():
    return {
        "affine": cases(affine, drawn_affine, 11, signal=True),
        "drx": cases(drx, drawn_drx, 12),
        "nr38840": cases(nr38840, drawn_nr38840, 13),
        "wifi-airtime": cases(wifi_airtime, drawn_wifi, 14, air=True),
        "paper002": cases(paper002, drawn_paper002, 15),
    }
