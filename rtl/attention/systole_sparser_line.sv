// A line of the sparser attention engine: its walker goes through compressed sparse columns.
// Bit-exact reference: hw::score_sparse_column, hw::accumulate_sparse_group of
// hw/attention/sparse_attention.h; cycles: hw::line_cycles() of
// hw/attention/timing/attention_runs.h.
//
// An item is a part of a list of indices: cells begin_i, begin_i + step_i, ... below end_i.
//   SDDMM  a column: the line holds the row of K, and the indices are the queries that keep it
//   SpMM   a group of outputs of a query: the indices are the keys that the query keeps

`include "systole_assert.svh"

module systole_sparser_line #(
  parameter  int unsigned Macs       = 8,
  parameter  int unsigned MaxWords   = 16,
  parameter  int unsigned CellWidth  = 32,
  localparam int unsigned WordWidth  = $clog2(MaxWords),
  localparam int unsigned CountWidth = $clog2(MaxWords + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Quasi-static: held from the first item to the last result.
  input  logic                  spmm_i,
  input  logic [CountWidth-1:0] words_i,         // SDDMM: of a row of Q and K, 1 .. MaxWords
  input  logic [Macs-1:0]       tail_mask_i,     // MACs with a feature in the last of them
  input  logic [15:0]           step_i,          // from one cell of an item to the next, at least 1

  // Items. The line waits for one unless the last has come.
  output logic                  item_request_o,
  input  logic                  item_valid_i,
  output logic                  item_ready_o,
  input  logic                  item_last_i,
  input  logic [15:0]           item_i,          // SDDMM: key; SpMM: query
  input  logic [WordWidth-1:0]  item_group_i,    // SpMM
  input  logic [CellWidth-1:0]  item_begin_i,
  input  logic [CellWidth-1:0]  item_end_i,      // more than item_begin_i

  // Indices.
  output logic                  index_request_o,
  output logic [CellWidth-1:0]  index_cell_o,
  input  logic                  index_valid_i,
  output logic                  index_ready_o,
  input  logic [15:0]           index_i,         // SDDMM: query; SpMM: key

  // Words of the item's row of K.
  output logic                  hold_request_o,
  output logic [15:0]           hold_item_o,
  output logic [WordWidth-1:0]  hold_word_o,
  input  logic                  hold_valid_i,
  output logic                  hold_ready_o,
  input  logic [Macs*8-1:0]     hold_i,          // int8, MAC 0 in the low bits

  // Words of a row of Q; SpMM: of V, with the cell's code.
  output logic                  word_request_o,
  output logic [15:0]           word_item_o,
  output logic [15:0]           word_entry_o,    // the index
  output logic [WordWidth-1:0]  word_o,          // of the row
  input  logic                  word_valid_i,
  output logic                  word_ready_o,
  input  logic [Macs*8-1:0]     word_i,
  input  logic [7:0]            code_i,          // uint8

  // SDDMM: a score in lane 0, with its key and query. SpMM: a group's sums.
  output logic                  result_valid_o,
  input  logic                  result_ready_i,
  output logic [15:0]           result_item_o,
  output logic [15:0]           result_entry_o,
  output logic [WordWidth-1:0]  result_group_o,
  output logic [Macs*32-1:0]    result_o,        // int32, MAC 0 in the low bits

  output logic                  stalled_o        // nothing moves in this cycle
);

  logic                 advance, waits, item_ends, last_cell;
  logic                 more_q;        // an item is still to come
  logic                 item_valid_q;
  logic [15:0]          item_q;
  logic [WordWidth-1:0] group_q;
  logic [CellWidth-1:0] cell_q, end_q;

  assign item_request_o = !item_valid_q || item_ends;
  assign item_ready_o   = item_request_o && advance;
  assign index_ready_o  = index_request_o && advance;
  assign index_cell_o   = cell_q;
  assign last_cell      = end_q - cell_q <= CellWidth'(step_i);
  assign waits          = (item_request_o && more_q && !item_valid_i) ||
                          (index_request_o && !index_valid_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      more_q       <= 1'b0;
      item_valid_q <= 1'b0;
    end else if (item_ready_o) begin
      item_valid_q <= item_valid_i;
      if (item_valid_i) more_q <= !item_last_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (item_ready_o) begin
      item_q  <= item_i;
      group_q <= item_group_i;
      cell_q  <= item_begin_i;
      end_q   <= item_end_i;
    end else if (index_ready_o) begin
      cell_q <= cell_q + CellWidth'(step_i);
    end
  end

  systole_attention_line #(.Macs(Macs), .MaxWords(MaxWords)) u_line (
    .clk_i,
    .rst_ni,
    .spmm_i,
    .words_i,
    .tail_mask_i,
    .item_valid_i   (item_valid_q),
    .item_i         (item_q),
    .group_i        (group_q),
    .entry_i        (index_i),
    .entry_last_i   (last_cell),
    .walk_waits_i   (waits),
    .entry_request_o(index_request_o),
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

  assign hold_item_o = item_q;
  assign stalled_o   = !advance;

  `SYSTOLE_ASSERT(StepUsable_A, item_valid_i |-> step_i != '0)
  `SYSTOLE_ASSERT(ItemNotEmpty_A, item_valid_i |-> item_begin_i < item_end_i)
  `SYSTOLE_ASSERT(ItemHeld_A, (item_valid_i && !item_ready_o) |=>
      (item_valid_i && $stable({item_last_i, item_i, item_group_i, item_begin_i, item_end_i})))
  `SYSTOLE_ASSERT(IndexHeld_A, (index_request_o && index_valid_i && !advance) |=>
                               (index_valid_i && $stable({index_i, index_cell_o})))

endmodule
