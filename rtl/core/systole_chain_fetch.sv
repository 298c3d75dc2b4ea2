// Brings the records of the chains that commands name from memory, unless the core holds them, and
// hands their words on to those who keep what matters of them. Cycles: hw::ChainSchedule of
// hw/dma/chain_schedule.h.
//
// It looks at one command a cycle of those that have arrived, ahead of dispatch, and waits at one whose
// chain it has to bring. Chain i has slot i modulo ChainSlots. One that takes the slot of another waits
// until its command is the next one and no command in flight uses a chain. A record is collected whole, since its beats may come in any order, and then
// leaves a 64-bit word a cycle (hw/program/program_image.h), while the next one may arrive. What is beyond the longest chain that the
// core can hold is not read.

`include "systole_assert.svh"

module systole_chain_fetch #(
  parameter  int unsigned ChainSlots  = 64,
  parameter  int unsigned Stages      = 9,     // of the longest chain
  parameter  int unsigned DataBytes   = 4,
  parameter  int unsigned LocalWidth  = 10,    // see systole_command_fetch
  parameter  int unsigned AddrWidth   = 40,
  localparam int unsigned SlotBits    = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned DataWidth   = 8 * DataBytes,
  localparam int unsigned LaneBits    = $clog2(DataBytes),
  localparam int unsigned WordBits    = LocalWidth - LaneBits
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  start_i,         // a program begins: it has chains of its own

  // the command that is looked at
  input  logic                  look_valid_i,
  output logic                  look_ready_o,    // looks at the one after it
  input  logic                  look_next_i,     // it is the next one to be dispatched
  input  logic                  look_names_i,    // it names a chain
  input  logic [15:0]           look_chain_i,
  input  logic                  unused_i,        // no command in flight uses one

  // the next command
  input  logic                  valid_i,
  input  logic                  names_i,
  input  logic [15:0]           chain_i,
  output logic                  held_o,          // it names none, or one that is in its slot
  output logic [SlotBits-1:0]   slot_o,
  output logic                  fault_o,         // there is no such chain, and it wants it

  // of the header: hw::ProgramHeader
  input  logic [31:0]           commands_i,
  input  logic [31:0]           operands_i,
  input  logic [31:0]           masks_i,
  input  logic [31:0]           chains_i,
  input  logic [31:0]           chain_bytes_i,

  // reads a record: systole_command_fetch
  output logic                  record_valid_o,
  input  logic                  record_ready_i,
  output logic [AddrWidth-1:0]  record_offset_o,
  output logic [LocalWidth-1:0] record_bytes_o,
  input  logic                  record_done_i,
  input  logic                  record_write_i,
  input  logic [WordBits-1:0]   record_word_i,
  input  logic [DataWidth-1:0]  record_data_i,
  input  logic [DataBytes-1:0]  record_here_i,
  input  logic [DataBytes-1:0]  record_next_i,

  // the record, word by word
  output logic                  chain_valid_o,
  output logic                  chain_first_o,
  output logic [63:0]           chain_word_o,
  output logic                  chain_store_o,   // the record is complete
  output logic [SlotBits-1:0]   chain_slot_o
);

  localparam int unsigned RecordBytes  = 8 + 72 * Stages;
  localparam int unsigned PairBytes    = 2 * DataBytes;
  localparam int unsigned PairWords    = PairBytes / 8;
  localparam int unsigned SelectBits   = PairWords > 1 ? $clog2(PairWords) : 1;
  localparam int unsigned PairBits     = $clog2(PairBytes);
  localparam int unsigned Rows         = (RecordBytes + PairBytes - 1) / PairBytes;
  localparam int unsigned RowBits      = Rows > 1 ? $clog2(Rows) : 1;
  localparam int unsigned CountBits    = $clog2(RecordBytes / 8 + 1);
  localparam int unsigned HeaderBytes  = 64;
  localparam int unsigned CommandBytes = 80;
  localparam int unsigned EntryBytes   = 16;   // of an operand, of a mask

  typedef enum logic [1:0] {
    Idle,
    Ask,
    Arrive,
    Settle   // the last beat is being written; waits until the record before has left
  } state_e;

  // Of a record that leaves, while the next one arrives.
  typedef enum logic [1:0] {
    Off,
    Send,
    Last,    // the last word is out
    Store
  } send_e;

  state_e               state_q;
  send_e                send_q;
  logic                 hand_over;
  logic [15:0]          tag_q [ChainSlots];
  logic [ChainSlots-1:0] used_q;
  logic                 looked, leaving, free, wanted, possible;
  logic [SlotBits-1:0]  look_slot;

  // ---------------------------------------------------------------- which record, and where
  // Sections begin at multiples of 64 bytes.
  function automatic logic [AddrWidth-1:0] section_end(
      input logic [AddrWidth-1:0] begins, input logic [AddrWidth-1:0] bytes);
    section_end = (begins + bytes + AddrWidth'(63)) & ~AddrWidth'(63);
  endfunction

  logic [AddrWidth-1:0] operands_at, masks_at, chains_at_q;
  logic [15:0]          chain_q, send_chain_q;
  logic [SlotBits-1:0]  slot_q;

  assign operands_at = section_end(AddrWidth'(HeaderBytes),
                                   AddrWidth'(commands_i) * AddrWidth'(CommandBytes));
  assign masks_at    = section_end(operands_at, AddrWidth'(operands_i) * AddrWidth'(EntryBytes));

  assign slot_o       = chain_i[SlotBits-1:0];
  assign held_o       = !names_i || (used_q[slot_o] && tag_q[slot_o] == chain_i);
  assign look_slot    = look_chain_i[SlotBits-1:0];
  assign leaving      = send_q != Off && chain_slot_o == look_slot;
  assign looked       = !look_names_i || (leaving && send_chain_q == look_chain_i) ||
                        (used_q[look_slot] && tag_q[look_slot] == look_chain_i);
  assign look_ready_o = state_q == Idle && looked;
  assign possible     = 32'(look_chain_i) < chains_i && chain_bytes_i[2:0] == '0 && chain_bytes_i != '0;
  assign free         = (!used_q[look_slot] && !leaving) || (look_next_i && unused_i);
  assign wanted       = look_valid_i && !looked && state_q == Idle;
  assign fault_o      = wanted && look_next_i && !possible;

  assign record_valid_o  = state_q == Ask;
  assign record_offset_o = chains_at_q + AddrWidth'(chain_q) * AddrWidth'(chain_bytes_i);
  assign record_bytes_o  = chain_bytes_i < 32'(RecordBytes) ? LocalWidth'(chain_bytes_i)
                                                            : LocalWidth'(RecordBytes);

  always_ff @(posedge clk_i) begin
    chains_at_q <= section_end(masks_at, AddrWidth'(masks_i) * AddrWidth'(EntryBytes));
    if (state_q == Idle) begin
      chain_q <= look_chain_i;
      slot_q  <= look_slot;
    end
  end

  // ---------------------------------------------------------------- states
  logic [CountBits-1:0] word_q;
  logic                 last_word;

  assign last_word = word_q == CountBits'(record_bytes_o >> 3) - CountBits'(1);
  assign hand_over = state_q == Settle && send_q == Off;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      send_q  <= Off;
      used_q  <= '0;
    end else begin
      case (state_q)
        Idle:    if (wanted && possible && free) state_q <= Ask;
        Ask:     if (record_ready_i) state_q <= Arrive;
        Arrive:  if (record_done_i) state_q <= Settle;
        default: if (hand_over) state_q <= Idle;
      endcase
      case (send_q)
        Off:     if (hand_over) send_q <= Send;
        Send:    if (last_word) send_q <= Last;
        Last:    send_q <= Store;
        default: send_q <= Off;
      endcase
      if (start_i) begin
        used_q <= '0;
      end else if (state_q == Ask) begin
        used_q[slot_q] <= 1'b0;
      end
      if (send_q == Store) used_q[chain_slot_o] <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    word_q <= send_q == Send ? word_q + CountBits'(1) : '0;
    if (send_q == Store) tag_q[chain_slot_o] <= send_chain_q;
    if (hand_over) begin
      send_chain_q <= chain_q;
      chain_slot_o <= slot_q;
    end
  end

  // ---------------------------------------------------------------- two records: even and odd words
  logic [2*DataWidth-1:0] pair;
  logic                   arriving_q;   // which of them arrives; the other one leaves

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      arriving_q <= 1'b0;
    end else if (hand_over) begin
      arriving_q <= !arriving_q;
    end
  end

  for (genvar odd = 0; odd < 2; odd++) begin : gen_half
    logic                 here;
    logic [WordBits-1:0]  at;
    logic [RowBits-1:0]   write_row, read_row;
    logic [DataWidth-1:0] unused_data;

    assign here      = record_word_i[0] == 1'(odd);
    assign at        = here ? record_word_i : record_word_i + WordBits'(1);
    assign write_row = RowBits'(at >> 1);
    assign read_row  = RowBits'({word_q, 3'b000} >> PairBits);

    systole_sram_bank #(.Ports(2), .Rows(2**(RowBits+1)), .Lanes(DataBytes), .LaneBits(8)) u_half (
      .clk_i,
      .enable_i({send_q == Send, record_write_i}),
      .row_i   ({!arriving_q, read_row, arriving_q, write_row}),
      .data_o  ({pair[odd*DataWidth+:DataWidth], unused_data}),
      .write_i (record_write_i),
      .mask_i  (here ? record_here_i : record_next_i),
      .data_i  (record_data_i)
    );
  end

  // ---------------------------------------------------------------- its words
  logic [SelectBits-1:0] select_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      chain_valid_o <= 1'b0;
    end else begin
      chain_valid_o <= send_q == Send;
    end
  end
  always_ff @(posedge clk_i) begin
    chain_first_o <= word_q == '0;
    select_q      <= PairWords > 1 ? SelectBits'(word_q) : '0;
  end
  assign chain_word_o  = pair[64*select_q+:64];
  assign chain_store_o = send_q == Store;

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, DataBytes >= 4 && 2**SlotBits == ChainSlots &&
                       2**LocalWidth > RecordBytes)
  `SYSTOLE_ASSERT(NamedHeld_A, (valid_i && !held_o) |=> (!valid_i || $stable(chain_i)))

endmodule
