// What elementwise units have around their lanes, which are pipelines of fixed depth: one enable
// moves all registers, so an operation takes one cycle a beat, the depth, and one more for every
// stalled cycle.
//
// The lane mask travels with the beat; masked lanes of the last beat of a row leave the unit as 0.

`include "systole_assert.svh"

module systole_stream_pipe #(
  parameter int unsigned Lanes        = 4,
  parameter int unsigned Depth        = 5,
  parameter int unsigned OperandWidth = 32,  // of all that comes with a beat
  parameter int unsigned DataWidth    = 32   // of a lane's result
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       valid_i,
  output logic                       ready_o,
  input  logic [Lanes-1:0]           mask_i,      // lanes that carry an element
  input  logic [OperandWidth-1:0]    operands_i,  // they hold while a beat waits

  output logic                       valid_o,
  input  logic                       ready_i,
  output logic [Lanes-1:0]           mask_o,
  output logic [Lanes*DataWidth-1:0] data_o,      // 0 in masked lanes

  output logic                       advance_o,   // enable of every register of the pipeline
  input  logic [Lanes*DataWidth-1:0] results_i    // of its last stage
);

  assign advance_o = !(valid_o && !ready_i);
  assign ready_o   = advance_o;

  systole_flag_line #(.Width(1), .Depth(Depth)) u_valid (
    .clk_i,
    .rst_ni,
    .enable_i(advance_o),
    .flags_i (valid_i),
    .flags_o (valid_o),
    .any_o   ()
  );

  systole_delay_line #(.Width(Lanes), .Depth(Depth)) u_mask (
    .clk_i,
    .enable_i(advance_o),
    .data_i  (mask_i),
    .data_o  (mask_o)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_data
    assign data_o[l*DataWidth+:DataWidth] = mask_o[l] ? results_i[l*DataWidth+:DataWidth] : '0;
  end

  `SYSTOLE_ASSERT_INIT(SizeUsable_A, Lanes >= 1 && Depth >= 1)
  `SYSTOLE_ASSERT(MaskFilledFromLaneZero_A, valid_i |-> ((mask_i & (mask_i + 1'b1)) == '0))
  `SYSTOLE_ASSERT(BeatNotEmpty_A, valid_i |-> mask_i[0])
  `SYSTOLE_ASSERT(InputHeld_A, (valid_i && !ready_o) |=> (valid_i && $stable(mask_i)))
  `SYSTOLE_ASSERT(OutputHeld_A, (valid_o && !ready_i) |=> (valid_o && $stable(mask_o)))
  `SYSTOLE_ASSERT(InputDataHeld_A, (valid_i && !ready_o) |=> $stable(operands_i))
  `SYSTOLE_ASSERT(OutputDataHeld_A, (valid_o && !ready_i) |=> $stable(data_o))

endmodule
