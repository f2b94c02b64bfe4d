// The program around a Verilator model that cocotb drives through VPI.
//
//   --trace FILE           write a waveform (builds with a trace only)
//   --trace-from STEP      ... from this simulation step on
//   --trace-to STEP        ... up to this step
//
// Two things set it apart from the program that comes with cocotb. Modules compiled as
// hierarchical blocks add their signals to the trace when they are evaluated for the first time,
// so the model is evaluated once before the trace is opened. And the trace is closed however the
// run ends: at $finish, at a fatal error, and at SIGINT or SIGTERM, even if the model or the
// testbench never returns to the loop below.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>

#include "Vtop.h"
#include "verilated.h"
#include "verilated_vpi.h"

#if VM_TRACE
#if VM_TRACE_FST
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#else
#include "verilated_vcd_c.h"
using Trace = VerilatedVcdC;
#endif
#endif

extern "C" void vlog_startup_routines_bootstrap();

namespace {

constexpr uint64_t kNever = ~uint64_t{0};
constexpr unsigned kGraceSeconds = 2;

uint64_t now = 0;
volatile std::sig_atomic_t received = 0;  // the signal that asks for the end, or 0
volatile std::sig_atomic_t dumping = 0;   // the trace is being written

struct Arguments {
    std::string trace_file;
    uint64_t trace_from = 0;
    uint64_t trace_to = kNever;
};

#if VM_TRACE
Trace* trace = nullptr;
#endif

void close_trace() {
#if VM_TRACE
    if (trace) trace->close();
    trace = nullptr;
#endif
}

void finish() {
    static bool finished = false;
    if (finished) return;
    finished = true;
    VerilatedVpi::callCbs(cbEndOfSimulation);
    close_trace();
}

void on_alarm(int) {
    // The loop had its chance. Should closing hang too, the next alarm ends the process.
    std::signal(SIGALRM, SIG_DFL);
    alarm(kGraceSeconds);
    if (!dumping) close_trace();
    _exit(128 + received);
}

void on_end_signal(int number) {
    received = number;
    alarm(kGraceSeconds);
}

void install_signal_handlers() {
    struct sigaction action = {};
    action.sa_flags = SA_NODEFER;
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, nullptr);
    action.sa_handler = on_end_signal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

[[noreturn]] void usage_error(const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
    std::exit(2);
}

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name.rfind("--trace", 0) != 0) continue;
        if (i + 1 == argc) usage_error(name + " needs a value");
        const char* const value = argv[++i];
        if (name == "--trace") {
            arguments.trace_file = value;
        } else if (name == "--trace-from") {
            arguments.trace_from = std::strtoull(value, nullptr, 10);
        } else if (name == "--trace-to") {
            arguments.trace_to = std::strtoull(value, nullptr, 10);
        } else {
            usage_error("unknown option " + name);
        }
    }
    return arguments;
}

void open_trace(Vtop& model, const Arguments& arguments) {
    if (arguments.trace_file.empty()) return;
#if VM_TRACE
    trace = new Trace;
    model.trace(trace, 99);
    trace->open(arguments.trace_file.c_str());
    if (!trace->isOpen()) usage_error("cannot write " + arguments.trace_file);
#else
    (void)model;
    usage_error("--trace needs a model that was built with a trace");
#endif
}

void dump(const Arguments& arguments) {
#if VM_TRACE
    if (!trace || now < arguments.trace_from || now > arguments.trace_to) return;
    dumping = 1;
    trace->dump(now);
    dumping = 0;
#else
    (void)arguments;
#endif
}

void settle_value_changes() {
    while (VerilatedVpi::callValueCbs()) {
    }
}

void apply_writes() {
    VerilatedVpi::doInertialPuts();
    settle_value_changes();
}

// One time step: evaluate until neither the model nor the testbench changes anything.
void evaluate(Vtop& model) {
    bool due = model.eventsPending() && model.nextTimeSlot() <= now;
    do {
        while (due || VerilatedVpi::evalNeeded()) {
            due = false;
            VerilatedVpi::clearEvalNeeded();
            model.eval_step();
            apply_writes();
        }
        VerilatedVpi::callCbs(cbReadWriteSynch);
        apply_writes();
    } while (VerilatedVpi::evalNeeded());
    model.eval_end_step();
    VerilatedVpi::callCbs(cbReadOnlySynch);
}

// Go to the next time at which something is due; false if there is none. The writes of timed
// callbacks, the clock's among them, are applied before the model is evaluated, so that an edge
// costs one evaluation.
bool advance(Vtop& model) {
    const uint64_t in_model = model.eventsPending() ? model.nextTimeSlot() : kNever;
    const uint64_t next = std::min<uint64_t>(VerilatedVpi::cbNextDeadline(), in_model);
    if (next == kNever) return false;
    now = next;
    VerilatedVpi::callCbs(cbNextSimTime);
    settle_value_changes();
    VerilatedVpi::callTimedCbs();
    apply_writes();
    return true;
}

}  // namespace

double sc_time_stamp() { return static_cast<double>(now); }

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    VerilatedContext& context = *Verilated::threadContextp();
    context.commandArgs(argc, argv);
    context.fatalOnVpiError(false);  // cocotb asks for objects that may not exist
#if VM_TRACE
    context.traceEverOn(true);
#endif
    const auto model = std::make_unique<Vtop>("");
    model->eval();
    open_trace(*model, arguments);

    vlog_startup_routines_bootstrap();
    Verilated::addExitCb([](void*) { finish(); }, nullptr);
    VerilatedVpi::callCbs(cbStartOfSimulation);
    apply_writes();
    install_signal_handlers();  // after Python, which installs its own

    do {
        evaluate(*model);
        dump(arguments);
    } while (!context.gotFinish() && !received && advance(*model));

    model->final();
    finish();
    if (received) return 128 + received;
    return context.errorCount() > 0 ? 1 : 0;
}
