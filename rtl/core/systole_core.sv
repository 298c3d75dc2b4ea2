// A core: registers and interrupt for its host, commands of a program in memory, and what they ask
// for. Fetch, decoder, dispatcher, load unit, scratchpad, array, accumulator, post-op pipeline, and
// the ports to memory: one AXI4 manager each for the program with its chains, loads, stores and their
// operands, as the model has. Cycles: the contracts of its parts, which docs/core-rtl.md names.
//
// What nothing here can do stops the program. It is over when nothing of it is in flight, as after its
// `end`; but a chain that the pipeline cannot do stays in it until reset.

`include "systole_assert.svh"

module systole_core #(
  parameter  int unsigned Size           = 4,     // rows and columns of the array, lanes of the pipeline
  parameter  int unsigned LoadQueue      = 4,
  parameter  int unsigned ComputeQueue   = 4,
  parameter  int unsigned StoreQueue     = 2,
  parameter  int unsigned FetchCommands  = 4,
  parameter  int unsigned ChainSlots     = 64,
  parameter  int unsigned Stages         = 8,     // of a chain, without a row-wise one at its end
  parameter  int unsigned ParameterBeats = 16,    // see systole_store_unit
  parameter  int unsigned Statistics     = 64,    // words of row statistics
  parameter  int unsigned OperandBytes   = 4096,  // of a tensor operand's tile
  parameter  int unsigned RequestBytes   = 16,
  parameter  int unsigned Outstanding    = 4,     // of each port
  parameter  int unsigned Banks          = 4,     // of the scratchpad
  parameter  int unsigned BankWords      = 256,
  parameter  int unsigned SumBanks       = 2,     // of the accumulator
  parameter  int unsigned SumBankRows    = 128,
  parameter  int unsigned Preop          = 0,     // 1: loads may have stages before the anchor
  localparam int unsigned Units          = 3,
  localparam int unsigned Entries        = LoadQueue + ComputeQueue + StoreQueue,
  localparam int unsigned EntryBits      = $clog2(Entries),
  localparam int unsigned DramBits       = 40,
  localparam int unsigned DataWidth      = 8 * Size,
  localparam int unsigned IdBits         = Outstanding > 1 ? $clog2(Outstanding) : 1,
  localparam int unsigned HostIdBits     = 4,
  localparam int unsigned HostAddrBits   = 12
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // quasi-static
  input  logic                 in_order_i,      // see systole_read_dma
  input  logic [31:0]          row_bytes_i,
  input  logic [1:0]           overlap_i,       // systole_pkg::overlap_e

  // registers: systole_core_registers
  input  logic                    host_aw_valid_i,
  output logic                    host_aw_ready_o,
  input  logic [HostIdBits-1:0]   host_aw_id_i,
  input  logic [HostAddrBits-1:0] host_aw_addr_i,
  input  logic [7:0]              host_aw_len_i,
  input  logic [2:0]              host_aw_size_i,
  input  logic                    host_w_valid_i,
  output logic                    host_w_ready_o,
  input  logic [63:0]             host_w_data_i,
  input  logic [7:0]              host_w_strb_i,
  input  logic                    host_w_last_i,
  output logic                    host_b_valid_o,
  input  logic                    host_b_ready_i,
  output logic [HostIdBits-1:0]   host_b_id_o,
  output logic [1:0]              host_b_resp_o,
  input  logic                    host_ar_valid_i,
  output logic                    host_ar_ready_o,
  input  logic [HostIdBits-1:0]   host_ar_id_i,
  input  logic [HostAddrBits-1:0] host_ar_addr_i,
  input  logic [7:0]              host_ar_len_i,
  input  logic [2:0]              host_ar_size_i,
  output logic                    host_r_valid_o,
  input  logic                    host_r_ready_i,
  output logic [HostIdBits-1:0]   host_r_id_o,
  output logic [63:0]             host_r_data_o,
  output logic [1:0]              host_r_resp_o,
  output logic                    host_r_last_o,
  output logic                    interrupt_o,

  // the program
  output logic                 fetch_ar_valid_o,
  input  logic                 fetch_ar_ready_i,
  output logic [IdBits-1:0]    fetch_ar_id_o,
  output logic [DramBits-1:0]  fetch_ar_addr_o,
  output logic [7:0]           fetch_ar_len_o,
  output logic [2:0]           fetch_ar_size_o,
  output logic [1:0]           fetch_ar_burst_o,
  input  logic                 fetch_r_valid_i,
  output logic                 fetch_r_ready_o,
  input  logic [IdBits-1:0]    fetch_r_id_i,
  input  logic [DataWidth-1:0] fetch_r_data_i,
  input  logic [1:0]           fetch_r_resp_i,
  input  logic                 fetch_r_last_i,

  // loads
  output logic                 ar_valid_o,
  input  logic                 ar_ready_i,
  output logic [IdBits-1:0]    ar_id_o,
  output logic [DramBits-1:0]  ar_addr_o,
  output logic [7:0]           ar_len_o,
  output logic [2:0]           ar_size_o,
  output logic [1:0]           ar_burst_o,
  input  logic                 r_valid_i,
  output logic                 r_ready_o,
  input  logic [IdBits-1:0]    r_id_i,
  input  logic [DataWidth-1:0] r_data_i,
  input  logic [1:0]           r_resp_i,
  input  logic                 r_last_i,

  // tensor operands of stores and moves
  output logic                 operand_ar_valid_o,
  input  logic                 operand_ar_ready_i,
  output logic [IdBits-1:0]    operand_ar_id_o,
  output logic [DramBits-1:0]  operand_ar_addr_o,
  output logic [7:0]           operand_ar_len_o,
  output logic [2:0]           operand_ar_size_o,
  output logic [1:0]           operand_ar_burst_o,
  input  logic                 operand_r_valid_i,
  output logic                 operand_r_ready_o,
  input  logic [IdBits-1:0]    operand_r_id_i,
  input  logic [DataWidth-1:0] operand_r_data_i,
  input  logic [1:0]           operand_r_resp_i,
  input  logic                 operand_r_last_i,

  // stores
  output logic                 aw_valid_o,
  input  logic                 aw_ready_i,
  output logic [IdBits-1:0]    aw_id_o,
  output logic [DramBits-1:0]  aw_addr_o,
  output logic [7:0]           aw_len_o,
  output logic [2:0]           aw_size_o,
  output logic [1:0]           aw_burst_o,
  output logic                 w_valid_o,
  input  logic                 w_ready_i,
  output logic [DataWidth-1:0] w_data_o,
  output logic [Size-1:0]      w_strb_o,
  output logic                 w_last_o,
  input  logic                 b_valid_i,
  output logic                 b_ready_o,
  input  logic [IdBits-1:0]    b_id_i,
  input  logic [1:0]           b_resp_i,

  // what happens in this cycle, for whoever watches; to which command: systole_load_path
  output logic                       start_o,   // a program begins
  output logic                       finish_o,  // it is over: the interrupt is high from the next cycle on
  output logic                       stuck_o,   // it will never be: the pipeline cannot do a chain
  output logic                       calls_o,   // its next command is one for the host
  output logic                       host_done_o,  // that is complete
  output logic                       fault_o,   // since then: it is none for this core
  output logic                       error_o,   // since reset: a response was no OKAY
  output logic [Entries-1:0]         entry_o,
  output logic [Units-1:0]           started_o,
  output logic [Units*EntryBits-1:0] start_entry_o,
  output logic [Entries-1:0]         released_o,
  output logic [Entries-1:0]         completed_o
);

  localparam int unsigned LoadTag    = LoadQueue > 1 ? $clog2(LoadQueue) : 1;
  localparam int unsigned ComputeTag = ComputeQueue > 1 ? $clog2(ComputeQueue) : 1;
  localparam int unsigned StoreTag   = StoreQueue > 1 ? $clog2(StoreQueue) : 1;
  localparam int unsigned StoreBase  = LoadQueue + ComputeQueue;
  localparam int unsigned LaneBits   = $clog2(Size);
  localparam int unsigned WordBits   = $clog2(Banks * BankWords);
  localparam int unsigned AddrBits   = WordBits + LaneBits;
  localparam int unsigned SumBits    = $clog2(SumBanks * SumBankRows) + LaneBits;
  localparam int unsigned Users      = StoreQueue + (Preop != 0 ? LoadQueue : 0);  // of chains
  localparam int unsigned StatisticsBits = Statistics > 1 ? $clog2(Statistics) : 1;
  localparam int unsigned SlotBits   = ChainSlots > 1 ? $clog2(ChainSlots) : 1;

  // ---------------------------------------------------------------- program
  logic                fetch_valid, fetch_ready, fetch_fault, fetch_error, fetch_idle, held;
  logic [639:0]        command;
  logic [7:0]          op;
  logic                is_end, is_host, valid, ready, refused, legal, idle, stopped_q;
  logic                chain_valid, chain_first, chain_store;
  logic [SlotBits-1:0] chain, chain_slot;
  logic [63:0]         chain_word, tensor;  // the second operand of a command
  logic [31:0]         tensor_pitch;

  systole_program_reader #(
    .FetchCommands(FetchCommands), .ChainSlots(ChainSlots), .Users(Users),
    .Stages(Stages + 1), .DataBytes(Size), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .AddrWidth(DramBits)
  ) u_program (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_i      (start_o && !outside),
    .address_i    (DramBits'(address)),
    .fault_o      (fetch_fault),
    .error_o      (fetch_error),
    .stop_i       (stop),
    .idle_o       (fetch_idle),
    .valid_o      (fetch_valid),
    .held_o       (held),
    .ready_i      (fetch_ready),
    .command_o    (command),
    .chain_o      (chain),
    .tensor_o     (tensor),
    .tensor_pitch_o(tensor_pitch),
    .entry_i      (Users'({entry_o[LoadQueue-1:0], entry_o[StoreBase+:StoreQueue]})),
    .completed_i  (Users'({load_completed, store_completed})),
    .chain_valid_o(chain_valid),
    .chain_first_o(chain_first),
    .chain_word_o (chain_word),
    .chain_store_o(chain_store),
    .chain_slot_o (chain_slot),
    .ar_valid_o   (fetch_ar_valid_o),
    .ar_ready_i   (fetch_ar_ready_i),
    .ar_id_o      (fetch_ar_id_o),
    .ar_addr_o    (fetch_ar_addr_o),
    .ar_len_o     (fetch_ar_len_o),
    .ar_size_o    (fetch_ar_size_o),
    .ar_burst_o   (fetch_ar_burst_o),
    .r_valid_i    (fetch_r_valid_i),
    .r_ready_o    (fetch_r_ready_o),
    .r_id_i       (fetch_r_id_i),
    .r_data_i     (fetch_r_data_i),
    .r_resp_i     (fetch_r_resp_i),
    .r_last_i     (fetch_r_last_i)
  );

  // ---------------------------------------------------------------- its begin and its end
  logic                running, outside, calls_q, called, waits, stop;
  logic [63:0]         address;            // of the program
  logic [DramBits-1:0] command_address_q;  // of the next command
  logic [DramBits-1:0] call_address_q;     // of the one that the host executes
  logic                taken, load_error, store_error;

  assign op          = command[7:0];
  assign is_end      = op == systole_pkg::OpEnd;
  assign is_host     = op == systole_pkg::OpHost;
  assign stop        = stopped_q || fetch_fault || !running;
  assign waits       = calls_q || (called && !host_done_o);
  assign valid       = fetch_valid && !is_end && !is_host && held && legal && !stop && !waits;
  assign calls_o     = fetch_valid && is_host && idle && !stop && !waits;
  assign finish_o    = running && idle && !waits && (stop ? fetch_idle : fetch_valid && is_end);
  assign taken       = valid && ready && !refused;
  assign fetch_ready = is_end ? finish_o : is_host ? calls_o : taken;
  assign outside     = address[63:DramBits] != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      stopped_q <= 1'b0;
      calls_q   <= 1'b0;
    end else begin
      if (start_o) begin
        stopped_q <= outside;
      end else if (fetch_valid && held && !waits && !is_end && !is_host && (refused || !legal)) begin
        stopped_q <= 1'b1;
      end
      calls_q <= calls_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_o) begin
      command_address_q <= DramBits'(address) + DramBits'(64);
    end else if (taken || calls_o) begin
      command_address_q <= command_address_q + DramBits'(80);
    end
    if (calls_o) call_address_q <= command_address_q;
  end

  systole_core_registers #(.IdBits(HostIdBits), .AddrBits(HostAddrBits)) u_registers (
    .clk_i, .rst_ni,
    .aw_valid_i    (host_aw_valid_i),
    .aw_ready_o    (host_aw_ready_o),
    .aw_id_i       (host_aw_id_i),
    .aw_addr_i     (host_aw_addr_i),
    .aw_len_i      (host_aw_len_i),
    .aw_size_i     (host_aw_size_i),
    .w_valid_i     (host_w_valid_i),
    .w_ready_o     (host_w_ready_o),
    .w_data_i      (host_w_data_i),
    .w_strb_i      (host_w_strb_i),
    .w_last_i      (host_w_last_i),
    .b_valid_o     (host_b_valid_o),
    .b_ready_i     (host_b_ready_i),
    .b_id_o        (host_b_id_o),
    .b_resp_o      (host_b_resp_o),
    .ar_valid_i    (host_ar_valid_i),
    .ar_ready_o    (host_ar_ready_o),
    .ar_id_i       (host_ar_id_i),
    .ar_addr_i     (host_ar_addr_i),
    .ar_len_i      (host_ar_len_i),
    .ar_size_i     (host_ar_size_i),
    .r_valid_o     (host_r_valid_o),
    .r_ready_i     (host_r_ready_i),
    .r_id_o        (host_r_id_o),
    .r_data_o      (host_r_data_o),
    .r_resp_o      (host_r_resp_o),
    .r_last_o      (host_r_last_o),
    .interrupt_o,
    .start_o,
    .program_o     (address),
    .running_o     (running),
    .finish_i      (finish_o),
    .fault_i       (running ? stuck_o : fault_o || error_o),
    .stuck_i       (stuck_o),
    .call_i        (calls_q),
    .call_address_i(64'(call_address_q)),
    .called_o      (called),
    .host_done_o
  );

  // What it is, and whether the unit that it is for can do it.
  logic load_legal, matmul_legal, result_legal;

  always_comb begin
    case (op)
      systole_pkg::OpLoad:                       legal = 1'b1;
      systole_pkg::OpLoadAccumulator:            legal = load_legal;
      systole_pkg::OpMatmul:                     legal = matmul_legal;
      systole_pkg::OpStore, systole_pkg::OpMove: legal = result_legal;
      default:                                   legal = 1'b0;
    endcase
  end

  // ---------------------------------------------------------------- decoder, dispatcher, loads
  logic                     write_valid, write_done, store_waiting, store_reads, rereads;
  logic [Units-1:1]         start_ready;
  logic [LoadQueue-1:0]     load_completed;
  logic [ComputeQueue-1:0]  matmul_released, matmul_completed;
  logic [StoreQueue-1:0]    store_released, store_completed;
  logic [WordBits-1:0]      write_word;
  logic [DataWidth-1:0]     write_data, parameters_data;
  logic [Size-1:0]          write_here, write_next;
  logic                     parameters_valid, parameters_late, parameters_done, array_valid, array_done;
  logic [AddrBits-1:0]      parameters_address;
  logic [1:0]               array_reads;
  logic [2*AddrBits-1:0]    array_address;
  logic [2*DataWidth-1:0]   array_data;
  logic                     load_stuck, statistics_write, statistics_four;
  logic [StatisticsBits-1:0] statistics_at;
  logic [127:0]             statistics_data;
  logic                     unused_load_ready, loaded_valid, loaded_last, loaded_end;
  logic [LoadTag-1:0]       loaded_tag;
  logic [IdBits-1:0]        loaded_slot;
  logic [Outstanding-1:0]   sums_placed;
  logic [LoadQueue-1:0]     sums_completed;
  logic [23-LaneBits:0]     loaded_word;
  logic [DataWidth-1:0]     loaded_data;
  logic [Size-1:0]          loaded_here, loaded_next;

  systole_load_path #(
    .LoadQueue(LoadQueue), .ComputeQueue(ComputeQueue), .StoreQueue(StoreQueue),
    .ChainSlots(ChainSlots), .DataBytes(Size), .RequestBytes(RequestBytes),
    .Outstanding(Outstanding), .Banks(Banks), .BankWords(BankWords), .Preop(Preop), .Stages(Stages),
    .ParameterBeats(ParameterBeats), .Statistics(Statistics), .OperandBytes(OperandBytes)
  ) u_loads (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .forget_i            (start_o),
    .chain_valid_i       (chain_valid),
    .chain_first_i       (chain_first),
    .chain_word_i        (chain_word),
    .chain_store_i       (chain_store),
    .chain_slot_i        (chain_slot),
    .valid_i             (valid),
    .ready_o             (ready),
    .command_i           (command),
    .command_slot_i      (chain),
    .operand_address_i   (192'(tensor)),
    .operand_pitch_i     (96'(tensor_pitch)),
    .illegal_o           (refused),
    .rereads_o           (rereads),
    .entry_o,
    .start_o             (started_o),
    .start_entry_o,
    .start_ready_i       (start_ready),
    .store_waiting_o     (store_waiting),
    .store_reads_o       (store_reads),
    .released_i          ({store_released, matmul_released}),
    .completed_i         ({store_completed, matmul_completed}),
    .load_ready_o        (unused_load_ready),
    .load_completed_o    (load_completed),
    .idle_o              (idle),
    .error_o             (load_error),
    .fault_o             (load_stuck),
    .statistics_write_i  (statistics_write),
    .statistics_four_i   (statistics_four),
    .statistics_at_i     (statistics_at),
    .statistics_data_i   (statistics_data),
    .ar_valid_o, .ar_ready_i, .ar_id_o, .ar_addr_o, .ar_len_o, .ar_size_o, .ar_burst_o,
    .r_valid_i, .r_ready_o, .r_id_i, .r_data_i, .r_resp_i, .r_last_i,
    .sums_valid_o        (loaded_valid),
    .sums_tag_o          (loaded_tag),
    .sums_slot_o         (loaded_slot),
    .sums_last_o         (loaded_last),
    .sums_end_o          (loaded_end),
    .sums_placed_i       (sums_placed),
    .sums_completed_i    (sums_completed),
    .sums_word_o         (loaded_word),
    .sums_data_o         (loaded_data),
    .sums_here_o         (loaded_here),
    .sums_next_o         (loaded_next),
    .write_valid_i       (write_valid),
    .write_done_o        (write_done),
    .write_word_i        (write_word),
    .write_data_i        (write_data),
    .write_here_i        (write_here),
    .write_next_i        (write_next),
    .parameters_valid_i  (parameters_valid),
    .parameters_late_i   (parameters_late),
    .parameters_done_o   (parameters_done),
    .parameters_address_i(parameters_address),
    .parameters_data_o   (parameters_data),
    .array_valid_i       (array_valid),
    .array_done_o        (array_done),
    .array_reads_i       (array_reads),
    .array_address_i     (array_address),
    .array_data_o        (array_data)
  );
  assign released_o  = {store_released, matmul_released, load_completed};
  assign completed_o = {store_completed, matmul_completed, load_completed};

  // ---------------------------------------------------------------- matmuls, loads to the accumulator
  logic               read_valid, read_ready, data_valid, data_ready;
  logic [SumBits-1:0] read_at;
  logic [Size*32-1:0] data;

  systole_compute_path #(
    .Size(Size), .Queue(ComputeQueue), .LoadQueue(LoadQueue), .LoadSlots(Outstanding),
    .LoadBytes(RequestBytes), .AddrBits(AddrBits), .SumBanks(SumBanks), .SumBankRows(SumBankRows)
  ) u_matmuls (
    .clk_i, .rst_ni, .overlap_i,
    .command_i      (command),
    .legal_o        (matmul_legal),
    .entry_i        (entry_o[LoadQueue+:ComputeQueue]),
    .start_valid_i  (started_o[1]),
    .start_ready_o  (start_ready[1]),
    .start_entry_i  (ComputeTag'(start_entry_o[EntryBits+:EntryBits] - EntryBits'(LoadQueue))),
    .released_o     (matmul_released),
    .completed_o    (matmul_completed),
    .array_valid_o  (array_valid),
    .array_done_i   (array_done),
    .array_reads_o  (array_reads),
    .array_address_o(array_address),
    .array_data_i   (array_data),
    .load_legal_o   (load_legal),
    .load_entry_i   (entry_o[LoadQueue-1:0]),
    .load_write_i   (loaded_valid),
    .load_tag_i     (loaded_tag),
    .load_slot_i    (loaded_slot),
    .load_last_i    (loaded_last),
    .load_end_i     (loaded_end),
    .load_word_i    (loaded_word),
    .load_data_i    (loaded_data),
    .load_here_i    (loaded_here),
    .load_next_i    (loaded_next),
    .load_placed_o  (sums_placed),
    .load_completed_o(sums_completed),
    .read_valid_i   (read_valid),
    .read_ready_o   (read_ready),
    .read_at_i      (read_at),
    .data_valid_o   (data_valid),
    .data_ready_i   (data_ready),
    .data_o         (data)
  );

  // ---------------------------------------------------------------- stores and moves
  logic                      store_stuck;

  systole_store_path #(
    .Lanes(Size), .Stages(Stages), .Queue(StoreQueue), .ChainSlots(ChainSlots),
    .ParameterBeats(ParameterBeats), .Statistics(Statistics), .OperandBytes(OperandBytes),
    .DataBytes(Size), .RequestBytes(RequestBytes), .Outstanding(Outstanding), .DramBits(DramBits),
    .AddrBits(AddrBits), .SumBits(SumBits)
  ) u_stores (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .forget_i            (start_o),
    .chain_valid_i       (chain_valid),
    .chain_first_i       (chain_first),
    .chain_word_i        (chain_word),
    .chain_slot_i        (chain_slot),
    .command_i           (command),
    .command_slot_i      (chain),
    .tensor_i            (tensor),
    .tensor_pitch_i      (tensor_pitch),
    .rereads_i           (rereads),
    .legal_o             (result_legal),
    .entry_i             (entry_o[StoreBase+:StoreQueue]),
    .waiting_i           (store_waiting),
    .reads_i             (store_reads),
    .start_valid_i       (started_o[2]),
    .start_ready_o       (start_ready[2]),
    .start_entry_i       (StoreTag'(start_entry_o[2*EntryBits+:EntryBits] - EntryBits'(StoreBase))),
    .released_o          (store_released),
    .completed_o         (store_completed),
    .fault_o             (store_stuck),
    .error_o             (store_error),
    .sums_valid_o        (read_valid),
    .sums_ready_i        (read_ready),
    .sums_at_o           (read_at),
    .data_valid_i        (data_valid),
    .data_ready_o        (data_ready),
    .data_i              (data),
    .statistics_write_o  (statistics_write),
    .statistics_four_o   (statistics_four),
    .statistics_at_o     (statistics_at),
    .statistics_data_o   (statistics_data),
    .parameters_valid_o  (parameters_valid),
    .parameters_late_o   (parameters_late),
    .parameters_done_i   (parameters_done),
    .parameters_address_o(parameters_address),
    .parameters_data_i   (parameters_data),
    .write_valid_o       (write_valid),
    .write_done_i        (write_done),
    .write_word_o        (write_word),
    .write_data_o        (write_data),
    .write_here_o        (write_here),
    .write_next_o        (write_next),
    .ar_valid_o          (operand_ar_valid_o),
    .ar_ready_i          (operand_ar_ready_i),
    .ar_id_o             (operand_ar_id_o),
    .ar_addr_o           (operand_ar_addr_o),
    .ar_len_o            (operand_ar_len_o),
    .ar_size_o           (operand_ar_size_o),
    .ar_burst_o          (operand_ar_burst_o),
    .r_valid_i           (operand_r_valid_i),
    .r_ready_o           (operand_r_ready_o),
    .r_id_i              (operand_r_id_i),
    .r_data_i            (operand_r_data_i),
    .r_resp_i            (operand_r_resp_i),
    .r_last_i            (operand_r_last_i),
    .aw_valid_o, .aw_ready_i, .aw_id_o, .aw_addr_o, .aw_len_o, .aw_size_o, .aw_burst_o,
    .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .b_valid_i, .b_ready_o, .b_id_i, .b_resp_i
  );

  assign stuck_o = store_stuck || load_stuck;
  assign fault_o = stopped_q || fetch_fault || stuck_o;
  assign error_o = fetch_error || load_error || store_error;

  `SYSTOLE_ASSERT_INIT(ChainSlotsUsable_A, 2**SlotBits == ChainSlots)

endmodule
