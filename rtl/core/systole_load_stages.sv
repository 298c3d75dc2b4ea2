// Loads whose rows pass stages before the anchor: the tile, and that of a tensor operand, into buffers,
// vector by vector through the post-op pipeline, perhaps with a LayerNorm of parts of rows at its end,
// and into the scratchpad. Values: hw::apply_chain() of hw/postop/postop.h. Cycles: hw::StagedLoad of
// hw/core/staged_load.h.
//
// One at a time: whoever starts it has nothing else of the load unit in flight, and starts nothing until
// it is over. The stages begin in the first cycle in which the first vector can be used: their micro-code
// comes unless they hold the chain, and their parameters, a word a cycle. What they write and read of the
// scratchpad is served at once.
//
// Commands are those of a program in memory (hw/program/command_fields.h). `legal_o` is low for a chain
// with more than one tensor operand, a side output, or a stage that knows whole rows, for parameters of
// more columns and tiles of more bytes than there is room for, and for no work.

`include "systole_assert.svh"

module systole_load_stages #(
  parameter  int unsigned Lanes          = 4,    // of the pipeline: bytes of a beat and of a word
  parameter  int unsigned Stages         = 8,
  parameter  int unsigned Queue          = 4,    // commands in the station of the unit
  parameter  int unsigned ChainSlots     = 64,
  parameter  int unsigned ParameterBeats = 16,   // see systole_parameter_buffers
  parameter  int unsigned Statistics     = 64,   // words
  parameter  int unsigned OperandBytes   = 4096, // of a tile
  parameter  int unsigned RequestBytes   = 16,
  parameter  int unsigned Outstanding    = 4,
  parameter  int unsigned DramBits       = 40,
  parameter  int unsigned AddrBits       = 12,   // of a byte in the scratchpad
  parameter  int unsigned CountBits      = 24,
  localparam int unsigned TagBits        = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned StatisticsBits = Statistics > 1 ? $clog2(Statistics) : 1,
  localparam int unsigned SlotBits       = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned DataWidth      = 8 * Lanes,
  localparam int unsigned LaneBits       = $clog2(Lanes),
  localparam int unsigned WordBits       = AddrBits - LaneBits,
  localparam int unsigned IdBits         = Outstanding > 1 ? $clog2(Outstanding) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  in_order_i,
  input  logic [31:0]           row_bytes_i,

  input  logic                  forget_i,        // a program begins: it has chains of its own
  input  logic                  chain_valid_i,
  input  logic                  chain_first_i,
  input  logic [63:0]           chain_word_i,
  input  logic [SlotBits-1:0]   chain_slot_i,

  input  logic [639:0]          command_i,
  input  logic [SlotBits-1:0]   command_slot_i,  // of its chain
  input  logic [63:0]           tensor_i,        // its second tensor operand
  input  logic [31:0]           tensor_pitch_i,
  output logic                  legal_o,         // if it is a load with stages
  input  logic [Queue-1:0]      entry_i,         // where it goes in this cycle

  input  logic                  start_i,
  input  logic [TagBits-1:0]    start_entry_i,
  output logic                  busy_o,          // from the cycle after the start to the end
  output logic [Queue-1:0]      completed_o,     // results are in their places
  output logic                  fault_o,         // the pipeline cannot do the chain: it stays so
  output logic                  error_o,         // since reset: a response was no OKAY

  // what others write to the row statistics
  input  logic                      statistics_write_i,
  input  logic                      statistics_four_i,
  input  logic [StatisticsBits-1:0] statistics_at_i,
  input  logic [127:0]              statistics_data_i,

  // the scratchpad
  output logic                  read_o,
  output logic [AddrBits-1:0]   read_address_o,
  input  logic [DataWidth-1:0]  read_data_i,     // in the cycle after
  output logic                  write_valid_o,
  output logic [WordBits-1:0]   write_word_o,
  output logic [DataWidth-1:0]  write_data_o,
  output logic [Lanes-1:0]      write_here_o,
  output logic [Lanes-1:0]      write_next_o,

  output logic                  ar_valid_o,
  input  logic                  ar_ready_i,
  output logic [IdBits-1:0]     ar_id_o,
  output logic [DramBits-1:0]   ar_addr_o,
  output logic [7:0]            ar_len_o,
  output logic [2:0]            ar_size_o,
  output logic [1:0]            ar_burst_o,
  input  logic                  r_valid_i,
  output logic                  r_ready_o,
  input  logic [IdBits-1:0]     r_id_i,
  input  logic [DataWidth-1:0]  r_data_i,
  input  logic [1:0]            r_resp_i,
  input  logic                  r_last_i
);

  localparam int unsigned StageBits   = $clog2(Stages + 1);
  localparam int unsigned StagesBits  = $clog2(Stages + 2);
  localparam int unsigned ColBits     = $clog2(systole_pkg::MaxCols + 1);
  localparam int unsigned RowWidth    = Lanes * 32;
  localparam int unsigned MostColumns = Lanes * ParameterBeats;

  // ---------------------------------------------------------------- fields of a command
  logic [7:0]  asked_type;
  logic [31:0] asked_m, asked_n;
  logic        asked_usable, asked_parameters, asked_row_wise, asked_early, rows_fit, tensor_fits;
  logic [1:0]  asked_tensor;
  logic [15:0] asked_element, asked_chain;
  logic        unused_fields;

  assign asked_type    = command_i[15:8];
  assign asked_chain   = command_i[48+:16] - 16'd1;
  assign asked_m       = command_i[288+:32];
  assign asked_n       = command_i[320+:32];
  assign unused_fields = ^{command_i, tensor_i, tensor_pitch_i, asked_element[15:8], element[15:8]};

  systole_tile_fits #(.Lanes(Lanes), .Bytes(OperandBytes)) u_rows_fit (
    .m_i   (asked_m),
    .n_i   (asked_n),
    .type_i(asked_type),
    .fits_o(rows_fit)
  );
  systole_tile_fits #(.Lanes(Lanes), .Bytes(OperandBytes)) u_tensor_fits (
    .m_i   (asked_m),
    .n_i   (asked_n),
    .type_i(asked_element[7:0]),
    .fits_o(tensor_fits)
  );
  assign legal_o = asked_m != '0 && asked_n != '0 && asked_usable && asked_early && rows_fit &&
                   !asked_tensor[1] && (!asked_tensor[0] || tensor_fits) &&
                   (!asked_parameters || asked_n <= MostColumns) &&
                   (!asked_row_wise || asked_n <= 32'(systole_pkg::MaxCols));

  localparam int unsigned FieldBits = 24 + SlotBits + 2 * CountBits + 2 * DramBits + 64 + 3 * AddrBits +
                                      StatisticsBits;

  logic [FieldBits-1:0] fields_q [Queue];

  for (genvar e = 0; e < Queue; e++) begin : gen_entry
    always_ff @(posedge clk_i) begin
      if (entry_i[e]) begin
        fields_q[e] <= {asked_chain, asked_type, command_slot_i, asked_m[CountBits-1:0],
                        asked_n[CountBits-1:0], command_i[128+:DramBits], command_i[192+:DramBits],
                        command_i[96+:32], command_i[256+:32], command_i[384+:AddrBits],
                        command_i[416+:AddrBits], command_i[576+:AddrBits],
                        command_i[608+:StatisticsBits]};
      end
    end
  end

  // ---------------------------------------------------------------- the one that starts, or runs
  logic                      staged_q, begins, over;  // the stages have begun; begin in this cycle
  logic [TagBits-1:0]        entry_q, entry;
  logic [15:0]               chain;
  logic [7:0]                in_type;
  logic [SlotBits-1:0]       slot;
  logic [CountBits-1:0]      m, n, vectors;
  logic [DramBits-1:0]       from, tensor;
  logic [31:0]               pitch, tensor_pitch;
  logic [AddrBits-1:0]       to, to_pitch, parameters_at;
  logic [StatisticsBits-1:0] statistics;
  logic                      operands_there, code_left, parameters_loaded, loaded;

  assign entry = busy_o ? entry_q : start_entry_i;
  assign {chain, in_type, slot, m, n, from, tensor, pitch, tensor_pitch, to, to_pitch, parameters_at,
          statistics} = fields_q[entry];
  assign vectors     = (n - CountBits'(1)) / CountBits'(Lanes) + CountBits'(1);
  assign begins      = busy_o && !staged_q && operands_there;
  assign loaded      = staged_q && !code_left && parameters_loaded;
  assign completed_o = over ? Queue'(1) << entry_q : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_o   <= 1'b0;
      staged_q <= 1'b0;
    end else begin
      busy_o   <= start_i || (busy_o && !over);
      staged_q <= begins || (staged_q && !over);
    end
  end
  always_ff @(posedge clk_i) entry_q <= entry;

  // ---------------------------------------------------------------- its chain
  logic [7:0]            out_type, unused_side;
  logic [StagesBits-1:0] stages;
  logic [StageBits-1:0]  last_stage, code_stage, write_stage;
  logic                  row_wise, norm, code_read, code_write;
  logic [1:0]            passes, unused_next_passes, unused_next_tensor;
  logic [Stages:0]       channel, shift, unused_next_channel, unused_next_shift;
  logic [2*Stages-1:0]   tensor_stage;
  logic [Stages-1:0]     divide;
  logic [15:0]           element, unused_next_element;
  logic [16:0]           length;
  logic [3:0]            code_word, write_word;
  logic [63:0]           code;

  systole_chain_store #(.ChainSlots(ChainSlots), .Stages(Stages)) u_chains (
    .clk_i, .rst_ni,
    .valid_i     (chain_valid_i),
    .first_i     (chain_first_i),
    .word_i      (chain_word_i),
    .slot_i      (chain_slot_i),
    .asked_i     (command_slot_i),
    .usable_o    (asked_usable),
    .parameters_o(asked_parameters),
    .asked_row_wise_o(asked_row_wise),
    .asked_early_o   (asked_early),
    .asked_tensor_o  (asked_tensor),
    .asked_element_o (asked_element),
    .chain_i     (slot),
    .type_o      (out_type),
    .stages_o    (stages),
    .row_wise_o  (row_wise),
    .passes_o    (passes),
    .channel_o   (channel),
    .shift_o     (shift),
    .tensor_o    (tensor_stage),
    .element_o   (element),
    .divide_o    (divide),
    .norm_o      (norm),
    .length_o    (length),
    .side_o      (unused_side),
    .next_i        (slot),
    .next_passes_o (unused_next_passes),
    .next_channel_o(unused_next_channel),
    .next_shift_o  (unused_next_shift),
    .next_tensor_o (unused_next_tensor),
    .next_element_o(unused_next_element),
    .read_i      (code_read),
    .read_stage_i(code_stage),
    .read_word_i (code_word),
    .code_o      (code)
  );
  assign last_stage = StageBits'(stages - StagesBits'(1));

  systole_code_loader #(.Stages(Stages)) u_code (
    .clk_i, .rst_ni,
    .waiting_i    (begins),
    .start_i      (begins),
    .busy_i       (staged_q),
    .chain_i      (chain),
    .stages_i     (stages),
    .forget_i,
    .left_o       (code_left),
    .read_o       (code_read),
    .read_stage_o (code_stage),
    .read_word_o  (code_word),
    .write_o      (code_write),
    .write_stage_o(write_stage),
    .write_word_o (write_word)
  );

  // ---------------------------------------------------------------- parameters
  logic                     parameters_there, unused_late;
  logic [Stages:0]          parameters_take;
  logic [(Stages+1)*RowWidth-1:0] parameters;
  logic [(Stages+1)*Lanes*6-1:0]  shifts;
  logic [RowWidth-1:0]      addend;

  systole_parameter_buffers #(
    .Lanes(Lanes), .Stages(Stages + 1), .ParameterBeats(ParameterBeats), .DataBytes(Lanes),
    .AddrBits(AddrBits), .CountBits(CountBits)
  ) u_parameters (
    .clk_i, .rst_ni,
    .start_i        (begins),
    .readable_i     (begins),
    .parameters_i   (parameters_at),
    .n_i            (n),
    .channel_i      (channel),
    .shift_i        (shift),
    .norm_i         (last_stage),
    .loaded_o       (parameters_loaded),
    .there_o        (parameters_there),
    .next_parameters_i(parameters_at),
    .next_n_i       (n),
    .next_channel_i (channel),
    .next_shift_i   (shift),
    .valid_o        (read_o),
    .late_o         (unused_late),
    .done_i         (1'b1),
    .address_o      (read_address_o),
    .data_i         (read_data_i),
    .operand_ready_i(parameters_take),
    .operands_o     (parameters),
    .shifts_o       (shifts),
    .addend_o       (addend)
  );

  // ---------------------------------------------------------------- tiles: rows, then the operand
  logic                    has_tensor, step, rows_ready, rows_take;
  logic [1:0]              tile_valid, tensor_take;
  logic [2*RowWidth-1:0]   tiles;

  assign has_tensor = tensor_stage[Stages-1:0] != '0;
  assign rows_take  = tile_valid[0] && rows_ready;

  systole_operand_buffers #(
    .Lanes(Lanes), .Bytes(OperandBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .DramBits(DramBits), .CountBits(CountBits)
  ) u_tiles (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_i,
    .readable_i(start_i),
    .used_i    (busy_o),
    .whole_i   (1'b0),
    .wanted_i  ({has_tensor, 1'b1}),
    .type_i    ({element[7:0], in_type}),
    .passes_i  (passes),
    .address_i ({tensor, from}),
    .pitch_i   ({tensor_pitch, pitch}),
    .m_i       (m),
    .n_i       (n),
    .vectors_i (vectors),
    .step_i    (step),
    .there_o   (operands_there),
    .error_o,
    .valid_o   (tile_valid),
    .take_i    ({tensor_take[0], rows_take}),
    .data_o    (tiles),
    .ar_valid_o, .ar_ready_i, .ar_id_o, .ar_addr_o, .ar_len_o, .ar_size_o, .ar_burst_o,
    .r_valid_i, .r_ready_o, .r_id_i, .r_data_i, .r_resp_i, .r_last_i
  );

  // ---------------------------------------------------------------- vectors into the stages
  logic left, unused_end, unused_last, unused_at, unused_next;

  // A vector may wait before the first stage.
  assign step = loaded && left && operands_there && (!tile_valid[0] || rows_ready);

  systole_row_passes #(.AtBits(1), .CountBits(CountBits)) u_order (
    .clk_i, .rst_ni,
    .start_i  (begins),
    .passes_i (passes),
    .rows_i   (m),
    .vectors_i(vectors),
    .base_i   (1'b0),
    .pitch_i  (1'b0),
    .valid_o  (left),
    .step_i   (step),
    .at_o     (unused_at),
    .next_at_o(unused_next),
    .row_end_o(unused_end),
    .last_o   (unused_last)
  );

  // ---------------------------------------------------------------- statistics of rows
  logic                      divide_read, norm_read, divided, divide_take, known, norm_take;
  logic [StatisticsBits-1:0] divide_at, norm_at;
  logic [127:0]              words;
  logic [31:0]               reciprocal, factor;
  logic [systole_pkg::LayerNormInputBits-1:0] mean;

  systole_row_statistics #(.Words(Statistics)) u_words (
    .clk_i,
    .read_i      (divide_read || norm_read),
    .read_at_i   (divide_read ? divide_at : norm_at),
    .data_o      (words),
    .write_i     (statistics_write_i),
    .write_four_i(statistics_four_i),
    .write_at_i  (statistics_at_i),
    .data_i      (statistics_data_i)
  );
  systole_row_reciprocals #(.Words(Statistics), .CountBits(CountBits)) u_reciprocals (
    .clk_i, .rst_ni,
    .start_i     (begins),
    .divides_i   (divide != '0),
    .statistics_i(statistics),
    .rows_i      (m),
    .vectors_i   (vectors),
    .read_o      (divide_read),
    .read_at_o   (divide_at),
    .statistic_i (words[31:0]),
    .valid_o     (divided),
    .reciprocal_o(reciprocal),
    .take_i      (divide_take)
  );
  systole_row_norms #(.Words(Statistics), .CountBits(CountBits)) u_norms (
    .clk_i, .rst_ni,
    .start_i     (begins),
    .wanted_i    (norm),
    .length_i    (length),
    .statistics_i(statistics),
    .rows_i      (m),
    .vectors_i   (vectors),
    .read_o      (norm_read),
    .read_at_o   (norm_at),
    .data_i      (words),
    .valid_o     (known),
    .mean_o      (mean),
    .factor_o    (factor),
    .take_i      (norm_take)
  );

  // ---------------------------------------------------------------- stages
  logic                illegal, out_valid, out_ready, unused_sum_write;
  logic [RowWidth-1:0] out;
  logic [Lanes-1:0]    unused_mask;
  logic [31:0]         unused_sum;

  systole_chain_stages #(.Lanes(Lanes), .Stages(Stages), .CountBits(CountBits)) u_stages (
    .clk_i, .rst_ni,
    .code_write_i   (code_write),
    .code_stage_i   (write_stage),
    .code_word_i    (write_word),
    .code_i         (code),
    .busy_i         (staged_q),
    .loaded_i       (loaded),
    .stages_i       (stages),
    .row_wise_i     (row_wise),
    .channel_i      (channel[Stages-1:0]),
    .tensor_stage_i (tensor_stage),
    .divide_i       (divide),
    .last_stage_i   (last_stage),
    .side_i         (1'b0),
    .illegal_o      (illegal),
    .rows_i         (m),
    .cols_i         (ColBits'(n)),
    .kept_i         ('0),
    .valid_i        (tile_valid[0]),
    .ready_o        (rows_ready),
    .mask_i         ('1),                // for side outputs, of which there are none
    .data_i         (tiles[RowWidth-1:0]),
    .parameters_there_i(parameters_there),
    .parameters_i   (parameters),
    .shifts_i       (shifts),
    .addend_i       (addend),
    .parameters_take_o(parameters_take),
    .tensor_valid_i ({1'b0, tile_valid[1]}),
    .tensor_i       ({RowWidth'(0), tiles[2*RowWidth-1:RowWidth]}),
    .tensor_take_o  (tensor_take),
    .divided_i      (divided),
    .reciprocal_i   (reciprocal),
    .divide_take_o  (divide_take),
    .known_i        (known),
    .mean_i         (mean),
    .factor_i       (factor),
    .norm_take_o    (norm_take),
    .valid_o        (out_valid),
    .ready_i        (out_ready),
    .data_o         (out),
    .mask_o         (unused_mask),
    .sum_write_o    (unused_sum_write),
    .row_sum_o      (unused_sum)
  );

  // The code has been written in the second cycle after the last word was read.
  assign fault_o = loaded && !code_write && illegal;

  // ---------------------------------------------------------------- results
  logic [1:0]           unused_type_bytes;
  logic [DataWidth-1:0] unused_piece;
  logic [LaneBits:0]    unused_count;
  logic                 unused_row_end;

  systole_result_pieces #(
    .Lanes(Lanes), .DataBytes(Lanes), .AddrBits(AddrBits), .CountBits(CountBits)
  ) u_pieces (
    .clk_i,
    .start_i     (begins),
    .move_i      (1'b1),
    .type_i      (out_type),
    .m_i         (m),
    .n_i         (n),
    .to_i        (to),
    .to_pitch_i  (to_pitch),
    .type_bytes_o(unused_type_bytes),
    .valid_i     (out_valid),
    .ready_o     (out_ready),
    .data_i      (out),
    .over_o      (over),
    .port_ready_i(1'b0),
    .piece_o     (unused_piece),
    .count_o     (unused_count),
    .row_end_o   (unused_row_end),
    .write_valid_o,
    .write_done_i(1'b1),
    .write_word_o, .write_data_o, .write_here_o, .write_next_o
  );

  `SYSTOLE_ASSERT(StartedIdle_A, start_i |-> !busy_o)
  `SYSTOLE_ASSERT(OneTensor_A, !tensor_take[1])
  `SYSTOLE_ASSERT(ResultsWanted_A, out_valid |-> staged_q)

endmodule
