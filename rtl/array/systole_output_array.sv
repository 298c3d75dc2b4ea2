// Output-stationary systolic array: Rows x Cols processing elements, int8 weights, int8 or uint8
// activations, int32 sums that wrap around. Bit-exact reference: hw/kernel/gemm.h. Cycles:
// hw/array/array.h.
//
// A fold multiplies a tile of A, Rows rows, by a tile of B, Cols columns. Its beats are the tiles'
// common index: a column of A's tile together with a row of B's, the last one with last_i. Each PE
// keeps one sum. Rows of Cols sums leave afterwards, the bottom row first, one a cycle.
//
// PE (r, c) takes its activation from the left and its weight from above, and does r + c cycles
// later what PE (0, 0) does: it is on diagonal r + c. One cycle after the last beat of a fold its sum
// is captured into a second register, and a next fold may begin. The captured sums of a column move
// down together, once its bottom one is at the output.

`include "systole_assert.svh"

module systole_output_array #(
  parameter  int unsigned Rows      = 4,
  parameter  int unsigned Cols      = 4,
  localparam int unsigned Diagonals = Rows + Cols - 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Quasi-static: held from the first beat of a command to its last result.
  input  logic [1:0]            overlap_i,         // systole_pkg::overlap_e
  input  logic                  a_unsigned_i,      // activations are uint8, not int8

  // Operands. While `pending` says that a beat will come, the array stalls in every cycle in which
  // it wants that beat and does not get it. Without `pending` it goes on, and drains.
  input  logic                  valid_i,
  input  logic                  pending_i,
  input  logic                  last_i,            // of the fold
  output logic                  ready_o,
  input  logic [Rows*8-1:0]     act_i,             // row 0 of the array in the low bits
  input  logic [Cols*8-1:0]     weight_i,          // int8, column 0 in the low bits

  // Sums: a row of a fold, the bottom row first.
  output logic                  result_valid_o,
  output logic                  result_last_o,     // of the fold
  input  logic                  result_ready_i,
  output logic [Cols*32-1:0]    result_o,          // int32, column 0 in the low bits

  output logic                  stalled_o          // nothing moves in this cycle
);

  // ------------------------------------------------------------------ what may enter
  // By diagonal. Those above row Rows - 1 are in no register's enable, but say what is in flight.
  logic [Diagonals-1:1] valid_q, first_q;  // a beat; the first of its fold
  logic [Diagonals-1:0] ended_q;           // the last of its fold, one cycle later: a complete sum
  logic [Rows-2:0]      recent_q;          // a fold began in these cycles before
  logic                 streaming_q;       // some beats of a fold have entered, the last has not
  logic                 drained, emptied, wanted, fire;

  // Of column 0, bit r: the sum that row r has of a fold that leaves. All ones when the bottom row is
  // at the output, and one row fewer from the top in each cycle: rows that are rid of theirs may have
  // captured the next fold's.
  logic [Rows-1:0] moving, moving_q;
  logic            offered, more;          // the same of the last column: row Rows - 1, row Rows - 2

  assign moving = ended_q[Rows] ? '1 : moving_q;

  systole_flag_line #(.Width(2), .Depth(Cols - 1)) u_moving (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (moving[Rows-1:Rows-2]),
    .flags_o ({offered, more}),
    .any_o   ()
  );

  // Drained: no multiplier is busy. Emptied: no row of sums is left but the one at the output.
  assign drained = valid_q == '0;
  assign emptied = ended_q == '0 && !more;

  always_comb begin
    unique case (overlap_i)
      systole_pkg::OverlapNone:    wanted = drained && emptied;
      systole_pkg::OverlapPreload: wanted = drained;
      default:                     wanted = recent_q == '0;
    endcase
    wanted = wanted || streaming_q;
  end

  // A stall for the inputs does not keep the consumer from taking the result that is offered.
  logic advance, result_taken_q;

  assign result_valid_o = offered && !result_taken_q;
  assign result_last_o  = !more;

  assign advance   = !(result_valid_o && !result_ready_i) && !(wanted && pending_i && !valid_i);
  assign ready_o   = wanted && advance;
  assign fire      = ready_o && valid_i;
  assign stalled_o = !advance;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      streaming_q    <= 1'b0;
      valid_q        <= '0;
      ended_q        <= '0;
      recent_q       <= '0;
      moving_q       <= '0;
      result_taken_q <= 1'b0;
    end else begin
      result_taken_q <= !advance && (result_taken_q || (result_valid_o && result_ready_i));
      if (advance) begin
        if (fire) streaming_q <= !last_i;
        valid_q  <= (Diagonals-1)'({valid_q, fire});
        ended_q  <= Diagonals'({ended_q, fire && last_i});
        recent_q <= (Rows-1)'({recent_q, fire && !streaming_q});
        moving_q <= moving << 1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance) first_q <= (Diagonals-1)'({first_q, !streaming_q});
  end

  // ------------------------------------------------------------------ processing elements
  for (genvar r = 0; r < Rows; r++) begin : gen_row
    logic [Cols*8-1:0]  weights, weights_below;
    logic [Cols*32-1:0] captured_above, captured;
    logic               valid, first, moves;
    logic [8:0]         entering, act;
    logic               unused_below;

    assign unused_below = ^weights_below;  // in the last row

    assign entering = {!a_unsigned_i && act_i[8*r+7], act_i[8*r+:8]};

    if (r == 0) begin : gen_top
      assign valid          = fire;
      assign first          = !streaming_q;
      assign moves          = 1'b0;
      assign act            = entering;
      assign weights        = weights_entering;
      assign captured_above = '0;
    end else begin : gen_below
      assign valid          = valid_q[r];
      assign first          = first_q[r];
      assign moves          = moving[r-1];
      assign weights        = gen_row[r-1].weights_below;
      assign captured_above = gen_row[r-1].captured;
      systole_delay_line #(.Width(9), .Depth(r)) u_skew (
        .clk_i,
        .enable_i(advance),
        .data_i  (entering),
        .data_o  (act)
      );
    end

    systole_output_row #(.Cols(Cols)) u_row (
      .clk_i,
      .rst_ni,
      .advance_i (advance),
      .valid_i   (valid),
      .first_i   (first),
      .ended_i   (ended_q[r]),
      .moves_i   (moves),
      .act_i     (act),
      .weights_i (weights),
      .captured_i(captured_above),
      .weights_o (weights_below),
      .captured_o(captured)
    );
  end

  // A column is as many cycles late as it is far from column 0; sums wait for the last one.
  logic [Cols*8-1:0] weights_entering;

  for (genvar c = 0; c < Cols; c++) begin : gen_column
    if (c == 0) begin : gen_first
      assign weights_entering[7:0] = weight_i[7:0];
    end else begin : gen_skew
      systole_delay_line #(.Width(8), .Depth(c)) u_skew (
        .clk_i,
        .enable_i(advance),
        .data_i  (weight_i[8*c+:8]),
        .data_o  (weights_entering[8*c+:8])
      );
    end

    if (c == Cols - 1) begin : gen_last
      assign result_o[32*c+:32] = gen_row[Rows-1].captured[32*c+:32];
    end else begin : gen_deskew
      systole_delay_line #(.Width(32), .Depth(Cols - 1 - c)) u_deskew (
        .clk_i,
        .enable_i(advance),
        .data_i  (gen_row[Rows-1].captured[32*c+:32]),
        .data_o  (result_o[32*c+:32])
      );
    end
  end

  `SYSTOLE_ASSERT_INIT(SizeUsable_A, Rows >= 2 && Cols >= 2)
  `SYSTOLE_ASSERT(OverlapKnown_A, overlap_i <= systole_pkg::OverlapFull)
  `SYSTOLE_ASSERT(OverlapHeldInFlight_A, (streaming_q || !drained) |-> $stable(overlap_i))
  `SYSTOLE_ASSERT(OperandsHeld_A, (valid_i && !ready_o) |=>
                                  (valid_i && $stable(act_i) && $stable(weight_i) && $stable(last_i)))
  `SYSTOLE_ASSERT(SignHeld_A, (valid_i && !ready_o) |=> $stable(a_unsigned_i))
  `SYSTOLE_ASSERT(ResultHeld_A, (result_valid_o && !result_ready_i) |=>
                                (result_valid_o && $stable(result_o) && $stable(result_last_o)))

endmodule
