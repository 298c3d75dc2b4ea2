// Division of one element, without flow control: clamp(round(data * 2^shift / divisor), lo, hi) in
// nineteen stages: shift of the dividend 1, two bits of the quotient in each of 16, rounding from the
// remainder and sign 1, clamp 1. Bit-exact reference: hw::divide of hw/function/divide.h.
//
// Divisor and shift belong to the element and travel with it; rounding and limits are quasi-static.
// The quotient has 32 bits. One that does not fit is beyond all limits, as is a division by zero.

`include "systole_assert.svh"

module systole_divider_lane (
  input  logic               clk_i,
  input  logic               enable_i,
  input  logic signed [31:0] data_i,
  input  logic signed [31:0] divisor_i,
  input  logic        [4:0]  shift_i,
  input  logic        [1:0]  rounding_i,  // hw::Rounding
  input  logic signed [31:0] lo_i,
  input  logic signed [31:0] hi_i,        // not below lo_i
  output logic signed [31:0] data_o
);

  localparam int unsigned Steps = 16;  // of two bits each

  // Magnitudes, of which that of the most negative number has 32 bits.
  logic [31:0] dividend_abs, divisor_abs;
  logic [62:0] shifted;
  assign dividend_abs = data_i[31] ? -data_i : data_i;
  assign divisor_abs  = divisor_i[31] ? -divisor_i : divisor_i;
  assign shifted      = 63'(dividend_abs) << shift_i;

  // Nothing is divided by zero but zero, which is divided by one.
  logic by_zero;
  assign by_zero = divisor_abs == '0;

  for (genvar s = 0; s <= Steps; s++) begin : gen_step
    logic        negative, negative_q;
    logic        beyond, beyond_q;        // the quotient has more than 32 bits
    logic [31:0] divisor, divisor_q;
    logic [31:0] remainder, remainder_q;  // less than the divisor
    // Bits of the dividend leave at the top while those of the quotient enter at the bottom.
    logic [31:0] bits, bits_q;
    if (s == 0) begin : gen_shift
      assign negative  = data_i[31] != divisor_i[31];
      assign beyond    = data_i != '0 && 32'(shifted[62:32]) >= divisor_abs;
      assign divisor   = by_zero ? 32'd1 : divisor_abs;
      assign remainder = 32'(shifted[62:32]);
      assign bits      = shifted[31:0];
    end else begin : gen_divide
      logic [32:0] first, second;
      logic [31:0] rest;
      logic        high, low;  // bits of the quotient
      assign negative  = gen_step[s-1].negative_q;
      assign beyond    = gen_step[s-1].beyond_q;
      assign divisor   = gen_step[s-1].divisor_q;
      assign first     = {gen_step[s-1].remainder_q, gen_step[s-1].bits_q[31]};
      assign high      = first >= {1'b0, divisor};
      assign rest      = 32'(high ? first - {1'b0, divisor} : first);
      assign second    = {rest, gen_step[s-1].bits_q[30]};
      assign low       = second >= {1'b0, divisor};
      assign remainder = 32'(low ? second - {1'b0, divisor} : second);
      assign bits      = {gen_step[s-1].bits_q[29:0], high, low};
    end
    always_ff @(posedge clk_i) begin
      if (enable_i) begin
        negative_q  <= negative;
        beyond_q    <= beyond;
        divisor_q   <= divisor;
        remainder_q <= remainder;
        bits_q      <= bits;
      end
    end
  end

  // Rounding away from zero, from twice the remainder.
  logic [32:0]        twice;
  logic               above, tie, away;
  logic signed [33:0] magnitude, rounded_q;
  logic               negative_q, beyond_q;
  assign twice = {gen_step[Steps].remainder_q, 1'b0};
  assign above = twice > {1'b0, gen_step[Steps].divisor_q};
  assign tie   = twice == {1'b0, gen_step[Steps].divisor_q};
  always_comb begin
    unique case (rounding_i)
      systole_pkg::HalfUp:   away = above || (tie && !gen_step[Steps].negative_q);
      systole_pkg::HalfEven: away = above || (tie && gen_step[Steps].bits_q[0]);
      default:               away = gen_step[Steps].negative_q && gen_step[Steps].remainder_q != '0;
    endcase
  end
  assign magnitude = 34'(gen_step[Steps].bits_q) + 34'(away);

  logic signed [31:0] clamped, clamped_q;
  always_comb begin
    if (beyond_q) begin
      clamped = negative_q ? lo_i : hi_i;
    end else if (rounded_q < 34'(lo_i)) begin
      clamped = lo_i;
    end else if (rounded_q > 34'(hi_i)) begin
      clamped = hi_i;
    end else begin
      clamped = rounded_q[31:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      rounded_q  <= gen_step[Steps].negative_q ? -magnitude : magnitude;
      negative_q <= gen_step[Steps].negative_q;
      beyond_q   <= gen_step[Steps].beyond_q;
      clamped_q  <= clamped;
    end
  end

  assign data_o = clamped_q;

  `SYSTOLE_ASSERT_INIT(DepthIsThatOfItsStages_A, systole_pkg::DivideDepth == Steps + 3)

endmodule
