// Softmax of the attention engines: the kept scores of one query after the other, `Lanes` a beat,
// in the deferred mode. Bit-exact reference: hw::softmax_kept_cells (hw/attention/
// sparse_attention.h). Cycles: hw::softmax_cycles of hw/attention/timing/attention_cycles.h and the
// latency of the stage.
//
// The maximum of a row is formed as its scores arrive, so it comes with the row's beats, and one
// pass is enough. A row of no kept scores has no beat.

`include "systole_assert.svh"

module systole_attention_softmax #(
  parameter int unsigned Lanes = 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Quasi-static: hold from the first beat to the last output.
  input  logic [30:0]         score_multiplier_i,
  input  logic [5:0]          score_shift_i,
  input  logic [13:0]         q_ln2_i,             // hw::IntExpConstants and its reciprocal
  input  logic [29:0]         reciprocal_i,
  input  logic [14:0]         b_i,
  input  logic [28:0]         c_i,
  input  logic [30:0]         out_multiplier_i,
  input  logic [5:0]          out_shift_i,
  input  logic [3:0]          out_bits_i,          // 1 .. 8

  input  logic                valid_i,
  output logic                ready_o,
  input  logic [Lanes-1:0]    mask_i,              // lanes that carry a score
  input  logic                last_i,              // of its row
  input  logic [31:0]         maximum_i,           // of its row, signed
  input  logic [Lanes*32-1:0] data_i,              // signed, lane 0 in the low bits

  output logic                valid_o,
  input  logic                ready_i,
  output logic [Lanes-1:0]    mask_o,
  output logic                last_o,
  output logic [Lanes*8-1:0]  data_o,              // codes, 0 in masked lanes
  output logic [31:0]         row_sum_o            // with last_o: of the row's codes, at least 1
);

  logic                advance;
  logic [Lanes*8-1:0]  codes;
  logic [15:0]         highest_code;

  systole_stream_pipe #(
    .Lanes       (Lanes),
    .Depth       (systole_pkg::SoftmaxDepth),
    .OperandWidth(Lanes * 32 + 33),
    .DataWidth   (8)
  ) u_flow (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .mask_i,
    .operands_i({last_i, maximum_i, data_i}),
    .valid_o,
    .ready_i,
    .mask_o,
    .data_o,
    .advance_o (advance),
    .results_i (codes)
  );

  systole_delay_line #(.Width(1), .Depth(systole_pkg::SoftmaxDepth)) u_last (
    .clk_i,
    .enable_i(advance),
    .data_i  (last_i),
    .data_o  (last_o)
  );

  assign highest_code = (16'd1 << out_bits_i) - 16'd1;

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [29:0] unused_exponential;
    logic [31:0] code;
    logic        unused_code;

    systole_softmax_lane u_lane (
      .clk_i,
      .enable_i         (advance),
      .score_i          (data_i[l*32+:32]),
      .maximum_i,
      .score_multiplier_i,
      .score_shift_i,
      .q_ln2_i,
      .reciprocal_i,
      .b_i,
      .c_i,
      .exponential_o    (unused_exponential),
      .code_multiplier_i(out_multiplier_i),
      .code_shift_i     (out_shift_i),
      .code_rounding_i  (systole_pkg::HalfUp),
      .highest_code_i   (highest_code),
      .code_o           (code)
    );

    assign codes[l*8+:8] = code[7:0];
    assign unused_code   = ^code[31:8];  // always 0

    `SYSTOLE_ASSERT(NotAboveMaximum_A, (valid_i && mask_i[l]) |->
                                       (signed'(data_i[l*32+:32]) <= signed'(maximum_i)))
  end

  // ------------------------------------------------------------------ sum of a row's codes
  logic        begins_q;  // the next beat out is the first of its row
  logic [31:0] sum_d, sum_q;

  always_comb begin
    sum_d = begins_q ? '0 : sum_q;
    for (int unsigned l = 0; l < Lanes; l++) sum_d = sum_d + 32'(data_o[l*8+:8]);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begins_q <= 1'b1;
    end else if (advance && valid_o) begin
      begins_q <= last_o;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && valid_o) sum_q <= sum_d;
  end

  assign row_sum_o = sum_d == '0 ? 32'd1 : sum_d;

  `SYSTOLE_ASSERT(BitsInRange_A, (valid_i && ready_o) |-> (out_bits_i >= 4'd1 && out_bits_i <= 4'd8))
  `SYSTOLE_ASSERT(ConstantsHeld_A, (valid_i && !ready_o) |=> $stable({
                      score_multiplier_i, score_shift_i, q_ln2_i, reciprocal_i, b_i, c_i,
                      out_multiplier_i, out_shift_i, out_bits_i}))
  `SYSTOLE_ASSERT(LastHeld_A, (valid_o && !ready_i) |=> $stable({last_o, row_sum_o}))

endmodule
