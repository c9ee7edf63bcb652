"""Fits the affine power model on a log of power and throughput.

    python -m braid.energy fit LOG.csv [--name NAME] [--rest-mw MW] [--out FILE.toml]

LOG.csv is the log that `braid trace energy` reads (docs/energy.md): `t_s`, `power_mw`, and `down_mbps`
or `up_mbps`; `rsrp_dbm` and `sinr_db` where the signal was recorded. What it writes, that command reads
with `--set FILE.toml`.

Method: samples with data are fitted by non-negative least squares (Lawson and Hanson) on a base, both
throughputs and both directions of each signal. Samples without data after the last data give tail and
idle: the length of the tail is the one at which two levels leave the least squares. The first sample
after idle has the promotion in it and is left out. Figures of quality are of ten contiguous blocks, each
predicted by a fit on the others.
"""

import argparse
import csv
import json
import math
import sys

import numpy as np

RATES = ("down_mbps", "up_mbps")
SIGNALS = {"rsrp_dbm": "rsrp", "sinr_db": "sinr"}
FOLDS = 10
#: Samples at least, for each parameter.
LEAST = 5


class LogError(Exception):
    """A log cannot be used: where, what is wrong, what was expected."""


def number(text, where, expected, low, high):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise LogError(f"{where}: {text!r}: expected {expected}")
    return value


def read(path):
    """Columns of a log as arrays; NaN where nothing was measured."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [(i, line) for i, line in enumerate(file, 1)]
    except (OSError, UnicodeDecodeError) as e:
        raise LogError(f"{path}: cannot read the log: {e}") from e
    rows = [(i, line) for i, line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not rows:
        raise LogError(f"{path}: the log is empty: expected a line of names and samples")
    names = [n.strip() for n in next(csv.reader([rows[0][1]]))]
    first = f"{path}:{rows[0][0]}:1"
    for needed in ("t_s", "power_mw"):
        if needed not in names:
            raise LogError(f"{first}: no column {needed}: expected t_s, power_mw and down_mbps or up_mbps")
    if not any(r in names for r in RATES):
        raise LogError(f"{first}: no rates: expected a column down_mbps or up_mbps")
    wanted = [n for n in names if n in ("t_s", "power_mw", *RATES, *SIGNALS)]
    columns = {n: [] for n in wanted}
    for line, text in rows[1:]:
        fields = [f.strip() for f in text.rstrip("\r\n").split(",")]
        if len(fields) != len(names):
            raise LogError(f"{path}:{line}:1: fields in this line: {len(fields)}: expected {len(names)}")
        at = 1
        for name, field in zip(names, fields):
            where = f"{path}:{line}:{at}"
            at += len(field) + 1
            if name not in columns:
                continue
            if name != "t_s" and field in ("", "-", "nan", "NaN"):
                columns[name].append(0.0 if name in RATES else math.nan)
            elif name in SIGNALS:
                columns[name].append(number(field, where, "dB or dBm, -200 to 100", -200, 100))
            elif name == "t_s":
                columns[name].append(number(field, where, "seconds, 0 or more", 0, 1e11))
            else:
                columns[name].append(number(field, where, "0 to 1000000", 0, 1e6))
    log = {n: np.array(v) for n, v in columns.items()}
    if np.any(np.diff(log["t_s"]) <= 0):
        line = rows[1 + int(np.argmax(np.diff(log["t_s"]) <= 0)) + 1][0]
        raise LogError(f"{path}:{line}:1: this time does not come after the one before")
    zeros = np.zeros_like(log["t_s"])
    for rate in RATES:
        log.setdefault(rate, zeros)
    return log


def nnls(a, b):
    """x >= 0 that minimises |a x - b| (Lawson and Hanson, Solving Least Squares Problems, 23.3)."""
    scale = np.linalg.norm(a, axis=0)
    scale[scale == 0] = 1.0
    a = a / scale
    x = np.zeros(a.shape[1])
    free = np.zeros(a.shape[1], dtype=bool)
    slack = 1e-10 * max(1.0, float(np.abs(a.T @ b).max()))
    for _ in range(30 * a.shape[1]):
        gradient = a.T @ (b - a @ x)
        gradient[free] = -np.inf
        best = int(np.argmax(gradient))
        if gradient[best] <= slack:
            break
        free[best] = True
        while True:
            s = np.zeros_like(x)
            s[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
            if np.all(s[free] > 0):
                x = s
                break
            bad = free & (s <= 0)
            step = np.min(x[bad] / (x[bad] - s[bad]))
            x = x + step * (s - x)
            free &= x > 1e-12
            x[~free] = 0.0
    return x / scale


def steps(times):
    """Length of each sample: until the next; the last has the median."""
    lengths = np.diff(times)
    return np.append(lengths, np.median(lengths) if lengths.size else 1.0)


def quiet_times(log, data):
    """Time from the end of the last sample with data to the end of each; infinite before any."""
    ends = log["t_s"] + steps(log["t_s"])
    last = np.where(data, ends, -np.inf)
    return ends - np.maximum.accumulate(last)


def levels(quiet, power):
    """Length of the tail, its power and the power after it.

    Power of a sample is that of the tail where it ends within it. None without silence.
    """
    if quiet.size == 0:
        return 0.0, 0.0, None
    known = np.isfinite(quiet)
    best = (np.var(power) * power.size, 0.0, 0.0, float(np.mean(power)))
    for end in np.unique(quiet[known]):
        tail = quiet <= end + 1e-9
        rest = ~tail
        if rest.sum() < 1:
            continue
        left = np.var(power[tail]) * tail.sum() + np.var(power[rest]) * rest.sum()
        if left < best[0] - 1e-9 and power[tail].mean() > power[rest].mean():
            best = (left, float(end), float(power[tail].mean()), float(power[rest].mean()))
    return best[1], best[2], best[3]


class Design:
    """Columns of the fit: base, throughputs, and each signal in both directions."""

    def __init__(self, log, rows):
        self.signals = {}
        for column in SIGNALS:
            if column in log and np.isfinite(log[column][rows]).sum() >= LEAST:
                known = log[column][rows]
                known = known[np.isfinite(known)]
                if known.max() > known.min():
                    self.signals[column] = (known.min(), known.max(), float(np.median(known)))

    def matrix(self, log, rows):
        columns = [np.ones(rows.sum()), log["down_mbps"][rows], log["up_mbps"][rows]]
        for column, (low, high, middle) in self.signals.items():
            value = np.where(np.isfinite(log[column][rows]), log[column][rows], middle)
            value = np.clip(value, low, high)
            columns += [value - low, high - value]
        return np.array(columns).T

    def terms(self, x):
        """Base at the medians of the signals, and their terms."""
        base, terms = x[0], {}
        for k, (column, (low, high, middle)) in enumerate(self.signals.items()):
            up, down = x[3 + 2 * k], x[4 + 2 * k]
            base += up * (middle - low) + down * (high - middle)
            terms[SIGNALS[column]] = {
                "mw_per_db": up - down, "reference": middle, "min": low, "max": high,
            }
        return base, terms


def quality(predicted, power):
    mape = float(np.mean(np.abs(predicted / power - 1.0)))
    variance = float(np.sum((power - power.mean()) ** 2))
    r2 = 1.0 - float(np.sum((predicted - power) ** 2)) / variance if variance > 0 else math.nan
    return mape, r2


def fit(log, rest_mw=None):
    """Parameters of the affine model and the figures of their quality."""
    measured = np.isfinite(log["power_mw"]) & (log["power_mw"] > 0)
    data = (log["down_mbps"] > 0) | (log["up_mbps"] > 0)
    quiet = quiet_times(log, data)
    silent = measured & ~data
    tail_s, tail_mw, idle_mw = levels(quiet[silent], log["power_mw"][silent])
    before = np.append(np.inf, quiet[:-1])
    rows = measured & data & (before <= tail_s + 1e-9)
    if rows.sum() < LEAST:
        rows = measured & data
    design = Design(log, rows)
    a, power = design.matrix(log, rows), log["power_mw"][rows]
    if power.size < LEAST * a.shape[1]:
        raise LogError(f"samples with data and power: {power.size}: expected at least {LEAST * a.shape[1]}")
    x = nnls(a, power)
    blocks = np.arange(power.size) * FOLDS // power.size
    predicted = np.empty_like(power)
    for k in range(FOLDS):
        held = blocks == k
        predicted[held] = a[held] @ nnls(a[~held], power[~held])
    mape, r2 = quality(predicted, power)
    if rest_mw is None:
        rest_mw = idle_mw or 0.0
    base, terms = design.terms(x)
    affine = {
        "base_mw": max(base - rest_mw, 0.0),
        "down_mw_per_mbps": x[1],
        "up_mw_per_mbps": x[2],
        "tail_ms": tail_s * 1e3,
        "tail_mw": max(tail_mw - rest_mw, 0.0) if tail_s else 0.0,
        "idle_mw": max((idle_mw or rest_mw) - rest_mw, 0.0),
        **terms,
    }
    return {
        "affine": affine,
        "rest_mw": rest_mw,
        "range": {
            "down_mbps": float(log["down_mbps"][rows].max()),
            "up_mbps": float(log["up_mbps"][rows].max()),
        },
        "samples": int(power.size),
        "silent": int(silent.sum()),
        "mape": mape,
        "r2": r2,
    }


def toml_value(v):
    if isinstance(v, dict):
        return "{ " + ", ".join(f"{k} = {toml_value(w)}" for k, w in v.items()) + " }"
    return f"{float(v):.6f}"


def toml(result, name, source):
    """The parameter file of `braid trace energy --set`."""
    text = [
        f"name = {json.dumps(name)}",
        f"source = {json.dumps(source)}",
        f"quality = {json.dumps(said(result))}",
    ]
    if not result["silent"]:
        text.append('assumed = "no tail and no idle: the log has no silence"')
    text.append(f"rest_mw = {result['rest_mw']:.6f}")
    for table in ("range", "affine"):
        text += ["", f"[{table}]"]
        text += [f"{k} = {toml_value(v)}" for k, v in result[table].items()]
    return "\n".join(text) + "\n"


def said(result):
    return (
        f"{result['samples']} samples with data, {FOLDS}-fold cross-validation: "
        f"MAPE {result['mape'] * 100:.1f} %, R2 {result['r2']:.3f}"
    )


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m braid.energy", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("fit", help="fit the affine model on a log of power")
    one.add_argument("log", help="CSV with t_s, power_mw, down_mbps or up_mbps, rsrp_dbm, sinr_db")
    one.add_argument("--name", default="mine", help="name of the parameter set")
    one.add_argument(
        "--rest-mw", type=float, help="power of the device beside the radio [default: power while idle]"
    )
    one.add_argument("--out", help="TOML file to write [default: standard output]")
    args = parser.parse_args(argv)
    if args.rest_mw is not None and not 0 <= args.rest_mw <= 1e6:
        parser.error("--rest-mw: expected 0 to 1000000")
    try:
        result = fit(read(args.log), args.rest_mw)
    except LogError as e:
        print(f"braid.energy: {e}", file=sys.stderr)
        return 2
    text = toml(result, args.name, f"{args.log}, fitted by braid.energy")
    if args.out is None:
        print(text, end="")
        return 0
    try:
        with open(args.out, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as e:
        print(f"braid.energy: cannot write {args.out}: {e}", file=sys.stderr)
        return 2 if isinstance(e, FileExistsError) else 1
    for key, value in result["affine"].items():
        print(f"{key:18} {toml_value(value)}")
    print(f"{'rest_mw':18} {result['rest_mw']:.6f}")
    print(said(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
