// A slot of the post-op pipeline: one stage of a chain, as its micro-code says, over `Lanes`
// elements a beat. Between a beat and its result lie as many enabled cycles as the stage has
// latency (hw::stage_latency of hw/postop/stage.h).
//
// A beat that takes its operand from the stream needs it in the cycle in which it comes in.

`include "systole_assert.svh"

module systole_postop_slot #(
  parameter int unsigned Lanes = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                enable_i,

  input  logic                write_i,     // micro-code: word by word, in an empty slot
  input  logic [3:0]          word_i,
  input  logic [63:0]         code_i,
  output logic                legal_o,
  output logic                streams_o,   // beats take an operand from the stream

  input  logic                valid_i,
  input  logic [Lanes-1:0]    mask_i,
  input  logic [Lanes*32-1:0] data_i,
  input  logic [Lanes*32-1:0] operand_i,
  input  logic [Lanes*6-1:0]  shift_i,

  output logic                valid_o,
  output logic [Lanes-1:0]    mask_o,
  output logic [Lanes*32-1:0] data_o,
  output logic                busy_o       // holds a beat
);

  localparam int unsigned SumDepth        = systole_pkg::AddDepth;
  localparam int unsigned RequantiseDepth = systole_pkg::RequantiseDepth;
  localparam int unsigned GeluDepth       = systole_pkg::GeluDepth;

  logic               uses_gelu, uses_scale, uses_sum, scales_operand, by_operand, by_channel;
  logic        [7:0]  sum;
  logic        [1:0]  rounding;
  logic signed [31:0] multiplier, lo, hi, value;
  logic        [5:0]  shift;
  logic signed [16:0] b;
  logic signed [41:0] c, one;

  systole_postop_micro_code u_code (
    .clk_i,
    .write_i,
    .word_i,
    .data_i          (code_i),
    .legal_o,
    .streams_o,
    .uses_gelu_o     (uses_gelu),
    .uses_scale_o    (uses_scale),
    .uses_sum_o      (uses_sum),
    .scales_operand_o(scales_operand),
    .by_operand_o    (by_operand),
    .by_channel_o    (by_channel),
    .sum_o           (sum),
    .rounding_o      (rounding),
    .multiplier_o    (multiplier),
    .shift_o         (shift),
    .lo_o            (lo),
    .hi_o            (hi),
    .value_o         (value),
    .b_o             (b),
    .c_o             (c),
    .one_o           (one)
  );

  // ---------------------------------------------------------------------------- beats in flight
  // Stage k of the line holds what came in k + 1 enabled cycles ago; beyond the stage's latency it
  // is empty, whatever it held before the micro-code changed.
  logic [GeluDepth-1:0]       line, valid_q;
  logic [GeluDepth*Lanes-1:0] mask_q;
  logic                       moves;  // the lanes hold a beat, or take one

  always_comb begin
    line = GeluDepth'({SumDepth{1'b1}});
    if (uses_scale) line = GeluDepth'({RequantiseDepth{1'b1}});
    if (uses_scale && uses_sum) line = GeluDepth'({(RequantiseDepth + SumDepth){1'b1}});
    if (uses_gelu) line = {GeluDepth{1'b1}};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else if (enable_i) begin
      valid_q <= GeluDepth'({valid_q, valid_i}) & line;
    end
  end

  always_ff @(posedge clk_i) begin
    if (moves) mask_q <= (GeluDepth * Lanes)'({mask_q, mask_i});
  end

  // The last stage of the line.
  always_comb begin
    valid_o = valid_q[SumDepth-1];
    mask_o  = mask_q[(SumDepth-1)*Lanes+:Lanes];
    if (uses_gelu) begin
      valid_o = valid_q[GeluDepth-1];
      mask_o  = mask_q[(GeluDepth-1)*Lanes+:Lanes];
    end else if (uses_scale && uses_sum) begin
      valid_o = valid_q[RequantiseDepth+SumDepth-1];
      mask_o  = mask_q[(RequantiseDepth+SumDepth-1)*Lanes+:Lanes];
    end else if (uses_scale) begin
      valid_o = valid_q[RequantiseDepth-1];
      mask_o  = mask_q[(RequantiseDepth-1)*Lanes+:Lanes];
    end
  end

  assign busy_o = valid_q != '0;
  assign moves  = enable_i && (valid_i || busy_o);

  // ---------------------------------------------------------------------------- lanes
  logic gelu_enable, scale_enable, sum_enable;

  assign gelu_enable  = moves && uses_gelu;
  assign scale_enable = moves && uses_scale;
  assign sum_enable   = moves && uses_sum;

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    systole_postop_lane u_lane (
      .clk_i,
      .gelu_enable_i   (gelu_enable),
      .scale_enable_i  (scale_enable),
      .sum_enable_i    (sum_enable),
      .data_i          (data_i[l*32+:32]),
      .operand_i       (operand_i[l*32+:32]),
      .shift_i         (shift_i[l*6+:6]),
      .streams_i       (streams_o),
      .uses_gelu_i     (uses_gelu),
      .uses_scale_i    (uses_scale),
      .uses_sum_i      (uses_sum),
      .scales_operand_i(scales_operand),
      .by_operand_i    (by_operand),
      .by_channel_i    (by_channel),
      .sum_i           (sum),
      .rounding_i      (rounding),
      .multiplier_i    (multiplier),
      .shift_const_i   (shift),
      .lo_i            (lo),
      .hi_i            (hi),
      .value_i         (value),
      .b_i             (b),
      .c_i             (c),
      .one_i           (one),
      .data_o          (data_o[l*32+:32])
    );
  end

  `SYSTOLE_ASSERT_INIT(LanesUsable_A, Lanes >= 1)

endmodule
