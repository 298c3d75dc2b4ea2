// The chains that a core holds: their micro-code, a word to read a cycle, and what the store unit has
// to know of each beforehand. Records come as the decoder takes them, a 64-bit word a cycle: first the
// output's type and the number of stages (hw/program/program_image.h), then nine words a stage
// (hw/postop/microcode.h).
//
// A chain is one for the store unit if it has up to Stages stages for its pipeline, of which two may
// have a tensor as their operand and one may divide by the statistic of its row, and then perhaps a
// stage that knows rows, if none divides: softmax, LayerNorm, or that of parts of rows. Only the last
// stage has a side output, and not one that knows rows. Other operands are immediates and words of the
// parameter block. Whether a stage can be done, its unit says when it has the micro-code.

`include "systole_assert.svh"

module systole_chain_store #(
  parameter  int unsigned ChainSlots = 64,
  parameter  int unsigned Stages     = 8,   // of the pipeline
  localparam int unsigned SlotBits   = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned StageBits  = $clog2(Stages + 1),
  localparam int unsigned CountBits  = $clog2(Stages + 2)
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
  output logic                  asked_row_wise_o,
  output logic                  asked_early_o,    // no stage that knows whole rows, no side output
  output logic [1:0]            asked_tensor_o,   // it has a first, a second one
  output logic [15:0]           asked_element_o,

  // of chain `chain_i`
  input  logic [SlotBits-1:0]   chain_i,
  output logic [7:0]            type_o,        // of the output
  output logic [CountBits-1:0]  stages_o,
  output logic                  row_wise_o,    // the last one knows rows
  output logic [1:0]            passes_o,      // over each row
  output logic [Stages:0]       channel_o,     // stages with a word of the parameter block
  output logic [Stages:0]       shift_o,       // and with a second one
  output logic [2*Stages-1:0]   tensor_o,      // stage with the first operand in memory, with the second
  output logic [15:0]           element_o,     // of these: systole_pkg::element_e
  output logic [Stages-1:0]     divide_o,      // the stage that divides by the statistic of a row
  output logic                  norm_o,        // the last one is a LayerNorm of parts of rows
  output logic [16:0]           length_o,      // of these rows
  output logic [7:0]            side_o,        // side output of the last one: systole_pkg::reduction_e

  // of chain `next_i`
  input  logic [SlotBits-1:0]   next_i,
  output logic [1:0]            next_passes_o,
  output logic [Stages:0]       next_channel_o,
  output logic [Stages:0]       next_shift_o,
  output logic [1:0]            next_tensor_o,   // it has a first, a second one
  output logic [15:0]           next_element_o,

  // a word of chain `chain_i`: on the output in the cycle after
  input  logic                  read_i,
  input  logic [StageBits-1:0]  read_stage_i,
  input  logic [3:0]            read_word_i,
  output logic [63:0]           code_o
);

  localparam int unsigned Rows    = ChainSlots * 2**StageBits * 16;
  localparam int unsigned RowBits = $clog2(Rows);

  // ---------------------------------------------------------------- position in the record
  logic [3:0]           place_q;             // of the next word in its stage
  logic [15:0]          stage_q, total_q;    // stages of the chain
  logic                 code, opens, held, last;
  logic [StageBits-1:0] stage;
  logic [7:0]           op, operand, side;

  assign code    = valid_i && !first_i;
  assign opens   = code && place_q == '0;
  assign held    = 32'(stage_q) <= Stages;
  assign last    = stage_q + 16'd1 == total_q;
  assign stage   = stage_q[StageBits-1:0];
  assign op      = word_i[7:0];
  assign operand = word_i[15:8];
  assign side    = word_i[39:32];

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
  logic [1:0]            passes_q [ChainSlots];
  logic [Stages:0]       channel_q [ChainSlots];
  logic [Stages:0]       shift_q [ChainSlots];
  logic [2*Stages-1:0]   tensor_q [ChainSlots];
  logic [Stages-1:0]     divide_q [ChainSlots];
  logic [15:0]           element_q [ChainSlots];
  logic [7:0]            side_q [ChainSlots];
  logic [16:0]           length_q [ChainSlots];
  logic [ChainSlots-1:0] usable_q, row_wise_q, norm_q;
  logic                  row_wise, softmax, usable, in_slots;   // of a stage
  logic                  tensor, second, divides, deferred, norm, measured;
  logic                  softmax_q, part_q;                   // the stage is one

  // Zeros after the last stage are stages without operands, which change nothing.
  assign in_slots   = 32'(stage_q) < Stages;
  assign softmax  = op == systole_pkg::Softmax;
  assign norm     = op == systole_pkg::LayerNormApply;
  assign row_wise = softmax || norm || op == systole_pkg::LayerNorm;
  assign tensor   = operand == systole_pkg::Tensor;
  assign second   = tensor_q[slot_i][Stages-1:0] != '0;   // than the one before
  assign divides  = operand == systole_pkg::Row;
  // The fifth word after those of a LayerNorm of parts is their length.
  assign measured = code && place_q == 4'd5 && last && part_q && held;
  // The word after the codes of a softmax is its mode.
  assign deferred = code && place_q == 4'd1 && last && row_wise_q[slot_i] &&
                    word_i == 64'(systole_pkg::Deferred) && softmax_q;

  always_comb begin
    usable = 1'b1;
    if (tensor) usable = in_slots && tensor_q[slot_i][2*Stages-1:Stages] == '0;
    if (divides) usable = in_slots && op == systole_pkg::DivideRowSum && divide_q[slot_i] == '0;
    if (operand > systole_pkg::Tensor) usable = 1'b0;
    if (row_wise && (!last || divide_q[slot_i] != '0)) usable = 1'b0;
    if (!row_wise && !in_slots && stage_q < total_q) usable = 1'b0;
    if (side != systole_pkg::ReduceNone &&
        (!last || row_wise || side > systole_pkg::ReduceRowPeak || divide_q[slot_i] != '0)) begin
      usable = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (opens) softmax_q <= softmax;
    if (opens) part_q <= norm;
    if (valid_i && first_i) begin
      total_q            <= word_i[31:16];
      type_q[slot_i]     <= word_i[7:0];
      stages_q[slot_i]   <= CountBits'(word_i[31:16]);
      passes_q[slot_i]   <= 2'd1;
      usable_q[slot_i]   <= 32'(word_i[31:16]) <= Stages + 1;
      row_wise_q[slot_i] <= 1'b0;
      channel_q[slot_i]  <= '0;
      shift_q[slot_i]    <= '0;
      tensor_q[slot_i]   <= '0;
      divide_q[slot_i]   <= '0;
      norm_q[slot_i]     <= 1'b0;
      side_q[slot_i]     <= systole_pkg::ReduceNone;
    end else if (opens && held) begin
      if (!usable) usable_q[slot_i] <= 1'b0;
      channel_q[slot_i][stage] <= operand == systole_pkg::Channel;
      shift_q[slot_i][stage]   <= operand == systole_pkg::Channel &&
                                  (op == systole_pkg::Requantise || norm ||
                                   op == systole_pkg::LayerNorm);
      if (last) side_q[slot_i] <= side;
      if (last) norm_q[slot_i] <= norm;
      if (in_slots && tensor && !second) begin
        tensor_q[slot_i][Stages-1:0] <= Stages'(1) << stage;
        element_q[slot_i][7:0]       <= word_i[31:24];
      end
      if (in_slots && tensor && second) begin
        tensor_q[slot_i][2*Stages-1:Stages] <= Stages'(1) << stage;
        element_q[slot_i][15:8]             <= word_i[31:24];
      end
      if (in_slots && divides) divide_q[slot_i] <= Stages'(1) << stage;
      if (row_wise) begin
        row_wise_q[slot_i] <= 1'b1;
        passes_q[slot_i]   <= norm ? 2'd1 : 2'd3;
      end
    end else if (deferred) begin
      passes_q[slot_i] <= 2'd2;
    end else if (measured) begin
      length_q[slot_i] <= word_i[16:0];
      if (word_i == '0 || word_i > 64'd65536) usable_q[slot_i] <= 1'b0;
    end
  end

  assign usable_o         = usable_q[asked_i];
  assign parameters_o     = channel_q[asked_i] != '0;
  assign asked_row_wise_o = row_wise_q[asked_i];
  assign asked_early_o    = (!row_wise_q[asked_i] || norm_q[asked_i]) &&
                            side_q[asked_i] == systole_pkg::ReduceNone;
  assign asked_tensor_o   = {tensor_q[asked_i][2*Stages-1:Stages] != '0,
                             tensor_q[asked_i][Stages-1:0] != '0};
  assign asked_element_o  = element_q[asked_i];
  assign next_passes_o    = passes_q[next_i];
  assign next_channel_o   = channel_q[next_i];
  assign next_shift_o     = shift_q[next_i];
  assign next_tensor_o    = {tensor_q[next_i][2*Stages-1:Stages] != '0,
                             tensor_q[next_i][Stages-1:0] != '0};
  assign next_element_o   = element_q[next_i];
  assign type_o           = type_q[chain_i];
  assign stages_o         = stages_q[chain_i];
  assign row_wise_o       = row_wise_q[chain_i];
  assign passes_o         = passes_q[chain_i];
  assign channel_o        = channel_q[chain_i];
  assign shift_o          = shift_q[chain_i];
  assign tensor_o         = tensor_q[chain_i];
  assign element_o        = element_q[chain_i];
  assign divide_o         = divide_q[chain_i];
  assign norm_o           = norm_q[chain_i];
  assign length_o         = length_q[chain_i];
  assign side_o           = side_q[chain_i];

  // ---------------------------------------------------------------- micro-code
  logic [RowBits-1:0] write_row, read_row;
  logic [63:0]        unused_data;
  logic               write;

  assign write     = code && held;
  assign write_row = {slot_i, stage, place_q};
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

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, 2**SlotBits == ChainSlots)
  `SYSTOLE_ASSERT(NotBoth_A, !(write && read_i && write_row == read_row))

endmodule
