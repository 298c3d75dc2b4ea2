// Slots, intervals and the one enable of a unit that passes over every row more than once.
// Cycle contract: hw::chain_cycles of hw/postop/postop.h.
//
// A row has V = ceil(cols / Lanes) beats. Time is divided into intervals of equal length, each with
// slots of V cycles: slot A for the first pass of row j, slot B for the second pass of row j - 1,
// slot C for the output pass of row j - 2, then gap_i cycles without a slot. With two_slots_i there
// is no slot B, and slot C serves the row of slot A. A slot whose row does not exist passes without
// input. Every beat of a pass comes in at data_i of the unit anew.
//
// The schedule is static, so one enable (advance_o) moves every register of the unit, serial units
// included, and each cycle in which it is low adds one to the contract. It is low while an output
// is not taken and while a slot waits for its beat.

`include "systole_assert.svh"

module systole_row_sequencer #(
  parameter  int unsigned Lanes     = 4,      // a power of two
  parameter  int unsigned MaxCols   = 65536,
  parameter  int unsigned RowWidth  = 32,
  parameter  int unsigned GapWidth  = 6,
  localparam int unsigned ColWidth  = $clog2(MaxCols + 1),
  localparam int unsigned LaneWidth = $clog2(Lanes),
  localparam int unsigned BeatWidth = ColWidth - LaneWidth
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // Quasi-static: hold from the first beat to the last output.
  input  logic [RowWidth-1:0]  rows_i,       // at least 1
  input  logic [ColWidth-1:0]  cols_i,       // 1 .. MaxCols
  input  logic                 two_slots_i,
  input  logic [GapWidth-1:0]  gap_i,        // a function of beats_o
  output logic [BeatWidth-1:0] beats_o,      // of a row: V

  input  logic                 valid_i,      // a beat is offered
  output logic                 ready_o,
  input  logic                 result_i,     // the last stage of the unit holds a result
  output logic                 valid_o,
  input  logic                 ready_i,

  output logic                 advance_o,
  output logic                 interval_o,   // first cycle of an interval
  output logic                 pass_a_o,     // this cycle's beat belongs to slot A ...
  output logic                 pass_b_o,
  output logic                 pass_c_o,
  output logic                 first_o,      // ... is the first of its row
  output logic                 last_o,       // ... is the last of its row
  output logic [Lanes-1:0]     mask_o        // ... and has an element in these lanes
);

  typedef enum logic [1:0] {SlotA, SlotB, SlotC, Gap} slot_e;

  slot_e                slot_d, slot_q;
  logic [BeatWidth-1:0] beat_d, beat_q;  // in the slot, or cycle in the gap
  logic [RowWidth-1:0]  row_d, row_q;    // of slot A, rows_i after the last
  logic                 row_b_d, row_b_q, row_c_d, row_c_q;  // slots B and C have a row
  logic                 busy_d, busy_q;

  // ------------------------------------------------------------------ this cycle's beat
  logic                 row_a, active, begins, step;
  logic [LaneWidth-1:0] last_lane;  // of the last beat of a row

  assign beats_o   = BeatWidth'((cols_i + ColWidth'(Lanes - 1)) >> LaneWidth);
  assign last_lane = cols_i[LaneWidth-1:0] - 1'b1;
  assign row_a     = row_q != rows_i;

  always_comb begin
    unique case (slot_q)
      SlotA:   active = row_a;
      SlotB:   active = row_b_q;
      SlotC:   active = two_slots_i ? row_a : row_c_q;
      default: active = 1'b0;
    endcase
  end

  assign begins     = busy_q || valid_i;  // otherwise there is no operation, and no time to keep
  assign interval_o = begins && slot_q == SlotA && beat_q == '0;
  assign pass_a_o   = begins && active && slot_q == SlotA;
  assign pass_b_o   = begins && active && slot_q == SlotB;
  assign pass_c_o   = begins && active && slot_q == SlotC;
  assign first_o    = beat_q == '0;
  assign last_o     = beat_q == beats_o - 1'b1;

  assign mask_o     = last_o ? Lanes'(((Lanes + 1)'(2) << last_lane) - 1'b1) : '1;

  // ------------------------------------------------------------------ enable and handshakes
  // A result may be taken while a slot waits for its beat; it then must not be offered again.
  logic taken_q, refused, waiting;

  assign valid_o   = result_i && !taken_q;
  assign refused   = valid_o && !ready_i;
  assign waiting   = busy_q && active && !valid_i;
  assign advance_o = !refused && !waiting;
  assign ready_o   = active && !refused;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q <= 1'b0;
    end else begin
      taken_q <= !advance_o && (taken_q || (valid_o && ready_i));
    end
  end

  // ------------------------------------------------------------------ next cycle's slot
  logic slot_ends, gap_ends, interval_ends, operation_ends;

  assign slot_ends      = slot_q != Gap && last_o;
  assign gap_ends       = slot_q == Gap && beat_q == BeatWidth'(gap_i) - 1'b1;
  assign interval_ends  = gap_ends || (slot_ends && slot_q == SlotC && gap_i == '0);
  assign operation_ends = slot_ends && slot_q == SlotC &&
                          (two_slots_i ? row_q == rows_i - 1'b1 : !row_a && !row_b_q);
  assign step           = advance_o && begins;

  always_comb begin
    busy_d  = 1'b1;
    slot_d  = slot_q;
    beat_d  = beat_q + 1'b1;
    row_d   = row_q;
    row_b_d = row_b_q;
    row_c_d = row_c_q;
    if (slot_ends) begin
      beat_d = '0;
      unique case (slot_q)
        SlotA:   slot_d = two_slots_i ? SlotC : SlotB;
        SlotB:   slot_d = SlotC;
        default: slot_d = Gap;
      endcase
    end
    if (interval_ends) begin
      slot_d  = SlotA;
      beat_d  = '0;
      row_d   = row_q + RowWidth'(row_a);
      row_b_d = row_a;
      row_c_d = row_b_q;
    end
    if (operation_ends) begin
      busy_d  = 1'b0;
      slot_d  = SlotA;
      row_d   = '0;
      row_b_d = 1'b0;
      row_c_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      slot_q  <= SlotA;
      beat_q  <= '0;
      row_q   <= '0;
      row_b_q <= 1'b0;
      row_c_q <= 1'b0;
    end else if (step) begin
      busy_q  <= busy_d;
      slot_q  <= slot_d;
      beat_q  <= beat_d;
      row_q   <= row_d;
      row_b_q <= row_b_d;
      row_c_q <= row_c_d;
    end
  end

  `SYSTOLE_ASSERT_INIT(LanesPowerOfTwo_A, Lanes >= 2 && (Lanes & (Lanes - 1)) == 0)
  `SYSTOLE_ASSERT_INIT(ColsUsable_A, MaxCols >= 2 * Lanes && GapWidth <= BeatWidth)
  `SYSTOLE_ASSERT(RowsInRange_A, valid_i |-> rows_i != '0)
  `SYSTOLE_ASSERT(ColsInRange_A, valid_i |-> (cols_i != '0 && cols_i <= ColWidth'(MaxCols)))
  `SYSTOLE_ASSERT(InputHeld_A, (valid_i && !ready_o) |=> valid_i)
  `SYSTOLE_ASSERT(OutputHeld_A, refused |=> valid_o)
  `SYSTOLE_ASSERT(ShapeHeld_A, busy_q |=> $stable({rows_i, cols_i, two_slots_i, gap_i}))

endmodule
