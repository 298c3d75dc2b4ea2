// Fetches the commands of a program from memory (hw/program/program_image.h): in chunks, one ahead of
// the one whose commands are handed out, the first together with the header. Cycles:
// hw::FetchSchedule of hw/dma/fetch_schedule.h.
//
// A chunk is requested when all commands that have arrived have been looked at and the last one of the
// chunk before those is out. Its commands are on the output with the cycle with which its last byte
// arrives.
//
// Who looks at the commands in the buffer, one after the other, ahead of those that go out
// (systole_chain_fetch), may read records of the program through the port: one at a time, for the
// command that is looked at. Their bytes leave as writes of a local memory.

`include "systole_assert.svh"

module systole_command_fetch #(
  parameter  int unsigned ChunkCommands = 16,
  parameter  int unsigned DataBytes     = 16,
  parameter  int unsigned RequestBytes  = 64,
  parameter  int unsigned Outstanding   = 16,
  parameter  int unsigned AddrWidth     = 40,
  parameter  int unsigned RecordBytes   = 656,   // of the longest record
  localparam int unsigned DataWidth     = 8 * DataBytes,
  localparam int unsigned LaneBits      = $clog2(DataBytes),
  localparam int unsigned IdBits        = $clog2(Outstanding),
  localparam int unsigned CommandBytes  = 80,
  localparam int unsigned CommandBits   = 8 * CommandBytes,
  localparam int unsigned HeaderBytes   = 64,
  localparam int unsigned ChunkBytes    = ChunkCommands * CommandBytes,
  localparam int unsigned Bytes         = HeaderBytes + 2 * ChunkBytes,
  localparam int unsigned LocalWidth    = $clog2((Bytes > RecordBytes ? Bytes : RecordBytes) + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   in_order_i,     // see systole_read_dma
  input  logic [31:0]            row_bytes_i,

  input  logic                   start_i,        // held until started_o
  output logic                   started_o,
  input  logic [AddrWidth-1:0]   address_i,      // of the header
  input  logic                   stop_i,         // nothing more of it is wanted
  output logic                   idle_o,         // nothing is left of it, and nothing in flight
  output logic                   fault_o,        // it is none
  output logic                   error_o,        // since reset: a response was no OKAY

  output logic                   valid_o,
  input  logic                   ready_i,
  output logic [CommandBits-1:0] command_o,
  output logic [8*HeaderBytes-1:0] header_o,     // of the program, with its first command

  // the command that is looked at: it is the next one out, or one behind that in the buffer
  output logic                   look_valid_o,
  input  logic                   look_ready_i,
  output logic                   look_next_o,    // it is the next one out
  output logic [7:0]             look_op_o,
  output logic [15:0]            look_chain_o,   // that it names, if it is a store or a move
  output logic [15:0]            look_mix_o,     // of a load with stages: the chain after that
  output logic [31:0]            look_operands_o,  // its first entry of the table of operands, then
  output logic [31:0]            look_load_operands_o,  // and of such a load

  // a record
  input  logic                   record_valid_i, // held until record_ready_o
  output logic                   record_ready_o,
  input  logic [AddrWidth-1:0]   record_offset_i,  // from the header's first byte on
  input  logic [LocalWidth-1:0]  record_bytes_i,
  output logic                   record_done_o,    // its last write is in the next cycle
  output logic                   record_write_o,
  output logic [LocalWidth-LaneBits-1:0] record_word_o,
  output logic [DataWidth-1:0]   record_data_o,
  output logic [DataBytes-1:0]   record_here_o,
  output logic [DataBytes-1:0]   record_next_o,

  output logic                   ar_valid_o,
  input  logic                   ar_ready_i,
  output logic [IdBits-1:0]      ar_id_o,
  output logic [AddrWidth-1:0]   ar_addr_o,
  output logic [7:0]             ar_len_o,
  output logic [2:0]             ar_size_o,
  output logic [1:0]             ar_burst_o,

  input  logic                   r_valid_i,
  output logic                   r_ready_o,
  input  logic [IdBits-1:0]      r_id_i,
  input  logic [DataWidth-1:0]   r_data_i,
  input  logic [1:0]             r_resp_i,
  input  logic                   r_last_i
);

  localparam int unsigned FirstBytes = HeaderBytes + ChunkBytes;
  localparam int unsigned IndexBits  = $clog2(ChunkCommands + 1);
  localparam int unsigned PlaceBits  = $clog2(2 * ChunkCommands);
  localparam int unsigned HeldBits   = $clog2(2 * ChunkCommands + 1);
  // "SYSTPROG" and the version, little endian
  localparam logic [95:0] Magic      = {32'd8, 64'h474f525054535953};

  // ---------------------------------------------------------------- buffer: header, two chunks
  logic                           write_valid, write_record;
  logic [LocalWidth-LaneBits-1:0] write_word;
  logic [DataWidth-1:0]           write_data;
  logic [DataBytes-1:0]           write_here, write_next;
  logic [PlaceBits-1:0]           out_at, look_at;

  systole_command_buffer #(
    .Commands(2 * ChunkCommands), .DataBytes(DataBytes), .WordBits(LocalWidth - LaneBits)
  ) u_buffer (
    .clk_i,
    .write_i  (write_valid && !write_record),
    .word_i   (write_word),
    .data_i   (write_data),
    .here_i   (write_here),
    .next_i   (write_next),
    .header_o,
    .out_i    (out_at),
    .command_o,
    .look_i   (look_at),
    .look_op_o, .look_chain_o, .look_mix_o, .look_operands_o, .look_load_operands_o
  );

  // ---------------------------------------------------------------- chunks
  logic                 active_q;         // one is in flight
  logic                 first_q;          // it is the first, which comes with the header
  logic                 arrives_q;        // all of it is in the buffer, with this cycle
  logic [IndexBits-1:0] asked_q, got;     // its commands
  logic [31:0]          left_q, left;     // commands that were not asked for
  logic [AddrWidth-1:0] program_q;        // of the header
  logic [AddrWidth-1:0] address_q;        // of the next chunk
  logic                 half_q;           // of the buffer, where it goes
  logic [1:0]           chunks_q, chunks; // in the buffer and not all out
  logic [HeldBits-1:0]  held_q, held;     // commands in the buffer
  logic                 out_half_q;
  logic [IndexBits-1:0] out_q;            // position in its chunk of the next command out
  logic [HeldBits-1:0]  ahead_q, ahead;   // commands in the buffer that were not looked at
  logic                 look_half_q, look_take, look_last;
  logic [IndexBits-1:0] look_q;           // position in its chunk of the one that is looked at
  logic                 take, out_last, good, begin_first, begin_next, dma_ready, ended;
  logic                 unused_arrived;
  logic [31:0]          commands;
  logic [IndexBits-1:0] size;             // of the next chunk

  function automatic logic [IndexBits-1:0] chunk_of(input logic [31:0] count);
    chunk_of = count < 32'(ChunkCommands) ? IndexBits'(count) : IndexBits'(ChunkCommands);
  endfunction

  assign commands = header_o[96+:32];
  assign good     = header_o[95:0] == Magic && commands != '0;
  assign got      = !first_q ? asked_q : good ? chunk_of(commands) : '0;
  assign left     = arrives_q && first_q ? (good ? commands - 32'(got) : '0) : left_q;
  assign held     = held_q + (arrives_q ? HeldBits'(got) : '0);
  assign chunks   = chunks_q + 2'(arrives_q);
  assign size     = chunk_of(left);

  assign valid_o   = held != '0;
  assign take      = valid_o && ready_i;
  assign out_last  = take && 32'(out_q) == ChunkCommands - 1;
  assign out_at    = PlaceBits'(out_q) + (out_half_q ? PlaceBits'(ChunkCommands) : '0);

  assign ahead        = ahead_q + (arrives_q ? HeldBits'(got) : '0);
  assign look_valid_o = ahead != '0;
  assign look_next_o  = ahead == held;
  assign look_take    = look_valid_o && look_ready_i;
  assign look_last    = look_take && 32'(look_q) == ChunkCommands - 1;
  assign look_at      = PlaceBits'(look_q) + (look_half_q ? PlaceBits'(ChunkCommands) : '0);

  assign started_o   = begin_first && dma_ready;
  assign begin_first = start_i && !active_q && held == '0 && left == '0;
  assign begin_next  = !active_q && !stopping_q && ahead == '0 && left != '0 && chunks < 2'd2 &&
                       dma_ready;

  // What is left of a program that has been stopped goes when its last read is over.
  logic stopping_q, flush, record_q;
  assign flush  = stopping_q && !active_q && !record_valid_i && !record_q;
  assign idle_o = !active_q && !record_valid_i && !record_q && held == '0 && left == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      stopping_q <= 1'b0;
      record_q   <= 1'b0;
    end else begin
      stopping_q <= !started_o && (stop_i || stopping_q);
      record_q   <= (record_valid_i && record_ready_o) || (record_q && !record_done_o);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q   <= 1'b0;
      first_q    <= 1'b0;
      arrives_q  <= 1'b0;
      asked_q    <= '0;
      left_q     <= '0;
      half_q     <= 1'b0;
      chunks_q   <= '0;
      held_q     <= '0;
      out_half_q <= 1'b0;
      out_q      <= '0;
      ahead_q     <= '0;
      look_half_q <= 1'b0;
      look_q      <= '0;
      fault_o    <= 1'b0;
    end else begin
      arrives_q <= ended;
      ahead_q   <= ahead - HeldBits'(look_take);
      if (look_take) look_q <= look_last ? '0 : look_q + IndexBits'(1);
      if (look_last) look_half_q <= !look_half_q;
      left_q    <= begin_next ? left - 32'(size) : left;
      held_q    <= held - HeldBits'(take);
      chunks_q  <= chunks - 2'(out_last);
      active_q  <= begin_next || started_o || (active_q && !arrives_q);
      if (arrives_q && first_q && !good) fault_o <= 1'b1;
      if (start_i) fault_o <= 1'b0;
      if (take) out_q <= out_last ? '0 : out_q + IndexBits'(1);
      if (out_last) out_half_q <= !out_half_q;
      if (begin_next) begin
        asked_q <= size;
        first_q <= 1'b0;
        half_q  <= !half_q;
      end
      if (started_o) begin
        first_q    <= 1'b1;
        half_q     <= 1'b1;  // of the chunk after it
        chunks_q   <= '0;
        out_half_q <= 1'b0;
        out_q      <= '0;
        look_half_q <= 1'b0;
        look_q      <= '0;
      end
      if (flush) begin
        left_q  <= '0;
        held_q  <= '0;
        ahead_q <= '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_o) begin
      program_q <= address_i;
      address_q <= address_i + AddrWidth'(FirstBytes);
    end
    if (begin_next) address_q <= address_q + AddrWidth'(ChunkBytes);
  end

  // ---------------------------------------------------------------- reads
  logic [31:0]           chunk_bytes;
  logic [LocalWidth-1:0] chunk_to, to;
  logic [AddrWidth-1:0]  address;
  logic [31:0]           bytes;
  logic                  completed, completed_record;
  assign chunk_bytes = 32'(size) * 32'(CommandBytes);
  assign chunk_to    = LocalWidth'(HeaderBytes) + (half_q ? LocalWidth'(ChunkBytes) : '0);

  always_comb begin
    address = address_q;
    bytes   = chunk_bytes;
    to      = chunk_to;
    if (record_valid_i) begin
      address = program_q + record_offset_i;
      bytes   = 32'(record_bytes_i);
      to      = '0;
    end else if (begin_first) begin
      address = address_i;
      bytes   = 32'(FirstBytes);
      to      = '0;
    end
  end
  assign record_ready_o = dma_ready;
  assign record_done_o  = completed && completed_record;
  assign ended          = completed && !completed_record;

  systole_read_dma #(
    .DataBytes(DataBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding), .Commands(2),
    .AddrWidth(AddrWidth), .LocalWidth(LocalWidth)
  ) u_dma (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_valid_i  (record_valid_i || begin_first || begin_next),
    .start_ready_o  (dma_ready),
    .tag_i          (record_valid_i),
    .sums_i         (record_valid_i),
    .address_i      (address),
    .pitch_i        (32'd0),
    .rows_i         (32'd1),
    .bytes_i        (bytes),
    .to_i           (to),
    .to_pitch_i     ('0),
    .completed_o    (completed),
    .completed_tag_o(completed_record),
    .error_o,
    .before_i       ('0),
    .arrived_o      (unused_arrived),
    .ar_valid_o, .ar_ready_i, .ar_id_o, .ar_addr_o, .ar_len_o, .ar_size_o, .ar_burst_o,
    .r_valid_i, .r_ready_o, .r_id_i, .r_data_i, .r_resp_i, .r_last_i,
    .write_valid_o  (write_valid),
    .write_sums_o   (write_record),
    .write_word_o   (write_word),
    .write_data_o   (write_data),
    .write_here_o   (write_here),
    .write_next_o   (write_next),
    .placed_i       ('0)
  );

  assign record_write_o = write_valid && write_record;
  assign record_word_o  = write_word;
  assign record_data_o  = write_data;
  assign record_here_o  = write_here;
  assign record_next_o  = write_next;

  `SYSTOLE_ASSERT_INIT(BufferUsable_A, HeaderBytes % DataBytes == 0 && ChunkBytes % DataBytes == 0)
  `SYSTOLE_ASSERT(PortFree_A, begin_first |-> (dma_ready && !record_valid_i))
  `SYSTOLE_ASSERT(NotLookedAt_A, ahead <= held)
  `SYSTOLE_ASSERT(RecordOfOne_A, record_valid_i |-> look_valid_o)

endmodule
