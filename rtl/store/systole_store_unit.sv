// The unit of a core that runs stores and moves: rows of sums out of the accumulator, through the
// post-op pipeline and perhaps a stage after it that knows rows, to memory or into the scratchpad. Values:
// hw::apply_chain() of hw/postop/postop.h. Cycles: hw::store_times() of hw/dma/store_schedule.h.
//
// What a command needs comes while it is the next one in the station: micro-code, unless the pipeline
// holds that chain, beside it its words of the parameter block, which stay in buffers for all of its rows,
// and the tiles of its tensor operands. When it has started and the first two are there, a vector of sums
// goes in every cycle in which its operands are there, as often as the chain passes over its row.
// The last byte out makes place for the next command, except that the writing port must have sent its
// last request, and that a side output must be there.

`include "systole_assert.svh"

module systole_store_unit #(
  parameter  int unsigned Lanes          = 4,   // of the pipeline, as many as a row of the accumulator
  parameter  int unsigned Stages         = 8,
  parameter  int unsigned Queue          = 2,   // commands in the station of the unit
  parameter  int unsigned ChainSlots     = 64,
  parameter  int unsigned ParameterBeats = 16,  // vectors of parameters that a stage can keep
  parameter  int unsigned Statistics     = 64,  // words
  parameter  int unsigned OperandBytes   = 4096,
  parameter  int unsigned DataBytes      = 4,   // of a word of the scratchpad and of a beat
  parameter  int unsigned RequestBytes   = 16,
  parameter  int unsigned Outstanding    = 4,
  parameter  int unsigned DramBits       = 40,
  parameter  int unsigned AddrBits       = 12,  // of a byte in the scratchpad
  parameter  int unsigned SumBits        = 10,  // of a sum in the accumulator
  parameter  int unsigned CountBits      = 24,
  localparam int unsigned TagBits        = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned SlotBits       = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned StageBits      = $clog2(Stages + 1),
  localparam int unsigned StagesBits     = $clog2(Stages + 2),
  localparam int unsigned ColBits        = $clog2(systole_pkg::MaxCols + 1),
  localparam int unsigned StatisticsBits = Statistics > 1 ? $clog2(Statistics) : 1,
  localparam int unsigned DataWidth      = 8 * DataBytes,
  localparam int unsigned LaneBits       = $clog2(DataBytes),
  localparam int unsigned WordBits       = AddrBits - LaneBits,
  localparam int unsigned IdBits         = Outstanding > 1 ? $clog2(Outstanding) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  in_order_i,
  input  logic [31:0]           row_bytes_i,

  // a command in flight to an entry of the station
  input  logic [Queue-1:0]      entry_i,
  input  logic                  move_i,          // into the scratchpad, not to memory
  input  logic                  whole_i,         // all operands come before the first vector
  input  logic [15:0]           chain_i,         // its number, and its slot
  input  logic [SlotBits-1:0]   slot_i,
  input  logic [SumBits-1:0]    c_i,             // sums
  input  logic [SumBits-1:0]    c_pitch_i,
  input  logic [CountBits-1:0]  m_i,             // at least 1, as n_i
  input  logic [CountBits-1:0]  n_i,
  input  logic [DramBits-1:0]   to_i,
  input  logic [31:0]           to_pitch_i,
  input  logic [AddrBits-1:0]   parameters_i,
  input  logic [StatisticsBits-1:0] statistics_i,
  input  logic [ColBits-1:0]    kept_i,          // see systole_softmax_unit
  input  logic                  continues_i,     // a side output adds to what is there
  input  logic [2*DramBits-1:0] tensor_i,        // the first one in the low bits
  input  logic [63:0]           tensor_pitch_i,

  input  logic                  waiting_i,       // start_entry_i is the next command
  input  logic                  reads_i,         // and its parameters and operands can be read
  input  logic                  start_valid_i,
  output logic                  start_ready_o,
  input  logic [TagBits-1:0]    start_entry_i,
  output logic [Queue-1:0]      released_o,      // sums have been read for the last time
  output logic [Queue-1:0]      completed_o,     // results are in their places
  output logic                  fault_o,         // the pipeline cannot do the chain: it stays so
  output logic                  error_o,         // since reset: a response was no OKAY

  input  logic                  forget_i,        // a program begins

  // the chain of the command: systole_chain_store
  output logic [SlotBits-1:0]   chain_o,
  input  logic [7:0]            type_i,
  input  logic [StagesBits-1:0] stages_i,
  input  logic                  row_wise_i,
  input  logic [1:0]            passes_i,
  input  logic [Stages:0]       channel_i,
  input  logic [Stages:0]       shift_i,
  input  logic [2*Stages-1:0]   tensor_stage_i,
  input  logic [15:0]           element_i,
  input  logic [Stages-1:0]     divide_i,
  input  logic                  norm_i,
  input  logic [16:0]           length_i,
  input  logic [7:0]            side_i,

  // the chain of the next command
  output logic [SlotBits-1:0]   next_o,
  input  logic [1:0]            next_passes_i,
  input  logic [Stages:0]       next_channel_i,
  input  logic [Stages:0]       next_shift_i,
  input  logic [1:0]            next_tensor_i,
  input  logic [15:0]           next_element_i,

  // micro-code of chain_o
  output logic                  code_read_o,
  output logic [StageBits-1:0]  code_stage_o,
  output logic [3:0]            code_word_o,
  input  logic [63:0]           code_i,

  // a vector of sums in the accumulator, and then these
  output logic                  sums_valid_o,
  input  logic                  sums_ready_i,
  output logic [SumBits-1:0]    sums_at_o,       // its first one
  input  logic                  data_valid_i,
  output logic                  data_ready_o,
  input  logic [Lanes*32-1:0]   data_i,

  // what is written to the row statistics
  output logic                  statistics_write_o,
  output logic                  statistics_four_o,
  output logic [StatisticsBits-1:0] statistics_at_o,
  output logic [127:0]          statistics_data_o,

  // clients of the scratchpad
  output logic                  parameters_valid_o,
  output logic                  parameters_late_o,   // of a command that has not started
  input  logic                  parameters_done_i,
  output logic [AddrBits-1:0]   parameters_address_o,
  input  logic [DataWidth-1:0]  parameters_data_i,
  output logic                  write_valid_o,
  input  logic                  write_done_i,
  output logic [WordBits-1:0]   write_word_o,
  output logic [DataWidth-1:0]  write_data_o,
  output logic [DataBytes-1:0]  write_here_o,
  output logic [DataBytes-1:0]  write_next_o,

  // tensor operands
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
  input  logic                  r_last_i,

  output logic                  aw_valid_o,
  input  logic                  aw_ready_i,
  output logic [IdBits-1:0]     aw_id_o,
  output logic [DramBits-1:0]   aw_addr_o,
  output logic [7:0]            aw_len_o,
  output logic [2:0]            aw_size_o,
  output logic [1:0]            aw_burst_o,
  output logic                  w_valid_o,
  input  logic                  w_ready_i,
  output logic [DataWidth-1:0]  w_data_o,
  output logic [DataBytes-1:0]  w_strb_o,
  output logic                  w_last_o,
  input  logic                  b_valid_i,
  output logic                  b_ready_o,
  input  logic [IdBits-1:0]     b_id_i,
  input  logic [1:0]            b_resp_i
);

  // ---------------------------------------------------------------- commands, by their entries
  localparam int unsigned FieldBits = 19 + SlotBits + 2 * SumBits + 2 * CountBits + 3 * DramBits + 96 +
                                      AddrBits + StatisticsBits + ColBits;

  logic [FieldBits-1:0] fields_q [Queue];

  for (genvar e = 0; e < Queue; e++) begin : gen_entry
    always_ff @(posedge clk_i) begin
      if (entry_i[e]) begin
        fields_q[e] <= {move_i, whole_i, continues_i, chain_i, slot_i, c_i, c_pitch_i, m_i, n_i, to_i, to_pitch_i,
                        parameters_i, statistics_i, kept_i, tensor_i, tensor_pitch_i};
      end
    end
  end

  // ---------------------------------------------------------------- one command at a time
  logic                 busy_q, start, port_ready, out_over, out_valid, out_ready, side_busy;
  logic [Lanes*32-1:0]  out;                  // a vector of results
  logic [TagBits-1:0]   entry_q, entry;       // of the command, or of the one that would start
  logic                 moves, whole, continues;
  logic [15:0]          chain, next_chain;
  logic [SumBits-1:0]   c, c_pitch;
  logic [CountBits-1:0] m, n, vectors, last_lanes;  // of a row, of its last vector
  logic [DramBits-1:0]  to;
  logic [31:0]          to_pitch;
  logic [2*DramBits-1:0] tensor;
  logic [63:0]          tensor_pitch;
  logic [AddrBits-1:0]  parameters_at;
  logic [StatisticsBits-1:0] statistics;
  logic [ColBits-1:0]   kept;
  logic                 code_left, loaded;
  logic                 next_moves, next_whole, next_continues;   // the next command
  logic [SumBits-1:0]   next_c, next_c_pitch;
  logic [CountBits-1:0] next_m, next_n;
  logic [DramBits-1:0]  next_to;
  logic [31:0]          next_to_pitch;
  logic [2*DramBits-1:0] next_tensor;
  logic [63:0]          next_tensor_pitch;
  logic [AddrBits-1:0]  next_parameters_at;
  logic [StatisticsBits-1:0] next_statistics;
  logic [ColBits-1:0]   next_kept;
  logic                 unused_next_fields;

  assign entry         = busy_q ? entry_q : start_entry_i;
  assign {moves, whole, continues, chain, chain_o, c, c_pitch, m, n, to, to_pitch, parameters_at, statistics, kept, tensor,
          tensor_pitch} = fields_q[entry];
  assign {next_moves, next_whole, next_continues, next_chain, next_o, next_c, next_c_pitch, next_m, next_n, next_to, next_to_pitch,
          next_parameters_at, next_statistics, next_kept, next_tensor, next_tensor_pitch} =
         fields_q[start_entry_i];
  assign unused_next_fields = ^{next_moves, next_continues, next_chain, next_c, next_c_pitch, next_to, next_to_pitch,
                                next_statistics, next_kept};
  assign last_lanes    = (n - CountBits'(1)) % CountBits'(Lanes) + CountBits'(1);
  assign vectors       = (n - CountBits'(1)) / CountBits'(Lanes) + CountBits'(1);
  assign start_ready_o = !busy_q && !side_busy && port_ready;
  assign start         = start_valid_i && start_ready_o;
  assign loaded        = busy_q && !code_left && parameters_loaded;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
    end else begin
      busy_q <= start || (busy_q && !out_over);
    end
  end
  always_ff @(posedge clk_i) entry_q <= entry;

  // ---------------------------------------------------------------- micro-code
  logic                 code_write;
  logic [StageBits-1:0] write_stage;
  logic [3:0]           write_word;

  systole_code_loader #(.Stages(Stages)) u_code (
    .clk_i, .rst_ni,
    .waiting_i,
    .start_i      (start),
    .busy_i       (busy_q),
    .chain_i      (chain),
    .stages_i, .forget_i,
    .left_o       (code_left),
    .read_o       (code_read_o),
    .read_stage_o (code_stage_o),
    .read_word_o  (code_word_o),
    .write_o      (code_write),
    .write_stage_o(write_stage),
    .write_word_o (write_word)
  );

  // ---------------------------------------------------------------- parameters
  logic                           parameters_loaded, parameters_there;
  logic [Stages:0]                parameters_take;
  logic [(Stages+1)*Lanes*32-1:0] parameters;
  logic [(Stages+1)*Lanes*6-1:0]  shifts;
  logic [Lanes*32-1:0]            addend;
  logic [StageBits-1:0]           last_stage;

  assign last_stage = StageBits'(stages_i - StagesBits'(1));

  systole_parameter_buffers #(
    .Lanes(Lanes), .Stages(Stages + 1), .ParameterBeats(ParameterBeats), .DataBytes(DataBytes),
    .AddrBits(AddrBits), .CountBits(CountBits)
  ) u_parameters (
    .clk_i, .rst_ni,
    .start_i        (start),
    .readable_i     (reads_i),
    .parameters_i   (parameters_at),
    .n_i            (n),
    .channel_i, .shift_i,
    .norm_i         (last_stage),
    .next_parameters_i(next_parameters_at),
    .next_n_i       (next_n),
    .next_channel_i, .next_shift_i,
    .loaded_o       (parameters_loaded),
    .there_o        (parameters_there),
    .valid_o        (parameters_valid_o),
    .late_o         (parameters_late_o),
    .done_i         (parameters_done_i),
    .address_o      (parameters_address_o),
    .data_i         (parameters_data_i),
    .operand_ready_i(parameters_take),
    .operands_o     (parameters),
    .shifts_o       (shifts),
    .addend_o       (addend)
  );

  // ---------------------------------------------------------------- tensor operands
  logic                  operand_error, operands_there, used;
  logic [1:0]            tensor_valid;
  logic                  sums_take;           // a vector of sums is read
  logic [1:0]            wanted;              // by the chain of the command that runs
  logic [CountBits-1:0]  next_vectors;
  logic [1:0]            tensor_take;
  logic [2*Lanes*32-1:0] tensor_data;

  assign wanted       = {tensor_stage_i[2*Stages-1:Stages] != '0, tensor_stage_i[Stages-1:0] != '0};
  assign used         = busy_q && wanted != '0;
  assign next_vectors = (next_n - CountBits'(1)) / CountBits'(Lanes) + CountBits'(1);

  systole_operand_buffers #(
    .Lanes(Lanes), .Bytes(OperandBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .DramBits(DramBits), .CountBits(CountBits)
  ) u_operands (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_i   (start),
    .readable_i(reads_i),
    .used_i    (used),
    .whole_i   (used ? whole : next_whole),
    .wanted_i  (used ? wanted : next_tensor_i),
    .type_i    (used ? element_i : next_element_i),
    .passes_i  (used ? passes_i : next_passes_i),
    .address_i (used ? tensor : next_tensor),
    .pitch_i   (used ? tensor_pitch : next_tensor_pitch),
    .m_i       (used ? m : next_m),
    .n_i       (used ? n : next_n),
    .vectors_i (used ? vectors : next_vectors),
    .step_i    (sums_take),
    .there_o   (operands_there),
    .error_o   (operand_error),
    .valid_o   (tensor_valid),
    .take_i    (tensor_take),
    .data_o    (tensor_data),
    .ar_valid_o, .ar_ready_i, .ar_id_o, .ar_addr_o, .ar_len_o, .ar_size_o, .ar_burst_o,
    .r_valid_i, .r_ready_o, .r_id_i, .r_data_i, .r_resp_i, .r_last_i
  );

  // ---------------------------------------------------------------- statistics of rows
  logic             divided, divide_take, sum_write, known, norm_take, side_left;
  logic [31:0]      reciprocal, row_sum, factor;
  logic [Lanes-1:0] out_mask;
  logic [systole_pkg::LayerNormInputBits-1:0] mean;

  systole_statistics_path #(
    .Lanes(Lanes), .Words(Statistics), .CountBits(CountBits)
  ) u_statistics (
    .clk_i, .rst_ni,
    .start_i      (start),
    .divides_i    (divide_i != '0),
    .norm_i, .length_i, .side_i,
    .continues_i  (continues),
    .statistics_i (statistics),
    .rows_i       (m),
    .vectors_i    (vectors),
    .divided_o    (divided),
    .reciprocal_o (reciprocal),
    .divide_take_i(divide_take),
    .known_o      (known),
    .mean_o       (mean),
    .factor_o     (factor),
    .norm_take_i  (norm_take),
    .sum_write_i  (sum_write),
    .row_sum_i    (row_sum),
    .valid_i      (out_valid && out_ready),
    .mask_i       (out_mask),
    .data_i       (out),
    .busy_o       (side_busy),
    .left_o       (side_left),
    .write_o      (statistics_write_o),
    .write_four_o (statistics_four_o),
    .write_at_o   (statistics_at_o),
    .write_data_o (statistics_data_o)
  );

  // ---------------------------------------------------------------- sums into the pipeline
  logic               reading, read_row_end, read_last;
  logic [SumBits-1:0] unused_next;
  logic [Lanes-1:0]   mask, mask_q;

  assign sums_valid_o = loaded && reading && (wanted == '0 || operands_there);
  assign sums_take    = sums_valid_o && sums_ready_i;
  assign released_o   = sums_take && read_last ? Queue'(1) << entry_q : '0;

  systole_row_passes #(.AtBits(SumBits), .Step(Lanes), .CountBits(CountBits)) u_sums (
    .clk_i, .rst_ni,
    .start_i  (start),
    .passes_i,
    .rows_i   (m),
    .vectors_i(vectors),
    .base_i   (c),
    .pitch_i  (c_pitch),
    .valid_o  (reading),
    .step_i   (sums_take),
    .at_o     (sums_at_o),
    .next_at_o(unused_next),
    .row_end_o(read_row_end),
    .last_o   (read_last)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_mask
    assign mask[l] = !read_row_end || CountBits'(l) < last_lanes;
  end
  always_ff @(posedge clk_i) begin
    if (sums_take) mask_q <= mask;
  end

  // ---------------------------------------------------------------- stages
  logic                illegal;

  systole_chain_stages #(.Lanes(Lanes), .Stages(Stages), .CountBits(CountBits)) u_stages (
    .clk_i, .rst_ni,
    .code_write_i   (code_write),
    .code_stage_i   (write_stage),
    .code_word_i    (write_word),
    .code_i,
    .busy_i         (busy_q),
    .loaded_i       (loaded),
    .stages_i, .row_wise_i,
    .channel_i      (channel_i[Stages-1:0]),
    .tensor_stage_i, .divide_i,
    .last_stage_i   (last_stage),
    .side_i         (side_i != systole_pkg::ReduceNone),
    .illegal_o      (illegal),
    .rows_i         (m),
    .cols_i         (ColBits'(n)),
    .kept_i         (kept),
    .valid_i        (data_valid_i),
    .ready_o        (data_ready_o),
    .mask_i         (mask_q),
    .data_i,
    .parameters_there_i(parameters_there),
    .parameters_i   (parameters),
    .shifts_i       (shifts),
    .addend_i       (addend),
    .parameters_take_o(parameters_take),
    .tensor_valid_i (tensor_valid),
    .tensor_i       (tensor_data),
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
    .mask_o         (out_mask),
    .sum_write_o    (sum_write),
    .row_sum_o      (row_sum)
  );

  // The code has been written in the second cycle after the last word was read.
  assign fault_o = loaded && !code_write && illegal;

  // A command is complete when its side output is there, too.
  logic [Queue-1:0]   stored, waiting, waiting_q;
  logic [TagBits-1:0] side_entry_q;

  assign waiting     = side_left ? (stored | waiting_q) & (Queue'(1) << side_entry_q) : '0;
  assign completed_o = (stored | waiting_q) & ~waiting;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waiting_q <= '0;
    end else begin
      waiting_q <= waiting;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) side_entry_q <= entry;
  end

  // ---------------------------------------------------------------- results
  logic store_error;

  systole_result_path #(
    .Lanes(Lanes), .Queue(Queue), .DataBytes(DataBytes), .RequestBytes(RequestBytes),
    .Outstanding(Outstanding), .DramBits(DramBits), .AddrBits(AddrBits), .CountBits(CountBits)
  ) u_results (
    .clk_i, .rst_ni, .in_order_i,
    .start_i   (start),
    .ready_o   (port_ready),
    .tag_i     (entry),
    .move_i    (moves),
    .type_i,
    .m_i       (m),
    .n_i       (n),
    .to_i      (to),
    .to_pitch_i(to_pitch),
    .valid_i   (out_valid),
    .taken_o   (out_ready),
    .data_i    (out),
    .over_o    (out_over),
    .completed_o(stored),
    .error_o   (store_error),
    .write_valid_o, .write_done_i, .write_word_o, .write_data_o, .write_here_o, .write_next_o,
    .aw_valid_o, .aw_ready_i, .aw_id_o, .aw_addr_o, .aw_len_o, .aw_size_o, .aw_burst_o,
    .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .b_valid_i, .b_ready_o, .b_id_i, .b_resp_i
  );
  assign error_o = store_error || operand_error;

  `SYSTOLE_ASSERT(BeatWanted_A, out_valid |-> busy_q)

endmodule
