# SPDX-License-Identifier: Apache-2.0
"""Settings of a link that are functions of time, as Python has them: a number that stands for them, and their form."""

import copy
import json
import pickle
from pathlib import Path

import pytest
from fairlane_switch.link_model import LinkOptions, LinkSettings
from fairlane_switch.link_series import Series, read_series
from pydantic import ValidationError


def test_a_number_stands_for_a_form_and_the_form_goes_on() -> None:
    drawn, steps = {"uniform": [5, 100], "every_s": 15}, {"steps": [[0, 1e6], [15, 4e6]], "repeat_s": 20}
    options = LinkOptions.model_validate(
        {"delay_us": drawn, "rate_bps": steps, "loss": {"normal": [0.1, 0.01], "every_s": 1}}
    )
    assert (options.delay_us, options.rate_bps, options.loss) == (5000, 1_750_000, 0.1)
    told = options.model_dump()
    assert (told["delay_us"], told["rate_bps"], told["jitter_us"]) == (drawn, steps, 0)
    assert json.loads(options.model_dump_json())["delay_us"] == drawn
    assert LinkOptions(**told) == options
    assert LinkSettings.model_validate({"delay_ms": drawn}).delay_ms == 5
    jitter = LinkSettings.model_validate({"jitter_ms": {"choice": [1, 3], "every_s": 1}}).jitter_ms
    assert isinstance(jitter, Series)
    assert (float(jitter), copy.deepcopy(jitter).form, pickle.loads(pickle.dumps(jitter)).form) == (
        3,
        jitter.form,
        jitter.form,
    )
    assert read_series("delay_us", {"steps": [[0, 0]]})  # a delay of 0 that may change is something


def test_the_mean_of_a_delivery_trace_is_the_rate_and_files_are_found_beside(tmp_path: Path) -> None:
    (tmp_path / "cell.trace").write_text("5\n10\n")
    series = read_series("rate_bps", {"trace": "cell.trace"}, tmp_path)
    assert (float(series), series.form) == (2_400_000, {"trace": str(tmp_path / "cell.trace")})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"delay_us": {"uniform": [5, 100]}}, "uniform: every_s is missing"),
        ({"loss": {"uniform": [0, 2], "every_s": 1}}, "uniform: 2 is out of range; allowed: 0 to 1"),
        ({"rate_bps": {"steps": "nowhere.csv"}}, "nowhere.csv: cannot be read"),
        ({"rate_bps": {"speed": 1}}, "speed: unknown field `speed`, expected one of `steps`, `values`, `uniform`"),
        ({"queue_packets": {"steps": [[0, 1]]}}, "valid integer"),
    ],
)
def test_what_cannot_be_is_refused_in_the_words_of_the_switch(values: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said.replace("(", r"\(")):
        LinkOptions.model_validate(values)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"attenuation": "nofile.txt"}, "cannot read nofile.txt: No such file"),
        ({"attenuation": 5}, "attenuation: 5 is not the name of a file"),
        ({"clear_sky_db": [1]}, r"clear_sky_db: \[1\] is not a number"),
        ({"symbol_rate": 10**400}, "symbol_rate: 1000.*…0+ is not a number"),
    ],
)
def test_rain_of_other_types_or_without_its_files_is_refused(given: dict[str, object], said: str) -> None:
    rain = {"attenuation": "fade.txt", "modcod": "modcod.txt", "clear_sky_db": 8, "symbol_rate": 1e6}
    with pytest.raises(ValueError, match=said):
        read_series("rate_bps", {**rain, **given})


def test_rain_by_opensands_files_moves_the_coding(tmp_path: Path) -> None:
    (tmp_path / "modcod.txt").write_text(
        "/* number, modulation, rate, efficiency, Es/N0 */\nnb_fmt = 3\n1 QPSK 1/4 0.5 -2.35\n2 QPSK 1/2 1.0 1.0\n3 8PSK 3/5 1.8 5.5\n"
    )
    (tmp_path / "fade.txt").write_text("0 0\n10 6\n20 13\n30 0\n")
    rain = {"attenuation": "fade.txt", "modcod": "modcod.txt", "clear_sky_db": 8, "symbol_rate": 1e6, "loop_s": 1}
    # 8 dB in clear sky: 1.8 bit a symbol; 2 dB: 1.0; below 0: none; each a second later, and all is lost until then.
    rates = dict(read_series("rate_bps", rain, tmp_path).form["steps"])
    assert rates == {0: 1.8e6, 1: 1.8e6, 10: 1.8e6, 11: 1e6, 20: 1e6, 21: 0, 30: 0, 31: 1.8e6}
    losses = dict(read_series("loss", {**rain, "repeat_s": 60}, tmp_path).form["steps"])
    assert [t_s for t_s, loss in losses.items() if loss] == [10, 20]
    with pytest.raises(ValueError, match=r"^attenuation: clear_sky_db, modcod is missing"):
        read_series("loss", {"attenuation": "fade.txt", "symbol_rate": 1e6}, tmp_path)
    (tmp_path / "modcod.txt").write_text("1 QPSK 1/4\n")
    with pytest.raises(ValueError, match=r"modcod.txt: line 1: 1 QPSK 1/4 has no two numbers from column 4 on"):
        read_series("rate_bps", rain, tmp_path)
