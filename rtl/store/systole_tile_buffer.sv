// A tile of elements as they are in memory: takes them a beat at a time, at any byte, and gives them
// back vector by vector, widened to 32 bits, in the order of systole_row_passes. Vector v, of Lanes
// elements of b bytes, begins at byte v Lanes b.
//
// Four banks of words take both words of a write, and give a vector of any type, in one cycle. A vector
// is on the output in the cycle after the one in which it is the next one and was there.

`include "systole_assert.svh"

module systole_tile_buffer #(
  parameter  int unsigned Lanes      = 4,     // elements in a vector: bytes of a beat
  parameter  int unsigned Bytes      = 4096,
  parameter  int unsigned CountBits  = 24,
  localparam int unsigned DataWidth  = 8 * Lanes,
  localparam int unsigned LaneBits   = $clog2(Lanes),
  localparam int unsigned WordBits   = $clog2(Bytes) - LaneBits
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // of a tile, held from its start on
  input  logic                 start_i,
  input  logic [7:0]           type_i,        // systole_pkg::element_e
  input  logic [1:0]           passes_i,
  input  logic [CountBits-1:0] rows_i,
  input  logic [CountBits-1:0] vectors_i,     // of a row
  input  logic [WordBits-1:0]  base_i,        // its first vector
  input  logic [WordBits-1:0]  pitch_i,       // vectors from row to row

  // bytes of a word and of the one after it
  input  logic                 write_i,
  input  logic [WordBits-1:0]  word_i,
  input  logic [DataWidth-1:0] data_i,
  input  logic [Lanes-1:0]     here_i,
  input  logic [Lanes-1:0]     next_i,

  output logic                 valid_o,       // vectors are left
  input  logic                 take_i,
  output logic [WordBits-1:0]  at_o,          // which one it is
  output logic                 row_end_o,
  output logic                 last_o,
  output logic [1:0]           type_bits_o,   // bytes of an element, as a power of 2
  output logic [Lanes*32-1:0]  data_o
);

  localparam int unsigned Rows    = Bytes / (4 * Lanes);
  localparam int unsigned RowBits = $clog2(Rows);

  // ---------------------------------------------------------------- order
  logic [WordBits-1:0] next_at, read_word;

  systole_row_passes #(.AtBits(WordBits), .CountBits(CountBits)) u_order (
    .clk_i, .rst_ni, .start_i, .passes_i, .rows_i, .vectors_i, .base_i, .pitch_i,
    .valid_o,
    .step_i   (take_i),
    .at_o,
    .next_at_o(next_at),
    .row_end_o, .last_o
  );

  always_comb begin
    case (type_i)
      systole_pkg::TypeS32:                       type_bits_o = 2'd2;
      systole_pkg::TypeS16, systole_pkg::TypeU16: type_bits_o = 2'd1;
      default:                                    type_bits_o = 2'd0;
    endcase
  end
  assign read_word = next_at << type_bits_o;

  // ---------------------------------------------------------------- four banks
  logic [4*DataWidth-1:0] words, vector;
  logic [1:0]             select_q;

  for (genvar b = 0; b < 4; b++) begin : gen_bank
    logic               here, next;
    logic [RowBits-1:0]   read_row, here_row, next_row;
    logic [DataWidth-1:0] unused_data;

    assign here     = word_i[1:0] == 2'(b);
    assign next     = word_i[1:0] + 2'd1 == 2'(b) && next_i != '0;
    assign read_row = RowBits'(read_word >> 2);
    assign here_row = RowBits'(word_i >> 2);
    assign next_row = RowBits'((word_i + WordBits'(1)) >> 2);

    systole_sram_bank #(.Ports(2), .Rows(Rows), .Lanes(Lanes), .LaneBits(8)) u_bank (
      .clk_i,
      .enable_i({1'b1, write_i && (here || next)}),
      .row_i   ({read_row, here ? here_row : next_row}),
      .data_o  ({words[b*DataWidth+:DataWidth], unused_data}),
      .write_i (1'b1),
      .mask_i  (here ? here_i : next_i),
      .data_i  (data_i)
    );
  end

  always_ff @(posedge clk_i) select_q <= read_word[1:0];
  assign vector = words >> (32'(select_q) * DataWidth);

  // ---------------------------------------------------------------- widened
  function automatic logic [31:0] widened(input logic [31:0] bits, input logic [7:0] code);
    case (code)
      systole_pkg::TypeS8:  widened = {{24{bits[7]}}, bits[7:0]};
      systole_pkg::TypeU8:  widened = {24'd0, bits[7:0]};
      systole_pkg::TypeS16: widened = {{16{bits[15]}}, bits[15:0]};
      systole_pkg::TypeU16: widened = {16'd0, bits[15:0]};
      default:              widened = bits;
    endcase
  endfunction

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [31:0] bits;
    always_comb begin
      case (type_bits_o)
        2'd0:    bits = {24'd0, vector[8*l+:8]};
        2'd1:    bits = {16'd0, vector[16*l+:16]};
        default: bits = vector[32*l+:32];
      endcase
    end
    assign data_o[32*l+:32] = widened(bits, type_i);
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Lanes >= 4 && 2**LaneBits == Lanes &&
                       2**(WordBits + LaneBits) == Bytes)

endmodule
