// Products of streams of halves, `Lanes` elements a beat, 6 stages.
// Bit-exact reference: hw::half_mul of hw/number/half.h. Cycles: hw::half_vector::cycles of
// hw/ring/half_vector.h.

`include "systole_assert.svh"

module fp16_mul #(
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

  localparam int unsigned Depth = 6;

  logic advance;

  stream_pipe #(.Lanes(Lanes), .Depth(Depth)) u_flow (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .mask_i,
    .valid_o,
    .ready_i,
    .mask_o,
    .advance_o(advance)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [15:0] data;

    fp16_mul_lane u_lane (
      .clk_i,
      .enable_i(advance),
      .a_i     (a_i[l*16+:16]),
      .b_i     (b_i[l*16+:16]),
      .data_o  (data)
    );

    assign data_o[l*16+:16] = mask_o[l] ? data : '0;
  end

  `SYSTOLE_ASSERT(InputDataHeld_A,
                  (valid_i && !ready_o) |=> ($stable(a_i) && $stable(b_i)))
  `SYSTOLE_ASSERT(OutputDataHeld_A, (valid_o && !ready_i) |=> $stable(data_o))

endmodule
