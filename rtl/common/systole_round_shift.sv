// Rounding arithmetic right shift by 0 to 63, combinational; exact for every value and every shift,
// also those beyond Width. Bit-exact reference: hw::shift_right of hw/number/dyadic.h.

`include "systole_assert.svh"

module systole_round_shift #(
  parameter int unsigned Width = 64
) (
  input  logic signed [Width-1:0] data_i,
  input  logic        [5:0]       shift_i,
  input  logic        [1:0]       rounding_i,  // hw::Rounding: 0 half up, 1 half even, 2 floor
  output logic signed [Width-1:0] data_o
);

  // Of the bits that are dropped, the first has the weight of one half: none if the shift is zero,
  // the sign if it is beyond Width. No vector is wider than the value: one of 65 bits would be
  // several words to a simulator.
  logic signed [Width-1:0] shifted;
  logic        [Width-1:0] dropped, below;
  logic                    half, below_half, odd, increment;

  assign shifted    = data_i >>> shift_i;
  assign dropped    = ~({Width{1'b1}} << shift_i);
  assign below      = dropped >> 1;
  assign half       = (data_i & dropped & ~below) != '0;
  assign below_half = (data_i & below) != '0;
  assign odd        = shifted[0];

  assign increment = half && (rounding_i == systole_pkg::HalfUp ||
                              (rounding_i == systole_pkg::HalfEven && (odd || below_half)));

  // Cannot overflow: an increment needs a shift of at least one.
  assign data_o = shifted + signed'({{(Width - 1){1'b0}}, increment});

  `SYSTOLE_ASSERT_INIT(WidthUsable_A, Width >= 2)

endmodule
