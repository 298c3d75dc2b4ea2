// Division of a stream: clamp(round(x * 2^shift / divisor), lo, hi), `Lanes` elements a beat, each
// with its own divisor, nineteen stages.
// Bit-exact reference: hw::divide of hw/function/divide.h. Cycles: hw::chain_cycles of a divide
// stage.

`include "systole_assert.svh"

module systole_divider #(
  parameter int unsigned Lanes = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  output logic                ready_o,
  input  logic [Lanes-1:0]    mask_i,
  input  logic [Lanes*32-1:0] data_i,      // signed, lane 0 in the low bits
  input  logic [Lanes*32-1:0] divisor_i,   // signed

  // Quasi-static.
  input  logic [4:0]          shift_i,     // fraction bits of the quotient
  input  logic [1:0]          rounding_i,  // hw::Rounding
  input  logic signed [31:0]  lo_i,
  input  logic signed [31:0]  hi_i,

  output logic                valid_o,
  input  logic                ready_i,
  output logic [Lanes-1:0]    mask_o,
  output logic [Lanes*32-1:0] data_o       // signed, 0 in masked lanes
);

  logic                advance;
  logic [Lanes*32-1:0] results;

  systole_stream_pipe #(
    .Lanes       (Lanes),
    .Depth       (systole_pkg::DivideDepth),
    .OperandWidth(Lanes * 64)
  ) u_flow (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .mask_i,
    .operands_i({data_i, divisor_i}),
    .valid_o,
    .ready_i,
    .mask_o,
    .data_o,
    .advance_o (advance),
    .results_i (results)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    systole_divider_lane u_lane (
      .clk_i,
      .enable_i  (advance),
      .data_i    (data_i[l*32+:32]),
      .divisor_i (divisor_i[l*32+:32]),
      .shift_i,
      .rounding_i,
      .lo_i,
      .hi_i,
      .data_o    (results[l*32+:32])
    );
  end

  `SYSTOLE_ASSERT_INIT(LanesUsable_A, Lanes >= 1)
  `SYSTOLE_ASSERT(LimitsOrdered_A, (valid_i || valid_o) |-> (lo_i <= hi_i))
  `SYSTOLE_ASSERT(RoundingKnown_A, (valid_i || valid_o) |-> (rounding_i <= systole_pkg::Floor))

endmodule
