"""The Verilog model of an SRAM behaves as its Amaranth description does."""

from random import Random

import pytest
from amaranth.sim import Simulator
from test_emit_verilog import run_icarus

from poblano.l1.sram import Sram
from poblano_flow.emission import emit


def stimuli(random, depth, width, cycles):
    """Yield read enable and address, strobes, write address and data; addresses often meet."""
    for _ in range(cycles):
        address = random.randrange(depth)
        strobe = random.choice([0, (1 << width // 8) - 1, random.getrandbits(width // 8)])
        meeting = random.choice([address, random.randrange(depth)])
        yield random.getrandbits(1), address, strobe, meeting, random.getrandbits(width)


def amaranth_words(depth, width, steps):
    """Return the read data after every cycle, from Amaranth's simulator."""
    dut = Sram(depth=depth, width=width)
    words = []

    async def bench(ctx):
        for enable, read, strobe, write, value in steps:
            ctx.set(dut.read_enable, enable)
            ctx.set(dut.read_address, read)
            ctx.set(dut.write_strobe, strobe)
            ctx.set(dut.write_address, write)
            ctx.set(dut.write_data, value)
            await ctx.tick()
            words.append(ctx.get(dut.read_data))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return words


@pytest.mark.parametrize(("depth", "width"), [(16, 32), (5, 8), (2, 128)])
def test_model_equals_description(depth, width, tmp_path):
    steps = list(stimuli(Random(depth), depth, width, 400))
    emission = emit(Sram(depth=depth, width=width))
    drive = "\n".join(
        f"re = {enable}; ra = {read}; ws = {width // 8}'h{strobe:x}; wa = {write}; "
        f'wd = {width}\'h{value:x}; #1 clk = 1; #1 $display("%h", rd); clk = 0;'
        for enable, read, strobe, write, value in steps
    )
    address = f"[{(depth - 1).bit_length() - 1}:0]"
    bench = f"""
        module bench;
          reg clk = 0; reg re; reg {address} ra; reg {address} wa; reg [{width // 8 - 1}:0] ws;
          reg [{width - 1}:0] wd; wire [{width - 1}:0] rd;
          {emission.top.name} dut (.clk(clk), .read_enable(re), .read_address(ra),
            .write_strobe(ws), .write_address(wa), .write_data(wd), .read_data(rd));
          initial begin
            {drive}
          end
        endmodule"""
    printed = [int(word, 16) for word in run_icarus(emission, bench, tmp_path).split()]
    assert printed == amaranth_words(depth, width, steps)
    assert len(set(printed)) > 20


def test_read_in_the_cycle_of_a_write_returns_the_old_word():
    steps = [(0, 0, 1, 3, 0x11), (1, 3, 1, 3, 0x22), (1, 3, 0, 0, 0), (0, 0, 0, 0, 0)]
    assert amaranth_words(4, 8, steps) == [0, 0x11, 0x22, 0x22]
