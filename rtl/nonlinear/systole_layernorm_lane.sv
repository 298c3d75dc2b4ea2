// Elements of a LayerNorm row: deviation from the mean, its square in 4 stages, the output in 11.
// Bit-exact reference: hw::layernorm_statistics and hw::layernorm_normalise of
// hw/function/layernorm.h, hw::row::plain::layer_norm_row of hw/kernel/row_plain.h.

`include "systole_assert.svh"

module systole_layernorm_lane #(
  parameter  bit          OwnRow        = 1,  // mean and factor are those of the element's row
  localparam int unsigned InWidth       = systole_pkg::LayerNormInputBits,
  localparam int unsigned SquareWidth   = 2 * InWidth,
  localparam int unsigned FactorWidth   = 32,
  localparam int unsigned FractionWidth = 5
) (
  input  logic                          clk_i,
  input  logic                          enable_i,

  input  logic [InWidth-1:0]            data_i,        // both in excess 2^23
  input  logic [InWidth-1:0]            mean_i,        // of the row of data_i
  input  logic signed [31:0]            multiplier_i,  // with data_i, of its channel
  input  logic signed [31:0]            addend_i,      // with data_i, of its channel

  // One stage after data_i.
  input  logic                          square_i,      // multiply the deviation with itself
  input  logic [FactorWidth-1:0]        factor_i,      // otherwise with this

  // Quasi-static.
  input  logic [FractionWidth-1:0]      norm_shift_i,  // 1 .. 30
  input  logic [5:0]                    shift_i,       // 0 .. 62
  input  logic signed [31:0]            lo_i,
  input  logic signed [31:0]            hi_i,          // not below lo_i

  output logic [SquareWidth-1:0]        square_o,
  output logic signed [31:0]            data_o
);

  localparam int unsigned DeviationWidth = InWidth + 1;
  // No deviation from the mean of its row exceeds the root of the row's sum of squares, so its product
  // with 2^31 / root keeps within 2^31, and the normalised value within 2^30. Of another row the
  // normalised value keeps its low 32 bits.
  localparam int unsigned OperandWidth   = FactorWidth + 1;
  localparam int unsigned ProductWidth   = OwnRow ? SquareWidth : DeviationWidth + OperandWidth;
  localparam int unsigned ScaledWidth    = OwnRow ? OperandWidth : ProductWidth;
  localparam int unsigned NormWidth      = 32;
  localparam int unsigned SumWidth       = 64;
  // Stages that the multiplier waits for the norm, and the addend for the product.
  localparam int unsigned MultiplierLate =
      systole_pkg::AddDepth + systole_pkg::MultiplyDepth + systole_pkg::ShiftDepth;
  localparam int unsigned AddendLate     = MultiplierLate + systole_pkg::MultiplyDepth;

  // Deviation, and its product with itself or with the reciprocal of the root.
  logic signed [DeviationWidth-1:0] deviation_q;
  logic signed [OperandWidth-1:0]   operand;
  logic signed [ProductWidth-1:0]   product;
  logic signed [ScaledWidth-1:0]    scaled;
  logic signed [NormWidth-1:0]      norm_q;

  assign operand  = square_i ? OperandWidth'(deviation_q) : signed'({1'b0, factor_i});
  assign square_o = product[SquareWidth-1:0];
  assign scaled   = product[ScaledWidth-1:0];

  systole_mul_pipe #(
    .AWidth      (DeviationWidth),
    .BWidth      (OperandWidth),
    .ProductWidth(ProductWidth)
  ) u_deviation (
    .clk_i,
    .enable_i,
    .a_i      (deviation_q),
    .b_i      (operand),
    .product_o(product)
  );

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      deviation_q <= signed'({1'b0, data_i}) - signed'({1'b0, mean_i});
      norm_q      <= NormWidth'(scaled >>> norm_shift_i);
    end
  end

  // Channel multiplier and addend.
  logic signed [31:0]         multiplier, addend;
  logic signed [SumWidth-1:0] channel_product, sum_q;

  systole_delay_line #(.Width(32), .Depth(MultiplierLate)) u_multiplier (
    .clk_i,
    .enable_i,
    .data_i(multiplier_i),
    .data_o(multiplier)
  );

  systole_delay_line #(.Width(32), .Depth(AddendLate)) u_addend (
    .clk_i,
    .enable_i,
    .data_i(addend_i),
    .data_o(addend)
  );

  systole_mul_pipe #(.AWidth(NormWidth), .BWidth(32), .ProductWidth(SumWidth)) u_channel (
    .clk_i,
    .enable_i,
    .a_i      (norm_q),
    .b_i      (multiplier),
    .product_o(channel_product)
  );

  // Shift and clamp.
  logic signed [SumWidth-1:0] shifted, shifted_q;
  logic signed [31:0]         clamped_d, clamped_q;

  systole_round_shift #(.Width(SumWidth)) u_round (
    .data_i    (sum_q),
    .shift_i,
    .rounding_i(systole_pkg::HalfUp),
    .data_o    (shifted)
  );

  always_comb begin
    if (shifted_q < SumWidth'(lo_i)) begin
      clamped_d = lo_i;
    end else if (shifted_q > SumWidth'(hi_i)) begin
      clamped_d = hi_i;
    end else begin
      clamped_d = shifted_q[31:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      sum_q     <= channel_product + SumWidth'(addend);
      shifted_q <= shifted;
      clamped_q <= clamped_d;
    end
  end

  assign data_o = clamped_q;

endmodule
