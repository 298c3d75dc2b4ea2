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

  // One zero below the value: the bit of weight one half comes out of the same shifter, and a shift
  // by zero needs no case of its own.
  logic signed [Width:0] extended, shifted, dropped;
  logic                  half, below_half, odd, increment;

  assign extended   = {data_i, 1'b0};
  assign shifted    = extended >>> shift_i;
  assign half       = shifted[0];
  assign odd        = shifted[1];
  assign dropped    = extended & ~({(Width + 1){1'b1}} << shift_i);
  assign below_half = dropped != '0;

  assign increment = half && (rounding_i == systole_pkg::HalfUp ||
                              (rounding_i == systole_pkg::HalfEven && (odd || below_half)));

  // Cannot overflow: an increment needs a shift of at least one.
  assign data_o = signed'(shifted[Width:1]) + signed'({{(Width - 1){1'b0}}, increment});

  `SYSTOLE_ASSERT_INIT(WidthUsable_A, Width >= 2)

endmodule
