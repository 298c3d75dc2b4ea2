// Brings the records of the chains that commands name from memory, unless the core holds them, and
// hands their words on to those who keep what matters of them. So it does with the entry of the table
// of operands that a command refers to whose chain has a second tensor. Cycles: hw::ChainSchedule of
// hw/dma/chain_schedule.h.
//
// It looks at one command a cycle of those that have arrived, ahead of dispatch, and waits at one whose
// chain it has to bring. Chain i has slot i modulo ChainSlots. One that takes the slot of another waits
// until all commands before it that name that one are complete. A record is collected whole,
// since its beats may come in any order, and then leaves a 64-bit word a cycle
// (hw/program/program_image.h), while the next one may arrive. What is beyond the longest chain that
// the core can hold is not read. Entries wait, in the order of their commands, until these go out.

`include "systole_assert.svh"

module systole_chain_fetch #(
  parameter  int unsigned ChainSlots  = 64,
  parameter  int unsigned Stages      = 9,     // of the longest chain
  parameter  int unsigned DataBytes   = 4,
  parameter  int unsigned LocalWidth  = 10,    // see systole_command_fetch
  parameter  int unsigned AddrWidth   = 40,
  parameter  int unsigned Commands    = 8,     // that can wait between looking and dispatch
  parameter  int unsigned Users       = 2,     // commands in flight that may name a chain
  localparam int unsigned SlotBits    = ChainSlots > 1 ? $clog2(ChainSlots) : 1,
  localparam int unsigned DataWidth   = 8 * DataBytes,
  localparam int unsigned LaneBits    = $clog2(DataBytes),
  localparam int unsigned WordBits    = LocalWidth - LaneBits
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  start_i,         // a program begins: it has chains of its own
  output logic                  idle_o,          // no record is in flight

  // the command that is looked at
  input  logic                  look_valid_i,
  output logic                  look_ready_o,    // looks at the one after it
  input  logic                  look_next_i,     // it is the next one to be dispatched
  input  logic                  look_names_i,    // it names a chain
  input  logic [15:0]           look_chain_i,
  input  logic [31:0]           look_operands_i,

  // the next command
  input  logic                  valid_i,
  input  logic                  names_i,
  input  logic [15:0]           chain_i,
  output logic                  held_o,          // it names none, or one that is in its slot
  output logic [SlotBits-1:0]   slot_o,
  output logic [63:0]           tensor_o,        // its second tensor, if the chain has one
  output logic [31:0]           tensor_pitch_o,
  input  logic                  take_i,          // it goes out
  input  logic [Users-1:0] entry_i,         // to that entry, if it names one
  input  logic [Users-1:0] completed_i,     // the commands of these entries are complete
  output logic                  fault_o,         // there is no such chain or entry, and it wants it

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
  localparam int unsigned TileBytes    = 12;   // of these, that say something of an operand
  localparam int unsigned PlaceBits    = $clog2(Commands);

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
  logic [ChainSlots-1:0] used_q, two_q;         // it has a second tensor
  logic                 looked, leaving, leaves, free, wanted, possible;
  logic                 two, leaving_two, entry_wanted, entry_possible;
  logic                 entry_q, there_q;       // what is asked for is an entry; it is there
  logic [SlotBits-1:0]  look_slot;
  logic [PlaceBits:0]   in_q, out_q;            // of entries; both the same: none waits
  logic                 arriving_q;             // which record arrives; the other one leaves
  logic [LocalWidth-1:0] chain_bytes;           // of a record, as far as it is read
  logic [ChainSlots-1:0] waits;                 // for a command that was looked at and has not gone out
  logic [Users-1:0] flying_q, flying;      // commands in flight that name a chain; look_slot's

  // ---------------------------------------------------------------- which record, and where
  // Sections begin at multiples of 64 bytes.
  function automatic logic [AddrWidth-1:0] section_end(
      input logic [AddrWidth-1:0] begins, input logic [AddrWidth-1:0] bytes);
    section_end = (begins + bytes + AddrWidth'(63)) & ~AddrWidth'(63);
  endfunction

  logic [AddrWidth-1:0] operands_at, masks_at, operands_at_q, chains_at_q;
  logic [15:0]          chain_q, send_chain_q;
  logic [31:0]          operands_q;
  logic [SlotBits-1:0]  slot_q;

  assign operands_at = section_end(AddrWidth'(HeaderBytes),
                                   AddrWidth'(commands_i) * AddrWidth'(CommandBytes));
  assign masks_at    = section_end(operands_at, AddrWidth'(operands_i) * AddrWidth'(EntryBytes));

  assign slot_o       = chain_i[SlotBits-1:0];
  assign held_o       = !names_i || (used_q[slot_o] && tag_q[slot_o] == chain_i &&
                                     (!two_q[slot_o] || out_q != in_q));
  assign look_slot    = look_chain_i[SlotBits-1:0];
  assign leaving      = send_q != Off && chain_slot_o == look_slot;
  assign leaves       = leaving && send_chain_q == look_chain_i;
  assign looked       = !look_names_i || leaves ||
                        (used_q[look_slot] && tag_q[look_slot] == look_chain_i);
  assign two          = look_names_i && (leaves ? leaving_two : two_q[look_slot]);
  assign look_ready_o = state_q == Idle && looked && (!two || there_q);
  assign possible     = 32'(look_chain_i) < chains_i && chain_bytes_i[2:0] == '0 && chain_bytes_i != '0;
  assign free         = !waits[look_slot] && flying == '0;
  assign wanted       = look_valid_i && !looked && state_q == Idle;
  assign entry_wanted   = look_valid_i && looked && two && !there_q && state_q == Idle;
  assign entry_possible = look_operands_i < operands_i;
  assign fault_o        = look_next_i && ((wanted && !possible) ||
                                          (entry_wanted && !entry_possible));

  assign idle_o          = state_q == Idle && send_q == Off;
  assign record_valid_o  = state_q == Ask;
  assign chain_bytes     = chain_bytes_i < 32'(RecordBytes) ? LocalWidth'(chain_bytes_i)
                                                            : LocalWidth'(RecordBytes);
  assign record_bytes_o  = entry_q ? LocalWidth'(EntryBytes) : chain_bytes;
  assign record_offset_o = entry_q
                           ? operands_at_q + AddrWidth'(operands_q) * AddrWidth'(EntryBytes)
                           : chains_at_q + AddrWidth'(chain_q) * AddrWidth'(chain_bytes_i);

  always_ff @(posedge clk_i) begin
    operands_at_q <= operands_at;
    chains_at_q   <= section_end(masks_at, AddrWidth'(masks_i) * AddrWidth'(EntryBytes));
    if (state_q == Idle) begin
      chain_q    <= look_chain_i;
      slot_q     <= look_slot;
      operands_q <= look_operands_i;
      entry_q    <= entry_wanted;
    end
  end

  // ---------------------------------------------------------------- who needs what is in a slot
  for (genvar s = 0; s < ChainSlots; s++) begin : gen_slot
    logic               comes, goes;
    logic [PlaceBits:0] waiting_q;               // such commands
    assign comes    = look_valid_i && look_ready_o && look_names_i && look_slot == SlotBits'(s);
    assign goes     = take_i && names_i && slot_o == SlotBits'(s);
    assign waits[s] = waiting_q != '0;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        waiting_q <= '0;
      end else if (start_i) begin
        waiting_q <= '0;
      end else begin
        waiting_q <= waiting_q + (PlaceBits+1)'(comes) - (PlaceBits+1)'(goes);
      end
    end
    `SYSTOLE_ASSERT(LookedAtFirst_A, goes |-> (comes || waits[s]))
  end
  for (genvar e = 0; e < Users; e++) begin : gen_flying
    logic [SlotBits-1:0] flying_slot_q;
    assign flying[e] = flying_q[e] && flying_slot_q == look_slot;
    always_ff @(posedge clk_i) begin
      if (entry_i[e]) flying_slot_q <= slot_o;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flying_q <= '0;
    end else begin
      flying_q <= (flying_q & ~completed_i) | entry_i;
    end
  end

  // ---------------------------------------------------------------- states
  logic [CountBits-1:0] word_q;
  logic                 last_word;

  assign last_word = word_q == CountBits'(chain_bytes >> 3) - CountBits'(1);
  assign hand_over = state_q == Settle && !entry_q && send_q == Off;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      send_q  <= Off;
      used_q  <= '0;
      there_q <= 1'b0;
    end else begin
      case (state_q)
        Idle:    if ((wanted && possible && free) || (entry_wanted && entry_possible)) state_q <= Ask;
        Ask:     if (record_ready_i) state_q <= Arrive;
        Arrive:  if (record_done_i) state_q <= Settle;
        default: if (hand_over || entry_q) state_q <= Idle;
      endcase
      there_q <= state_q == Settle && entry_q;
      case (send_q)
        Off:     if (hand_over) send_q <= Send;
        Send:    if (last_word) send_q <= Last;
        Last:    send_q <= Store;
        default: send_q <= Off;
      endcase
      if (start_i) begin
        used_q <= '0;
      end else if (state_q == Ask && !entry_q) begin
        used_q[slot_q] <= 1'b0;
      end
      if (send_q == Store) used_q[chain_slot_o] <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    word_q <= send_q == Send ? word_q + CountBits'(1) : '0;
    if (send_q == Store) begin
      tag_q[chain_slot_o] <= send_chain_q;
      two_q[chain_slot_o] <= leaving_two;
    end
    if (hand_over) begin
      send_chain_q <= chain_q;
      chain_slot_o <= slot_q;
    end
  end

  // ---------------------------------------------------------------- two records: even and odd words
  logic [2*DataWidth-1:0] pair;

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
      .enable_i({send_q == Send, record_write_i && !entry_q}),
      .row_i   ({!arriving_q, read_row, arriving_q, write_row}),
      .data_o  ({pair[odd*DataWidth+:DataWidth], unused_data}),
      .write_i (record_write_i && !entry_q),
      .mask_i  (here ? record_here_i : record_next_i),
      .data_i  (record_data_i)
    );
  end

  // ---------------------------------------------------------------- how many tensors it has
  // Seen as it arrives, since the command that names it may be looked at before all words are out.
  logic [2*Stages-1:0] tensor_q;         // stages with one, of both records

  for (genvar s = 0; s < Stages; s++) begin : gen_stage
    localparam int unsigned At   = 8 + 72 * s + 1;   // the byte that says where its operand is
    localparam int unsigned Lane = At % DataBytes;
    logic [WordBits-1:0] word;
    logic                written;

    assign word    = WordBits'(At / DataBytes);
    assign written = record_write_i && !entry_q &&
                     ((record_word_i == word && record_here_i[Lane]) ||
                      (record_word_i + WordBits'(1) == word && record_next_i[Lane]));

    for (genvar r = 0; r < 2; r++) begin : gen_record
      always_ff @(posedge clk_i) begin
        if (arriving_q == 1'(r)) begin
          if (state_q == Ask && !entry_q) begin
            tensor_q[r*Stages+s] <= 1'b0;
          end else if (written) begin
            tensor_q[r*Stages+s] <= record_data_i[8*Lane+:8] == systole_pkg::Tensor;
          end
        end
      end
    end
  end

  logic [Stages-1:0] leaving_tensors;
  assign leaving_tensors = arriving_q ? tensor_q[Stages-1:0] : tensor_q[2*Stages-1:Stages];
  assign leaving_two     = (leaving_tensors & (leaving_tensors - Stages'(1))) != '0;

  // ---------------------------------------------------------------- entries, by command
  logic [8*TileBytes-1:0] tile_q [2**PlaceBits];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q  <= '0;
      out_q <= '0;
    end else if (start_i) begin
      in_q  <= '0;
      out_q <= '0;
    end else begin
      if (state_q == Settle && entry_q) in_q <= in_q + (PlaceBits+1)'(1);
      if (take_i && names_i && two_q[slot_o]) out_q <= out_q + (PlaceBits+1)'(1);
    end
  end
  for (genvar b = 0; b < TileBytes; b++) begin : gen_byte
    localparam int unsigned Lane = b % DataBytes;
    logic [WordBits-1:0] word;
    assign word = WordBits'(b / DataBytes);
    always_ff @(posedge clk_i) begin
      if (record_write_i && entry_q &&
          ((record_word_i == word && record_here_i[Lane]) ||
           (record_word_i + WordBits'(1) == word && record_next_i[Lane]))) begin
        tile_q[in_q[PlaceBits-1:0]][8*b+:8] <= record_data_i[8*Lane+:8];
      end
    end
  end
  assign {tensor_pitch_o, tensor_o} = tile_q[out_q[PlaceBits-1:0]];

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
  `SYSTOLE_ASSERT_INIT(PlacesUsable_A, 2**PlaceBits >= Commands && PlaceBits >= 1)
  `SYSTOLE_ASSERT(NamedHeld_A, (valid_i && !held_o) |=> (!valid_i || $stable(chain_i)))

endmodule
