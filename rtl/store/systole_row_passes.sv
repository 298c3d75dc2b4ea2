// The order in which a chain wants the vectors of a command's rows. Without a row-wise stage: row by
// row. Two passes: each row twice. Three passes: in each interval a row for the first time, the one
// before it for the second and the one before that for the third time, as the slots of
// systole_row_sequencer come. Reference: hw::RowOrder of hw/postop/row_flow.h.

`include "systole_assert.svh"

module systole_row_passes #(
  parameter int unsigned AtBits    = 8,   // of a vector's place
  parameter int unsigned Step      = 1,   // from vector to vector
  parameter int unsigned CountBits = 24
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // of a command, held from its start on
  input  logic                 start_i,
  input  logic [1:0]           passes_i,    // 1 to 3
  input  logic [CountBits-1:0] rows_i,      // at least 1
  input  logic [CountBits-1:0] vectors_i,   // of a row, at least 1
  input  logic [AtBits-1:0]    base_i,      // where its first one is
  input  logic [AtBits-1:0]    pitch_i,     // from row to row

  output logic                 valid_o,     // there is a vector to take
  input  logic                 step_i,      // it is taken
  output logic [AtBits-1:0]    at_o,        // where it is
  output logic [AtBits-1:0]    next_at_o,   // where the one of the next cycle is
  output logic                 row_end_o,   // it is the last of its row in this pass
  output logic                 last_o       // of the command
);

  typedef enum logic [1:0] {SlotA, SlotB, SlotC} slot_e;

  slot_e                slot_q, slot_d, begin_slot;
  logic [CountBits-1:0] rows_q, rows_d;          // that have not had their first pass
  logic [CountBits-1:0] left_q;                  // vectors of the row
  logic                 row_b_q, row_c_q;        // slots B and C have a row in this interval
  logic                 row_b_d, row_c_d, interval, three;
  logic [AtBits-1:0]    base_a_q, base_b_q, base_c_q, base_d, at_q;

  assign three     = passes_i == 2'd3;
  assign row_end_o = left_q == CountBits'(1);
  assign at_o      = at_q;

  // ---------------------------------------------------------------- after the end of a row
  assign rows_d  = rows_q - CountBits'(rows_q != '0);
  assign row_b_d = three && rows_q != '0;
  assign row_c_d = three && row_b_q;

  always_comb begin
    interval   = 1'b0;
    slot_d     = SlotC;
    base_d     = base_c_q;
    begin_slot = rows_d != '0 ? SlotA : row_b_d ? SlotB : SlotC;
    if (slot_q == SlotA && passes_i == 2'd2) begin
      base_d = base_a_q;
    end else if (slot_q == SlotA && row_b_q) begin
      slot_d = SlotB;
      base_d = base_b_q;
    end else if (slot_q == SlotC || !row_c_q) begin
      interval = 1'b1;
      slot_d   = begin_slot;
      base_d   = begin_slot == SlotA ? base_a_q + pitch_i
                                     : begin_slot == SlotB ? base_a_q : base_b_q;
    end
  end
  assign last_o    = row_end_o && interval && rows_d == '0 && !row_b_d && !row_c_d;
  assign next_at_o = !step_i ? at_q : row_end_o ? base_d : at_q + AtBits'(Step);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_o <= 1'b0;
    end else begin
      valid_o <= start_i || (valid_o && !(step_i && last_o));
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      slot_q   <= SlotA;
      rows_q   <= rows_i;
      left_q   <= vectors_i;
      row_b_q  <= 1'b0;
      row_c_q  <= 1'b0;
      base_a_q <= base_i;
      at_q     <= base_i;
    end else if (step_i) begin
      at_q   <= next_at_o;
      left_q <= row_end_o ? vectors_i : left_q - CountBits'(1);
      if (row_end_o) slot_q <= slot_d;
      if (row_end_o && interval) begin
        rows_q   <= rows_d;
        row_b_q  <= row_b_d;
        row_c_q  <= row_c_d;
        base_a_q <= base_a_q + pitch_i;
        base_b_q <= base_a_q;
        base_c_q <= base_b_q;
      end
    end
  end

  `SYSTOLE_ASSERT(WorkToDo_A, start_i |-> (rows_i != '0 && vectors_i != '0 && passes_i != '0))
  `SYSTOLE_ASSERT(SteppedValid_A, step_i |-> valid_o)

endmodule
