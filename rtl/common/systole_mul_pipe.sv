// Pipelined multiplier, signed x signed, exact: three register stages from operands to product, the
// multiplier depth of the cycle contracts (hw/number/unit_depths.h).
//
// Operands are registered first, so a user may put a selection before it; then the two halves of b_i
// are multiplied on their own and added in the last stage. No valid bits: the user carries them,
// and enable_i low holds all three stages. A ProductWidth below the full one keeps the low bits,
// for users that know a bound on the product.

`include "systole_assert.svh"

module systole_mul_pipe #(
  parameter int unsigned AWidth       = 32,
  parameter int unsigned BWidth       = 32,
  parameter int unsigned ProductWidth = AWidth + BWidth
) (
  input  logic                           clk_i,
  input  logic                           enable_i,
  input  logic signed [AWidth-1:0]       a_i,
  input  logic signed [BWidth-1:0]       b_i,
  output logic signed [ProductWidth-1:0] product_o
);

  localparam int unsigned LowWidth    = BWidth / 2;
  localparam int unsigned HighWidth   = BWidth - LowWidth;
  localparam int unsigned LowFull     = AWidth + LowWidth;
  localparam int unsigned LowProduct  = LowFull < ProductWidth ? LowFull : ProductWidth;
  localparam int unsigned HighFull    = AWidth + HighWidth;
  localparam int unsigned HighKept    = ProductWidth - LowWidth;
  localparam int unsigned HighProduct = HighFull < HighKept ? HighFull : HighKept;

  logic signed [AWidth-1:0]       a_q;
  logic signed [BWidth-1:0]       b_q;
  logic signed [LowWidth:0]       b_low;
  logic signed [HighWidth-1:0]    b_high;
  logic signed [LowProduct-1:0]   low_q;
  logic signed [HighProduct-1:0]  high_q;
  logic signed [ProductWidth-1:0] product_q;

  assign b_low  = signed'({1'b0, b_q[LowWidth-1:0]});
  assign b_high = signed'(b_q[BWidth-1:LowWidth]);

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      a_q       <= a_i;
      b_q       <= b_i;
      low_q     <= LowProduct'(a_q) * LowProduct'(b_low);
      high_q    <= HighProduct'(a_q) * HighProduct'(b_high);
      product_q <= ProductWidth'(low_q) + (ProductWidth'(high_q) <<< LowWidth);
    end
  end

  assign product_o = product_q;

  `SYSTOLE_ASSERT_INIT(WidthsUsable_A, AWidth >= 2 && BWidth >= 2 && ProductWidth >= AWidth &&
                                      ProductWidth >= BWidth && ProductWidth <= AWidth + BWidth)

endmodule
