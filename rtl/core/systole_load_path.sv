// From the commands of a program to bytes in the scratchpad: decoder, dispatcher, load unit with its
// DMA, and the scratchpad, wired. The compute and the store unit are outside: they start what the
// dispatcher offers and report back. Cycles of dispatch, start and end of every command:
// hw::DispatchSchedule of hw/program/dispatch.h with hw::ReadPort of hw/dma/read_dma.h for the loads.
//
// Chains come before the commands that name them, into slots. A load to the accumulator leaves as the
// bytes that it read, n elements to a row; widening is outside, as is what says that they are in their
// places.

`include "systole_assert.svh"

module systole_load_path #(
  parameter  int unsigned LoadQueue    = 8,
  parameter  int unsigned ComputeQueue = 16,
  parameter  int unsigned StoreQueue   = 4,
  parameter  int unsigned ChainSlots   = 64,
  parameter  int unsigned DataBytes    = 16,    // of a beat and of a word of the scratchpad
  parameter  int unsigned RequestBytes = 64,
  parameter  int unsigned Outstanding  = 16,
  parameter  int unsigned Banks        = 4,
  parameter  int unsigned BankWords    = 4096,
  parameter  int unsigned Preop        = 0,     // 1: loads may have stages: systole_load_stages
  parameter  int unsigned Stages       = 8,
  parameter  int unsigned ParameterBeats = 16,
  parameter  int unsigned Statistics   = 64,
  parameter  int unsigned OperandBytes = 4096,
  localparam int unsigned StatisticsBits = Statistics > 1 ? $clog2(Statistics) : 1,
  localparam int unsigned DramBits     = 40,
  localparam int unsigned LocalBits    = 24,
  localparam int unsigned DramRanges   = 5,
  localparam int unsigned Units        = 3,
  localparam int unsigned Entries      = LoadQueue + ComputeQueue + StoreQueue,
  localparam int unsigned EntryBits    = $clog2(Entries),
  localparam int unsigned SlotBits     = $clog2(ChainSlots),
  localparam int unsigned DataWidth    = 8 * DataBytes,
  localparam int unsigned LaneBits     = $clog2(DataBytes),
  localparam int unsigned IdBits       = Outstanding > 1 ? $clog2(Outstanding) : 1,
  localparam int unsigned TagBits      = LoadQueue > 1 ? $clog2(LoadQueue) : 1,
  localparam int unsigned WordBits     = $clog2(Banks * BankWords),
  localparam int unsigned AddrBits     = WordBits + LaneBits
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           in_order_i,        // see systole_read_dma
  input  logic [31:0]                    row_bytes_i,

  // records of chains, as the decoder takes them
  input  logic                           forget_i,          // a program begins
  input  logic                           chain_valid_i,
  input  logic                           chain_first_i,
  input  logic [63:0]                    chain_word_i,
  input  logic                           chain_store_i,
  input  logic [SlotBits-1:0]            chain_slot_i,

  input  logic                           valid_i,
  output logic                           ready_o,
  input  logic [639:0]                   command_i,
  input  logic [SlotBits-1:0]            command_slot_i,    // of the chain that it names
  input  logic [(DramRanges-2)*64-1:0]   operand_address_i,
  input  logic [(DramRanges-2)*32-1:0]   operand_pitch_i,
  output logic                           illegal_o,         // nothing here can do it
  output logic                           rereads_o,         // it writes main memory where it reads it
  output logic [Entries-1:0]             entry_o,

  output logic [Units-1:0]               start_o,           // a unit takes a command
  output logic [Units*EntryBits-1:0]     start_entry_o,
  input  logic [Units-1:1]               start_ready_i,
  output logic                           store_waiting_o,   // see systole_dispatcher
  output logic                           store_reads_o,
  input  logic [Entries-1:LoadQueue]     released_i,
  input  logic [Entries-1:LoadQueue]     completed_i,
  output logic                           load_ready_o,      // the load unit can take a command
  output logic [LoadQueue-1:0]           load_completed_o,  // all bytes of a load are in their places
  output logic                           idle_o,
  output logic                           error_o,           // a response was no OKAY
  output logic                           fault_o,           // see systole_load_stages

  // what others write to the row statistics
  input  logic                           statistics_write_i,
  input  logic                           statistics_four_i,
  input  logic [StatisticsBits-1:0]      statistics_at_i,
  input  logic [127:0]                   statistics_data_i,

  output logic                           ar_valid_o,
  input  logic                           ar_ready_i,
  output logic [IdBits-1:0]              ar_id_o,
  output logic [DramBits-1:0]            ar_addr_o,
  output logic [7:0]                     ar_len_o,
  output logic [2:0]                     ar_size_o,
  output logic [1:0]                     ar_burst_o,

  input  logic                           r_valid_i,
  output logic                           r_ready_o,
  input  logic [IdBits-1:0]              r_id_i,
  input  logic [DataWidth-1:0]           r_data_i,
  input  logic [1:0]                     r_resp_i,
  input  logic                           r_last_i,

  // bytes that go to the accumulator, as those of a write of the scratchpad, and what says that those
  // of a request, and of a load, are there
  output logic                           sums_valid_o,
  output logic [TagBits-1:0]             sums_tag_o,        // the load that they are of
  output logic [IdBits-1:0]              sums_slot_o,       // its request
  output logic                           sums_last_o,       // the last ones of the request
  output logic                           sums_end_o,        // and of the load
  input  logic [Outstanding-1:0]         sums_placed_i,     // requests, by slot
  input  logic [LoadQueue-1:0]           sums_completed_i,  // loads
  output logic [LocalBits-LaneBits-1:0]  sums_word_o,
  output logic [DataWidth-1:0]           sums_data_o,
  output logic [DataBytes-1:0]           sums_here_o,
  output logic [DataBytes-1:0]           sums_next_o,

  // the other clients of the scratchpad: see systole_scratchpad
  input  logic                           write_valid_i,
  output logic                           write_done_o,
  input  logic [WordBits-1:0]            write_word_i,
  input  logic [DataWidth-1:0]           write_data_i,
  input  logic [DataBytes-1:0]           write_here_i,
  input  logic [DataBytes-1:0]           write_next_i,
  input  logic                           parameters_valid_i,
  input  logic                           parameters_late_i,
  output logic                           parameters_done_o,
  input  logic [AddrBits-1:0]            parameters_address_i,
  output logic [DataWidth-1:0]           parameters_data_o,
  input  logic                           array_valid_i,
  output logic                           array_done_o,
  input  logic [1:0]                     array_reads_i,
  input  logic [2*AddrBits-1:0]          array_address_i,
  output logic [2*DataWidth-1:0]         array_data_o
);

  // ---------------------------------------------------------------- decoder
  logic                           legal, is_end, uses_chain, plain, staged, stages_legal, sums;
  logic [15:0]                    chain;
  logic [31:0]                    operands;
  logic [1:0]                     unit;
  logic [DramRanges-1:0]          dram_write;
  logic [DramRanges*DramBits-1:0] dram_begin, dram_end;
  logic [1:0]                     scratchpad_write;
  logic [2*LocalBits-1:0]         scratchpad_begin, scratchpad_end;
  logic                           accumulator_write, statistics_write;
  logic [LocalBits-1:0]           accumulator_begin, accumulator_end;
  logic [LocalBits-1:0]           statistics_begin, statistics_end;
  logic [DramBits-1:0]            load_address;
  logic [31:0]                    load_pitch, load_rows, load_bytes;
  logic [LocalBits-1:0]           load_to, load_to_pitch;
  logic                           unused_names;

  systole_command_decoder #(
    .DramRanges(DramRanges), .DramBits(DramBits), .LocalBits(LocalBits), .ChainSlots(ChainSlots)
  ) u_decoder (
    .clk_i, .rst_ni,
    .chain_valid_i, .chain_first_i, .chain_word_i, .chain_store_i, .chain_slot_i,
    .command_i, .command_slot_i,
    .legal_o            (legal),
    .end_o              (is_end),
    .uses_chain_o       (uses_chain),
    .chain_o            (chain),
    .operands_o         (operands),
    .operand_address_i, .operand_pitch_i,
    .unit_o             (unit),
    .dram_write_o       (dram_write),
    .dram_begin_o       (dram_begin),
    .dram_end_o         (dram_end),
    .scratchpad_write_o (scratchpad_write),
    .scratchpad_begin_o (scratchpad_begin),
    .scratchpad_end_o   (scratchpad_end),
    .accumulator_write_o(accumulator_write),
    .accumulator_begin_o(accumulator_begin),
    .accumulator_end_o  (accumulator_end),
    .statistics_write_o (statistics_write),
    .statistics_begin_o (statistics_begin),
    .statistics_end_o   (statistics_end),
    .load_plain_o       (plain),
    .load_staged_o      (staged),
    .load_sums_o        (sums),
    .load_address_o     (load_address),
    .load_pitch_o       (load_pitch),
    .load_rows_o        (load_rows),
    .load_bytes_o       (load_bytes),
    .load_to_o          (load_to),
    .load_to_pitch_o    (load_to_pitch)
  );
  assign illegal_o    = valid_i && !(legal && !is_end && (unit != systole_pkg::LoadUnit || plain ||
                                                   (staged && stages_legal)));
  assign unused_names = ^{uses_chain, chain, operands};  // for who fetches

  logic unused_after_read, unused_after_write;

  systole_range_hazard #(.Ranges(DramRanges), .Bits(DramBits)) u_self (
    .compare_i      (entry_o != '0),
    .older_write_i  (dram_write),
    .older_begin_i  (dram_begin),
    .older_end_i    (dram_end),
    .younger_write_i(dram_write),
    .younger_begin_i(dram_begin),
    .younger_end_i  (dram_end),
    .after_read_o   (unused_after_read),
    .after_write_o  (unused_after_write),
    .read_late_o    (rereads_o)
  );

  // ---------------------------------------------------------------- dispatcher
  logic [Units-1:0]           start_valid, start_ready;
  logic [Entries-1:0]         completed;
  logic                       load_ended;       // all its bytes are read
  logic [TagBits-1:0]         load_tag, ended_tag;
  logic [LoadQueue-1:0]       sums_q;           // loads to the accumulator, by entry

  systole_dispatcher #(
    .LoadQueue(LoadQueue), .ComputeQueue(ComputeQueue), .StoreQueue(StoreQueue),
    .DramRanges(DramRanges), .DramBits(DramBits), .LocalBits(LocalBits)
  ) u_dispatcher (
    .clk_i, .rst_ni,
    .valid_i            (valid_i && !illegal_o),
    .ready_o,
    .unit_i             (unit),
    .dram_write_i       (dram_write),
    .dram_begin_i       (dram_begin),
    .dram_end_i         (dram_end),
    .scratchpad_write_i (scratchpad_write),
    .scratchpad_begin_i (scratchpad_begin),
    .scratchpad_end_i   (scratchpad_end),
    .accumulator_write_i(accumulator_write),
    .accumulator_begin_i(accumulator_begin),
    .accumulator_end_i  (accumulator_end),
    .statistics_write_i (statistics_write),
    .statistics_begin_i (statistics_begin),
    .statistics_end_i   (statistics_end),
    .entry_o,
    .start_valid_o      (start_valid),
    .start_ready_i      (start_ready),
    .start_entry_o, .store_waiting_o, .store_reads_o,
    .released_i         ({released_i, LoadQueue'(0)}),
    .completed_i        (completed),
    .idle_o
  );
  assign load_completed_o = (load_ended && !sums_q[ended_tag] ? LoadQueue'(1) << ended_tag : '0) |
                            sums_completed_i | stages_completed;
  assign completed        = {completed_i, load_completed_o};
  assign start_ready      = {start_ready_i, load_ready_o};
  assign start_o          = start_valid & start_ready;
  assign load_tag         = TagBits'(start_entry_o[EntryBits-1:0]);

  // A load with stages has the unit to itself.
  logic [LoadQueue-1:0] staged_q, flight_q, stages_completed;
  logic                 dma_ready, next_staged, stages_start, stages_busy;

  assign next_staged  = Preop != 0 && staged_q[load_tag];
  assign load_ready_o = !stages_busy && (next_staged ? flight_q == '0 : dma_ready);
  assign stages_start = start_o[0] && next_staged;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flight_q <= '0;
    end else begin
      flight_q <= (flight_q | (start_o[0] ? LoadQueue'(1) << load_tag : '0)) & ~load_completed_o;
    end
  end

  // ---------------------------------------------------------------- load unit
  // What its commands do, by their entries.
  logic [DramBits-1:0]  address_q [LoadQueue];
  logic [31:0]          pitch_q [LoadQueue];
  logic [31:0]          rows_q [LoadQueue];
  logic [31:0]          bytes_q [LoadQueue];
  logic [LocalBits-1:0] to_q [LoadQueue];
  logic [LocalBits-1:0] to_pitch_q [LoadQueue];

  for (genvar e = 0; e < LoadQueue; e++) begin : gen_load
    always_ff @(posedge clk_i) begin
      if (entry_o[e]) begin
        address_q[e]  <= load_address;
        pitch_q[e]    <= load_pitch;
        rows_q[e]     <= load_rows;
        bytes_q[e]    <= load_bytes;
        to_q[e]       <= load_to;
        to_pitch_q[e] <= load_to_pitch;
        sums_q[e]     <= sums;
        staged_q[e]   <= staged;
      end
    end
  end

  // The port is that of the loads with stages while one of them runs.
  logic                of_stages, dma_error, stages_error, dma_ar_valid, dma_r_ready;
  logic                stages_ar_valid, stages_r_ready;
  logic [IdBits-1:0]   dma_ar_id, stages_ar_id;
  logic [DramBits-1:0] dma_ar_addr, stages_ar_addr;
  logic [7:0]          dma_ar_len, stages_ar_len;
  logic [2:0]          dma_ar_size, stages_ar_size;
  logic [1:0]          dma_ar_burst, stages_ar_burst;

  assign of_stages  = stages_start || stages_busy;
  assign ar_valid_o = of_stages ? stages_ar_valid : dma_ar_valid;
  assign ar_id_o    = of_stages ? stages_ar_id : dma_ar_id;
  assign ar_addr_o  = of_stages ? stages_ar_addr : dma_ar_addr;
  assign ar_len_o   = of_stages ? stages_ar_len : dma_ar_len;
  assign ar_size_o  = of_stages ? stages_ar_size : dma_ar_size;
  assign ar_burst_o = of_stages ? stages_ar_burst : dma_ar_burst;
  assign r_ready_o  = of_stages ? stages_r_ready : dma_r_ready;
  assign error_o    = dma_error || stages_error;

  logic                          write_valid, write_sums, unused_arrived;
  logic [LocalBits-LaneBits-1:0] write_word;
  logic [DataWidth-1:0]          write_data;
  logic [DataBytes-1:0]          write_here, write_next;

  systole_read_dma #(
    .DataBytes(DataBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .Commands(LoadQueue), .AddrWidth(DramBits), .LocalWidth(LocalBits), .LateSums(1)
  ) u_dma (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_valid_i  (start_valid[0] && !next_staged && !stages_busy),
    .start_ready_o  (dma_ready),
    .tag_i          (load_tag),
    .sums_i         (sums_q[load_tag]),
    .address_i      (address_q[load_tag]),
    .pitch_i        (pitch_q[load_tag]),
    .rows_i         (rows_q[load_tag]),
    .bytes_i        (bytes_q[load_tag]),
    .to_i           (to_q[load_tag]),
    .to_pitch_i     (to_pitch_q[load_tag]),
    .completed_o    (load_ended),
    .completed_tag_o(ended_tag),
    .error_o        (dma_error),
    .before_i       ('0),
    .arrived_o      (unused_arrived),
    .ar_valid_o     (dma_ar_valid),
    .ar_ready_i     (ar_ready_i && !of_stages),
    .ar_id_o        (dma_ar_id),
    .ar_addr_o      (dma_ar_addr),
    .ar_len_o       (dma_ar_len),
    .ar_size_o      (dma_ar_size),
    .ar_burst_o     (dma_ar_burst),
    .r_valid_i      (r_valid_i && !of_stages),
    .r_ready_o      (dma_r_ready),
    .r_id_i, .r_data_i, .r_resp_i, .r_last_i,
    .write_valid_o  (write_valid),
    .write_sums_o   (write_sums),
    .write_word_o   (write_word),
    .write_data_o   (write_data),
    .write_here_o   (write_here),
    .write_next_o   (write_next),
    .placed_i       (sums_placed_i)
  );
  assign sums_valid_o = write_valid && write_sums;
  assign sums_word_o  = write_word;
  assign sums_data_o  = write_data;
  assign sums_here_o  = write_here;
  assign sums_next_o  = write_next;

  // Whose they are, as was known in the cycle before.
  always_ff @(posedge clk_i) begin
    sums_tag_o  <= ended_tag;
    sums_slot_o <= r_id_i;
    sums_last_o <= r_last_i;
    sums_end_o  <= load_ended;
  end

  // ---------------------------------------------------------------- scratchpad
  logic                 load_write, load_written, stages_read, stages_write;
  logic [WordBits-1:0]  load_word, stages_word;
  logic [DataWidth-1:0] load_data, stages_data, read_data;
  logic [DataBytes-1:0] load_here, load_next, stages_here, stages_next;
  logic [AddrBits-1:0]  stages_address;
  assign load_write = stages_write || (write_valid && !write_sums);
  assign load_word  = stages_write ? stages_word : WordBits'(write_word);
  assign load_data  = stages_write ? stages_data : write_data;
  assign load_here  = stages_write ? stages_here : write_here;
  assign load_next  = stages_write ? stages_next : write_next;

  if (Preop != 0) begin : gen_stages
    systole_load_stages #(
      .Lanes(DataBytes), .Stages(Stages), .Queue(LoadQueue), .ChainSlots(ChainSlots),
      .ParameterBeats(ParameterBeats), .Statistics(Statistics), .OperandBytes(OperandBytes),
      .RequestBytes(RequestBytes), .Outstanding(Outstanding), .DramBits(DramBits), .AddrBits(AddrBits)
    ) u_stages (
      .clk_i, .rst_ni, .in_order_i, .row_bytes_i, .forget_i,
      .chain_valid_i, .chain_first_i, .chain_word_i, .chain_slot_i,
      .command_i, .command_slot_i,
      .tensor_i      (operand_address_i[63:0]),
      .tensor_pitch_i(operand_pitch_i[31:0]),
      .legal_o       (stages_legal),
      .entry_i       (entry_o[LoadQueue-1:0]),
      .start_i       (stages_start),
      .start_entry_i (load_tag),
      .busy_o        (stages_busy),
      .completed_o   (stages_completed),
      .fault_o,
      .error_o       (stages_error),
      .statistics_write_i, .statistics_four_i, .statistics_at_i, .statistics_data_i,
      .read_o        (stages_read),
      .read_address_o(stages_address),
      .read_data_i   (read_data),
      .write_valid_o (stages_write),
      .write_word_o  (stages_word),
      .write_data_o  (stages_data),
      .write_here_o  (stages_here),
      .write_next_o  (stages_next),
      .ar_valid_o    (stages_ar_valid),
      .ar_ready_i    (ar_ready_i && of_stages),
      .ar_id_o       (stages_ar_id),
      .ar_addr_o     (stages_ar_addr),
      .ar_len_o      (stages_ar_len),
      .ar_size_o     (stages_ar_size),
      .ar_burst_o    (stages_ar_burst),
      .r_valid_i     (r_valid_i && of_stages),
      .r_ready_o     (stages_r_ready),
      .r_id_i, .r_data_i, .r_resp_i, .r_last_i
    );
  end else begin : gen_no_stages
    logic unused_stages;
    assign unused_stages    = ^{forget_i, staged_q, read_data, statistics_write_i, statistics_four_i,
                                statistics_at_i, statistics_data_i};
    assign stages_legal     = 1'b0;
    assign stages_busy      = 1'b0;
    assign stages_completed = '0;
    assign fault_o          = 1'b0;
    assign stages_error     = 1'b0;
    assign stages_read      = 1'b0;
    assign stages_address   = '0;
    assign stages_write     = 1'b0;
    assign stages_word      = '0;
    assign stages_data      = '0;
    assign stages_here      = '0;
    assign stages_next      = '0;
    assign stages_ar_valid  = 1'b0;
    assign stages_ar_id     = '0;
    assign stages_ar_addr   = '0;
    assign stages_ar_len    = '0;
    assign stages_ar_size   = '0;
    assign stages_ar_burst  = '0;
    assign stages_r_ready   = 1'b0;
  end

  systole_scratchpad #(
    .Banks(Banks), .WordBytes(DataBytes), .BankWords(BankWords), .LoadReads(Preop)
  ) u_scratchpad (
    .clk_i, .rst_ni,
    .write_valid_i({write_valid_i, load_write}),
    .write_done_o ({write_done_o, load_written}),
    .write_word_i ({write_word_i, load_word}),
    .write_data_i ({write_data_i, load_data}),
    .write_here_i ({write_here_i, load_here}),
    .write_next_i ({write_next_i, load_next}),
    .load_read_i   (stages_read),
    .load_address_i(stages_address),
    .load_data_o   (read_data),
    .parameters_valid_i, .parameters_late_i, .parameters_done_o, .parameters_address_i, .parameters_data_o,
    .array_valid_i, .array_done_o, .array_reads_i, .array_address_i, .array_data_o
  );

  `SYSTOLE_ASSERT(OneWrites_A, !(stages_write && write_valid))
  `SYSTOLE_ASSERT(WrittenAtOnce_A, load_write |-> load_written)

endmodule
