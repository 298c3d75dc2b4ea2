// Reads a program: its commands, and the chains that they name, through one AXI4 read manager. Chains
// are read when the commands that name them have arrived, and so are second tensor operands; one that is on the output waits there until
// the core holds its chain. Cycles: hw::FetchSchedule and hw::ChainSchedule of hw/dma/.

module systole_program_reader #(
  parameter  int unsigned FetchCommands = 4,
  parameter  int unsigned ChainSlots    = 64,
  parameter  int unsigned Users         = 2,    // commands in flight that may use chains
  parameter  int unsigned Stages        = 9,    // of the longest chain
  parameter  int unsigned DataBytes     = 4,
  parameter  int unsigned RequestBytes  = 16,
  parameter  int unsigned Outstanding   = 4,
  parameter  int unsigned AddrWidth     = 40,
  localparam int unsigned SlotBits      = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned DataWidth     = 8 * DataBytes,
  localparam int unsigned IdBits        = Outstanding > 1 ? $clog2(Outstanding) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 in_order_i,      // see systole_read_dma
  input  logic [31:0]          row_bytes_i,

  input  logic                 start_i,
  input  logic [AddrWidth-1:0] address_i,       // of the program
  output logic                 fault_o,         // since the start: no program, or no such chain
  output logic                 error_o,         // since reset: a response was no OKAY
  input  logic                 stop_i,          // nothing more of it is wanted
  output logic                 idle_o,          // nothing is left of it, and nothing in flight

  output logic                 valid_o,         // a command is there
  output logic                 held_o,          // and its chain, if it names one
  input  logic                 ready_i,
  output logic [639:0]         command_o,
  output logic [SlotBits-1:0]  chain_o,         // the slot of its chain
  output logic [63:0]          tensor_o,        // its second tensor operand, if the chain has one
  output logic [31:0]          tensor_pitch_o,
  input  logic [Users-1:0]     entry_i,         // where one that may use it goes in this cycle
  input  logic [Users-1:0]     completed_i,

  // records of chains: systole_chain_fetch
  output logic                 chain_valid_o,
  output logic                 chain_first_o,
  output logic [63:0]          chain_word_o,
  output logic                 chain_store_o,
  output logic [SlotBits-1:0]  chain_slot_o,

  output logic                 ar_valid_o,
  input  logic                 ar_ready_i,
  output logic [IdBits-1:0]    ar_id_o,
  output logic [AddrWidth-1:0] ar_addr_o,
  output logic [7:0]           ar_len_o,
  output logic [2:0]           ar_size_o,
  output logic [1:0]           ar_burst_o,
  input  logic                 r_valid_i,
  output logic                 r_ready_o,
  input  logic [IdBits-1:0]    r_id_i,
  input  logic [DataWidth-1:0] r_data_i,
  input  logic [1:0]           r_resp_i,
  input  logic                 r_last_i
);

  localparam int unsigned LaneBits    = $clog2(DataBytes);
  localparam int unsigned RecordBytes = 8 + 72 * Stages;
  // As systole_command_fetch has it: its buffer, or the longest record.
  localparam int unsigned FetchBytes  = 64 + 2 * 80 * FetchCommands;
  localparam int unsigned LocalBits   =
      $clog2((FetchBytes > RecordBytes ? FetchBytes : RecordBytes) + 1);

  logic                          started, starting_q, no_program, no_chain, no_chain_q;
  logic                          commands_idle, chains_idle;
  logic [AddrWidth-1:0]          address_q;
  logic [511:0]                  header;
  logic                          record_valid, record_ready, record_done, record_write;
  logic [AddrWidth-1:0]          record_offset;
  logic [LocalBits-1:0]          record_bytes;
  logic [LocalBits-LaneBits-1:0] record_word;
  logic [DataWidth-1:0]          record_data;
  logic [DataBytes-1:0]          record_here, record_next;
  logic                          look_valid, look_ready, look_next, unused_header;
  logic [7:0]                    look_op;
  logic [15:0]                   look_chain, look_mix;
  logic [31:0]                   look_operands, look_load_operands;
  logic                          look_load, is_load, names_it;

  systole_command_fetch #(
    .ChunkCommands(FetchCommands), .DataBytes(DataBytes), .RequestBytes(RequestBytes),
    .Outstanding(Outstanding), .AddrWidth(AddrWidth), .RecordBytes(RecordBytes)
  ) u_commands (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_i        ((start_i || starting_q) && chains_idle),
    .started_o      (started),
    .address_i      (start_i ? address_i : address_q),
    .stop_i,
    .idle_o         (commands_idle),
    .fault_o        (no_program),
    .error_o, .valid_o, .ready_i, .command_o,
    .header_o       (header),
    .look_valid_o   (look_valid),
    .look_ready_i   (look_ready),
    .look_next_o    (look_next),
    .look_op_o      (look_op),
    .look_chain_o   (look_chain),
    .look_mix_o     (look_mix),
    .look_operands_o(look_operands),
    .look_load_operands_o(look_load_operands),
    .record_valid_i (record_valid),
    .record_ready_o (record_ready),
    .record_offset_i(record_offset),
    .record_bytes_i (record_bytes),
    .record_done_o  (record_done),
    .record_write_o (record_write),
    .record_word_o  (record_word),
    .record_data_o  (record_data),
    .record_here_o  (record_here),
    .record_next_o  (record_next),
    .ar_valid_o, .ar_ready_i, .ar_id_o, .ar_addr_o, .ar_len_o, .ar_size_o, .ar_burst_o,
    .r_valid_i, .r_ready_o, .r_id_i, .r_data_i, .r_resp_i, .r_last_i
  );

  // Stores and moves name a chain, and so does a load with stages.
  function automatic logic names(input logic [7:0] op, input logic [15:0] mix);
    names = op == systole_pkg::OpStore || op == systole_pkg::OpMove ||
            (op == systole_pkg::OpLoad && mix != '0);
  endfunction

  assign look_load = look_op == systole_pkg::OpLoad;
  assign is_load   = command_o[7:0] == systole_pkg::OpLoad;
  assign names_it  = names(command_o[7:0], command_o[48+:16]);

  assign fault_o = no_program || no_chain_q;
  assign idle_o  = commands_idle && chains_idle && !starting_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      starting_q <= 1'b0;
      no_chain_q <= 1'b0;
    end else begin
      starting_q <= (start_i || starting_q) && !started;
      no_chain_q <= !start_i && (no_chain_q || no_chain);
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) address_q <= address_i;
  end

  systole_chain_fetch #(
    .ChainSlots(ChainSlots), .Stages(Stages), .DataBytes(DataBytes), .LocalWidth(LocalBits),
    .AddrWidth(AddrWidth), .Commands(2 * FetchCommands), .Users(Users)
  ) u_chains (
    .clk_i, .rst_ni,
    .start_i        (started),
    .idle_o         (chains_idle),
    .look_valid_i   (look_valid && !stop_i),
    .look_ready_o   (look_ready),
    .look_next_i    (look_next),
    .look_names_i   (names(look_op, look_mix)),
    .look_chain_i   (look_load ? look_mix - 16'd1 : look_chain),
    .look_operands_i(look_load ? look_load_operands : look_operands),
    .valid_i        (valid_o),
    .names_i        (names_it),
    .chain_i        (is_load ? command_o[48+:16] - 16'd1 : command_o[32+:16]),
    .held_o,
    .slot_o         (chain_o),
    .tensor_o, .tensor_pitch_o,
    .take_i         (valid_o && ready_i),
    .entry_i        (names_it ? entry_i : '0),
    .completed_i,
    .fault_o        (no_chain),
    .commands_i     (header[96+:32]),
    .operands_i     (header[128+:32]),
    .masks_i        (header[160+:32]),
    .chains_i       (header[192+:32]),
    .chain_bytes_i  (header[224+:32]),
    .record_valid_o (record_valid),
    .record_ready_i (record_ready),
    .record_offset_o(record_offset),
    .record_bytes_o (record_bytes),
    .record_done_i  (record_done),
    .record_write_i (record_write),
    .record_word_i  (record_word),
    .record_data_i  (record_data),
    .record_here_i  (record_here),
    .record_next_i  (record_next),
    .chain_valid_o, .chain_first_o, .chain_word_o, .chain_store_o, .chain_slot_o
  );
  assign unused_header = ^{header[95:0], header[511:256]};

endmodule
