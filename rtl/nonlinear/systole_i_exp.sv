// Integer exponential of a stream of arguments of at most 0, `Lanes` elements a beat.
// Bit-exact reference: hw::int_exp, cycles: hw::int_exp_cycles, both of hw/number/int_exp.h.

`include "systole_assert.svh"

module systole_i_exp #(
  parameter int unsigned Lanes   = 4,
  parameter int unsigned InWidth = 32
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  input  logic                     valid_i,
  output logic                     ready_o,
  input  logic [Lanes-1:0]         mask_i,
  input  logic [Lanes*InWidth-1:0] data_i,        // signed, lane 0 in the low bits

  // Quasi-static: hw::IntExpConstants and hw::int_exp_reciprocal.
  input  logic [13:0]              q_ln2_i,
  input  logic [29:0]              reciprocal_i,
  input  logic [14:0]              b_i,
  input  logic [28:0]              c_i,

  output logic                     valid_o,
  input  logic                     ready_i,
  output logic [Lanes-1:0]         mask_o,
  output logic [Lanes*32-1:0]      data_o         // unsigned, 0 in masked lanes
);

  logic                advance;
  logic [Lanes*32-1:0] results;

  systole_stream_pipe #(
    .Lanes       (Lanes),
    .Depth       (systole_pkg::ExpDepth),
    .OperandWidth(Lanes * InWidth)
  ) u_flow (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .mask_i,
    .operands_i(data_i),
    .valid_o,
    .ready_i,
    .mask_o,
    .data_o,
    .advance_o (advance),
    .results_i (results)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic signed [InWidth-1:0] argument;
    assign argument = data_i[l*InWidth+:InWidth];

    systole_i_exp_lane #(.InWidth(InWidth)) u_lane (
      .clk_i,
      .enable_i(advance),
      .data_i  (argument),
      .q_ln2_i,
      .reciprocal_i,
      .b_i,
      .c_i,
      .data_o  (results[l*32+:32])
    );

    `SYSTOLE_ASSERT(NotPositive_A, (valid_i && mask_i[l]) |-> (argument <= 0))
  end

  `SYSTOLE_ASSERT_INIT(LanesUsable_A, Lanes >= 1)
  `SYSTOLE_ASSERT(ReciprocalFits_A, (valid_i || valid_o) |-> (
                      44'(reciprocal_i) * 44'(q_ln2_i) >= 44'h2000_0000 &&
                      44'(reciprocal_i) * 44'(q_ln2_i) < 44'h2000_0000 + 44'(q_ln2_i)))

endmodule
