// A line of the denser attention engine: its walker goes through whole columns.
// Bit-exact reference: hw::score_dense_column, hw::accumulate_dense_group of
// hw/attention/sparse_attention.h; cycles: hw::line_cycles() of
// hw/attention/timing/attention_runs.h.
//
// One walk: items (first_row_i, first_group_i) and every step after it, each with all global
// columns in their order.
//   SDDMM  an item is a query, whose row of Q the line holds; groups_i is 1
//   SpMM   an item is a group of outputs of a query

`include "systole_assert.svh"

module systole_denser_line #(
  parameter  int unsigned Macs       = 8,
  parameter  int unsigned MaxWords   = 16,
  localparam int unsigned WordWidth  = $clog2(MaxWords),
  localparam int unsigned CountWidth = $clog2(MaxWords + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Quasi-static: held from the start of the walk to the last result.
  input  logic                  spmm_i,
  input  logic [CountWidth-1:0] words_i,         // SDDMM: of a row of Q and K, 1 .. MaxWords
  input  logic [Macs-1:0]       tail_mask_i,     // MACs with a feature in the last of them
  input  logic [15:0]           columns_i,       // global columns, at least 1
  input  logic [15:0]           rows_i,          // queries
  input  logic [CountWidth-1:0] groups_i,        // of a query
  input  logic [15:0]           first_row_i,     // less than rows_i
  input  logic [WordWidth-1:0]  first_group_i,   // less than groups_i
  input  logic [15:0]           step_row_i,      // to the line's next item: so many queries ...
  input  logic [WordWidth-1:0]  step_group_i,    // ... and groups, less than groups_i

  // Starts the walk.
  input  logic                  walk_valid_i,
  output logic                  walk_ready_o,

  // Words of the item's row of Q.
  output logic                  hold_request_o,
  output logic [15:0]           hold_item_o,
  output logic [WordWidth-1:0]  hold_word_o,
  input  logic                  hold_valid_i,
  output logic                  hold_ready_o,
  input  logic [Macs*8-1:0]     hold_i,          // int8, MAC 0 in the low bits

  // Words of a row of K; SpMM: of V, with the cell's code.
  output logic                  word_request_o,
  output logic [15:0]           word_item_o,
  output logic [15:0]           word_entry_o,    // position in the list of global columns
  output logic [WordWidth-1:0]  word_o,          // of the row
  input  logic                  word_valid_i,
  output logic                  word_ready_o,
  input  logic [Macs*8-1:0]     word_i,
  input  logic [7:0]            code_i,          // uint8

  // SDDMM: a score in lane 0, with its query and column. SpMM: a group's sums.
  output logic                  result_valid_o,
  input  logic                  result_ready_i,
  output logic [15:0]           result_item_o,
  output logic [15:0]           result_entry_o,
  output logic [WordWidth-1:0]  result_group_o,
  output logic [Macs*32-1:0]    result_o,        // int32, MAC 0 in the low bits

  output logic                  stalled_o        // nothing moves in this cycle
);

  logic                  advance, entry_request, item_ends, last_column;
  logic                  walking_q;
  logic [15:0]           row_q, column_q;
  logic [WordWidth-1:0]  group_q;

  // ------------------------------------------------------------------ next item
  logic [CountWidth-1:0] group_sum;
  logic                  carry;      // into the next query
  logic [WordWidth-1:0]  group_d;
  logic [16:0]           row_d;
  logic                  walk_ends;

  assign group_sum = CountWidth'(group_q) + CountWidth'(step_group_i);
  assign carry     = group_sum >= groups_i;
  assign group_d   = WordWidth'(carry ? group_sum - groups_i : group_sum);
  assign row_d     = 17'(row_q) + 17'(step_row_i) + 17'(carry);
  assign walk_ends = item_ends && row_d >= 17'(rows_i);

  assign last_column  = column_q == columns_i - 1'b1;
  assign walk_ready_o = !walking_q && advance;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      walking_q <= 1'b0;
    end else if (advance) begin
      walking_q <= walking_q ? !walk_ends : walk_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance) begin
      if (!walking_q) begin
        row_q    <= first_row_i;
        group_q  <= first_group_i;
        column_q <= '0;
      end else if (item_ends) begin
        row_q    <= row_d[15:0];
        group_q  <= group_d;
        column_q <= '0;
      end else if (entry_request) begin
        column_q <= column_q + 1'b1;
      end
    end
  end

  systole_attention_line #(.Macs(Macs), .MaxWords(MaxWords)) u_line (
    .clk_i,
    .rst_ni,
    .spmm_i,
    .words_i,
    .tail_mask_i,
    .item_valid_i   (walking_q),
    .item_i         (row_q),
    .group_i        (group_q),
    .entry_i        (column_q),
    .entry_last_i   (last_column),
    .walk_waits_i   (1'b0),
    .entry_request_o(entry_request),
    .item_ends_o    (item_ends),
    .advance_o      (advance),
    .hold_request_o,
    .hold_word_o,
    .hold_valid_i,
    .hold_ready_o,
    .hold_i,
    .word_request_o,
    .word_item_o,
    .word_entry_o,
    .word_o,
    .word_valid_i,
    .word_ready_o,
    .word_i,
    .code_i,
    .result_valid_o,
    .result_ready_i,
    .result_item_o,
    .result_entry_o,
    .result_group_o,
    .result_o
  );

  assign hold_item_o = row_q;
  assign stalled_o   = !advance;

  `SYSTOLE_ASSERT(WalkUsable_A, walk_valid_i |->
      (columns_i != '0 && first_row_i < rows_i && CountWidth'(first_group_i) < groups_i &&
       groups_i <= CountWidth'(MaxWords) && CountWidth'(step_group_i) < groups_i &&
       (step_row_i != '0 || step_group_i != '0)))
  `SYSTOLE_ASSERT(WalkHeld_A, (walk_valid_i && !walk_ready_o) |=> walk_valid_i)
  `SYSTOLE_ASSERT(ShapeHeld_A, (walking_q || result_valid_o) |->
      $stable({columns_i, rows_i, groups_i, first_row_i, first_group_i, step_row_i, step_group_i}))

endmodule
