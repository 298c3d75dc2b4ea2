// The accumulator of a core, for vectors of sums from any sum on: rows of `Cols` sums in two memories,
// those of even and of odd rows, so that a vector that reaches into a second row takes one cycle. Each
// memory is a systole_accumulator_sram, whose handshakes these are. A vector that does not begin at a
// row uses both, whatever its mask. Cycles: hw::SumPorts of hw/array/sum_ports.h.

`include "systole_assert.svh"

module systole_sum_memory #(
  parameter  int unsigned Banks       = 2,
  parameter  int unsigned RowsPerBank = 128,   // even and odd ones
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

  input  logic               read_valid_i,
  output logic               read_ready_o,
  input  logic [AtBits-1:0]  read_at_i,

  output logic               data_valid_o,
  input  logic               data_ready_i,
  output logic [Cols*32-1:0] data_o
);

  localparam int unsigned HalfRows  = RowsPerBank / 2;
  localparam int unsigned HalfBits  = $clog2(HalfRows);
  localparam int unsigned BankBits  = Banks > 1 ? $clog2(Banks) : 1;

  // ---------------------------------------------------------------- where a vector is
  logic [RowBits-1:0] write_row, write_next, read_row, read_next;
  logic [ColBits-1:0] write_lane, read_lane, lane_q;
  logic               write_both, read_both, both_q, odd_q;   // reaches into a second row; begins in an odd one

  assign {write_row, write_lane} = write_at_i;
  assign {read_row, read_lane}   = read_at_i;
  assign write_next              = write_row + RowBits'(1);
  assign read_next               = read_row + RowBits'(1);
  assign write_both              = write_lane != '0;
  assign read_both               = read_lane != '0;

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
  logic [1:0]           write_ready, read_ready, data_valid, read_uses, unused_written;
  logic [2*Cols*32-1:0] data;
  logic                 holds, read_fire;

  for (genvar h = 0; h < 2; h++) begin : gen_half
    logic               write_first, read_first, write_uses;
    logic [RowBits-1:0] write_at, read_at;
    logic               unused_parity;

    assign write_first   = write_row[0] == 1'(h);
    assign read_first    = read_row[0] == 1'(h);
    assign write_uses    = write_first || write_both;
    assign read_uses[h]  = read_first || read_both;
    assign write_at      = write_first ? write_row : write_next;
    assign read_at       = read_first ? read_row : read_next;
    assign unused_parity = write_at[0] ^ read_at[0];

    systole_accumulator_sram #(.Banks(Banks), .Ports(2), .RowsPerBank(HalfRows), .Cols(Cols)) u_half (
      .clk_i, .rst_ni,
      .write_valid_i(write_valid_i && write_uses),
      .write_ready_o(write_ready[h]),
      .write_bank_i (BankBits'(write_at >> (HalfBits + 1))),
      .write_row_i  (write_at[HalfBits:1]),
      .write_mask_i (lanes_mask & (write_first ? lanes_first : ~lanes_first)),
      .write_data_i (lanes_data),
      .accumulate_i,
      .written_o    (unused_written[h]),
      .read_valid_i (read_fire && read_uses[h]),
      .read_ready_o (read_ready[h]),
      .read_bank_i  (BankBits'(read_at >> (HalfBits + 1))),
      .read_row_i   (read_at[HalfBits:1]),
      .data_valid_o (data_valid[h]),
      .data_ready_i,
      .data_o       (data[h*Cols*32+:Cols*32])
    );
  end

  // With two ports a writer never waits.
  assign write_ready_o = &write_ready;
  assign data_valid_o  = |data_valid;
  assign holds         = data_valid_o && !data_ready_i;
  assign read_ready_o  = !holds && (read_ready | ~read_uses) == '1;
  assign read_fire     = read_valid_i && read_ready_o;

  always_ff @(posedge clk_i) begin
    if (read_fire) begin
      lane_q <= read_lane;
      odd_q  <= read_row[0];
      both_q <= read_both;
    end
  end

  for (genvar c = 0; c < Cols; c++) begin : gen_column
    logic [ColBits:0] lane;
    logic             half;
    assign lane              = (ColBits+1)'(lane_q) + (ColBits+1)'(c);
    assign half              = odd_q ^ lane[ColBits];
    assign data_o[32*c+:32]  = half ? data[(Cols + 32'(lane[ColBits-1:0]))*32+:32]
                                    : data[32'(lane[ColBits-1:0])*32+:32];
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, HalfRows >= 2 && 2**ColBits == Cols && 2**HalfBits == HalfRows)
  `SYSTOLE_ASSERT(BothThere_A, data_valid_o |-> data_valid == (both_q ? 2'b11 : odd_q ? 2'b10 : 2'b01))
  `SYSTOLE_ASSERT(WriteTaken_A, write_valid_i |-> write_ready_o)

endmodule
