// Integer square root, floor(sqrt(n)), of one `Width`-bit number after the other.
// Bit-exact reference: hw::int_sqrt of hw/number/isqrt.h. The root is unique, so the digit
// recurrence here equals the Newton iteration there. Cycle contract: hw::int_sqrt_cycles of
// hw/number/isqrt.h.

`include "systole_assert.svh"

module systole_i_sqrt #(
  parameter  int unsigned Width     = 64,
  localparam int unsigned RootWidth = Width / 2
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 valid_i,
  output logic                 ready_o,
  input  logic [Width-1:0]     radicand_i,

  output logic                 valid_o,
  input  logic                 ready_i,
  output logic [RootWidth-1:0] root_o
);

  logic advance, busy;

  // An untaken root stops the core, which keeps `done` and with it the root.
  assign advance = !(valid_o && !ready_i);
  assign ready_o = advance && !busy;

  systole_serial_sqrt #(.Width(Width)) u_core (
    .clk_i,
    .rst_ni,
    .enable_i  (advance),
    .start_i   (valid_i && ready_o),
    .radicand_i,
    .busy_o    (busy),
    .done_o    (valid_o),
    .root_o
  );

  `SYSTOLE_ASSERT(OutputHeld_A, (valid_o && !ready_i) |=> (valid_o && $stable(root_o)))
  `SYSTOLE_ASSERT(InputHeld_A, (valid_i && !ready_o) |=> (valid_i && $stable(radicand_i)))

endmodule
