// Requantisation of a stream: clamp(round(x * multiplier / 2^shift), lo, hi), `Lanes` elements a
// beat, each with its own constants (per-channel), five stages.
// Bit-exact reference: hw::requantise of hw/number/dyadic.h. Cycles: hw::chain_cycles of a
// requantise stage.

`include "systole_assert.svh"

module systole_requantizer #(
  parameter int unsigned Lanes   = 4,
  parameter int unsigned InWidth = 32
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  input  logic                     valid_i,
  output logic                     ready_o,
  input  logic [Lanes-1:0]         mask_i,
  input  logic [Lanes*InWidth-1:0] data_i,        // signed, lane 0 in the low bits
  input  logic [Lanes*32-1:0]      multiplier_i,  // signed
  input  logic [Lanes*6-1:0]       shift_i,

  input  logic [1:0]               rounding_i,    // hw::Rounding; quasi-static, as lo and hi
  input  logic signed [31:0]       lo_i,
  input  logic signed [31:0]       hi_i,

  output logic                     valid_o,
  input  logic                     ready_i,
  output logic [Lanes-1:0]         mask_o,
  output logic [Lanes*32-1:0]      data_o         // signed, 0 in masked lanes
);

  logic                advance;
  logic [Lanes*32-1:0] results;

  systole_stream_pipe #(
    .Lanes       (Lanes),
    .Depth       (systole_pkg::RequantiseDepth),
    .OperandWidth(Lanes * (InWidth + 38))
  ) u_flow (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .mask_i,
    .operands_i({data_i, multiplier_i, shift_i}),
    .valid_o,
    .ready_i,
    .mask_o,
    .data_o,
    .advance_o (advance),
    .results_i (results)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    systole_requantizer_lane #(.InWidth(InWidth)) u_lane (
      .clk_i,
      .enable_i    (advance),
      .data_i      (data_i[l*InWidth+:InWidth]),
      .multiplier_i(multiplier_i[l*32+:32]),
      .shift_i     (shift_i[l*6+:6]),
      .rounding_i,
      .lo_i,
      .hi_i,
      .data_o      (results[l*32+:32])
    );
  end

  `SYSTOLE_ASSERT_INIT(LanesUsable_A, Lanes >= 1)
  `SYSTOLE_ASSERT(LimitsOrdered_A, (valid_i || valid_o) |-> (lo_i <= hi_i))
  `SYSTOLE_ASSERT(RoundingKnown_A, (valid_i || valid_o) |-> (rounding_i <= systole_pkg::Floor))

endmodule
