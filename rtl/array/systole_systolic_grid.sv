// The processing elements of a weight-stationary array: everything between its operands and its sums
// that is no control. systole_systolic_sequencer says what moves; the array (systole_systolic_array.sv)
// has both side by side, a core's unit for matmuls has the sequencer a cycle ahead.
//
// The array is written down by its anti-diagonals: PE (r, c) is on diagonal d = r + c and takes
// its activation, the sum from above and the weight from above from diagonal d - 1. All that skews
// the operands and deskews the sums fits the same scheme, and so does the moment at which a fold's
// weights become stationary, which is one for a diagonal. A simulator that finds the registers of a
// diagonal side by side can handle them as vectors.

`include "systole_assert.svh"

module systole_systolic_grid #(
  parameter  int unsigned Rows            = 4,
  parameter  int unsigned Cols            = 4,
  parameter  int unsigned OperandMinWidth = 8,  // see systole_systolic_array
  // 1: a multiplier is two of an activation by half of a weight. With an int8 weight both halves are
  // of one product, with two int4 weights each has an activation of its own. 2: each of these is two
  // of half an activation, and with int4 activations there are four products of halves.
  parameter  int unsigned Split           = 0,
  localparam int unsigned Diagonals       = Rows + Cols - 1,
  localparam int unsigned WeightBytes     = Split == 2 ? 2 : 1,
  localparam int unsigned ActBytes        = Split == 0 ? 1 : 2
) (
  input  logic                  clk_i,

  // from the sequencer
  input  logic                  advance_i,         // enable of every register
  input  logic                  weights_move_i,
  input  logic [Rows-1:0]       shift_i,
  input  logic [Diagonals-1:0]  capture_i,

  input  logic                  a_unsigned_i,
  // With Split 2, a row has two bytes of a column: after those of the first pairs the others.
  input  logic [Cols*8*WeightBytes-1:0] weight_i,
  input  logic                  b_int4_i,          // with Split, of the row of activations
  input  logic                  a_int4_i,          // with Split 2, the same
  // With Split, a row has two: those of the weights in the low halves, after all of them the others;
  // pairs of int4 those of the first bytes of weights, then the others.
  input  logic [Rows*8*ActBytes-1:0] act_i,
  output logic [Cols*32-1:0]    result_o
);

  // What is cut into halves does not travel wider.
  localparam int unsigned LeastWidth  = Split == 2 ? 8 : OperandMinWidth;
  localparam int unsigned ActWidth    = LeastWidth > 9 ? LeastWidth : 9;
  localparam int unsigned StoredBits  = 8 * WeightBytes;
  localparam int unsigned WeightWidth = LeastWidth > StoredBits ? LeastWidth : StoredBits;

  // What a diagonal multiplies by is of one fold, so that one flag goes along with the activations.
  if (Split != 0) begin : gen_mode
    logic [Diagonals-1:0] int4;
    logic [Diagonals-1:1] int4_q;
    assign int4 = {int4_q, b_int4_i};
    always_ff @(posedge clk_i) begin
      if (advance_i) int4_q <= int4[Diagonals-2:0];
    end
  end else begin : gen_whole
    logic unused_mode;
    assign unused_mode = b_int4_i;
  end
  if (Split == 2) begin : gen_act_mode
    logic [Diagonals-1:0] int4;
    logic [Diagonals-1:1] int4_q;
    assign int4 = {int4_q, a_int4_i};
    always_ff @(posedge clk_i) begin
      if (advance_i) int4_q <= int4[Diagonals-2:0];
    end
  end else begin : gen_whole_act
    logic unused_mode;
    assign unused_mode = a_int4_i;
  end

  // Data registers carry no reset: the sequencer's flags say which of them hold something.
  for (genvar d = 0; d < Diagonals; d++) begin : gen_diagonal
    // Rows with a PE on this diagonal, and the first such row of the next one.
    localparam int unsigned First = d < Cols ? 0 : d - Cols + 1;
    localparam int unsigned Last  = d < Rows ? d : Rows - 1;
    localparam int unsigned Next  = d + 1 < Cols ? 0 : d - Cols + 2;

    // Activations. Those of the rows below `Last` have not come to their first PE yet.
    for (genvar r = First; r < Rows; r++) begin : gen_act
      logic signed [ActWidth-1:0] act;
      if (d == 0) begin : gen_port
        logic signed [8:0] extended;
        assign extended = {!a_unsigned_i && act_i[8*r+7], act_i[8*r+:8]};
        assign act      = ActWidth'(extended);
      end else begin : gen_left
        assign act = gen_diagonal[d-1].gen_act_stage[r].act_q;
      end
    end
    for (genvar r = Next; r < Rows; r++) begin : gen_act_stage
      logic signed [ActWidth-1:0] act_q;
      always_ff @(posedge clk_i) begin
        if (advance_i) act_q <= gen_act[r].act;
      end
    end

    // The second activations, of the weights in the high halves.
    if (Split != 0) begin : gen_odd
      for (genvar r = First; r < Rows; r++) begin : gen_act
        logic signed [ActWidth-1:0] act;
        if (d == 0) begin : gen_port
          logic [7:0]        entering;
          logic signed [8:0] extended;
          assign entering = b_int4_i ? act_i[8*(Rows+r)+:8] : act_i[8*r+:8];
          assign extended = {!a_unsigned_i && entering[7], entering};
          assign act      = ActWidth'(extended);
        end else begin : gen_left
          assign act = gen_diagonal[d-1].gen_odd.gen_stage[r].act_q;
        end
      end
      for (genvar r = Next; r < Rows; r++) begin : gen_stage
        logic signed [ActWidth-1:0] act_q;
        always_ff @(posedge clk_i) begin
          if (advance_i) begin
            act_q <= gen_act[r].act;
          end
        end
      end
    end

    // Products and sums.
    for (genvar r = First; r <= Last; r++) begin : gen_sum
      logic signed [31:0] above, sum_q;
      if (r == 0) begin : gen_top
        assign above = '0;
      end else begin : gen_below
        assign above = gen_diagonal[d-1].gen_sum[r-1].sum_q;
      end
      if (Split == 0) begin : gen_whole
        always_ff @(posedge clk_i) begin
          if (advance_i) begin
            sum_q <= above + 32'(gen_act[r].act) * 32'(gen_stationary[r].weight_q);
          end
        end
      end else if (Split == 2) begin : gen_quarters
        // Quarter i of the multiplier: of half i / 2 of an activation and of half i % 2 of a weight,
        // or of the i-th int4 of each. A low half has a sign if it is an int4, and no sign if it is
        // a part of an int8.
        logic                  both, pairs;
        logic [15:0]           stationary;
        logic signed [8:0]     first, second;
        logic signed [4:0]     low, high;  // int4 0 and 1 of weights, or the halves of an int8
        logic signed [4:0]     a_0, a_1, a_2, a_3, w_2, w_3;
        logic signed [31:0]    of_0, of_1, of_2, of_3;
        assign both       = gen_act_mode.int4[d];
        assign pairs      = gen_mode.int4[d];
        assign stationary = gen_stationary[r].weight_q;
        assign first      = gen_act[r].act;
        assign second     = gen_odd.gen_act[r].act;
        assign low        = {pairs && stationary[3], stationary[3:0]};
        assign high       = {stationary[7], stationary[7:4]};
        assign a_0  = {both && first[3], first[3:0]};
        assign a_1  = both ? first[8:4] : {1'b0, second[3:0]};
        assign a_2  = both ? {second[3], second[3:0]} : first[8:4];
        assign a_3  = second[8:4];
        assign w_2  = both ? {stationary[11], stationary[11:8]} : low;
        assign w_3  = both ? {stationary[15], stationary[15:12]} : high;
        assign of_0 = 32'(a_0) * 32'(low);
        assign of_1 = 32'(a_1) * 32'(high);
        assign of_2 = 32'(a_2) * 32'(w_2);
        assign of_3 = 32'(a_3) * 32'(w_3);
        always_ff @(posedge clk_i) begin
          if (advance_i) begin
            sum_q <= above + of_0 + (pairs ? of_1 : of_1 <<< 4) + (both ? of_2 : of_2 <<< 4)
                           + (both ? of_3 : pairs ? of_3 <<< 4 : of_3 <<< 8);
          end
        end
      end else begin : gen_split
        // The low half has a sign if it is a weight, and no sign if it is a part of one.
        logic signed [4:0]  low;
        logic signed [3:0]  high;
        logic signed [31:0] of_low, of_high;
        assign low     = {gen_mode.int4[d] && gen_stationary[r].weight_q[3],
                          gen_stationary[r].weight_q[3:0]};
        assign high    = gen_stationary[r].weight_q[7:4];
        assign of_low  = 32'(gen_act[r].act) * 32'(low);
        assign of_high = 32'(gen_odd.gen_act[r].act) * 32'(high);
        always_ff @(posedge clk_i) begin
          if (advance_i) begin
            sum_q <= above + of_low + (gen_mode.int4[d] ? of_high : of_high <<< 4);
          end
        end
      end
    end

    // Sums of the columns whose last PE is on an earlier diagonal.
    for (genvar c = 0; c + Rows <= d; c++) begin : gen_deskew
      logic signed [31:0] sum, sum_q;
      if (c + Rows == d) begin : gen_bottom
        assign sum = gen_diagonal[d-1].gen_sum[Rows-1].sum_q;
      end else begin : gen_wait
        assign sum = gen_diagonal[d-1].gen_deskew[c].sum_q;
      end
      always_ff @(posedge clk_i) begin
        if (advance_i) sum_q <= sum;
      end
    end

    // Stationary weights. Those of row 0 may be captured in the cycle in which they enter.
    for (genvar r = First; r <= Last; r++) begin : gen_stationary
      logic signed [StoredBits-1:0]  captured;
      logic signed [WeightWidth-1:0] weight_q;
      if (r == 0) begin : gen_entering
        assign captured = gen_shift[r].shift ? gen_shadow[r].above : gen_shadow[r].weight_q;
      end else begin : gen_entered
        assign captured = gen_shadow[r].weight_q;
      end
      always_ff @(posedge clk_i) begin
        if (advance_i) begin
          if (weights_move_i) weight_q <= capture_i[d] ? WeightWidth'(captured) : weight_q;
        end
      end
    end

    // Shadow weights.
    for (genvar r = First; r <= Last; r++) begin : gen_shadow
      logic signed [StoredBits-1:0] above, weight_q;
      if (r != 0) begin : gen_below
        assign above = gen_diagonal[d-1].gen_shadow[r-1].weight_q;
      end else if (d == 0) begin : gen_port
        assign above = gen_entering[0].weight;
      end else begin : gen_skewed
        assign above = gen_diagonal[d-1].gen_weight_skew[d].weight_q;
      end
      always_ff @(posedge clk_i) begin
        if (advance_i) begin
          if (weights_move_i) weight_q <= gen_shift[r].shift ? above : weight_q;
        end
      end
    end

    for (genvar r = First; r <= Last; r++) begin : gen_shift
      logic shift;
      assign shift = gen_column[d-r].shift[r];
    end

    // Weights of the columns whose first PE is on a later diagonal.
    for (genvar c = d + 1; c < Cols; c++) begin : gen_weight_skew
      logic signed [StoredBits-1:0] weight, weight_q;
      if (d == 0) begin : gen_port
        assign weight = gen_entering[c].weight;
      end else begin : gen_wait
        assign weight = gen_diagonal[d-1].gen_weight_skew[c].weight_q;
      end
      always_ff @(posedge clk_i) begin
        if (advance_i) begin
          if (weights_move_i) weight_q <= weight;
        end
      end
    end
  end

  for (genvar c = 0; c < Cols; c++) begin : gen_entering
    logic signed [StoredBits-1:0] weight;
    for (genvar b = 0; b < WeightBytes; b++) begin : gen_byte
      assign weight[8*b+:8] = weight_i[8*(Cols*b+c)+:8];
    end
  end

  // Rows whose shadow weights move: what column 0 does reaches column c after c cycles.
  for (genvar c = 0; c < Cols; c++) begin : gen_column
    logic [Rows-1:0] shift;
    if (c == 0) begin : gen_first
      assign shift = shift_i;
    end else begin : gen_next
      logic [Rows-1:0] shift_q;
      always_ff @(posedge clk_i) begin
        if (advance_i) begin
          if (weights_move_i) shift_q <= gen_column[c-1].shift;
        end
      end
      assign shift = shift_q;
    end
  end

  for (genvar c = 0; c < Cols; c++) begin : gen_result
    if (c == Cols - 1) begin : gen_bottom
      assign result_o[32*c+:32] = gen_diagonal[Diagonals-1].gen_sum[Rows-1].sum_q;
    end else begin : gen_deskewed
      assign result_o[32*c+:32] = gen_diagonal[Diagonals-1].gen_deskew[c].sum_q;
    end
  end

  `SYSTOLE_ASSERT_INIT(OperandsFit_A, OperandMinWidth <= 32)
  `SYSTOLE_ASSERT_INIT(SplitIsKnown_A, Split <= 2)

endmodule
