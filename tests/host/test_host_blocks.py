"""What the blocks of the host port refuse."""

import pytest

from poblano.config import load
from poblano.host.burst import BurstBeats
from poblano.host.register_file import RegisterFile
from poblano_golden.errors import PoblanoError


@pytest.mark.parametrize(
    ("width", "size", "message"),
    [
        (12, 48, "width must be a power of two, not 12"),
        (16, 40, "size must be a multiple of width, 16, not 40"),
        (16, 0, "size must be a multiple of width, 16, not 0"),
    ],
)
def test_beats_need_whole_words(width, size, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        BurstBeats(width=width, size=size, address_width=24, id_width=4)


def test_register_file_needs_room_for_every_port():
    with pytest.raises(PoblanoError, match=r"slice\.hbm\.ports must be at most 126 .* got 128"):
        RegisterFile(configuration=load("tiny", ["slice.hbm.ports=128"]))
