// Weight-stationary systolic array: Rows x Cols processing elements, int8 weights, int8 or uint8
// activations, int32 sums that wrap around. Bit-exact reference: hw/kernel/gemm.h. Cycles:
// hw/array/array.h.
//
// A fold multiplies rows of Rows activations by a tile of Rows x Cols weights. Its weights enter as
// Rows beats of Cols, bottom row of the tile first; then its rows of activations, the last one with
// act_last_i; a row of Cols sums leaves Rows + Cols - 1 cycles after its activations entered.
// Every PE holds two weights: while it multiplies by one, the next fold's shift into the other.

`include "systole_assert.svh"

module systole_systolic_array #(
  parameter  int unsigned Rows            = 4,
  parameter  int unsigned Cols            = 4,
  // Activations need 9 bits and stationary weights 8. With more they travel sign-extended: no value
  // changes, but a Verilated model with 32 saves two sign extensions in every PE.
  parameter  int unsigned OperandMinWidth = 8,
  localparam int unsigned Diagonals       = Rows + Cols - 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Quasi-static: held from the first beat of a command to its last result.
  input  logic [1:0]            overlap_i,         // systole_pkg::overlap_e
  input  logic                  a_unsigned_i,      // activations are uint8, not int8

  // Drops weights that have entered for a fold that has not begun. Not within a fold.
  input  logic                  clear_i,

  // Weights: a row of a tile. While `pending` says that a beat will come, the array stalls
  // in every cycle in which it wants that beat and does not get it. Without `pending` it goes
  // on, and drains.
  input  logic                  weight_valid_i,
  input  logic                  weight_pending_i,
  output logic                  weight_ready_o,
  input  logic [Cols*8-1:0]     weight_i,          // int8, column 0 in the low bits

  // Activations: a row of a fold.
  input  logic                  act_valid_i,
  input  logic                  act_pending_i,
  input  logic                  act_last_i,        // of the fold
  output logic                  act_ready_o,
  input  logic [Rows*8-1:0]     act_i,             // row 0 of the array in the low bits

  // Partial sums: a row of a fold.
  output logic                  result_valid_o,
  output logic                  result_last_o,     // of the fold
  input  logic                  result_ready_i,
  output logic [Cols*32-1:0]    result_o,          // int32, column 0 in the low bits

  output logic                  stalled_o          // nothing moves in this cycle
);

  logic                 advance, weights_move;
  logic [Rows-1:0]      shift_column_0;
  logic [Diagonals-1:0] capture;
  logic [1:0]           unused_wanted;

  systole_systolic_sequencer #(.Rows(Rows), .Cols(Cols)) u_sequencer (
    .clk_i,
    .rst_ni,
    .overlap_i,
    .clear_i,
    .weight_valid_i,
    .weight_pending_i,
    .weight_ready_o,
    .act_valid_i,
    .act_pending_i,
    .act_last_i,
    .act_ready_o,
    .hold_i         (1'b0),
    .weight_wanted_o(unused_wanted[0]),
    .act_wanted_o   (unused_wanted[1]),
    .result_valid_o,
    .result_last_o,
    .result_ready_i,
    .advance_o      (advance),
    .weights_move_o (weights_move),
    .shift_o        (shift_column_0),
    .capture_o      (capture)
  );

  assign stalled_o = !advance;

  systole_systolic_grid #(.Rows(Rows), .Cols(Cols), .OperandMinWidth(OperandMinWidth)) u_grid (
    .clk_i,
    .advance_i     (advance),
    .weights_move_i(weights_move),
    .shift_i       (shift_column_0),
    .capture_i     (capture),
    .a_unsigned_i,
    .b_int4_i      (1'b0),
    .a_int4_i      (1'b0),
    .weight_i,
    .act_i,
    .result_o
  );

  `SYSTOLE_ASSERT(WeightHeld_A, (weight_valid_i && !weight_ready_o && !clear_i) |=>
                                (weight_valid_i && $stable(weight_i)))
  `SYSTOLE_ASSERT(ActHeld_A, (act_valid_i && !act_ready_o && !clear_i) |=>
                             (act_valid_i && $stable(act_i) && $stable(act_last_i)))
  `SYSTOLE_ASSERT(SignHeld_A, (act_valid_i && !act_ready_o && !clear_i) |=> $stable(a_unsigned_i))
  `SYSTOLE_ASSERT(ResultHeld_A, (result_valid_o && !result_ready_i) |=>
                                (result_valid_o && $stable(result_o) && $stable(result_last_o)))

endmodule
