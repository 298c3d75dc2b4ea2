// The unit of a core that runs matmuls: C (+)= A B with A and B in the scratchpad and C in the
// accumulator. It walks through the folds of its commands, reads what the array wants of them, and
// writes the array's rows of sums. Bit-exact reference: hw/kernel/gemm.h. Cycles: hw::fold_times()
// of hw/array/fold_stream.h.
//
// A fold is a tile of Rows x Cols weights and all rows of A at it: column tiles outside, tiles of k
// inside. Weights come bottom row first, those of the next fold beside the rows of this one, across
// commands too: the unit takes a command when it has read the last weights of the one before.
//
// The sequencer is a cycle ahead of the processing elements: it says what to read, and the elements
// move a cycle later, when the scratchpad has delivered. A cycle in which the scratchpad cannot
// serve all that is wanted holds all of it. What a step reads is fixed when it is first offered.
//
// B that is stored transposed goes through a transposer, which holds two tiles: a tile's columns are
// read, a row of the memory each, beside whatever else is read, and then its weights leave like those
// of any other tile, while the columns of the command's next tile come in.

`include "systole_assert.svh"

module systole_matmul_unit #(
  parameter  int unsigned Rows      = 4,
  parameter  int unsigned Cols      = 4,
  parameter  int unsigned Queue     = 4,   // commands in the station of the unit
  parameter  int unsigned AddrBits  = 12,  // of a byte in the scratchpad
  parameter  int unsigned SumBits   = 10,  // of a sum in the accumulator
  parameter  int unsigned CountBits = 24,
  localparam int unsigned TagBits   = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned DataWidth = 8 * Rows
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [1:0]             overlap_i,      // systole_pkg::overlap_e

  // a command in flight to an entry of the station
  input  logic [Queue-1:0]       entry_i,
  input  logic [AddrBits-1:0]    a_i,
  input  logic [AddrBits-1:0]    a_pitch_i,
  input  logic [AddrBits-1:0]    b_i,
  input  logic [AddrBits-1:0]    b_pitch_i,
  input  logic [SumBits-1:0]     c_i,            // sums
  input  logic [SumBits-1:0]     c_pitch_i,
  input  logic [CountBits-1:0]   m_i,            // at least 1, as the other two
  input  logic [CountBits-1:0]   n_i,
  input  logic [CountBits-1:0]   k_i,
  input  logic                   a_unsigned_i,
  input  logic                   accumulate_i,
  input  logic                   b_transposed_i, // B is stored n x k

  input  logic                   start_valid_i,
  output logic                   start_ready_o,
  input  logic [TagBits-1:0]     start_entry_i,
  output logic [Queue-1:0]       released_o,     // operands have been read for the last time
  output logic [Queue-1:0]       completed_o,    // the last row of sums is being written

  // the scratchpad's client: A, then B
  output logic                   array_valid_o,
  input  logic                   array_done_i,
  output logic [1:0]             array_reads_o,
  output logic [2*AddrBits-1:0]  array_address_o,
  input  logic [2*DataWidth-1:0] array_data_i,   // in the cycle after a step is over

  // a row of sums for the accumulator, which takes it
  output logic                   sums_valid_o,
  output logic [SumBits-1:0]     sums_at_o,      // its first sum
  output logic [Cols-1:0]        sums_mask_o,
  output logic                   sums_accumulate_o,
  output logic [Cols*32-1:0]     sums_data_o
);

  localparam int unsigned Diagonals = Rows + Cols - 1;
  localparam int unsigned RowBits   = $clog2(Rows);
  localparam int unsigned ColBits   = $clog2(Cols);

  // ---------------------------------------------------------------- commands, by their entries
  logic [AddrBits-1:0]  a_q [Queue];
  logic [AddrBits-1:0]  a_pitch_q [Queue];
  logic [AddrBits-1:0]  b_q [Queue];
  logic [AddrBits-1:0]  b_pitch_q [Queue];
  logic [SumBits-1:0]   c_q [Queue];
  logic [SumBits-1:0]   c_pitch_q [Queue];
  logic [CountBits-1:0] m_q [Queue];
  logic [CountBits-1:0] n_q [Queue];
  logic [CountBits-1:0] k_q [Queue];
  logic [Queue-1:0]     a_unsigned_q, accumulate_q, b_transposed_q;

  for (genvar e = 0; e < Queue; e++) begin : gen_entry
    always_ff @(posedge clk_i) begin
      if (entry_i[e]) begin
        a_q[e]          <= a_i;
        a_pitch_q[e]    <= a_pitch_i;
        b_q[e]          <= b_i;
        b_pitch_q[e]    <= b_pitch_i;
        c_q[e]          <= c_i;
        c_pitch_q[e]    <= c_pitch_i;
        m_q[e]          <= m_i;
        n_q[e]          <= n_i;
        k_q[e]          <= k_i;
        a_unsigned_q[e] <= a_unsigned_i;
        accumulate_q[e] <= accumulate_i;
        b_transposed_q[e] <= b_transposed_i;
      end
    end
  end

  // Commands that have started, for those who come to them later: rows of A, rows of sums.
  logic               start, act_next, sum_next;
  logic [TagBits-1:0] order_q [Queue];
  logic [TagBits-1:0] tail_q, act_head_q, sum_head_q, act_entry, sum_entry, sum_at;
  logic [TagBits:0]   acts_q, sums_q;   // of them, that the one and the other have not come to

  function automatic logic [TagBits-1:0] after(input logic [TagBits-1:0] place);
    after = 32'(place) == Queue - 1 ? '0 : place + TagBits'(1);
  endfunction

  assign start     = start_valid_i && start_ready_o;
  assign act_entry = order_q[act_head_q];
  assign sum_entry = order_q[sum_head_q];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tail_q     <= '0;
      act_head_q <= '0;
      sum_head_q <= '0;
      acts_q     <= '0;
      sums_q     <= '0;
    end else begin
      if (start) tail_q <= after(tail_q);
      if (act_next) act_head_q <= after(act_head_q);
      if (sum_next) sum_head_q <= after(sum_head_q);
      acts_q <= acts_q + (TagBits+1)'(start) - (TagBits+1)'(act_next);
      sums_q <= sums_q + (TagBits+1)'(start) - (TagBits+1)'(sum_next);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) order_q[tail_q] <= start_entry_i;
  end

  // ---------------------------------------------------------------- weights
  logic                 weight_busy_q, weight_fire, weight_last, weight_here;
  logic [TagBits-1:0]   weight_entry_q;
  logic [AddrBits-1:0]  weight_at_q, weight_column_q;  // bottom row of the column's first tile
  logic [AddrBits-1:0]  weight_pitch, start_b, start_pitch, start_bottom, weight_next_column;
  logic [RowBits-1:0]   weight_beat_q;
  logic [CountBits-1:0] weight_k_q, weight_n_q;        // from this tile on
  logic                 weight_tile_end, weight_column_end, transposed;

  assign transposed        = b_transposed_q[weight_entry_q];
  assign start_b           = b_q[start_entry_i];
  assign start_pitch       = b_pitch_q[start_entry_i];
  assign start_bottom      = start_b + (start_pitch << RowBits) - start_pitch;
  assign weight_pitch      = b_pitch_q[weight_entry_q];
  assign weight_tile_end   = weight_beat_q == RowBits'(Rows - 1);
  assign weight_column_end = weight_k_q <= CountBits'(Rows);
  assign weight_last       = weight_tile_end && weight_column_end && weight_n_q <= CountBits'(Cols);
  assign weight_here       = CountBits'(Rows - 1) - CountBits'(weight_beat_q) < weight_k_q;
  assign start_ready_o     = !weight_busy_q || (weight_fire && weight_last);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      weight_busy_q <= 1'b0;
    end else begin
      weight_busy_q <= start || (weight_busy_q && !(weight_fire && weight_last));
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      weight_entry_q  <= start_entry_i;
      weight_at_q     <= start_bottom;
      weight_column_q <= start_bottom;
      weight_beat_q   <= '0;
      weight_k_q      <= k_q[start_entry_i];
      weight_n_q      <= n_q[start_entry_i];
    end else if (weight_fire) begin
      weight_beat_q <= weight_beat_q + RowBits'(1);
      if (!weight_tile_end) begin
        weight_at_q <= weight_at_q - weight_pitch;
      end else if (!weight_column_end) begin
        weight_at_q <= weight_at_q + (weight_pitch << (RowBits + 1)) - weight_pitch;
        weight_k_q  <= weight_k_q - CountBits'(Rows);
      end else begin
        weight_at_q     <= weight_next_column;
        weight_column_q <= weight_next_column;
        weight_k_q      <= k_q[weight_entry_q];
        weight_n_q      <= weight_n_q - CountBits'(Cols);
      end
    end
  end
  assign weight_next_column = weight_column_q + AddrBits'(Cols);

  // ---------------------------------------------------------------- columns for the transposer
  // Tiles that it holds, of which the oldest is the one whose weights leave next.
  logic                 fill_busy_q, fill_fire, fill_last, fill_tile_q, beat_tile_q;
  logic                 fill_column_end;
  logic [1:0]           held_q;
  logic [AddrBits-1:0]  fill_at_q, fill_first_q, fill_column_q;  // row, tile's first, column's first
  logic [ColBits-1:0]   fill_row_q;
  logic [CountBits-1:0] fill_k_q, fill_n_q;             // from this tile on

  assign fill_last       = fill_row_q == ColBits'(Cols - 1) ||
                           CountBits'(fill_row_q) + CountBits'(1) == fill_n_q;
  assign fill_column_end = fill_k_q <= CountBits'(Rows);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_busy_q <= 1'b0;
      fill_tile_q <= 1'b0;
      beat_tile_q <= 1'b0;
      held_q      <= '0;
    end else begin
      if (start) begin
        fill_busy_q <= b_transposed_q[start_entry_i];
      end else if (fill_fire && fill_last && fill_column_end && fill_n_q <= CountBits'(Cols)) begin
        fill_busy_q <= 1'b0;
      end
      fill_tile_q <= fill_tile_q ^ (fill_fire && fill_last);
      beat_tile_q <= beat_tile_q ^ (weight_fire && weight_tile_end && transposed);
      held_q      <= held_q + 2'(fill_fire && fill_last) -
                     2'(weight_fire && weight_tile_end && transposed);
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      fill_at_q     <= start_b;
      fill_first_q  <= start_b;
      fill_column_q <= start_b;
      fill_row_q    <= '0;
      fill_k_q      <= k_q[start_entry_i];
      fill_n_q      <= n_q[start_entry_i];
    end else if (fill_fire && !fill_last) begin
      fill_at_q  <= fill_at_q + weight_pitch;
      fill_row_q <= fill_row_q + ColBits'(1);
    end else if (fill_fire) begin
      fill_row_q <= '0;
      if (!fill_column_end) begin
        fill_at_q    <= fill_first_q + AddrBits'(Rows);
        fill_first_q <= fill_first_q + AddrBits'(Rows);
        fill_k_q     <= fill_k_q - CountBits'(Rows);
      end else begin
        fill_at_q     <= fill_column_q + (weight_pitch << ColBits);
        fill_first_q  <= fill_column_q + (weight_pitch << ColBits);
        fill_column_q <= fill_column_q + (weight_pitch << ColBits);
        fill_k_q      <= k_q[weight_entry_q];
        fill_n_q      <= fill_n_q - CountBits'(Cols);
      end
    end
  end

  // ---------------------------------------------------------------- rows of A
  logic                 act_busy_q, act_fire, act_last, act_fold_end;
  logic [TagBits-1:0]   act_entry_q;
  logic [AddrBits-1:0]  act_at_q, act_tile_q;   // its first row
  logic [CountBits-1:0] act_rows_q, act_k_q, act_n_q;
  logic                 act_column_end;

  assign act_fold_end   = act_rows_q == CountBits'(1);
  assign act_column_end = act_k_q <= CountBits'(Rows);
  assign act_last       = act_fold_end && act_column_end && act_n_q <= CountBits'(Cols);
  assign act_next       = acts_q != '0 && (!act_busy_q || (act_fire && act_last));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_busy_q <= 1'b0;
    end else begin
      act_busy_q <= act_next || (act_busy_q && !(act_fire && act_last));
    end
  end

  always_ff @(posedge clk_i) begin
    if (act_next) begin
      act_entry_q <= act_entry;
      act_at_q    <= a_q[act_entry];
      act_tile_q  <= a_q[act_entry];
      act_rows_q  <= m_q[act_entry];
      act_k_q     <= k_q[act_entry];
      act_n_q     <= n_q[act_entry];
    end else if (act_fire && !act_fold_end) begin
      act_at_q   <= act_at_q + a_pitch_q[act_entry_q];
      act_rows_q <= act_rows_q - CountBits'(1);
    end else if (act_fire) begin
      act_rows_q <= m_q[act_entry_q];
      if (!act_column_end) begin
        act_at_q   <= act_tile_q + AddrBits'(Rows);
        act_tile_q <= act_tile_q + AddrBits'(Rows);
        act_k_q    <= act_k_q - CountBits'(Rows);
      end else begin
        act_at_q   <= a_q[act_entry_q];
        act_tile_q <= a_q[act_entry_q];
        act_k_q    <= k_q[act_entry_q];
        act_n_q    <= act_n_q - CountBits'(Cols);
      end
    end
  end
  assign released_o = act_fire && act_last ? Queue'(1) << act_entry_q : '0;

  // ---------------------------------------------------------------- steps
  // A step has been offered and not served.
  logic                 open_q, open_act_q, open_weight_q, open_fill_q;
  logic                 act_offer, weight_offer, act_wanted, weight_wanted, act_step, weight_step;
  logic                 fill_step, filled_q;   // the transposer's last row is being written
  logic                 act_ready, weight_ready, hold, advance, weights_move, result, unused_last;
  logic [Rows-1:0]      shift;
  logic [Diagonals-1:0] capture;

  assign act_offer       = open_q ? open_act_q : act_busy_q;
  assign weight_offer    = open_q ? open_weight_q
                                  : weight_busy_q && (!transposed || held_q > 2'(filled_q));
  assign fill_step       = open_q ? open_fill_q
                                  : fill_busy_q && (held_q != 2'd2 || (weight_step && weight_tile_end));
  assign act_step        = act_wanted && act_offer;
  assign weight_step     = weight_wanted && weight_offer;
  assign array_valid_o   = act_step || weight_step || fill_step;
  assign array_reads_o   = {fill_step || (weight_step && weight_here && !transposed), act_step};
  assign array_address_o = {fill_step ? fill_at_q : weight_at_q, act_at_q};
  assign hold            = array_valid_o && !array_done_i;
  assign act_fire        = act_ready && act_offer;
  assign weight_fire     = weight_ready && weight_offer;
  assign fill_fire       = fill_step && !hold;

  systole_systolic_sequencer #(.Rows(Rows), .Cols(Cols)) u_sequencer (
    .clk_i, .rst_ni,
    .overlap_i,
    .clear_i         (1'b0),
    .weight_valid_i  (weight_offer),
    .weight_pending_i(weight_offer),
    .weight_ready_o  (weight_ready),
    .act_valid_i     (act_offer),
    .act_pending_i   (act_offer),
    .act_last_i      (act_fold_end),
    .act_ready_o     (act_ready),
    .hold_i          (hold),
    .weight_wanted_o (weight_wanted),
    .act_wanted_o    (act_wanted),
    .result_valid_o  (result),
    .result_last_o   (unused_last),
    .result_ready_i  (1'b1),
    .advance_o       (advance),
    .weights_move_o  (weights_move),
    .shift_o         (shift),
    .capture_o       (capture)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q   <= 1'b0;
      filled_q <= 1'b0;
    end else begin
      open_q   <= hold;
      filled_q <= fill_fire && fill_last;
    end
  end
  always_ff @(posedge clk_i) begin
    open_act_q    <= act_step;
    open_weight_q <= weight_step;
    open_fill_q   <= fill_step;
  end

  // ---------------------------------------------------------------- transposer
  logic              fed_q;
  logic [Cols*8-1:0] feed;

  systole_weight_transposer #(.Rows(Rows), .Cols(Cols)) u_transposer (
    .clk_i, .rst_ni,
    .fill_i     (fill_fire),
    .fill_tile_i(fill_tile_q),
    .fill_row_i (fill_row_q),
    .data_i     (array_data_i[DataWidth+:Rows*8]),
    .beat_tile_i(beat_tile_q),
    .beat_i     (weight_beat_q),
    .weights_o  (feed)
  );
  always_ff @(posedge clk_i) fed_q <= transposed;

  // ---------------------------------------------------------------- elements, a cycle later
  logic                 advance_q, weights_move_q, unsigned_q, zeros_q;
  logic [Rows-1:0]      shift_q;
  logic [Diagonals-1:0] capture_q;
  logic [Cols*8-1:0]    weight;

  // With zeros below the last row of B it does not matter what is beside the last column of A.
  assign weight = zeros_q ? '0 : fed_q ? feed : array_data_i[DataWidth+:Cols*8];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      advance_q    <= 1'b0;
      sums_valid_o <= 1'b0;
    end else begin
      advance_q    <= advance;
      sums_valid_o <= result;
    end
  end
  always_ff @(posedge clk_i) begin
    weights_move_q <= weights_move;
    shift_q        <= shift;
    capture_q      <= capture;
    zeros_q        <= !weight_here;
    unsigned_q     <= a_unsigned_q[act_entry_q];
  end

  systole_systolic_grid #(.Rows(Rows), .Cols(Cols)) u_grid (
    .clk_i,
    .advance_i     (advance_q),
    .weights_move_i(weights_move_q),
    .shift_i       (shift_q),
    .capture_i     (capture_q),
    .a_unsigned_i  (unsigned_q),
    .b_int4_i      (1'b0),
    .a_int4_i      (1'b0),
    .weight_i      (weight),
    .act_i         (array_data_i[Rows*8-1:0]),
    .result_o      (sums_data_o)
  );

  // ---------------------------------------------------------------- rows of sums
  logic               sum_busy, sum_over;
  logic [TagBits-1:0] sum_entry_q;

  systole_sum_rows #(.Rows(Rows), .Cols(Cols), .SumBits(SumBits), .CountBits(CountBits)) u_sums (
    .clk_i, .rst_ni,
    .next_i      (sum_next),
    .c_i         (c_q[sum_at]),
    .c_pitch_i   (c_pitch_q[sum_at]),
    .m_i         (m_q[sum_at]),
    .n_i         (n_q[sum_at]),
    .k_i         (k_q[sum_at]),
    .accumulate_i(accumulate_q[sum_at]),
    .busy_o      (sum_busy),
    .row_i       (sums_valid_o),
    .over_o      (sum_over),
    .sums_at_o, .sums_mask_o, .sums_accumulate_o
  );
  assign sum_at      = sum_next ? sum_entry : sum_entry_q;
  assign sum_next    = sums_q != '0 && (!sum_busy || sum_over);
  assign completed_o = sum_over ? Queue'(1) << sum_entry_q : '0;
  always_ff @(posedge clk_i) sum_entry_q <= sum_at;

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Rows >= 2 && 2**RowBits == Rows && Cols <= Rows)
  `SYSTOLE_ASSERT(SumsWanted_A, sums_valid_o |-> sum_busy)
  `SYSTOLE_ASSERT(WorkToDo_A, entry_i != '0 |-> (m_i != '0 && n_i != '0 && k_i != '0))

endmodule
