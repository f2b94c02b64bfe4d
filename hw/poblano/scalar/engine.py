"""The scalar engine: runs programs out of L1 that load, compute, branch and issue commands."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from poblano.command_decoder import CommandDecoder
from poblano.commands import ADDRESS_WIDTH, SCALAR_RUN, WORD_BYTES
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.control.synchronisation import request_layout
from poblano.dma.watch import Watch
from poblano.engine import NUMBER_WIDTH, engine_members
from poblano.faults import Fault
from poblano.l1.scratchpad import index_width, write_layout
from poblano.scalar.alu import ScalarAlu
from poblano.scalar.decode import InstructionDecode
from poblano.scalar.fetch import ScalarFetch
from poblano.scalar.instructions import (
    APPEND20,
    BLOCK_BYTES,
    INSTRUCTION_BYTES,
    NUM_ARGUMENTS,
    REGISTER_WIDTH,
    SET20,
    SIZES,
    Kind,
)
from poblano.scalar.l1_access import PLACE_WIDTH, L1Access, place_of
from poblano.scalar.multiplier import ScalarMultiplier
from poblano.scalar.registers import ScalarRegisters
from poblano.scalar.word_buffer import WordBuffer

__all__ = ["ScalarEngine"]

BLOCK_LOG = BLOCK_BYTES.bit_length() - 1
INSTRUCTION_LOG = INSTRUCTION_BYTES.bit_length() - 1


class ScalarEngine(Component):
    """Runs `scalar.run`, one program at a time, an instruction a cycle where nothing is waited for.

    `poblano.scalar.timing` gives the cycles, `poblano.scalar.instructions` what is executed.
    Instructions that read or write L1 follow a short sequence of states, one after the other.

    Parameters
    ----------
    configuration:
        The slice.
    queues:
        Queues that it issues commands to.

    Members
    -------
    command, done, fault:
        Of every engine; see `poblano.engine`. A fault of a semaphore has the instruction's
        address.
    patience:
        Cycles that `wait` may wait, 0 for any number.
    read, read_data:
        L1's read port: a line index, and the line one cycle after its acceptance.
    write:
        L1's write port.
    issue_Q:
        Command words for queue Q.
    wait, wait_valid, granted, signal, signal_valid:
        Of the semaphores; half `a` alone is used.
    busy:
        A program runs.
    """

    def __init__(self, *, configuration: SliceConfiguration, queues: int) -> None:
        self.configuration = configuration
        self.queues = queues
        self.line = configuration.l1.line
        self.index_width = index_width(configuration.l1.size // self.line)
        super().__init__(
            {
                **engine_members(),
                "patience": In(32),
                "read": Out(stream.Signature(self.index_width)),
                "read_data": In(8 * self.line),
                "write": Out(stream.Signature(write_layout(self.line, self.index_width))),
                **{f"issue_{q}": Out(stream.Signature(8 * WORD_BYTES)) for q in range(queues)},
                "wait": Out(request_layout()),
                "wait_valid": Out(1),
                "granted": In(1),
                "signal": Out(request_layout()),
                "signal_valid": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        self._command = CommandDecoder(mnemonic=SCALAR_RUN.mnemonic)
        self._decode = InstructionDecode(queues=self.queues)
        self._registers = ScalarRegisters()
        self._alu = ScalarAlu()
        self._multiplier = ScalarMultiplier()
        self._buffer = WordBuffer()
        self._fetch = ScalarFetch(size=self.configuration.l1.size, line=self.line)
        self._access = L1Access(size=self.configuration.l1.size, line=self.line)
        self._watch = Watch()
        m.submodules.command_decoder = once(self._command, platform)
        m.submodules.instruction_decode = once(self._decode, platform)
        m.submodules.registers = once(self._registers, platform)
        m.submodules.alu = once(self._alu, platform)
        m.submodules.multiplier = once(self._multiplier, platform)
        m.submodules.word_buffer = once(self._buffer, platform)
        m.submodules.fetch = once(self._fetch, platform)
        m.submodules.l1_access = once(self._access, platform)
        m.submodules.watch = once(self._watch, platform)

        self._address = Signal(PLACE_WIDTH)
        self._number = Signal(REGISTER_WIDTH)  # what is stored, or was loaded
        self._executes = Signal()  # an instruction is there and may be executed
        self._waits = Signal()  # for a queue or a semaphore
        self._exhausted = Signal()  # the budget
        self._reads = Signal()  # data or a command word
        self._compute(m)
        self._follow(m)
        self._meet(m)
        self._reach_l1(m)
        self._control(m)
        return m

    def _compute(self, m: Module) -> None:
        """Give registers and arithmetic their operands; choose what is written."""
        decoded, registers, alu = self._decode.decoded, self._registers, self._alu
        word = self._decode.word
        second = Mux(decoded.immediate, decoded.number, registers.b.as_signed())
        m.d.comb += [
            registers.first.eq(decoded.first),
            registers.second.eq(decoded.second),
            alu.a.eq(registers.a),
            alu.b.eq(second),
            alu.operation.eq(decoded.function),
            self._multiplier.a.eq(registers.a),
            self._multiplier.b.eq(second),
            registers.write.eq(self._fetch.advance & decoded.writes),
            registers.target.eq(decoded.rd),
        ]
        with m.Switch(decoded.kind):
            for kind, value in {
                Kind.ALU: alu.result,
                Kind.MULTIPLY: self._multiplier.product,
                Kind.SET: word[SET20.low : SET20.low + SET20.width].as_signed(),
                Kind.APPEND: Cat(word[APPEND20.low : APPEND20.low + APPEND20.width], registers.b),
                Kind.ADDRESS: self._relative(),
                Kind.CALL: self._fetch.following,
            }.items():
                with m.Case(kind):
                    m.d.comb += registers.value.eq(value)
            with m.Case(Kind.LOAD):
                bits = {log: 8 * size for log, size in enumerate(SIZES)}
                with m.Switch(decoded.function):
                    for log, width in bits.items():
                        part = self._number.word_select(self._address[log:3], width)
                        with m.Case(log):
                            m.d.comb += registers.value.eq(part)
        with m.If(self._executes):
            m.d.sync += [
                self._address.eq(place_of(alu.total)),
                self._number.eq(registers.b),
            ]

    def _relative(self) -> Value:
        """Return the signed address of a relative operand."""
        return self._fetch.pc[:ADDRESS_WIDTH] + self._decode.decoded.distance

    def _follow(self, m: Module) -> None:
        """Say where to go on; count the instructions of the budget."""
        fetch, kind, fields = self._fetch, self._decode.decoded.kind, self._command.fields
        m.d.comb += [
            self._decode.word.eq(fetch.instruction),
            fetch.start.eq(self._registers.clear),
            fetch.start_pc.eq(fields.pc),
            fetch.target.eq(self._relative()),
            fetch.transfers.eq(
                ((kind == Kind.BRANCH) & self._alu.holds)
                | (kind == Kind.JUMP)
                | (kind == Kind.CALL)
                | (kind == Kind.RETURN)
            ),
        ]
        with m.If(kind == Kind.RETURN):
            m.d.comb += fetch.target.eq(place_of(self._registers.a))

        left = Signal(32)
        limited = Signal()
        with m.If(fetch.advance):
            m.d.sync += [left.eq(left - 1), self._exhausted.eq(limited & (left == 1))]
        with m.If(self._registers.clear):
            m.d.sync += [
                left.eq(fields.budget),
                limited.eq(fields.budget != 0),
                self._exhausted.eq(0),
            ]
        for number in range(NUM_ARGUMENTS):
            m.d.comb += self._registers.arguments[number].eq(fields[f"r{number + 1}"])

    def _meet(self, m: Module) -> None:
        """Queues, semaphores, and the buffer from which commands are issued."""
        decoded, buffer, watch = self._decode.decoded, self._buffer, self._watch
        request = Cat(decoded.semaphore, decoded.count)
        m.d.comb += [
            self._command.word.eq(buffer.word),
            buffer.patch.eq(self._fetch.advance & (decoded.kind == Kind.FIELD)),
            buffer.value.eq(self._registers.a),
            buffer.offset.eq(decoded.field_offset),
            buffer.last.eq(decoded.field_last),
            self.wait.eq(request),
            self.wait_valid.eq(self._executes & (decoded.kind == Kind.WAIT)),
            self.signal.eq(request),
            self.signal_valid.eq(self._executes & (decoded.kind == Kind.SIGNAL)),
            watch.patience.eq(self.patience),
            watch.waiting.eq(self.wait_valid & ~self.granted),
            self._waits.eq(watch.waiting),
        ]
        for queue in range(self.queues):
            port = getattr(self, f"issue_{queue}")
            mine = (decoded.kind == Kind.ISSUE) & (decoded.queue == queue)
            m.d.comb += [port.payload.eq(buffer.word), port.valid.eq(self._executes & mine)]
            with m.If(port.valid & ~port.ready):
                m.d.comb += self._waits.eq(1)

    def _reach_l1(self, m: Module) -> None:
        """Connect L1: code is read while no instruction is there, else what one asks for."""
        decoded, access, fetch = self._decode.decoded, self._access, self._fetch
        m.d.comb += [
            access.place.eq(self._address),
            access.number.eq(self._number),
            access.size_log.eq(Mux(decoded.kind == Kind.WORD, BLOCK_LOG, decoded.function)),
            access.read_data.eq(self.read_data),
            fetch.read_data.eq(self.read_data),
            fetch.read.ready.eq(self.read.ready),
            self.read.valid.eq(fetch.read.valid | self._reads),
            self.read.payload.eq(Mux(self._reads, access.line_index, fetch.read.payload)),
            self.write.payload.address.eq(access.line_index),
            self.write.payload.data.eq(access.data),
            self.write.payload.strobe.eq(access.strobe),
        ]

    def _control(self, m: Module) -> None:
        """The states of a run."""
        self._completed = Signal(NUMBER_WIDTH)
        m.d.comb += [self.busy.eq(1), self._buffer.loaded.eq(self._access.block)]
        m.d.sync += self.done.eq(0)
        with m.FSM():
            self._begin_states(m)
            self._execute_state(m)
            self._access_states(m)
            with m.State("Stopped"):
                m.next = "Stopped"

    def _begin_states(self, m: Module) -> None:
        command = self._command
        with m.State("Rest"):
            m.d.comb += [
                self.busy.eq(0),
                self.command.ready.eq(1),
                self._buffer.load.eq(self.command.valid),
                self._buffer.loaded.eq(self.command.payload),
            ]
            with m.If(self.command.valid):
                m.next = "Begin"
        with m.State("Begin"):
            names = [item.name for item in SCALAR_RUN.fields]
            legal = Signal.like(command.fields_legal)
            aligned = command.fields.pc[:INSTRUCTION_LOG] == 0
            m.d.comb += [legal.eq(command.fields_legal), legal[names.index("pc")].eq(aligned)]
            with m.If(~command.opcode_legal):
                self._stop(m, Fault.OPCODE)
            with m.Elif(~legal.all()):
                self._stop(m, Fault.FIELD)
                for index in reversed(range(len(names))):
                    with m.If(~legal[index]):
                        m.d.sync += self.fault.field.eq(index)
            with m.Else():
                m.d.comb += self._registers.clear.eq(1)
                m.next = "Execute"

    def _execute_state(self, m: Module) -> None:
        decoded = self._decode.decoded
        meets = (decoded.kind == Kind.WAIT) | (decoded.kind == Kind.SIGNAL)
        absent = decoded.semaphore >= self.configuration.host.semaphores
        pc, there = self._fetch.pc, self._fetch.valid
        with m.State("Execute"):
            with m.If(self._fetch.fault != Fault.NONE):
                self._stop(m, self._fetch.fault, pc)
            with m.Elif(there & self._exhausted):
                self._stop(m, Fault.LOOP, pc)
            with m.Elif(there & ~self._decode.legal):
                self._stop(m, Fault.INSTRUCTION, pc)
            with m.Elif(there & meets & (decoded.count != 0) & absent):
                self._stop(m, Fault.SEMAPHORE, pc, decoded.semaphore)
            with m.Elif(there):
                m.d.comb += self._executes.eq(1)
                with m.Switch(decoded.kind):
                    with m.Case(Kind.LOAD, Kind.WORD):
                        m.next = "Read"
                    with m.Case(Kind.STORE):
                        m.next = "Store"
                    with m.Case(Kind.MULTIPLY):
                        m.d.comb += self._multiplier.start.eq(1)
                        m.next = "Multiply"
                    with m.Case(Kind.HALT):
                        m.d.sync += [self.done.eq(1), self._completed.eq(self._completed + 1)]
                        m.next = "Rest"
                    with m.Default(), m.If(~self._waits):
                        self._go_on(m)
                with m.If(self._watch.silent):
                    self._stop(m, Fault.WAIT, pc, decoded.semaphore)

    def _access_states(self, m: Module) -> None:
        access, decoded = self._access, self._decode.decoded
        with m.State("Read"):
            with m.If(access.fault != Fault.NONE):
                self._stop(m, access.fault, self._address)
            with m.Else():
                m.d.comb += self._reads.eq(1)
                with m.If(self.read.ready):
                    m.next = "Arrive"
        with m.State("Arrive"):
            m.d.sync += self._number.eq(access.double_word)
            with m.If(decoded.kind == Kind.WORD):
                m.d.comb += self._buffer.load.eq(1)
                self._go_on(m)
            with m.Else():
                m.next = "Write"
        with m.State("Store"):
            with m.If(access.fault != Fault.NONE):
                self._stop(m, access.fault, self._address)
            with m.Else():
                m.d.comb += self.write.valid.eq(1)
                with m.If(self.write.ready):
                    self._go_on(m)
        with m.State("Multiply"), m.If(self._multiplier.last):
            m.next = "Write"
        with m.State("Write"):
            self._go_on(m)

    def _go_on(self, m: Module) -> None:
        """End the instruction."""
        m.d.comb += self._fetch.advance.eq(1)
        m.next = "Execute"

    def _stop(self, m: Module, kind, address=0, field=0) -> None:
        """Keep a fault and do nothing more."""
        m.d.sync += [
            self.fault.kind.eq(kind),
            self.fault.address.eq(address),
            self.fault.field.eq(field),
            self.fault.number.eq(self._completed),
        ]
        m.next = "Stopped"
