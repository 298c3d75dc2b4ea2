// Integer exponential of one argument, without flow control, eleven stages (hw::kIntExpLatency).
// Bit-exact reference: hw::int_exp of hw/number/int_exp.h.
//
// The division by q_ln2 is a product with reciprocal_i = ceil(2^29 / q_ln2), exact for every s16
// argument and every q_ln2 of 1 to 14 fraction bits (hw::int_exp_reciprocal says why).

`include "systole_assert.svh"

module systole_i_exp_lane #(
  parameter int unsigned InWidth = 32
) (
  input  logic                      clk_i,
  input  logic                      enable_i,
  input  logic signed [InWidth-1:0] data_i,  // at most 0; below s16 it counts as the lowest s16

  // Quasi-static: hw::IntExpConstants and the reciprocal of its q_ln2.
  input  logic        [13:0]        q_ln2_i,
  input  logic        [29:0]        reciprocal_i,
  input  logic        [14:0]        b_i,
  input  logic        [28:0]        c_i,

  output logic        [31:0]        data_o
);

  localparam int unsigned MagnitudeBits  = 16;  // 0 to 2^15
  localparam int unsigned QuotientWidth  = MagnitudeBits + systole_pkg::ReciprocalBits;
  localparam int unsigned SumWidth       = 17;
  localparam int unsigned PolynomialBits = 30;

  localparam logic signed [15:0] Lowest = 16'sh8000;

  // Argument to halvings: -q / q_ln2.
  logic signed [InWidth-1:0]       argument;
  logic        [MagnitudeBits-1:0] magnitude;
  logic signed [QuotientWidth-1:0] quotient;
  logic        [MagnitudeBits-1:0] halvings;

  assign argument  = data_i < InWidth'(Lowest) ? InWidth'(Lowest) : data_i;
  assign magnitude = MagnitudeBits'(-argument);

  systole_mul_pipe #(
    .AWidth      (MagnitudeBits + 1),
    .BWidth      (31),
    .ProductWidth(QuotientWidth)
  ) u_quotient (
    .clk_i,
    .enable_i,
    .a_i      (signed'({1'b0, magnitude})),
    .b_i      (signed'({1'b0, reciprocal_i})),
    .product_o(quotient)
  );

  assign halvings = MagnitudeBits'(quotient >>> systole_pkg::ReciprocalBits);

  // Halvings back to the remainder: p + b = (b - magnitude) + halvings * q_ln2.
  logic signed [SumWidth-1:0] reduced, offset_q, offset, sum_q;

  systole_mul_pipe #(.AWidth(MagnitudeBits + 1), .BWidth(15), .ProductWidth(SumWidth)) u_reduced (
    .clk_i,
    .enable_i,
    .a_i      (signed'({1'b0, halvings})),
    .b_i      (signed'({1'b0, q_ln2_i})),
    .product_o(reduced)
  );

  systole_delay_line #(.Width(SumWidth), .Depth(2 * systole_pkg::MultiplyDepth - 1)) u_offset (
    .clk_i,
    .enable_i,
    .data_i(offset_q),
    .data_o(offset)
  );

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      offset_q <= SumWidth'(signed'({2'b0, b_i})) - SumWidth'(signed'({1'b0, magnitude}));
      sum_q    <= offset + reduced;
    end
  end

  // Square plus constant, shifted right by the halvings.
  logic signed [PolynomialBits-1:0] square;
  logic        [PolynomialBits-1:0] value_q;
  logic        [4:0]                halvings_kept, halvings_late;

  systole_mul_pipe #(.AWidth(SumWidth), .BWidth(SumWidth), .ProductWidth(PolynomialBits)) u_square (
    .clk_i,
    .enable_i,
    .a_i      (sum_q),
    .b_i      (sum_q),
    .product_o(square)
  );

  assign halvings_kept = halvings > 16'd31 ? 5'd31 : halvings[4:0];

  systole_delay_line #(.Width(5), .Depth(2 * systole_pkg::MultiplyDepth + 1)) u_halvings (
    .clk_i,
    .enable_i,
    .data_i(halvings_kept),
    .data_o(halvings_late)
  );

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      value_q <= (unsigned'(square) + PolynomialBits'(c_i)) >> halvings_late;
    end
  end

  assign data_o = 32'(value_q);

  `SYSTOLE_ASSERT_INIT(WidthUsable_A, InWidth >= 17)

endmodule
