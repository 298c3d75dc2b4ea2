// Integer GELU of one element before its requantisation, q (erf(q) + 1) of the value saturated to
// s16, without flow control, eight stages: magnitude and clip 1, square 3, constant and sign 1,
// product with the input 3. Bit-exact reference: hw::gelu_product (hw/function/gelu.h).

module systole_i_gelu_product (
  input  logic               clk_i,
  input  logic               enable_i,
  input  logic signed [31:0] data_i,

  // Quasi-static, in the ranges of rtl/nonlinear/systole_i_gelu.sv.
  input  logic signed [16:0] b_i,
  input  logic signed [41:0] c_i,
  input  logic signed [41:0] one_i,

  output logic signed [58:0] product_o
);

  localparam int unsigned ErfWidth      = 43;  // |one| + |c| + clip^2 is at most 2^41 + 2^32

  // Magnitude and clip: min(|q|, -b) + b, that is min(|q| + b, 0).
  logic signed [15:0] q_d, q_1_q, q_4;
  logic signed [16:0] magnitude;
  logic signed [17:0] beyond;
  logic signed [16:0] clipped_q;

  always_comb begin
    if (data_i < -32'sd32768) begin
      q_d = 16'sh8000;
    end else if (data_i > 32'sd32767) begin
      q_d = 16'sh7fff;
    end else begin
      q_d = data_i[15:0];
    end
  end

  assign magnitude = q_d[15] ? 17'sd0 - 17'(q_d) : 17'(q_d);
  assign beyond    = 18'(magnitude) + 18'(b_i);

  // Square.
  logic signed [33:0] square;

  systole_mul_pipe #(.AWidth(17), .BWidth(17)) u_square (
    .clk_i,
    .enable_i,
    .a_i      (clipped_q),
    .b_i      (clipped_q),
    .product_o(square)
  );

  systole_delay_line #(.Width(16), .Depth(systole_pkg::MultiplyDepth)) u_input (
    .clk_i,
    .enable_i,
    .data_i(q_1_q),
    .data_o(q_4)
  );

  // Constant and sign: one + c + square, or one - c - square below zero. The sums of the constants
  // are quasi-static, so the stage holds one addition.
  logic signed [ErfWidth-1:0] positive, negative;
  logic signed [ErfWidth-1:0] erf_one_q;
  logic signed [15:0]         q_5_q;

  assign positive = ErfWidth'(one_i) + ErfWidth'(c_i);
  assign negative = ErfWidth'(one_i) - ErfWidth'(c_i);

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      q_1_q     <= q_d;
      clipped_q <= beyond < 0 ? beyond[16:0] : '0;
      q_5_q     <= q_4;
      erf_one_q <= q_4[15] ? negative - ErfWidth'(square) : positive + ErfWidth'(square);
    end
  end

  // Product with the input.
  systole_mul_pipe #(.AWidth(ErfWidth), .BWidth(16)) u_product (
    .clk_i,
    .enable_i,
    .a_i      (erf_one_q),
    .b_i      (q_5_q),
    .product_o
  );

endmodule
