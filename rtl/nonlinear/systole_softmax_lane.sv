// Elements of a softmax row: score to exponential in 16 stages, exponential to code in 5 more.
// Bit-exact reference: hw::softmax_exponential, softmax_deferred_code and
// softmax_normalised_code of hw/function/softmax.h.

`include "systole_assert.svh"

module systole_softmax_lane #(
  localparam int unsigned ExponentialWidth = 30,
  localparam int unsigned MultiplierWidth  = 31
) (
  input  logic                        clk_i,
  input  logic                        enable_i,

  input  logic signed [31:0]          score_i,
  input  logic signed [31:0]          maximum_i,          // of the row of score_i

  // Quasi-static.
  input  logic [MultiplierWidth-1:0]  score_multiplier_i,
  input  logic [5:0]                  score_shift_i,
  input  logic [13:0]                 q_ln2_i,
  input  logic [29:0]                 reciprocal_i,
  input  logic [14:0]                 b_i,
  input  logic [28:0]                 c_i,

  output logic [ExponentialWidth-1:0] exponential_o,

  // In the cycle of exponential_o, for its code.
  input  logic [MultiplierWidth-1:0]  code_multiplier_i,
  input  logic [5:0]                  code_shift_i,
  input  logic [1:0]                  code_rounding_i,
  input  logic [15:0]                 highest_code_i,

  output logic [31:0]                 code_o
);

  localparam int unsigned DifferenceWidth = 33;
  localparam int unsigned ProductWidth    = DifferenceWidth + MultiplierWidth;
  localparam int unsigned ArgumentWidth   = 17;  // saturates further down than hw::int_exp clamps

  // Score minus maximum, scaled to the argument of the exponential.
  logic signed [DifferenceWidth-1:0] difference_d, difference_q;
  logic signed [ProductWidth-1:0]    product, scaled;
  logic signed [ArgumentWidth-1:0]   argument_d, argument_q;
  logic                              below;

  assign difference_d = DifferenceWidth'(score_i) - DifferenceWidth'(maximum_i);

  systole_mul_pipe #(
    .AWidth(DifferenceWidth),
    .BWidth(MultiplierWidth + 1),
    .ProductWidth(ProductWidth)
  ) u_scale (
    .clk_i,
    .enable_i,
    .a_i      (difference_q),
    .b_i      (signed'({1'b0, score_multiplier_i})),
    .product_o(product)
  );

  systole_round_shift #(.Width(ProductWidth)) u_round (
    .data_i    (product),
    .shift_i   (score_shift_i),
    .rounding_i(systole_pkg::HalfUp),
    .data_o    (scaled)
  );

  // As the difference is never positive in a lane that counts, only the negative end matters.
  assign below      = scaled < ProductWidth'(signed'({1'b1, {(ArgumentWidth - 1){1'b0}}}));
  assign argument_d = below ? {1'b1, {(ArgumentWidth - 1){1'b0}}} : scaled[ArgumentWidth-1:0];

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      difference_q <= difference_d;
      argument_q   <= argument_d;
    end
  end

  logic [31:0] exponential;

  systole_i_exp_lane #(.InWidth(ArgumentWidth)) u_exp (
    .clk_i,
    .enable_i,
    .data_i(argument_q),
    .q_ln2_i,
    .reciprocal_i,
    .b_i,
    .c_i,
    .data_o(exponential)
  );

  assign exponential_o = exponential[ExponentialWidth-1:0];

  logic unused_exponential;
  assign unused_exponential = ^exponential[31:ExponentialWidth];  // always 0

  systole_requantizer_lane #(
    .InWidth    (ExponentialWidth + 1),
    .ScaledWidth(ExponentialWidth + MultiplierWidth + 1)
  ) u_code (
    .clk_i,
    .enable_i,
    .data_i      (signed'({1'b0, exponential_o})),
    .multiplier_i(signed'({1'b0, code_multiplier_i})),
    .shift_i     (code_shift_i),
    .rounding_i  (code_rounding_i),
    .lo_i        ('0),
    .hi_i        (signed'(32'(highest_code_i))),
    .data_o      (code_o)
  );

endmodule
