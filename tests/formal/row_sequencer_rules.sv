// The schedule of units that pass over a row more than once (hw::chain_cycles): intervals of two or three
// slots and a gap, pass A of row j in interval j, B one and C two intervals later, and no cycle
// between them but those in which a result was not taken or a beat was not there.

module row_sequencer_rules #(
  parameter  int unsigned Lanes     = 2,
  parameter  int unsigned MaxCols   = 8,
  parameter  int unsigned RowWidth  = 3,
  parameter  int unsigned GapWidth  = 2,
  localparam int unsigned ColWidth  = $clog2(MaxCols + 1),
  localparam int unsigned BeatWidth = ColWidth - $clog2(Lanes)
) (
  input logic clk_i,
  input logic valid_i,
  input logic result_i,
  input logic ready_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  // Any, and then the same.
  logic [RowWidth-1:0] rows;
  logic [ColWidth-1:0] cols;
  logic                two_slots;
  logic [GapWidth-1:0] gap;
  always_ff @(posedge clk_i) begin
    rows      <= rows;
    cols      <= cols;
    two_slots <= two_slots;
    gap       <= gap;
  end

  logic [BeatWidth-1:0] beats;
  logic                 ready, valid, advance, interval, pass_a, pass_b, pass_c, first, last;
  logic [Lanes-1:0]     mask;

  systole_row_sequencer #(
    .Lanes(Lanes), .MaxCols(MaxCols), .RowWidth(RowWidth), .GapWidth(GapWidth)
  ) u_dut (
    .clk_i, .rst_ni, .rows_i(rows), .cols_i(cols), .two_slots_i(two_slots), .gap_i(gap), .beats_o(beats),
    .valid_i, .ready_o(ready), .result_i, .valid_o(valid), .ready_i, .advance_o(advance),
    .interval_o(interval), .pass_a_o(pass_a), .pass_b_o(pass_b), .pass_c_o(pass_c), .first_o(first),
    .last_o(last), .mask_o(mask)
  );

  // ---------------------------------------------------------------- the schedule
  // Cycle `cycle` of interval `interval_q`, which is in the gap or in beat `beat` of slot `slot`.
  localparam int unsigned Bits = 8;

  logic            busy_q, taken_q;
  logic [Bits-1:0] interval_q, cycle_q, length, slots, slot, beat, last_interval, last_cycle;
  logic            active, needs, moves, ends, refused, waits;

  assign slots         = two_slots ? Bits'(2) : Bits'(3);
  assign length        = slots * Bits'(beats) + Bits'(gap);
  assign slot          = cycle_q >= slots * Bits'(beats) ? slots : cycle_q >= 2 * Bits'(beats) ? Bits'(2) :
                         Bits'(cycle_q >= Bits'(beats));
  assign beat          = cycle_q - slot * Bits'(beats);
  // The last beat of pass C of the last row; the gap after it is not waited for.
  assign last_interval = two_slots ? Bits'(rows) - Bits'(1) : Bits'(rows) + Bits'(1);
  assign last_cycle    = slots * Bits'(beats) - Bits'(1);

  logic a, b, c;
  assign a      = slot == Bits'(0) && interval_q < Bits'(rows);
  assign b      = !two_slots && slot == Bits'(1) && interval_q >= Bits'(1) && interval_q <= Bits'(rows);
  assign c      = two_slots ? slot == Bits'(1) && interval_q < Bits'(rows)
                            : slot == Bits'(2) && interval_q >= Bits'(2);
  assign needs  = a || b || c;
  assign active = busy_q || valid_i;
  assign ends   = interval_q == last_interval && cycle_q == last_cycle;

  assign refused = result_i && !taken_q && !ready_i;
  assign waits   = busy_q && needs && !valid_i;
  assign moves   = active && !refused && !waits;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q     <= 1'b0;
      taken_q    <= 1'b0;
      interval_q <= '0;
      cycle_q    <= '0;
    end else begin
      taken_q <= !advance && (taken_q || (valid && ready_i));
      if (moves) begin
        busy_q     <= !ends;
        interval_q <= ends ? '0 : interval_q + Bits'(cycle_q == length - Bits'(1));
        cycle_q    <= ends || cycle_q == length - Bits'(1) ? '0 : cycle_q + Bits'(1);
      end
    end
  end

  // ---------------------------------------------------------------- rules
  always_comb begin
    assume (rows != '0 && cols != '0 && 32'(cols) <= MaxCols);
    if (rst_ni) begin
      assert (Bits'(beats) * Bits'(Lanes) >= Bits'(cols) && (Bits'(beats) - Bits'(1)) * Bits'(Lanes) < Bits'(cols));
      assert (pass_a == (active && a) && pass_b == (active && b) && pass_c == (active && c));
      assert (advance == (!refused && !waits));
      assert (valid == (result_i && !taken_q));
      assert (ready == (needs && !refused));
      assert (interval == (active && cycle_q == '0));
      if (needs) begin
        assert (first == (beat == '0));
        assert (last == (beat == Bits'(beats) - Bits'(1)));
      end
      cover (busy_q && ends && moves && rows == RowWidth'(1) && Bits'(beats) == Bits'(2) && !two_slots && gap != '0);
    end
  end
  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    always_comb begin
      if (rst_ni && needs) assert (mask[l] == (beat * Bits'(Lanes) + Bits'(l) < Bits'(cols)));
    end
  end

  // ---------------------------------------------------------------- invariants
  always_comb begin
    if (rst_ni) begin
      assert (u_dut.busy_q == busy_q && u_dut.taken_q == taken_q);
      assert (cycle_q < length && interval_q <= last_interval);
      assert (busy_q == (interval_q != '0 || cycle_q != '0));
      assert (!(interval_q == last_interval && cycle_q > last_cycle));
      // slots are numbered A, B, C, gap in the unit
      assert (32'(u_dut.slot_q) == 32'(slot == slots ? Bits'(3) : two_slots && slot == Bits'(1) ? Bits'(2) : slot));
      assert (Bits'(u_dut.beat_q) == (slot == slots ? cycle_q - slots * Bits'(beats) : beat));
      assert (Bits'(u_dut.row_q) == (interval_q < Bits'(rows) ? interval_q : Bits'(rows)));
      assert (u_dut.row_b_q == (interval_q >= Bits'(1) && interval_q <= Bits'(rows)));
      assert (u_dut.row_c_q == (interval_q >= Bits'(2)));
    end
  end

endmodule
