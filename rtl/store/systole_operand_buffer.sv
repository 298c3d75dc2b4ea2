// A chain's tensor operand: brings the tile of a command from memory, keeps it, and gives its vectors
// to the stage that wants them, widened to 32 bits, as often as the chain passes over a row. Cycles:
// the tile is read by a port as hw::ReadPort of hw/dma/read_dma.h, and can be used in the cycle after
// the one with which its last byte is there.
//
// Rows follow each other in the buffer, each from the begin of a vector on.

`include "systole_assert.svh"

module systole_operand_buffer #(
  parameter  int unsigned Lanes        = 4,     // elements in a vector: bytes of a beat
  parameter  int unsigned Bytes        = 4096,  // of the buffer
  parameter  int unsigned RequestBytes = 16,
  parameter  int unsigned Outstanding  = 4,
  parameter  int unsigned DramBits     = 40,
  parameter  int unsigned CountBits    = 24,
  localparam int unsigned DataWidth    = 8 * Lanes,
  localparam int unsigned LaneBits     = $clog2(Lanes),
  localparam int unsigned LocalBits    = $clog2(Bytes),
  localparam int unsigned WordBits     = LocalBits - LaneBits,
  localparam int unsigned IdBits       = Outstanding > 1 ? $clog2(Outstanding) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 in_order_i,
  input  logic [31:0]          row_bytes_i,

  // of a command, held from its start on
  input  logic                 start_i,
  input  logic                 wanted_i,      // its chain has an operand in memory
  input  logic [7:0]           type_i,        // systole_pkg::element_e
  input  logic [1:0]           passes_i,      // systole_row_passes
  input  logic [DramBits-1:0]  address_i,
  input  logic [31:0]          pitch_i,
  input  logic [CountBits-1:0] m_i,
  input  logic [CountBits-1:0] n_i,
  input  logic [CountBits-1:0] vectors_i,     // of a row
  output logic                 loaded_o,      // it is there, or not wanted
  output logic                 error_o,       // since reset: a response was no OKAY

  input  logic                 take_i,        // the stage takes a vector
  output logic [Lanes*32-1:0]  data_o,

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
  input  logic                 r_last_i
);

  localparam int unsigned VectorBits = WordBits;

  // ---------------------------------------------------------------- from memory
  logic [1:0]           type_bits;            // bytes of an element, as a power of 2
  logic                 write, ended, unused_ready, unused_tag, unused_sums;
  logic [WordBits-1:0]  write_word;
  logic [DataWidth-1:0] write_data;
  logic [Lanes-1:0]     write_here, write_next;
  logic                 arriving_q, ended_q;

  systole_read_dma #(
    .DataBytes(Lanes), .RequestBytes(RequestBytes), .Outstanding(Outstanding), .Commands(2),
    .AddrWidth(DramBits), .LocalWidth(LocalBits)
  ) u_dma (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_valid_i  (start_i && wanted_i),
    .start_ready_o  (unused_ready),
    .tag_i          (1'b0),
    .sums_i         (1'b0),
    .address_i,
    .pitch_i,
    .rows_i         (32'(m_i)),
    .bytes_i        (32'(n_i) << type_bits),
    .to_i           ('0),
    .to_pitch_i     (LocalBits'(vectors_i) << (3'(LaneBits) + 3'(type_bits))),
    .completed_o    (ended),
    .completed_tag_o(unused_tag),
    .error_o,
    .ar_valid_o, .ar_ready_i, .ar_id_o, .ar_addr_o, .ar_len_o, .ar_size_o, .ar_burst_o,
    .r_valid_i, .r_ready_o, .r_id_i, .r_data_i, .r_resp_i, .r_last_i,
    .write_valid_o  (write),
    .write_sums_o   (unused_sums),
    .write_word_o   (write_word),
    .write_data_o   (write_data),
    .write_here_o   (write_here),
    .write_next_o   (write_next),
    .placed_i       ('0)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      arriving_q <= 1'b0;
      ended_q    <= 1'b0;
    end else begin
      ended_q    <= ended;
      arriving_q <= (start_i && wanted_i) || (arriving_q && !ended_q);
    end
  end
  assign loaded_o = !arriving_q;

  // ---------------------------------------------------------------- its vectors
  logic [VectorBits-1:0] unused_at;
  logic                  unused_valid, unused_row_end, unused_last;

  systole_tile_buffer #(.Lanes(Lanes), .Bytes(Bytes), .CountBits(CountBits)) u_buffer (
    .clk_i, .rst_ni, .start_i, .type_i, .passes_i,
    .rows_i     (m_i),
    .vectors_i,
    .base_i     ('0),
    .pitch_i    (VectorBits'(vectors_i)),
    .write_i    (write),
    .word_i     (write_word),
    .data_i     (write_data),
    .here_i     (write_here),
    .next_i     (write_next),
    .valid_o    (unused_valid),
    .take_i,
    .at_o       (unused_at),
    .row_end_o  (unused_row_end),
    .last_o     (unused_last),
    .type_bits_o(type_bits),
    .data_o
  );

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Lanes >= 4 && 2**LocalBits == Bytes)
  `SYSTOLE_ASSERT(TakenThere_A, take_i |-> loaded_o)

endmodule
