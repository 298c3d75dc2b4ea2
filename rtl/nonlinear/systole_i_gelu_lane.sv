// Integer GELU of one element, without flow control, thirteen stages: the product of the input and
// erf + 1 8 (rtl/nonlinear/systole_i_gelu_product.sv), requantisation 5.
// Bit-exact reference: hw::gelu_product (hw/function/gelu.h) and hw::requantise
// (hw/number/dyadic.h), half up.

module systole_i_gelu_lane (
  input  logic               clk_i,
  input  logic               enable_i,
  input  logic signed [31:0] data_i,

  // Quasi-static, in the ranges of rtl/nonlinear/systole_i_gelu.sv.
  input  logic signed [16:0] b_i,
  input  logic signed [41:0] c_i,
  input  logic signed [41:0] one_i,
  input  logic signed [31:0] multiplier_i,
  input  logic        [5:0]  shift_i,
  input  logic signed [31:0] lo_i,
  input  logic signed [31:0] hi_i,

  output logic signed [31:0] data_o
);

  localparam int unsigned GeluWidth   = 59;
  localparam int unsigned ScaledWidth = 63;  // the product with the multiplier is below 2^62

  logic signed [GeluWidth-1:0] product;

  systole_i_gelu_product u_product (
    .clk_i,
    .enable_i,
    .data_i,
    .b_i,
    .c_i,
    .one_i,
    .product_o(product)
  );

  systole_requantizer_lane #(.InWidth(GeluWidth), .ScaledWidth(ScaledWidth)) u_requantise (
    .clk_i,
    .enable_i,
    .data_i    (product),
    .multiplier_i,
    .shift_i,
    .rounding_i(systole_pkg::HalfUp),
    .lo_i,
    .hi_i,
    .data_o
  );

endmodule
