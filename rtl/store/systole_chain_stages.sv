// The stages of a chain: the post-op pipeline, and after it one that knows rows if the chain has it.
// Brings each stage its operand: words of the parameter block, vectors of a tensor, the reciprocal of
// a row's statistic, its mean and factor. Cycles: those of hw::StageFlow of hw/postop/row_flow.h.

module systole_chain_stages #(
  parameter  int unsigned Lanes     = 4,
  parameter  int unsigned Stages    = 8,   // of the pipeline
  parameter  int unsigned CountBits = 24,
  localparam int unsigned StageBits = $clog2(Stages + 1),
  localparam int unsigned StagesBits = $clog2(Stages + 2),
  localparam int unsigned ColBits   = $clog2(systole_pkg::MaxCols + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  code_write_i,   // a word of a stage's micro-code
  input  logic [StageBits-1:0]  code_stage_i,
  input  logic [3:0]            code_word_i,
  input  logic [63:0]           code_i,

  // of a command, held while it is busy
  input  logic                  busy_i,
  input  logic                  loaded_i,       // vectors may come
  input  logic [StagesBits-1:0] stages_i,
  input  logic                  row_wise_i,     // the last one is
  input  logic [Stages-1:0]     channel_i,      // where which operand goes: systole_chain_store
  input  logic [2*Stages-1:0]   tensor_stage_i,
  input  logic [Stages-1:0]     divide_i,
  input  logic [StageBits-1:0]  last_stage_i,
  input  logic                  side_i,         // the last one has a side output: of the results
  output logic                  illegal_o,      // a stage cannot be done
  input  logic [CountBits-1:0]  rows_i,
  input  logic [ColBits-1:0]    cols_i,
  input  logic [ColBits-1:0]    kept_i,         // see systole_softmax_unit

  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [Lanes-1:0]      mask_i,
  input  logic [Lanes*32-1:0]   data_i,

  // operands, by stage, and what takes them
  input  logic                           parameters_there_i,
  input  logic [(Stages+1)*Lanes*32-1:0] parameters_i,
  input  logic [(Stages+1)*Lanes*6-1:0]  shifts_i,
  input  logic [Lanes*32-1:0]            addend_i,
  output logic [Stages:0]                parameters_take_o,
  input  logic [1:0]                     tensor_valid_i,
  input  logic [2*Lanes*32-1:0]          tensor_i,
  output logic [1:0]                     tensor_take_o,
  input  logic                           divided_i,       // the reciprocal is there
  input  logic [31:0]                    reciprocal_i,
  output logic                           divide_take_o,
  input  logic                           known_i,         // mean and factor are there
  input  logic [systole_pkg::LayerNormInputBits-1:0] mean_i,
  input  logic [31:0]                    factor_i,
  output logic                           norm_take_o,

  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [Lanes*32-1:0]   data_o,
  output logic [Lanes-1:0]      mask_o,         // of a chain without a stage that knows rows
  output logic                  sum_write_o,    // a softmax leaves the sum of a row
  output logic [31:0]           row_sum_o
);

  localparam int unsigned SlotsBits = $clog2(Stages + 1);
  localparam int unsigned PlaceBits = Stages > 1 ? $clog2(Stages) : 1;
  localparam int unsigned RowWidth  = Lanes * 32;

  // ---------------------------------------------------------------- operands
  logic                       row_take;
  logic [Stages-1:0]          operand_valid, operand_ready;
  logic [Stages*RowWidth-1:0] operands;

  for (genvar s = 0; s < Stages; s++) begin : gen_operand
    logic row_here;                         // the row-wise stage has the words
    assign row_here = row_wise_i && last_stage_i == StageBits'(s);
    always_comb begin
      operand_valid[s]               = loaded_i && channel_i[s] && parameters_there_i && !row_here;
      operands[s*RowWidth+:RowWidth] = parameters_i[s*RowWidth+:RowWidth];
      if (tensor_stage_i[s]) begin
        operand_valid[s]               = tensor_valid_i[0];
        operands[s*RowWidth+:RowWidth] = tensor_i[RowWidth-1:0];
      end
      if (tensor_stage_i[Stages+s]) begin
        operand_valid[s]               = tensor_valid_i[1];
        operands[s*RowWidth+:RowWidth] = tensor_i[2*RowWidth-1:RowWidth];
      end
      if (divide_i[s]) begin
        operand_valid[s]               = divided_i;
        operands[s*RowWidth+:RowWidth] = {Lanes{reciprocal_i}};
      end
    end
    assign parameters_take_o[s] = operand_ready[s] || (row_take && row_here);
  end
  assign parameters_take_o[Stages] = row_take && last_stage_i == StageBits'(Stages);
  assign tensor_take_o             = {(operand_ready & tensor_stage_i[2*Stages-1:Stages]) != '0,
                                      (operand_ready & tensor_stage_i[Stages-1:0]) != '0};
  assign divide_take_o             = divided_i && (operand_ready & divide_i) != '0;

  // ---------------------------------------------------------------- pipeline
  logic                 stages_valid, stages_ready, code_illegal, row_code, row_legal;
  logic [SlotsBits-1:0] slots;              // of the pipeline, in use
  logic [63:0]          slot_code;
  logic [RowWidth-1:0]  stages_data;
  logic                 unused_shifts;

  // A side output is reduced outside: its slot has none.
  always_comb begin
    slot_code = code_i;
    if (side_i && code_stage_i == last_stage_i && code_word_i == '0) slot_code[39:32] = '0;
  end

  assign slots         = SlotsBits'(stages_i - StagesBits'(row_wise_i));
  assign row_code      = row_wise_i && code_stage_i == last_stage_i;
  assign illegal_o     = code_illegal || (row_wise_i && !row_legal);
  assign unused_shifts = ^shifts_i[Stages*Lanes*6+:Lanes*6];

  systole_postop_pipeline #(.Lanes(Lanes), .Slots(Stages)) u_pipeline (
    .clk_i, .rst_ni,
    .code_write_i   (code_write_i && !row_code),
    .code_slot_i    (PlaceBits'(code_stage_i)),
    .code_word_i    (code_word_i),
    .code_i         (slot_code),
    .stages_i       (busy_i ? slots : '0),
    .error_o        (code_illegal),
    .valid_i        (valid_i && !illegal_o),
    .ready_o, .mask_i, .data_i,
    .operand_valid_i(operand_valid),
    .operand_ready_o(operand_ready),
    .operand_i      (operands),
    .shift_i        (shifts_i[Stages*Lanes*6-1:0]),
    .valid_o        (stages_valid),
    .ready_i        (stages_ready),
    .mask_o,
    .data_o         (stages_data)
  );

  // ---------------------------------------------------------------- row-wise stage
  logic                row_ready, row_valid, sum, norm_take;
  logic [RowWidth-1:0] row_data;

  assign row_take     = row_wise_i && stages_valid && row_ready;
  assign norm_take_o  = row_wise_i && norm_take;
  assign stages_ready = row_wise_i ? row_ready : ready_i;
  assign valid_o      = row_wise_i ? row_valid : stages_valid;
  assign data_o       = row_wise_i ? row_data : stages_data;
  assign sum_write_o  = row_wise_i && row_valid && ready_i && sum;

  systole_row_stage #(.Lanes(Lanes), .CountBits(CountBits)) u_row (
    .clk_i, .rst_ni,
    .code_write_i(code_write_i && row_code),
    .code_word_i, .code_i,
    .legal_o     (row_legal),
    .rows_i, .cols_i, .kept_i,
    .valid_i     (row_wise_i && stages_valid),
    .ready_o     (row_ready),
    .data_i      (stages_data),
    .multiplier_i(parameters_i[last_stage_i*RowWidth+:RowWidth]),
    .addend_i,
    .known_i, .mean_i, .factor_i,
    .norm_take_o (norm_take),
    .valid_o     (row_valid),
    .ready_i,
    .data_o      (row_data),
    .sum_o       (sum),
    .row_sum_o
  );

endmodule
