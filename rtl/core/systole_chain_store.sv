// The chains that a core holds: their micro-code, a word to read a cycle, and what the store unit has
// to know of each beforehand. Records come as the decoder takes them, a 64-bit word a cycle: first the
// output's type and the number of stages (hw/program/program_image.h), then nine words a stage
// (hw/postop/microcode.h).
//
// A chain is one for the store unit if it has no more stages than its pipeline, and no operands but
// immediates and words of the parameter block. Whether the pipeline can do each stage, it says when it
// has the micro-code.

`include "systole_assert.svh"

module systole_chain_store #(
  parameter  int unsigned ChainSlots = 64,
  parameter  int unsigned Stages     = 8,   // of the pipeline
  localparam int unsigned SlotBits   = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned StageBits  = Stages > 1 ? $clog2(Stages) : 1,
  localparam int unsigned CountBits  = $clog2(Stages + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  valid_i,
  input  logic                  first_i,
  input  logic [63:0]           word_i,
  input  logic [SlotBits-1:0]   slot_i,        // where the record goes

  // of chain `asked_i`
  input  logic [SlotBits-1:0]   asked_i,
  output logic                  usable_o,
  output logic                  parameters_o,  // it has some

  // of chain `chain_i`
  input  logic [SlotBits-1:0]   chain_i,
  output logic [7:0]            type_o,        // of the output
  output logic [CountBits-1:0]  stages_o,
  output logic [Stages-1:0]     channel_o,     // stages with a word of the parameter block
  output logic [Stages-1:0]     shift_o,       // and with a second one

  // a word of it: on the output in the cycle after
  input  logic                  read_i,
  input  logic [StageBits-1:0]  read_stage_i,
  input  logic [3:0]            read_word_i,
  output logic [63:0]           code_o
);

  localparam int unsigned Rows    = ChainSlots * Stages * 16;
  localparam int unsigned RowBits = $clog2(Rows);

  // ---------------------------------------------------------------- position in the record
  logic [3:0]       place_q;                 // of the next word in its stage
  logic [15:0]      stage_q;
  logic             code, opens, held;
  logic [7:0]       op, operand;

  assign code    = valid_i && !first_i;
  assign opens   = code && place_q == '0;
  assign held  = 32'(stage_q) < Stages;
  assign op      = word_i[7:0];
  assign operand = word_i[15:8];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      place_q <= '0;
      stage_q <= '0;
    end else if (valid_i) begin
      place_q <= first_i || place_q == 4'd8 ? '0 : place_q + 4'd1;
      stage_q <= first_i ? '0 : stage_q + 16'(place_q == 4'd8);
    end
  end

  // ---------------------------------------------------------------- what is known beforehand
  logic [7:0]            type_q [ChainSlots];
  logic [CountBits-1:0]  stages_q [ChainSlots];
  logic [Stages-1:0]     channel_q [ChainSlots];
  logic [Stages-1:0]     shift_q [ChainSlots];
  logic [ChainSlots-1:0] usable_q;
  logic                  usable;               // of a stage

  // Zeros after the last stage are stages without operands, which change nothing.
  assign usable = operand <= systole_pkg::Channel;

  always_ff @(posedge clk_i) begin
    if (valid_i && first_i) begin
      type_q[slot_i]    <= word_i[7:0];
      stages_q[slot_i]  <= CountBits'(word_i[31:16]);
      usable_q[slot_i]  <= 32'(word_i[31:16]) <= Stages;
      channel_q[slot_i] <= '0;
      shift_q[slot_i]   <= '0;
    end else if (opens && held) begin
      if (!usable) usable_q[slot_i] <= 1'b0;
      channel_q[slot_i][stage_q[StageBits-1:0]] <= operand == systole_pkg::Channel;
      shift_q[slot_i][stage_q[StageBits-1:0]]   <= operand == systole_pkg::Channel &&
                                                   op == systole_pkg::Requantise;
    end
  end

  assign usable_o     = usable_q[asked_i];
  assign parameters_o = channel_q[asked_i] != '0;
  assign type_o       = type_q[chain_i];
  assign stages_o     = stages_q[chain_i];
  assign channel_o    = channel_q[chain_i];
  assign shift_o      = shift_q[chain_i];

  // ---------------------------------------------------------------- micro-code
  logic [RowBits-1:0] write_row, read_row;
  logic [63:0]        unused_data;
  logic               write;

  assign write     = code && held;
  assign write_row = {slot_i, stage_q[StageBits-1:0], place_q};
  assign read_row  = {chain_i, read_stage_i, read_word_i};

  // A record may come while the micro-code of another chain is read.
  systole_sram_bank #(.Ports(2), .Rows(Rows), .Lanes(1), .LaneBits(64)) u_code (
    .clk_i,
    .enable_i({read_i, write}),
    .row_i   ({read_row, write_row}),
    .data_o  ({code_o, unused_data}),
    .write_i (write),
    .mask_i  (1'b1),
    .data_i  (word_i)
  );

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, 2**StageBits == Stages && 2**SlotBits == ChainSlots)
  `SYSTOLE_ASSERT(NotBoth_A, !(write && read_i && write_row == read_row))

endmodule
