"""A small cell library of our own, in the shape of the usual ones, for tests of the synthesis."""

TABLE = """({name}) {{
          index_1("0.01, 0.1, 1.0"); index_2("0.5, 5, 50");
          values({rows}); }}"""


def table(kind, name, values):
    rows = ", ".join(f'"{row}"' for row in values)
    return f"        {kind}{TABLE.format(name=name, rows=rows)}\n"


DELAYS = ("0.010, 0.020, 0.120", "0.012, 0.022, 0.122", "0.030, 0.040, 0.140")
ARC = "".join(
    table(kind, "t", DELAYS)
    for kind in ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
)
SETUP = "".join(table(kind, "c", ("0.05, 0.05, 0.05",) * 3) for kind in
                ("rise_constraint", "fall_constraint"))  # fmt: skip
HEADER = """library({name}) {{
  delay_model : table_lookup;
  time_unit : "1ns";
  voltage_unit : "1V";
  current_unit : "1uA";
  pulling_resistance_unit : "1kohm";
  leakage_power_unit : "1nW";
  capacitive_load_unit(1, ff);
  nom_voltage : 1.0; nom_temperature : 25; nom_process : 1;
  operating_conditions(typical) {{ process : 1; voltage : 1.0; temperature : 25; }}
  default_operating_conditions : typical;
  slew_lower_threshold_pct_rise : 20; slew_upper_threshold_pct_rise : 80;
  slew_lower_threshold_pct_fall : 20; slew_upper_threshold_pct_fall : 80;
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  lu_table_template(t) {{
    variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1("0.01, 0.1, 1.0"); index_2("0.5, 5, 50");
  }}
  lu_table_template(c) {{
    variable_1 : related_pin_transition; variable_2 : constrained_pin_transition;
    index_1("0.01, 0.1, 1.0"); index_2("0.5, 5, 50");
  }}
"""


def gate(name, area, function, pins):
    inputs = "".join(
        f"    pin({pin}) {{ direction : input; capacitance : 1.0; }}\n" for pin in pins
    )
    arcs = "".join(
        f'      timing() {{\n        related_pin : "{pin}";\n'
        f"        timing_sense : non_unate;\n{ARC}      }}\n"
        for pin in pins
    )
    return (
        f"  cell({name}) {{\n    area : {area};\n    cell_leakage_power : 2.0;\n{inputs}"
        f'    pin(Y) {{\n      direction : output;\n      function : "{function}";\n'
        f"      max_capacitance : 60.0;\n{arcs}    }}\n  }}\n"
    )


def flip_flop(name, area, next_state, data):
    inputs = "".join(
        f"    pin({pin}) {{\n      direction : input; capacitance : 1.0;\n"
        f'      timing() {{\n        related_pin : "CK"; timing_type : setup_rising;\n'
        f"{SETUP}      }}\n    }}\n"
        for pin in data
    )
    return (
        f"  cell({name}) {{\n    area : {area};\n    cell_leakage_power : 5.0;\n"
        f'    ff(IQ, IQN) {{ next_state : "{next_state}"; clocked_on : "CK"; }}\n{inputs}'
        f"    pin(CK) {{ direction : input; clock : true; capacitance : 1.0; }}\n"
        f'    pin(Q) {{\n      direction : output; function : "IQ"; max_capacitance : 60.0;\n'
        f'      timing() {{\n        related_pin : "CK"; timing_type : rising_edge;\n'
        f"        timing_sense : non_unate;\n{ARC}      }}\n    }}\n  }}\n"
    )


INVERTER = gate("INV", 1.0, "!A", "A")
BUFFER = gate("BUF", 1.5, "A", "A")
NAND = gate("NAND2", 2.0, "!(A&B)", "AB")
NOR = gate("NOR2", 2.5, "!(A|B)", "AB")
DFF = flip_flop("DFF", 9.0, "D", "D")
DFFE = flip_flop("DFFE", 11.0, "(E & D) | (!E & IQ)", "DE")


def library(*cells, name="toy"):
    return HEADER.format(name=name) + "".join(cells) + "}\n"


TOY = library(INVERTER, BUFFER, NAND, NOR, DFF)
