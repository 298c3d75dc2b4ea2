// The accumulator of a core, for vectors of sums from any sum on: rows of `Cols` sums in banks, each of
// which keeps its rows in four memories. A vector that does not begin at a row uses those of two rows,
// whatever its mask; rows that follow each other are in two memories, so it takes one cycle. Rows of a
// tile that are further apart are in different ones, too, as a rule, so that the array leaves three of
// them to whoever loads or reads. Each memory is a systole_accumulator_sram, whose handshakes these are.
// A loaded beat waits while the array writes into a memory that it uses. Cycles, and which row is where:
// hw::SumPorts and hw::SumMemories of hw/array/sum_ports.h.

`include "systole_assert.svh"

module systole_sum_memory #(
  parameter  int unsigned Banks       = 2,
  parameter  int unsigned RowsPerBank = 128,
  parameter  int unsigned Cols        = 4,     // sums of a row and of a vector
  localparam int unsigned ColBits     = $clog2(Cols),
  localparam int unsigned RowBits     = $clog2(Banks * RowsPerBank),
  localparam int unsigned AtBits      = RowBits + ColBits
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               write_valid_i,
  output logic               write_ready_o,
  input  logic [AtBits-1:0]  write_at_i,      // its first sum
  input  logic [Cols-1:0]    write_mask_i,
  input  logic [Cols*32-1:0] write_data_i,
  input  logic               accumulate_i,

  // bytes of loaded sums, by their lanes in a row
  input  logic               load_valid_i,
  output logic               load_ready_o,
  input  logic [RowBits-1:0] load_row_i,
  input  logic               load_both_i,     // some are of the row after it
  input  logic [Cols-1:0]    load_first_i,    // lanes of that row, not of the one after it
  input  logic [Cols*4-1:0]  load_mask_i,
  input  logic [Cols*32-1:0] load_data_i,

  input  logic               read_valid_i,
  output logic               read_ready_o,
  input  logic [AtBits-1:0]  read_at_i,

  output logic               data_valid_o,
  input  logic               data_ready_i,
  output logic [Cols*32-1:0] data_o
);

  localparam int unsigned Parts     = 4;   // of a bank
  localparam int unsigned PartRows  = RowsPerBank / Parts;
  localparam int unsigned PartBits  = $clog2(PartRows);
  localparam int unsigned BankBits  = Banks > 1 ? $clog2(Banks) : 1;
  localparam int unsigned Memories  = Parts * Banks;

  // The part of its bank in which a row is.
  function automatic logic [1:0] part_of(input logic [RowBits-1:0] row);
    part_of = row[1:0];
    for (int unsigned i = 2; i < RowBits; i++) begin
      if (row[i]) part_of ^= i % 3 == 2 ? 2'd2 : i % 3 == 0 ? 2'd3 : 2'd1;
    end
  endfunction

  // ---------------------------------------------------------------- where a vector is
  logic [RowBits-1:0] write_row, write_next, read_row, read_next, load_next;
  logic [ColBits-1:0] write_lane, read_lane, lane_q;
  logic               write_both, read_both, both_q;   // reaches into a second row
  logic [1:0]         first_q, second_q;               // parts of the rows that are read

  assign {write_row, write_lane} = write_at_i;
  assign {read_row, read_lane}   = read_at_i;
  assign write_next              = write_row + RowBits'(1);
  assign read_next               = read_row + RowBits'(1);
  assign load_next               = load_row_i + RowBits'(1);
  assign write_both              = write_lane != '0;
  assign read_both               = read_lane != '0;

  logic [1:0] write_part, write_next_part, read_part, read_next_part, load_part, load_next_part;
  assign write_part              = part_of(write_row);
  assign write_next_part         = part_of(write_next);
  assign read_part               = part_of(read_row);
  assign read_next_part          = part_of(read_next);
  assign load_part               = part_of(load_row_i);
  assign load_next_part          = part_of(load_next);

  // Sums in the lanes of the memories: those before the first one are in the second row.
  logic [Cols*32-1:0] lanes_data;
  logic [Cols-1:0]    lanes_mask, lanes_first;

  for (genvar l = 0; l < Cols; l++) begin : gen_lane
    logic [ColBits-1:0] column;
    assign column                = ColBits'(l) - write_lane;
    assign lanes_data[32*l+:32]  = write_data_i[32*column+:32];
    assign lanes_mask[l]         = write_mask_i[column];
    assign lanes_first[l]        = (ColBits+1)'(l) >= {1'b0, write_lane};
  end

  // ---------------------------------------------------------------- memories
  logic [Memories-1:0]         array_uses, load_uses, read_uses, write_ready, read_ready, data_valid;
  logic [Memories-1:0]         unused_written;
  logic [Memories*Cols*32-1:0] memory_data;
  logic [Parts-1:0]            part_valid;
  logic [Parts*Cols*32-1:0]    data;
  logic                        holds, read_fire;

  for (genvar p = 0; p < Parts; p++) begin : gen_part
    logic                write_first, read_first, load_first;
    logic                write_here, read_here, load_here;
    logic [RowBits-1:0]  write_at, read_at, load_at;
    logic [BankBits-1:0] write_bank, read_bank, load_bank;
    logic [Cols*4-1:0]   array_bytes, load_bytes;
    logic                unused_part;

    assign write_first = write_part == 2'(p);
    assign read_first  = read_part == 2'(p);
    assign load_first  = load_part == 2'(p);
    assign write_here  = write_first || (write_both && write_next_part == 2'(p));
    assign read_here   = read_first || (read_both && read_next_part == 2'(p));
    assign load_here   = load_first || (load_both_i && load_next_part == 2'(p));
    assign write_at    = write_first ? write_row : write_next;
    assign read_at     = read_first ? read_row : read_next;
    assign load_at     = load_first ? load_row_i : load_next;
    assign write_bank  = BankBits'(write_at >> (PartBits + 2));
    assign read_bank   = BankBits'(read_at >> (PartBits + 2));
    assign load_bank   = BankBits'(load_at >> (PartBits + 2));
    assign unused_part = ^{write_at[1:0], read_at[1:0], load_at[1:0]};

    for (genvar l = 0; l < Cols; l++) begin : gen_mask
      assign array_bytes[4*l+:4] = {4{lanes_mask[l] && lanes_first[l] == write_first}};
      assign load_bytes[4*l+:4]  = load_first_i[l] == load_first ? load_mask_i[4*l+:4] : '0;
    end

    for (genvar b = 0; b < Banks; b++) begin : gen_bank
      localparam int unsigned M = p * Banks + b;

      assign array_uses[M] = write_valid_i && write_here && write_bank == BankBits'(b);
      assign load_uses[M]  = load_valid_i && load_here && load_bank == BankBits'(b);
      assign read_uses[M]  = read_here && read_bank == BankBits'(b);

      systole_accumulator_sram #(
        .Banks(1), .Ports(2), .RowsPerBank(PartRows), .Cols(Cols), .Parts(4)
      ) u_memory (
        .clk_i, .rst_ni,
        .write_valid_i(array_uses[M] || (load_uses[M] && load_ready_o)),
        .write_ready_o(write_ready[M]),
        .write_bank_i ('0),
        .write_row_i  (array_uses[M] ? write_at[PartBits+1:2] : load_at[PartBits+1:2]),
        .write_mask_i (array_uses[M] ? array_bytes : load_bytes),
        .write_data_i (array_uses[M] ? lanes_data : load_data_i),
        .accumulate_i (array_uses[M] && accumulate_i),
        .written_o    (unused_written[M]),
        .read_valid_i (read_fire && read_uses[M]),
        .read_ready_o (read_ready[M]),
        .read_bank_i  ('0),
        .read_row_i   (read_at[PartBits+1:2]),
        .data_valid_o (data_valid[M]),
        .data_ready_i,
        .data_o       (memory_data[M*Cols*32+:Cols*32])
      );
    end

    assign part_valid[p] = |data_valid[p*Banks+:Banks];
    always_comb begin
      data[p*Cols*32+:Cols*32] = '0;
      for (int unsigned b = 0; b < Banks; b++) begin
        if (data_valid[p*Banks+b]) data[p*Cols*32+:Cols*32] = memory_data[(p*Banks+b)*Cols*32+:Cols*32];
      end
    end
  end

  // With two ports the array never waits.
  assign write_ready_o = &write_ready;
  assign load_ready_o  = (load_uses & array_uses) == '0;
  assign data_valid_o  = |data_valid;
  assign holds         = data_valid_o && !data_ready_i;
  assign read_ready_o  = !holds && (read_ready | ~read_uses) == '1;
  assign read_fire     = read_valid_i && read_ready_o;

  always_ff @(posedge clk_i) begin
    if (read_fire) begin
      lane_q   <= read_lane;
      both_q   <= read_both;
      first_q  <= read_part;
      second_q <= read_next_part;
    end
  end

  for (genvar c = 0; c < Cols; c++) begin : gen_column
    logic [ColBits:0] lane;
    logic [1:0]       part;
    assign lane             = (ColBits+1)'(lane_q) + (ColBits+1)'(c);
    assign part             = lane[ColBits] ? second_q : first_q;
    assign data_o[32*c+:32] = data[(32'(part)*Cols + 32'(lane[ColBits-1:0]))*32+:32];
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, PartRows >= 2 && 2**ColBits == Cols && 2**PartBits == PartRows)
  `SYSTOLE_ASSERT(BothThere_A, data_valid_o |-> part_valid[first_q] && (!both_q || part_valid[second_q]))
  `SYSTOLE_ASSERT(WriteTaken_A, write_valid_i |-> write_ready_o)

endmodule
