// The row statistics of a core: words of 32 bits, of which a cycle reads four that follow each other,
// from any one on, and writes one or four.

`include "systole_assert.svh"

module systole_row_statistics #(
  parameter  int unsigned Words    = 64,
  localparam int unsigned WordBits = Words > 1 ? $clog2(Words) : 1
) (
  input  logic                clk_i,

  input  logic                read_i,
  input  logic [WordBits-1:0] read_at_i,
  output logic [127:0]        data_o,       // in the cycle after; words beyond the last are any

  input  logic                write_i,
  input  logic                write_four_i, // not one alone
  input  logic [WordBits-1:0] write_at_i,
  input  logic [127:0]        data_i
);

  localparam int unsigned Rows    = Words / 4;
  localparam int unsigned RowBits = Rows > 1 ? $clog2(Rows) : 1;

  // Word w is in bank w modulo 4.
  logic [127:0] words, placed;
  logic [1:0]   from_q;

  assign placed = 128'({data_i, data_i} >> (32'd128 - 32 * 32'(write_at_i[1:0])));
  assign data_o = 128'({words, words} >> (32 * 32'(from_q)));

  always_ff @(posedge clk_i) begin
    if (read_i) from_q <= read_at_i[1:0];
  end

  for (genvar b = 0; b < 4; b++) begin : gen_bank
    logic               written;
    logic [RowBits-1:0] read_row, write_row;
    logic [31:0]        unused_data;

    assign written   = write_i && (write_four_i || write_at_i[1:0] == 2'(b));
    // Of its word from that one on.
    assign read_row  = RowBits'((32'(read_at_i) + 32'd3 - 32'(b)) >> 2);
    assign write_row = RowBits'((32'(write_at_i) + 32'd3 - 32'(b)) >> 2);

    systole_sram_bank #(.Ports(2), .Rows(Rows), .Lanes(1), .LaneBits(32)) u_bank (
      .clk_i,
      .enable_i({read_i, written}),
      .row_i   ({read_row, write_row}),
      .data_o  ({words[32*b+:32], unused_data}),
      .write_i (written),
      .mask_i  (1'b1),
      .data_i  (placed[32*b+:32])
    );
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Words >= 4 && Words % 4 == 0)

endmodule
