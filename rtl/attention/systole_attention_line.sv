// What a line of the sparser and of the denser attention engine have in common: everything but the
// walker, which says what the line works on. Values: hw/attention/sparse_attention.h; cycles:
// hw::line_cycles() of hw/attention/timing/attention_runs.h.
//
// The walker holds an item and its entries. An entry is a step of the line.
//   SDDMM  item: a row of Q or K that the line holds; entry: the row that it meets. A step takes a
//          word a cycle, and its score leaves.
//   SpMM   item: a group of outputs; entry: a key. A step takes a cycle, and the group's sums leave
//          after the last.
//
// Items and entries follow each other without a gap. The row to hold comes in word by word while
// its item is in the walker, a cycle before its use at least; a word of the row before is
// replaced in the cycle of its last use at the earliest.
//
// Whatever the line wants, it asks for with a request and an address, which stay until the beat
// comes. One enable moves every register: the line stalls in a cycle in which a beat is
// withheld or a result refused.

`include "systole_assert.svh"

module systole_attention_line #(
  parameter  int unsigned Macs       = 8,
  parameter  int unsigned MaxWords   = 16,
  localparam int unsigned WordWidth  = $clog2(MaxWords),
  localparam int unsigned CountWidth = $clog2(MaxWords + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Quasi-static: held from the first item to the last result.
  input  logic                  spmm_i,
  input  logic [CountWidth-1:0] words_i,          // SDDMM: of a row, 1 .. MaxWords
  input  logic [Macs-1:0]       tail_mask_i,      // MACs with a feature in the last of them

  // Walker.
  input  logic                  item_valid_i,
  input  logic [15:0]           item_i,
  input  logic [WordWidth-1:0]  group_i,          // SpMM: of the item's token
  input  logic [15:0]           entry_i,
  input  logic                  entry_last_i,     // of the item
  input  logic                  walk_waits_i,     // a beat that the walker wants is withheld
  output logic                  entry_request_o,  // the line takes an entry
  output logic                  item_ends_o,      // the line is done with the item
  output logic                  advance_o,        // enable

  // Words of the row to hold.
  output logic                  hold_request_o,
  output logic [WordWidth-1:0]  hold_word_o,
  input  logic                  hold_valid_i,
  output logic                  hold_ready_o,
  input  logic [Macs*8-1:0]     hold_i,           // int8, MAC 0 in the low bits

  // Words of the rows that meet it; SpMM: words of V, each with the code of its cell.
  output logic                  word_request_o,
  output logic [15:0]           word_item_o,
  output logic [15:0]           word_entry_o,
  output logic [WordWidth-1:0]  word_o,           // of the row; SpMM: the group
  input  logic                  word_valid_i,
  output logic                  word_ready_o,
  input  logic [Macs*8-1:0]     word_i,
  input  logic [7:0]            code_i,           // uint8

  // SDDMM: a score in lane 0. SpMM: a group's sums.
  output logic                  result_valid_o,
  input  logic                  result_ready_i,
  output logic [15:0]           result_item_o,
  output logic [15:0]           result_entry_o,
  output logic [WordWidth-1:0]  result_group_o,
  output logic [Macs*32-1:0]    result_o          // int32, MAC 0 in the low bits
);

  localparam int unsigned TagWidth = 16 + 16 + WordWidth;

  logic advance, row_free;

  // ------------------------------------------------------------------ item
  logic                  begun_q;          // an entry of it has gone into the row stage
  logic                  walked, walked_q;  // all of them
  logic                  held;
  logic [CountWidth-1:0] held_count_d, held_count_q;

  // An item outstays its last entry only until its row is in, and so long that entry is in use.
  assign entry_request_o = item_valid_i && row_free;
  assign hold_request_o  = item_valid_i && !spmm_i && held_count_q != words_i;

  assign walked       = walked_q || (entry_request_o && entry_last_i);
  assign held_count_d = held_count_q + CountWidth'(hold_request_o);
  assign held         = spmm_i || held_count_d == words_i;
  assign item_ends_o  = item_valid_i && walked && held;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q      <= 1'b0;
      walked_q     <= 1'b0;
      held_count_q <= '0;
    end else if (advance) begin
      begun_q      <= !item_ends_o && (begun_q || entry_request_o);
      walked_q     <= !item_ends_o && walked;
      held_count_q <= item_ends_o ? '0 : held_count_d;
    end
  end

  assign hold_word_o = WordWidth'(held_count_q);

  logic [Macs*8-1:0] held_q [MaxWords];
  logic [Macs*8-1:0] hold_masked;
  logic              hold_tail;

  assign hold_tail = held_count_d == words_i;

  for (genvar m = 0; m < Macs; m++) begin : gen_mask
    assign hold_masked[8*m+:8] = hold_tail && !tail_mask_i[m] ? '0 : hold_i[8*m+:8];
  end

  always_ff @(posedge clk_i) begin
    if (advance && hold_request_o) held_q[hold_word_o] <= hold_masked;
  end

  // ------------------------------------------------------------------ row
  logic                 row_valid_q, row_first_q, row_last_q;  // first and last entry of an item
  logic                 last_word;
  logic [WordWidth-1:0] word_q;
  logic [15:0]          row_item_q, row_entry_q;
  logic [WordWidth-1:0] row_group_q;

  assign last_word = spmm_i || CountWidth'(word_q) == words_i - 1'b1;
  assign row_free  = !row_valid_q || last_word;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_valid_q <= 1'b0;
    end else if (advance && row_free) begin
      row_valid_q <= entry_request_o;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance) begin
      word_q <= row_free ? '0 : word_q + 1'b1;
      if (entry_request_o) begin
        row_first_q <= !begun_q;
        row_last_q  <= entry_last_i;
        row_item_q  <= item_i;
        row_entry_q <= entry_i;
        row_group_q <= group_i;
      end
    end
  end

  assign word_request_o = row_valid_q;
  assign word_item_o    = row_item_q;
  assign word_entry_o   = row_entry_q;
  assign word_o         = spmm_i ? row_group_q : word_q;

  // ------------------------------------------------------------------ sums
  logic               sum_first, sum_last, result;
  logic [Macs*32-1:0] sums;

  assign sum_first = spmm_i ? row_first_q : word_q == '0;
  assign sum_last  = spmm_i ? row_last_q : last_word;

  systole_attention_macs #(.Macs(Macs)) u_macs (
    .clk_i,
    .enable_i (advance),
    .across_i (!spmm_i),
    .first_i  (sum_first),
    .factors_i(held_q[word_q]),
    .factor_i (signed'({1'b0, code_i})),
    .word_i,
    .initial_i('0),
    .sums_o   (sums)
  );

  systole_flag_line #(.Width(1), .Depth(systole_pkg::MacDepth)) u_result (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (row_valid_q && sum_last),
    .flags_o (result),
    .any_o   ()
  );

  systole_delay_line #(.Width(TagWidth), .Depth(systole_pkg::MacDepth)) u_tags (
    .clk_i,
    .enable_i(advance),
    .data_i  ({row_item_q, row_entry_q, row_group_q}),
    .data_o  ({result_item_o, result_entry_o, result_group_o})
  );

  assign result_o = spmm_i ? sums : (Macs * 32)'(sums[31:0]);

  // ------------------------------------------------------------------ enable and handshakes
  // A result may be taken while the line waits for a beat; it then must not be offered again.
  logic taken_q;

  assign result_valid_o = result && !taken_q;
  assign advance        = !(result_valid_o && !result_ready_i) && !walk_waits_i &&
                          !(hold_request_o && !hold_valid_i) && !(word_request_o && !word_valid_i);
  assign advance_o      = advance;
  assign hold_ready_o   = hold_request_o && advance;
  assign word_ready_o   = word_request_o && advance;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q <= 1'b0;
    end else begin
      taken_q <= !advance && (taken_q || (result_valid_o && result_ready_i));
    end
  end

  `SYSTOLE_ASSERT_INIT(WordsPowerOfTwo_A, MaxWords >= 2 && (MaxWords & (MaxWords - 1)) == 0)
  `SYSTOLE_ASSERT(WordsInRange_A, item_valid_i |-> spmm_i ||
                                  (words_i != '0 && words_i <= CountWidth'(MaxWords)))
  `SYSTOLE_ASSERT(TailFilledFromMacZero_A, item_valid_i |-> spmm_i ||
                  (tail_mask_i[0] && (tail_mask_i & (tail_mask_i + 1'b1)) == '0))
  `SYSTOLE_ASSERT(NoEntryAfterTheLast_A, walked_q |-> !row_free)
  `SYSTOLE_ASSERT(ModeHeld_A, (item_valid_i || row_valid_q || result) |->
                              $stable({spmm_i, words_i, tail_mask_i}))
  `SYSTOLE_ASSERT(HoldHeld_A, (hold_request_o && hold_valid_i && !advance) |=>
                              (hold_valid_i && $stable({hold_i, hold_word_o})))
  `SYSTOLE_ASSERT(WordHeld_A, (word_request_o && word_valid_i && !advance) |=>
      (word_valid_i && $stable({word_i, word_item_o, word_entry_o, word_o}) &&
       (!spmm_i || $stable(code_i))))
  `SYSTOLE_ASSERT(ResultHeld_A, (result_valid_o && !result_ready_i) |=>
      (result_valid_o &&
       $stable({result_item_o, result_entry_o, result_group_o, result_o})))

endmodule
