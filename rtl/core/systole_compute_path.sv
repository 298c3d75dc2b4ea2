// From matmul commands to sums in the accumulator: the unit for matmuls, the array in it, and the
// accumulator, with what loads write into it. Its reader is outside. Cycles: hw::fold_times() of
// hw/array/fold_stream.h, and hw/array/accumulator.h for the reader.
//
// Commands are those of a program in memory (hw/program/command_fields.h). `legal_o` is low for no work.

`include "systole_assert.svh"

module systole_compute_path #(
  parameter  int unsigned Size        = 4,    // rows and columns of the array
  parameter  int unsigned Queue       = 4,    // commands in the station of the unit
  parameter  int unsigned LoadQueue   = 4,
  parameter  int unsigned LoadSlots   = 4,    // requests of loads in flight
  parameter  int unsigned LoadBytes   = 16,   // of a request
  parameter  int unsigned AddrBits    = 12,   // of a byte in the scratchpad
  parameter  int unsigned SumBanks    = 2,
  parameter  int unsigned SumBankRows = 128,
  parameter  int unsigned CountBits   = 24,
  localparam int unsigned TagBits     = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned LoadTagBits = LoadQueue > 1 ? $clog2(LoadQueue) : 1,
  localparam int unsigned LoadIdBits  = LoadSlots > 1 ? $clog2(LoadSlots) : 1,
  localparam int unsigned DataWidth   = 8 * Size,
  localparam int unsigned WordWidth   = 24 - $clog2(Size),   // see systole_load_path
  localparam int unsigned LaneBits    = $clog2(Size),
  localparam int unsigned RowBits     = $clog2(SumBanks * SumBankRows),
  localparam int unsigned SumBits     = RowBits + LaneBits
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [1:0]             overlap_i,      // systole_pkg::overlap_e

  input  logic [639:0]           command_i,
  output logic                   legal_o,        // if it is a matmul
  input  logic [Queue-1:0]       entry_i,        // where it goes in this cycle
  input  logic                   start_valid_i,
  output logic                   start_ready_o,
  input  logic [TagBits-1:0]     start_entry_i,
  output logic [Queue-1:0]       released_o,
  output logic [Queue-1:0]       completed_o,

  // the scratchpad's client
  output logic                   array_valid_o,
  input  logic                   array_done_i,
  output logic [1:0]             array_reads_o,
  output logic [2*AddrBits-1:0]  array_address_o,
  input  logic [2*DataWidth-1:0] array_data_i,

  // loads to the accumulator: systole_sum_loader
  output logic                   load_legal_o,   // if it is one
  input  logic [LoadQueue-1:0]   load_entry_i,   // where a load goes in this cycle
  input  logic                   load_write_i,
  input  logic [LoadTagBits-1:0] load_tag_i,
  input  logic [LoadIdBits-1:0]  load_slot_i,
  input  logic                   load_last_i,
  input  logic                   load_end_i,
  input  logic [WordWidth-1:0]   load_word_i,
  input  logic [DataWidth-1:0]   load_data_i,
  input  logic [Size-1:0]        load_here_i,
  input  logic [Size-1:0]        load_next_i,
  output logic [LoadSlots-1:0]   load_placed_o,
  output logic [LoadQueue-1:0]   load_completed_o,

  // a reader of the accumulator
  input  logic                   read_valid_i,
  output logic                   read_ready_o,
  input  logic [SumBits-1:0]     read_at_i,      // the first sum of a vector
  output logic                   data_valid_o,
  input  logic                   data_ready_i,
  output logic [Size*32-1:0]     data_o
);

  // ---------------------------------------------------------------- fields
  logic [31:0] m, n, k, c, c_pitch;
  logic        unused_fields;

  assign m             = command_i[288+:32];
  assign n             = command_i[320+:32];
  assign k             = command_i[352+:32];
  assign c             = command_i[512+:32];
  assign c_pitch       = command_i[544+:32];
  assign legal_o       = m != '0 && n != '0 && k != '0 && m[31:CountBits] == '0 &&
                         n[31:CountBits] == '0 && k[31:CountBits] == '0;
  assign unused_fields = ^{command_i[639:576], command_i[287:19], command_i[15:0], command_i[511:384],
                           c, c_pitch};

  // ---------------------------------------------------------------- array
  logic               sums_valid, sums_ready, sums_accumulate;
  logic [SumBits-1:0] sums_at;
  logic [Size-1:0]    sums_mask;
  logic [Size*32-1:0] sums;

  systole_matmul_unit #(
    .Rows(Size), .Cols(Size), .Queue(Queue), .AddrBits(AddrBits), .SumBits(SumBits),
    .CountBits(CountBits)
  ) u_matmuls (
    .clk_i, .rst_ni, .overlap_i, .entry_i,
    .a_i              (command_i[384+:AddrBits]),
    .a_pitch_i        (command_i[416+:AddrBits]),
    .b_i              (command_i[448+:AddrBits]),
    .b_pitch_i        (command_i[480+:AddrBits]),
    .c_i              (c[SumBits-1:0]),
    .c_pitch_i        (c_pitch[SumBits-1:0]),
    .m_i              (m[CountBits-1:0]),
    .n_i              (n[CountBits-1:0]),
    .k_i              (k[CountBits-1:0]),
    .a_unsigned_i     (command_i[17]),
    .accumulate_i     (command_i[16]),
    .b_transposed_i   (command_i[18]),
    .start_valid_i, .start_ready_o, .start_entry_i, .released_o, .completed_o,
    .array_valid_o, .array_done_i, .array_reads_o, .array_address_o, .array_data_i,
    .sums_valid_o     (sums_valid),
    .sums_at_o        (sums_at),
    .sums_mask_o      (sums_mask),
    .sums_accumulate_o(sums_accumulate),
    .sums_data_o      (sums)
  );

  // ---------------------------------------------------------------- accumulator
  logic               load_valid, unused_word;
  logic               load_ready, load_both;
  logic [RowBits-1:0] load_row;
  logic [Size-1:0]    load_first;
  logic [Size*4-1:0]  load_mask;
  logic [Size*32-1:0] load_sums;

  assign unused_word = ^load_word_i[WordWidth-1:RowBits+2];

  systole_sum_loader #(
    .Lanes(Size), .Queue(LoadQueue), .Slots(LoadSlots), .RequestBytes(LoadBytes), .RowBits(RowBits)
  ) u_loads (
    .clk_i, .rst_ni, .command_i,
    .legal_o      (load_legal_o),
    .entry_i      (load_entry_i),
    .write_i      (load_write_i),
    .tag_i        (load_tag_i),
    .slot_i       (load_slot_i),
    .last_i       (load_last_i),
    .end_i        (load_end_i),
    .word_i       (load_word_i[RowBits+1:0]),
    .data_i       (load_data_i),
    .here_i       (load_here_i),
    .next_i       (load_next_i),
    .placed_o     (load_placed_o),
    .completed_o  (load_completed_o),
    .sums_valid_o (load_valid),
    .sums_ready_i (load_ready),
    .sums_row_o   (load_row),
    .sums_both_o  (load_both),
    .sums_first_o (load_first),
    .sums_mask_o  (load_mask),
    .sums_data_o  (load_sums)
  );

  systole_sum_memory #(.Banks(SumBanks), .RowsPerBank(SumBankRows), .Cols(Size)) u_accumulator (
    .clk_i, .rst_ni,
    .write_valid_i(sums_valid),
    .write_ready_o(sums_ready),
    .write_at_i   (sums_at),
    .write_mask_i (sums_mask),
    .write_data_i (sums),
    .accumulate_i (sums_accumulate),
    .load_valid_i (load_valid),
    .load_ready_o (load_ready),
    .load_row_i   (load_row),
    .load_both_i  (load_both),
    .load_first_i (load_first),
    .load_mask_i  (load_mask),
    .load_data_i  (load_sums),
    .read_valid_i, .read_ready_o, .read_at_i, .data_valid_o, .data_ready_i, .data_o
  );

  // With two ports the array never waits.
  `SYSTOLE_ASSERT(SumsTaken_A, sums_valid |-> sums_ready)

endmodule
