"""Quantities: every unit, exact values, and the text of a value reads back as the value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from poblano.config.quantities import FREQUENCY, RATE, SIZE

UNITS = "must be a number with one of the units"


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (SIZE, "1 B", 1),
        (SIZE, "64 KiB", 65536),
        (SIZE, "64KiB", 65536),
        (SIZE, "0.5 KiB", 512),
        (SIZE, "3.375 GiB", 3623878656),
        (SIZE, "1 TiB", 1 << 40),
        (FREQUENCY, "1.7 GHz", 1_700_000_000),
        (FREQUENCY, "32.768 kHz", 32768),
        (FREQUENCY, "5 Hz", 5),
        (RATE, "10 Gb/s", 10**10),
        (RATE, "9.2 Gb/s", 9_200_000_000),
    ],
)
def test_parse(quantity, text, value):
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("quantity", "text", "rule"),
    [
        (SIZE, "64", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "64 KB", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "64 kib", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "-1 KiB", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "64  KiB", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "1e3 B", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "64 KiB\n", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "٣ B", f"{UNITS} B, KiB, MiB, GiB, TiB, such as '64 KiB'"),
        (SIZE, "0 KiB", "must be a positive whole number of B"),
        (SIZE, "0.3 KiB", "must be a positive whole number of B"),
        (FREQUENCY, "1.7 GB", f"{UNITS} Hz, kHz, MHz, GHz, such as '1.7 GHz'"),
        (FREQUENCY, "1.7 ghz", f"{UNITS} Hz, kHz, MHz, GHz, such as '1.7 GHz'"),
        (FREQUENCY, "0.5 Hz", "must be a positive whole number of Hz"),
        (RATE, "10 GB/s", f"{UNITS} b/s, kb/s, Mb/s, Gb/s, such as '10 Gb/s'"),
        (RATE, "10 Gb", f"{UNITS} b/s, kb/s, Mb/s, Gb/s, such as '10 Gb/s'"),
    ],
)
def test_refuse(quantity, text, rule):
    with pytest.raises(PydanticCustomError) as caught:
        quantity.parse(text)
    assert caught.value.message() == rule


@given(st.sampled_from([SIZE, FREQUENCY, RATE]), st.integers(1, 10**17))
def test_text_reads_back(quantity, value):
    assert quantity.parse(quantity.format(value)) == value


def test_format_takes_the_largest_exact_unit():
    assert SIZE.format(3623878656) == "3.375 GiB"
    assert SIZE.format(1000) == "1000 B"
    assert FREQUENCY.format(1_700_000_000) == "1.7 GHz"
    assert FREQUENCY.format(1_234_567_890) == "1234567.89 kHz"
