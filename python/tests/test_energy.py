"""The fit finds again what a log was made of."""

import math

import pytest

pytest.importorskip("numpy")
import numpy as np  # noqa: E402

from braid import energy  # noqa: E402

TRUE = {"base": 900.0, "down": 13.5, "up": 71.0, "rest": 1500.0, "tail": 400.0, "tail_s": 10.0}


def made(noise=0.0, signal=False):
    """Bursts of 30 s with silences of 30 s; the first second of a burst is the promotion's."""
    rng = np.random.default_rng(7)
    rows = []
    for burst in range(20):
        for second in range(60):
            t = burst * 60 + second
            down, up = (rng.uniform(1, 90), rng.uniform(0.1, 20)) if second < 30 else (0.0, 0.0)
            rsrp = rng.uniform(-110, -70)
            if second == 0:
                power = TRUE["base"] * 0.4
            elif second < 30:
                power = TRUE["base"] + TRUE["down"] * down + TRUE["up"] * up
                power += -12.0 * (rsrp + 90) if signal else 0.0
            else:
                power = TRUE["tail"] if second < 30 + TRUE["tail_s"] else 0.0
            power = (TRUE["rest"] + power) * (1 + noise * rng.standard_normal())
            rows.append(f"{t},{down:.6f},{up:.6f},{power:.6f},{rsrp:.4f}")
    return "t_s,down_mbps,up_mbps,power_mw,rsrp_dbm\n" + "\n".join(rows) + "\n"


def fitted(tmp_path, text, **more):
    file = tmp_path / "log.csv"
    file.write_text(text)
    return energy.fit(energy.read(file), **more)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_parameters_come_back(tmp_path, noise):
    result = fitted(tmp_path, made(noise))
    p = result["affine"]
    slack = 1e-6 if noise == 0 else 0.05
    assert p["base_mw"] == pytest.approx(TRUE["base"], rel=slack)
    assert p["down_mw_per_mbps"] == pytest.approx(TRUE["down"], rel=slack)
    assert p["up_mw_per_mbps"] == pytest.approx(TRUE["up"], rel=slack)
    assert p["tail_mw"] == pytest.approx(TRUE["tail"], rel=slack)
    assert p["tail_ms"] == pytest.approx(10_000.0)
    assert result["rest_mw"] == pytest.approx(TRUE["rest"], rel=slack)
    assert result["mape"] <= noise + 1e-6


def test_signal_is_told_apart(tmp_path):
    p = fitted(tmp_path, made(signal=True))["affine"]
    assert p["rsrp"]["mw_per_db"] == pytest.approx(-12.0, rel=1e-6)
    at_90 = p["base_mw"] + p["rsrp"]["mw_per_db"] * (-90 - p["rsrp"]["reference"])
    assert at_90 == pytest.approx(TRUE["base"], rel=1e-6)


def test_nnls_never_goes_below_zero():
    rng = np.random.default_rng(3)
    for _ in range(50):
        a = rng.normal(size=(40, 5))
        b = rng.normal(size=40)
        x = energy.nnls(a, b)
        gradient = a.T @ (b - a @ x)
        assert np.all(x >= 0)
        # Karush, Kuhn, Tucker: no column that is at 0 would help, those above leave nothing.
        assert np.all(gradient[x == 0] <= 1e-6) and np.all(np.abs(gradient[x > 0]) <= 1e-6)


def test_a_log_that_is_wrong_is_pointed_at(tmp_path, capsys):
    file = tmp_path / "log.csv"
    for text, said in [
        ("", "the log is empty"),
        ("t_s,down_mbps\n0,1\n", ":1:1: no column power_mw"),
        ("t_s,power_mw\n0,1\n", ":1:1: no rates"),
        ("t_s,power_mw,down_mbps\n0,1,x\n", ":2:5: 'x': expected"),
        ("t_s,power_mw,down_mbps\n1,1,1\n1,1,1\n", ":3:1: this time does not come after"),
        ("t_s,power_mw,down_mbps\n1,1,1\n", "expected at least"),
    ]:
        file.write_text(text)
        assert energy.main(["fit", str(file)]) == 2
        assert said in capsys.readouterr().err
    assert energy.main(["fit", str(tmp_path / "none.csv")]) == 2


def test_the_file_is_written_once(tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "set.toml"
    log.write_text(made())
    assert energy.main(["fit", str(log), "--out", str(out), "--name", 'my "phone"']) == 0
    text = out.read_text()
    assert text.startswith('name = "my \\"phone\\""\n') and "[affine]\nbase_mw = " in text
    assert energy.main(["fit", str(log), "--out", str(out)]) == 2
    assert out.read_text() == text and not math.isnan(float(text.split("rest_mw = ")[1].split("\n")[0]))
