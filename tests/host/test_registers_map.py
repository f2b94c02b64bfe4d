"""The register map: where registers lie, and what a map refuses."""

import pytest

from poblano.config import load
from poblano.host.registers import (
    MAX_PORTS,
    Access,
    Field,
    Register,
    RegisterMap,
    queue_names,
    register_map,
)
from poblano_golden.errors import PoblanoError


def configuration(*overrides):
    return load("tiny", list(overrides))


def test_queues_follow_the_ports():
    assert queue_names(configuration()) == ("tensor", "vector", "scalar", "load_0", "store_0")
    assert queue_names(configuration("slice.hbm.ports=2"))[5:] == ("load_1", "store_1")


def test_offsets_that_software_relies_on():
    registers = register_map(configuration("slice.hbm.ports=2"))
    assert registers.offset("ID") == 0
    assert registers.offset("CONFIG_HASH_HIGH") == 0x0C
    assert registers.offset("CONTROL") == 0x20
    assert registers.offset("WATCHDOG") == 0x40
    assert registers.offset("SEMAPHORE_31") == 0x17C
    assert registers.offset("HBM_1_WRITE_BEATS_LOW") == 0x218
    assert registers.offset("QUEUE_TENSOR_BASE") == 0x1000
    assert registers.offset("QUEUE_LOAD_0_TAIL") == 0x1068
    assert registers.offset("QUEUE_STORE_1_BUSY_CYCLES") == 0x10DC
    with pytest.raises(KeyError, match="QUEUE_LOAD_2_TAIL"):
        registers.offset("QUEUE_LOAD_2_TAIL")
    with pytest.raises(KeyError, match=r"CONTROL\.value"):
        registers.field("CONTROL")


def test_constants_are_the_configurations():
    chip = configuration("slice.hbm.ports=3", "slice.host.semaphores=5")
    registers = register_map(chip)
    assert registers.field("CONFIG_HASH").reset == chip.hash64
    assert registers.field("L1_SIZE").reset == chip.slice.l1.size
    assert [registers.field(name).reset for name in ("QUEUES", "SEMAPHORES", "HBM_PORTS")] == [
        *(9, 5, 3),
    ]
    assert "SEMAPHORE_5" not in registers.offsets


def test_a_64_bit_register_is_two_words():
    address = next(r for r in register_map(configuration()).registers if r.name == "FAULT_ADDRESS")
    low, high = address.words
    assert [(item.low, item.width) for item in low.fields + high.fields] == [(0, 32), (0, 8)]
    assert (low.name, high.offset - low.offset) == ("FAULT_ADDRESS_LOW", 4)


def test_the_most_ports_have_room():
    registers = register_map(configuration(f"slice.hbm.ports={MAX_PORTS}"))
    queue = registers.field("FAULT", "queue")
    last = len(queue_names(configuration(f"slice.hbm.ports={MAX_PORTS}"))) - 1
    assert last < 1 << queue.width
    with pytest.raises(PoblanoError) as error:
        register_map(configuration(f"slice.hbm.ports={MAX_PORTS + 1}"))
    assert str(error.value) == ("slice.hbm.ports must be at most 126 for the register map; got 127")


def register(name="A", offset=0, *, low=0, width=8, reset=0, word=32, field="value"):
    item = Field(field, low, width, Access.CONTROL, "", reset)
    return Register(name, offset, "", (item,), word)


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        ([register(), register("B")], "registers must ascend and lie apart"),
        ([register(word=64), register("B", 4)], "registers must ascend and lie apart"),
        ([register(offset=4), register("B")], "registers must ascend and lie apart"),
        ([register(offset=2)], "registers must be aligned and end below 0x10000"),
        ([register(offset=0x10000)], "registers must be aligned and end below 0x10000"),
        ([register(), register(offset=4)], "names of registers and fields must be unique"),
        (
            [register(field="b"), register("A_B", 4)],
            "names of registers and fields must be unique",
        ),
        ([register(reset=256)], "fields of A must lie apart and hold resets"),
        ([register(low=25)], "fields of A must end at bit 32"),
    ],
)
def test_a_map_refuses(registers, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        RegisterMap(tuple(registers))


def test_fields_lie_apart():
    fields = (
        Field("a", 0, 4, Access.CONTROL, ""),
        Field("b", 3, 4, Access.CONTROL, ""),
    )
    with pytest.raises(ValueError, match="fields of A must lie apart and hold resets"):
        RegisterMap((Register("A", 0, "", fields),))
