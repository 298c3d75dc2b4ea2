// Flow control of an elementwise pipeline of fixed depth: one enable moves all of its registers, so
// an operation takes one cycle a beat, the depth, and one more for every stalled cycle.
//
// The lane mask travels with the beat; masked lanes of the last beat of a row leave the unit as 0.

`include "systole_assert.svh"

module stream_pipe #(
  parameter int unsigned Lanes = 4,
  parameter int unsigned Depth = 5
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Lanes-1:0] mask_i,    // lanes that carry an element

  output logic             valid_o,
  input  logic             ready_i,
  output logic [Lanes-1:0] mask_o,

  output logic             advance_o  // enable of every register of the pipeline
);

  assign advance_o = !(valid_o && !ready_i);
  assign ready_o   = advance_o;

  flag_line #(.Width(1), .Depth(Depth)) u_valid (
    .clk_i,
    .rst_ni,
    .enable_i(advance_o),
    .flags_i (valid_i),
    .flags_o (valid_o)
  );

  delay_line #(.Width(Lanes), .Depth(Depth)) u_mask (
    .clk_i,
    .enable_i(advance_o),
    .data_i  (mask_i),
    .data_o  (mask_o)
  );

  `SYSTOLE_ASSERT_INIT(SizeUsable_A, Lanes >= 1 && Depth >= 1)
  `SYSTOLE_ASSERT(MaskFilledFromLaneZero_A, valid_i |-> ((mask_i & (mask_i + 1'b1)) == '0))
  `SYSTOLE_ASSERT(BeatNotEmpty_A, valid_i |-> mask_i[0])
  `SYSTOLE_ASSERT(InputHeld_A, (valid_i && !ready_o) |=> (valid_i && $stable(mask_i)))
  `SYSTOLE_ASSERT(OutputHeld_A, (valid_o && !ready_i) |=> (valid_o && $stable(mask_o)))

endmodule
