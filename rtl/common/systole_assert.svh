// Assertion macros. Active in simulation, Verilator included (--assert); removed by SYNTHESIS.
`ifndef SYSTOLE_ASSERT_SVH
`define SYSTOLE_ASSERT_SVH

`define SYSTOLE_STRINGIFY(x) `"x`"

`ifdef SYNTHESIS
  `define SYSTOLE_ASSERT(name, prop)
  `define SYSTOLE_ASSERT_INIT(name, prop)
`else
  `define SYSTOLE_ASSERT(name, prop)                                       \
    name : assert property (@(posedge clk_i) disable iff (!rst_ni) (prop)) \
      else $error("[ASSERT FAILED] %m: %s", `SYSTOLE_STRINGIFY(name));
  `define SYSTOLE_ASSERT_INIT(name, prop)                                  \
    initial begin                                                          \
      name : assert (prop)                                                 \
        else $fatal(1, "[ASSERT FAILED] %m: %s", `SYSTOLE_STRINGIFY(name)); \
    end
`endif

`endif  // SYSTOLE_ASSERT_SVH
