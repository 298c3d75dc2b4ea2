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

  typedef struct packed {
    logic        negative;
    logic        beyond;     // the quotient has more than 32 bits
    logic [31:0] divisor;
    logic [31:0] remainder;  // less than the divisor
    logic [31:0] bits;       // those of the dividend leave at the top, of the quotient enter below
  } partial_t;

  for (genvar s = 0; s <= Steps; s++) begin : gen_step
    partial_t now_d, now_q;
    if (s == 0) begin : gen_shift
      assign now_d.negative  = data_i[31] != divisor_i[31];
      assign now_d.beyond    = data_i != '0 && 32'(shifted[62:32]) >= divisor_abs;
      assign now_d.divisor   = by_zero ? 32'd1 : divisor_abs;
      assign now_d.remainder = 32'(shifted[62:32]);
      assign now_d.bits      = shifted[31:0];
    end else begin : gen_divide
      partial_t    prior;   // of the stage before
      logic [32:0] first, second;
      logic [31:0] rest, left;
      logic        high, low;  // bits of the quotient
      assign prior  = gen_step[s-1].now_q;
      assign first  = {prior.remainder, prior.bits[31]};
      assign high   = first >= {1'b0, prior.divisor};
      assign rest   = 32'(high ? first - {1'b0, prior.divisor} : first);
      assign second = {rest, prior.bits[30]};
      assign low    = second >= {1'b0, prior.divisor};
      assign left   = 32'(low ? second - {1'b0, prior.divisor} : second);
      assign now_d  = '{negative: prior.negative, beyond: prior.beyond,
                             divisor: prior.divisor, remainder: left,
                             bits: {prior.bits[29:0], high, low}};
    end
    always_ff @(posedge clk_i) begin
      if (enable_i) now_q <= now_d;
    end
  end

  // Rounding away from zero, from twice the remainder.
  partial_t           last;
  logic [32:0]        twice;
  logic               above, tie, away;
  logic signed [33:0] magnitude, rounded_q;
  logic               negative_q, beyond_q;
  assign last  = gen_step[Steps].now_q;
  assign twice = {last.remainder, 1'b0};
  assign above = twice > {1'b0, last.divisor};
  assign tie   = twice == {1'b0, last.divisor};
  always_comb begin
    unique case (rounding_i)
      systole_pkg::HalfUp:   away = above || (tie && !last.negative);
      systole_pkg::HalfEven: away = above || (tie && last.bits[0]);
      default:               away = last.negative && last.remainder != '0;
    endcase
  end
  assign magnitude = 34'(last.bits) + 34'(away);

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
      rounded_q  <= last.negative ? -magnitude : magnitude;
      negative_q <= last.negative;
      beyond_q   <= last.beyond;
      clamped_q  <= clamped;
    end
  end

  assign data_o = clamped_q;

  `SYSTOLE_ASSERT_INIT(DepthIsThatOfItsStages_A, systole_pkg::DivideDepth == Steps + 3)

endmodule
