// The programmable pipeline of the post-op chain: `Slots` slots, each a stage of any kind that its
// micro-code names, of which the first `stages_i` are in use. `Lanes` elements a beat, one beat a
// cycle whatever the chain; a beat leaves as many cycles after it came as the latencies of its
// stages add up to.
// Bit-exact reference: hw::apply_chain (hw/postop/postop.h), before the saturation to the output
// type. Cycles: hw::chain_cycles.
//
// Stages: add, sub, mul, requantise, clamp, relu, gelu, mask, without side outputs, and divide_row_sum,
// whose operand is the reciprocal of the sum (hw::deferred_divide). A stage whose
// operand is not immediate takes a beat of operands, already widened to 32 bits, from a stream of
// its own when the beat reaches it. So operands of later stages are wanted later, and nothing keeps
// them meanwhile.

`include "systole_assert.svh"

module systole_postop_pipeline #(
  parameter  int unsigned Lanes      = 4,
  parameter  int unsigned Slots      = 8,
  localparam int unsigned SlotWidth  = Slots > 1 ? $clog2(Slots) : 1,
  localparam int unsigned CountWidth = $clog2(Slots + 1)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // Micro-code of a slot, a word of hw/postop/microcode.h a cycle, while the pipeline is empty.
  input  logic                      code_write_i,
  input  logic [SlotWidth-1:0]      code_slot_i,
  input  logic [3:0]                code_word_i,
  input  logic [63:0]               code_i,
  input  logic [CountWidth-1:0]     stages_i,         // slots in use; quasi-static
  output logic                      error_o,          // one of them cannot do its stage: no beats

  input  logic                      valid_i,
  output logic                      ready_o,
  input  logic [Lanes-1:0]          mask_i,
  input  logic [Lanes*32-1:0]       data_i,           // signed, lane 0 in the low bits

  // Slot 0 in the low bits. The shift is the second word of a channel, modulo 64.
  input  logic [Slots-1:0]          operand_valid_i,
  output logic [Slots-1:0]          operand_ready_o,  // high only where a beat wants its operand
  input  logic [Slots*Lanes*32-1:0] operand_i,
  input  logic [Slots*Lanes*6-1:0]  shift_i,

  output logic                      valid_o,
  input  logic                      ready_i,
  output logic [Lanes-1:0]          mask_o,
  output logic [Lanes*32-1:0]       data_o            // signed, 0 in masked lanes
);

  localparam int unsigned RowWidth = Lanes * 32;

  // Place s is before slot s.
  logic [Slots:0]                valid;
  logic [(Slots+1)*Lanes-1:0]    mask;
  logic [(Slots+1)*RowWidth-1:0] data;
  logic [Slots-1:0]              used, legal, streams, busy, wanted, late, open;
  logic                          advance, last_valid;
  logic [RowWidth-1:0]           last_data;

  assign valid[0]           = valid_i;
  assign mask[Lanes-1:0]    = mask_i;
  assign data[RowWidth-1:0] = data_i;

  for (genvar s = 0; s < Slots; s++) begin : gen_slot
    assign used[s]   = stages_i > CountWidth'(s);
    assign wanted[s] = used[s] && streams[s] && valid[s];
    assign late[s]   = wanted[s] && !operand_valid_i[s];
    assign open[s]   = advance && (late >> (s + 1)) == '0;

    systole_postop_slot #(.Lanes(Lanes)) u_slot (
      .clk_i,
      .rst_ni,
      .enable_i (open[s] && used[s]),
      .write_i  (code_write_i && code_slot_i == SlotWidth'(s)),
      .word_i   (code_word_i),
      .code_i,
      .legal_o  (legal[s]),
      .streams_o(streams[s]),
      .valid_i  (valid[s] && !late[s]),
      .mask_i   (mask[s*Lanes+:Lanes]),
      .data_i   (data[s*RowWidth+:RowWidth]),
      .operand_i(operand_i[s*RowWidth+:RowWidth]),
      .shift_i  (shift_i[s*Lanes*6+:Lanes*6]),
      .valid_o  (valid[s+1]),
      .mask_o   (mask[(s+1)*Lanes+:Lanes]),
      .data_o   (data[(s+1)*RowWidth+:RowWidth]),
      .busy_o   (busy[s])
    );

    // Between operations operands may change.
    `SYSTOLE_ASSERT(OperandHeld_A,
                    (operand_valid_i[s] && !operand_ready_o[s]) |=>
                        (busy == '0 || (operand_valid_i[s] &&
                                        $stable(operand_i[s*RowWidth+:RowWidth]) &&
                                        $stable(shift_i[s*Lanes*6+:Lanes*6]))))
  end

  // A result that is not taken holds all slots. An operand that is late holds the beat that wants it
  // and what is before that; what is behind moves on.
  assign advance         = !(valid_o && !ready_i) && !error_o;
  assign ready_o         = advance && late == '0;
  assign operand_ready_o = wanted & open;

  assign error_o = stages_i > CountWidth'(Slots) || (used & ~legal) != '0;

  // After the last slot in use.
  always_comb begin
    last_valid = 1'b0;
    mask_o     = '0;
    last_data  = '0;
    for (int unsigned s = 0; s <= Slots; s++) begin
      if (stages_i == CountWidth'(s)) begin
        last_valid = valid[s];
        mask_o     = mask[s*Lanes+:Lanes];
        last_data  = data[s*RowWidth+:RowWidth];
      end
    end
  end

  assign valid_o = last_valid;

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    assign data_o[l*32+:32] = mask_o[l] ? last_data[l*32+:32] : '0;
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Lanes >= 1 && Slots >= 1)
  `SYSTOLE_ASSERT(MicroCodeLegal_A, valid_i |-> !error_o)
  `SYSTOLE_ASSERT(EmptyWhenWritten_A, code_write_i |-> busy == '0)
  `SYSTOLE_ASSERT(StagesHeld_A, (busy != '0) |-> $stable(stages_i))
  `SYSTOLE_ASSERT(WordKnown_A, code_write_i |-> code_word_i <= 4'd8)
  `SYSTOLE_ASSERT(MaskFilledFromLaneZero_A, valid_i |-> ((mask_i & (mask_i + 1'b1)) == '0))
  `SYSTOLE_ASSERT(BeatNotEmpty_A, valid_i |-> mask_i[0])
  `SYSTOLE_ASSERT(InputHeld_A, (valid_i && !ready_o) |=> (valid_i && $stable(mask_i) &&
                                                         $stable(data_i)))
  `SYSTOLE_ASSERT(OutputHeld_A, (valid_o && !ready_i) |=> (valid_o && $stable(mask_o) &&
                                                          $stable(data_o)))

endmodule
