// Products of streams of halves, `Lanes` elements a beat, 6 stages.
// Bit-exact reference: hw::half_mul of hw/number/half.h. Cycles: hw::half_vector::cycles of
// hw/ring/half_vector.h.

`include "systole_assert.svh"

module systole_fp16_mul #(
  parameter int unsigned Lanes = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  output logic                ready_o,
  input  logic [Lanes-1:0]    mask_i,
  input  logic [Lanes*16-1:0] a_i,         // lane 0 in the low bits
  input  logic [Lanes*16-1:0] b_i,

  output logic                valid_o,
  input  logic                ready_i,
  output logic [Lanes-1:0]    mask_o,
  output logic [Lanes*16-1:0] data_o       // +0 in masked lanes
);

  logic                advance;
  logic [Lanes*16-1:0] results;

  systole_stream_pipe #(
    .Lanes       (Lanes),
    .Depth       (systole_pkg::HalfMultiplyDepth),
    .OperandWidth(Lanes * 32),
    .DataWidth   (16)
  ) u_flow (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .mask_i,
    .operands_i({a_i, b_i}),
    .valid_o,
    .ready_i,
    .mask_o,
    .data_o,
    .advance_o (advance),
    .results_i (results)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    systole_fp16_mul_lane u_lane (
      .clk_i,
      .enable_i(advance),
      .a_i     (a_i[l*16+:16]),
      .b_i     (b_i[l*16+:16]),
      .data_o  (results[l*16+:16])
    );
  end

endmodule
