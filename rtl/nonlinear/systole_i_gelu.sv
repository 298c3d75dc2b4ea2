// Integer GELU of a stream and its requantisation: q (erf(q) + 1) of the value saturated to s16,
// `Lanes` elements a beat, thirteen stages.
// Bit-exact reference: hw::gelu_product and hw::requantise (hw/function/gelu.h,
// hw/number/dyadic.h). Cycles: hw::chain_cycles of a gelu stage. The constants are those that
// hw::check_chain accepts, which bounds the scaled product by 2^62.

`include "systole_assert.svh"

module systole_i_gelu #(
  parameter int unsigned Lanes = 4
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   valid_i,
  output logic                   ready_o,
  input  logic [Lanes-1:0]       mask_i,
  input  logic [Lanes*32-1:0]    data_i,        // signed, lane 0 in the low bits

  // Quasi-static.
  input  logic signed [16:0]     b_i,           // -2^16 to 0: the clip point is -b_i
  input  logic signed [41:0]     c_i,           // -2^40 to 2^40
  input  logic signed [41:0]     one_i,         // -2^40 to 2^40
  input  logic signed [31:0]     multiplier_i,
  input  logic        [5:0]      shift_i,
  input  logic signed [31:0]     lo_i,
  input  logic signed [31:0]     hi_i,

  output logic                   valid_o,
  input  logic                   ready_i,
  output logic [Lanes-1:0]       mask_o,
  output logic [Lanes*32-1:0]    data_o         // signed, 0 in masked lanes
);

  logic                advance;
  logic [Lanes*32-1:0] results;

  systole_stream_pipe #(
    .Lanes       (Lanes),
    .Depth       (systole_pkg::GeluDepth),
    .OperandWidth(Lanes * 32)
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
    systole_i_gelu_lane u_lane (
      .clk_i,
      .enable_i(advance),
      .data_i  (data_i[l*32+:32]),
      .b_i,
      .c_i,
      .one_i,
      .multiplier_i,
      .shift_i,
      .lo_i,
      .hi_i,
      .data_o  (results[l*32+:32])
    );
  end

  `SYSTOLE_ASSERT_INIT(LanesUsable_A, Lanes >= 1)
  `SYSTOLE_ASSERT(ClipPointNotNegative_A, (valid_i || valid_o) |-> (b_i <= 0))
  `SYSTOLE_ASSERT(ConstantInRange_A, (valid_i || valid_o) |-> (
                      c_i >= -42'sh100_0000_0000 && c_i <= 42'sh100_0000_0000))
  `SYSTOLE_ASSERT(OneInRange_A, (valid_i || valid_o) |-> (
                      one_i >= -42'sh100_0000_0000 && one_i <= 42'sh100_0000_0000))
  `SYSTOLE_ASSERT(LimitsOrdered_A, (valid_i || valid_o) |-> (lo_i <= hi_i))

endmodule
