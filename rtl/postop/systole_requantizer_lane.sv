// Requantisation of one element, without flow control: clamp(round(data * multiplier / 2^shift),
// lo, hi) in five stages (multiplier 3, shift 1, clamp 1). Bit-exact reference: hw::requantise of
// hw/number/dyadic.h.
//
// Multiplier and shift belong to the element and travel with it; rounding and limits are
// quasi-static. ScaledWidth below the full product width needs a bound on |data * multiplier|.

`include "systole_assert.svh"

module systole_requantizer_lane #(
  parameter int unsigned InWidth     = 32,
  parameter int unsigned ScaledWidth = InWidth + 32
) (
  input  logic                      clk_i,
  input  logic                      enable_i,
  input  logic signed [InWidth-1:0] data_i,
  input  logic signed [31:0]        multiplier_i,
  input  logic        [5:0]         shift_i,
  input  logic        [1:0]         rounding_i,  // hw::Rounding
  input  logic signed [31:0]        lo_i,
  input  logic signed [31:0]        hi_i,        // not below lo_i
  output logic signed [31:0]        data_o
);


  logic signed [ScaledWidth-1:0] product, shifted, shifted_q;
  logic        [5:0]             shift;
  logic signed [31:0]            clamped, clamped_q;

  systole_mul_pipe #(.AWidth(InWidth), .BWidth(32), .ProductWidth(ScaledWidth)) u_scale (
    .clk_i,
    .enable_i,
    .a_i      (data_i),
    .b_i      (multiplier_i),
    .product_o(product)
  );

  systole_delay_line #(.Width(6), .Depth(systole_pkg::MultiplyDepth)) u_shift (
    .clk_i,
    .enable_i,
    .data_i(shift_i),
    .data_o(shift)
  );

  systole_round_shift #(.Width(ScaledWidth)) u_round (
    .data_i (product),
    .shift_i(shift),
    .rounding_i,
    .data_o (shifted)
  );

  always_comb begin
    if (shifted_q < ScaledWidth'(lo_i)) begin
      clamped = lo_i;
    end else if (shifted_q > ScaledWidth'(hi_i)) begin
      clamped = hi_i;
    end else begin
      clamped = shifted_q[31:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      shifted_q <= shifted;
      clamped_q <= clamped;
    end
  end

  assign data_o = clamped_q;

  `SYSTOLE_ASSERT_INIT(WidthsUsable_A, ScaledWidth >= 33 && ScaledWidth <= InWidth + 32)

endmodule
