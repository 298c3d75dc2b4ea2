// From store and move commands to results: the chains, and the unit that runs them. Cycles:
// hw::store_times() of hw/dma/store_schedule.h.
//
// Commands are those of a program in memory (hw/program/command_fields.h). `legal_o` is low for a
// chain that the unit cannot run (systole_chain_store), for parameters of more columns and tensor
// operands of more bytes than it keeps, for rows longer than a row-wise stage takes, and for no work.

`include "systole_assert.svh"

module systole_store_path #(
  parameter  int unsigned Lanes          = 4,
  parameter  int unsigned Stages         = 8,
  parameter  int unsigned Queue          = 2,   // commands in the station of the unit
  parameter  int unsigned ChainSlots     = 64,
  parameter  int unsigned ParameterBeats = 16,  // see systole_parameter_buffers
  parameter  int unsigned Statistics     = 64,  // words
  parameter  int unsigned OperandBytes   = 4096,
  parameter  int unsigned DataBytes      = 4,
  parameter  int unsigned RequestBytes   = 16,
  parameter  int unsigned Outstanding    = 4,
  parameter  int unsigned DramBits       = 40,
  parameter  int unsigned AddrBits       = 12,  // of a byte in the scratchpad
  parameter  int unsigned SumBits        = 10,  // of a sum in the accumulator
  parameter  int unsigned CountBits      = 24,
  localparam int unsigned TagBits        = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned StatisticsBits = Statistics > 1 ? $clog2(Statistics) : 1,
  localparam int unsigned SlotBits       = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned DataWidth      = 8 * DataBytes,
  localparam int unsigned LaneBits       = $clog2(DataBytes),
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
  input  logic                  rereads_i,       // it writes where its operands are
  output logic                  legal_o,         // if it is a store or a move
  input  logic [Queue-1:0]      entry_i,         // where it goes in this cycle
  input  logic                  waiting_i,       // see systole_store_unit
  input  logic                  reads_i,
  input  logic                  start_valid_i,
  output logic                  start_ready_o,
  input  logic [TagBits-1:0]    start_entry_i,
  output logic [Queue-1:0]      released_o,      // sums have been read for the last time
  output logic [Queue-1:0]      completed_o,     // results are in their places
  output logic                  fault_o,         // the pipeline cannot do the chain: it stays so
  output logic                  error_o,         // since reset: a response was no OKAY

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

  localparam int unsigned StageBits   = $clog2(Stages + 1);
  localparam int unsigned StagesBits  = $clog2(Stages + 2);
  localparam int unsigned ColBits     = $clog2(systole_pkg::MaxCols + 1);
  localparam int unsigned MostColumns = Lanes * ParameterBeats;

  // ---------------------------------------------------------------- fields
  logic                move, usable, parameters, unused_fields, asked_row_wise;
  logic                rows_fit, unused_early;
  logic [1:0]          asked_tensor, tensor_fits;
  logic [15:0]         asked_element;
  logic [31:0]         m, n, c, c_pitch, kept;

  assign move          = command_i[7:0] == systole_pkg::OpMove;
  assign m             = command_i[288+:32];
  assign n             = command_i[320+:32];
  assign c             = command_i[512+:32];
  assign c_pitch       = command_i[544+:32];
  assign kept          = command_i[352+:32];
  assign rows_fit      = n <= 32'(systole_pkg::MaxCols) && kept <= 32'(systole_pkg::MaxCols);
  for (genvar t = 0; t < 2; t++) begin : gen_tensor
    systole_tile_fits #(.Lanes(Lanes), .Bytes(OperandBytes)) u_fits (
      .m_i   (m),
      .n_i   (n),
      .type_i(asked_element[8*t+:8]),
      .fits_o(tensor_fits[t])
    );
  end
  assign legal_o       = m != '0 && n != '0 && m[31:CountBits] == '0 && n[31:CountBits] == '0 &&
                         usable && (!parameters || n <= MostColumns) &&
                         (!asked_row_wise || rows_fit) && (~asked_tensor | tensor_fits) == '1;
  assign unused_fields = ^{command_i, c, c_pitch, tensor_i};

  // ---------------------------------------------------------------- chains
  logic [SlotBits-1:0]   chain;
  logic [7:0]            out_type;
  logic [StagesBits-1:0] stages;
  logic [Stages:0]       channel, shift;
  logic [2*Stages-1:0]   tensor_stage;
  logic [Stages-1:0]     divide;
  logic                  row_wise, norm;
  logic [16:0]           length;
  logic [7:0]            side;
  logic [1:0]            passes;
  logic [15:0]           element;
  logic [SlotBits-1:0]   next;         // chain of the next command
  logic [1:0]            next_passes, next_tensor;
  logic [Stages:0]       next_channel, next_shift;
  logic [15:0]           next_element;
  logic                  code_read;
  logic [StageBits-1:0]  code_stage;
  logic [3:0]            code_word;
  logic [63:0]           code;

  systole_chain_store #(.ChainSlots(ChainSlots), .Stages(Stages)) u_chains (
    .clk_i, .rst_ni,
    .valid_i     (chain_valid_i),
    .first_i     (chain_first_i),
    .word_i      (chain_word_i),
    .slot_i      (chain_slot_i),
    .asked_i     (command_slot_i),
    .usable_o    (usable),
    .parameters_o(parameters),
    .asked_row_wise_o(asked_row_wise),
    .asked_early_o   (unused_early),
    .asked_tensor_o  (asked_tensor),
    .asked_element_o (asked_element),
    .chain_i     (chain),
    .type_o      (out_type),
    .stages_o    (stages),
    .row_wise_o  (row_wise),
    .passes_o    (passes),
    .tensor_o    (tensor_stage),
    .element_o   (element),
    .divide_o    (divide),
    .norm_o      (norm),
    .length_o    (length),
    .side_o      (side),
    .channel_o   (channel),
    .shift_o     (shift),
    .next_i        (next),
    .next_passes_o (next_passes),
    .next_channel_o(next_channel),
    .next_shift_o  (next_shift),
    .next_tensor_o (next_tensor),
    .next_element_o(next_element),
    .read_i      (code_read),
    .read_stage_i(code_stage),
    .read_word_i (code_word),
    .code_o      (code)
  );

  // ---------------------------------------------------------------- unit
  systole_store_unit #(
    .Lanes(Lanes), .Stages(Stages), .Queue(Queue), .ChainSlots(ChainSlots),
    .ParameterBeats(ParameterBeats), .Statistics(Statistics), .OperandBytes(OperandBytes),
    .DataBytes(DataBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .DramBits(DramBits), .AddrBits(AddrBits), .SumBits(SumBits), .CountBits(CountBits)
  ) u_unit (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i, .entry_i,
    .move_i      (move),
    .whole_i     (rereads_i),
    .chain_i     (command_i[32+:16]),
    .slot_i      (command_slot_i),
    .c_i         (c[SumBits-1:0]),
    .c_pitch_i   (c_pitch[SumBits-1:0]),
    .m_i         (m[CountBits-1:0]),
    .n_i         (n[CountBits-1:0]),
    .to_i        (move ? DramBits'(command_i[448+:32]) : command_i[128+:DramBits]),
    .to_pitch_i  (move ? command_i[480+:32] : command_i[96+:32]),
    .parameters_i(command_i[576+:AddrBits]),
    .statistics_i(command_i[608+:StatisticsBits]),
    .kept_i      (ColBits'(kept)),
    .continues_i (command_i[16]),
    .tensor_i    ({tensor_i[DramBits-1:0], command_i[192+:DramBits]}),
    .tensor_pitch_i({tensor_pitch_i, command_i[256+:32]}),
    .waiting_i, .reads_i, .start_valid_i, .start_ready_o, .start_entry_i, .released_o, .completed_o, .fault_o, .error_o,
    .forget_i,
    .chain_o     (chain),
    .type_i      (out_type),
    .stages_i    (stages),
    .row_wise_i  (row_wise),
    .passes_i    (passes),
    .tensor_stage_i(tensor_stage),
    .element_i   (element),
    .divide_i    (divide),
    .norm_i      (norm),
    .length_i    (length),
    .side_i      (side),
    .channel_i   (channel),
    .shift_i     (shift),
    .next_o        (next),
    .next_passes_i (next_passes),
    .next_channel_i(next_channel),
    .next_shift_i  (next_shift),
    .next_tensor_i (next_tensor),
    .next_element_i(next_element),
    .code_read_o (code_read),
    .code_stage_o(code_stage),
    .code_word_o (code_word),
    .code_i      (code),
    .sums_valid_o, .sums_ready_i, .sums_at_o, .data_valid_i, .data_ready_o, .data_i,
    .statistics_write_o, .statistics_four_o, .statistics_at_o, .statistics_data_o,
    .parameters_valid_o, .parameters_late_o, .parameters_done_i, .parameters_address_o, .parameters_data_i,
    .write_valid_o, .write_done_i, .write_word_o, .write_data_o, .write_here_o, .write_next_o,
    .ar_valid_o, .ar_ready_i, .ar_id_o, .ar_addr_o, .ar_len_o, .ar_size_o, .ar_burst_o,
    .r_valid_i, .r_ready_o, .r_id_i, .r_data_i, .r_resp_i, .r_last_i,
    .aw_valid_o, .aw_ready_i, .aw_id_o, .aw_addr_o, .aw_len_o, .aw_size_o, .aw_burst_o,
    .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .b_valid_i, .b_ready_o, .b_id_i, .b_resp_i
  );

endmodule
