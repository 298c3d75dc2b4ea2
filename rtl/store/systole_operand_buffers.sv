// A chain's tensor operands, up to two: brings the tiles of a command from memory, one after the other,
// keeps them, and gives their vectors to the stages that want them, widened to 32 bits, as often as the
// chain passes over a row. The next command's may come while one without tensor operands runs. Cycles:
// tiles are read by a port as hw::ReadPort of hw/dma/read_dma.h, the second one from the cycle on in which
// that is free. A vector can be used in the cycle after the one with which its bytes and all before them
// are there, of the first tile those of all rows where there is a second one.
//
// Rows follow each other in a buffer, each from the begin of a vector on.

`include "systole_assert.svh"

module systole_operand_buffers #(
  parameter  int unsigned Lanes        = 4,     // elements in a vector: bytes of a beat
  parameter  int unsigned Bytes        = 4096,  // of a buffer
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

  input  logic                 start_i,       // of the next command
  input  logic                 readable_i,    // its tiles can be read
  input  logic                 used_i,        // a command with tensor operands runs
  input  logic                 step_i,        // the next vector of sums is read
  output logic                 there_o,       // its operands are there, or not wanted

  // of that one, or else of the next one
  input  logic                 whole_i,       // all of them are there before the first one is used
  input  logic [1:0]           wanted_i,      // its chain has a first operand in memory, a second one
  input  logic [15:0]          type_i,        // systole_pkg::element_e
  input  logic [1:0]           passes_i,      // systole_row_passes
  input  logic [2*DramBits-1:0] address_i,    // the first one in the low bits
  input  logic [63:0]          pitch_i,
  input  logic [CountBits-1:0] m_i,
  input  logic [CountBits-1:0] n_i,
  input  logic [CountBits-1:0] vectors_i,     // of a row
  output logic                 error_o,       // since reset: a response was no OKAY

  output logic [1:0]           valid_o,       // vectors of which sums are on their way are left
  input  logic [1:0]           take_i,        // the stage takes a vector
  output logic [2*Lanes*32-1:0] data_o,

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

  // ---------------------------------------------------------------- from memory
  logic [3:0]           type_bits;            // bytes of an element, as powers of 2
  logic [1:0]           element_bits;         // of the tile that the port starts
  logic                 start_second, second_q, port_ready;
  logic                 write, arrived, unused_sums, unused_completed, unused_tag;
  logic [LocalBits:0]   vector_end;            // the end of the vector that is used next
  logic [WordBits:0]    write_word;
  logic [DataWidth-1:0] write_data;
  logic [Lanes-1:0]     write_here, write_next;
  logic [DramBits-1:0]  address;
  logic [LocalBits:0]   to;
  logic [31:0]          pitch;

  logic                 begins, begun_q;      // those of the next command

  assign begins       = readable_i && !begun_q && !used_i;

  // The second one waits for the port, which the first one has from the begin on.
  assign start_second = second_q && port_ready;
  assign element_bits = second_q ? type_bits[3:2] : type_bits[1:0];
  assign address      = second_q ? address_i[2*DramBits-1:DramBits] : address_i[DramBits-1:0];
  assign to           = second_q ? (LocalBits+1)'(Bytes) : '0;
  assign pitch        = second_q ? pitch_i[63:32] : pitch_i[31:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      second_q <= 1'b0;
      begun_q  <= 1'b0;
    end else begin
      second_q <= (begins && wanted_i[1]) || (second_q && !start_second);
      begun_q  <= !start_i && (begun_q || begins);
    end
  end

  systole_read_dma #(
    .DataBytes(Lanes), .RequestBytes(RequestBytes), .Outstanding(Outstanding), .Commands(2),
    .AddrWidth(DramBits), .LocalWidth(LocalBits + 1)
  ) u_dma (
    .clk_i, .rst_ni, .in_order_i, .row_bytes_i,
    .start_valid_i  ((begins && wanted_i[0]) || second_q),
    .start_ready_o  (port_ready),
    .tag_i          (second_q),
    .sums_i         (1'b0),
    .address_i      (address),
    .pitch_i        (pitch),
    .rows_i         (32'(m_i)),
    .bytes_i        (32'(n_i) << element_bits),
    .to_i           (to),
    .to_pitch_i     ((LocalBits+1)'(vectors_i) << (3'(LaneBits) + 3'(element_bits))),
    .completed_o    (unused_completed),
    .completed_tag_o(unused_tag),
    .error_o,
    .before_i       (vector_end),
    .arrived_o      (arrived),
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

  // ---------------------------------------------------------------- the order in which sums are read
  // Vectors of both tiles in one order; a beat is in its place in the cycle after it has arrived.
  logic                step, unused_order, unused_order_end, unused_order_last;
  logic [WordBits-1:0] unused_order_at, next_at;
  logic [WordBits:0]   next_end;              // in vectors
  logic [1:0]          bits;

  systole_row_passes #(.AtBits(WordBits), .CountBits(CountBits)) u_order (
    .clk_i, .rst_ni, .start_i, .passes_i,
    .rows_i   (m_i),
    .vectors_i,
    .base_i   ('0),
    .pitch_i  (WordBits'(vectors_i)),
    .valid_o  (unused_order),
    .step_i   (step),
    .at_o     (unused_order_at),
    .next_at_o(next_at),
    .row_end_o(unused_order_end),
    .last_o   (unused_order_last)
  );
  assign step     = step_i && used_i;
  assign next_end = (start_i ? '0 : (WordBits+1)'(next_at)) + (WordBits+1)'(1);
  assign bits     = wanted_i[1] ? type_bits[3:2] : type_bits[1:0];
  assign vector_end = whole_i ? '1 : ((LocalBits+1)'(next_end) << (3'(LaneBits) + 3'(bits))) +
                    (wanted_i[1] ? (LocalBits+1)'(Bytes) : '0);

  always_ff @(posedge clk_i) begin
    there_o <= wanted_i == '0 || (arrived && !second_q);
  end

  // ---------------------------------------------------------------- their vectors
  for (genvar t = 0; t < 2; t++) begin : gen_tile
    logic [WordBits-1:0] unused_at;
    logic                unused_valid, unused_row_end, unused_last;

    logic [CountBits-1:0] left_q;             // vectors of which sums have been read

    assign valid_o[t] = left_q != '0;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        left_q <= '0;
      end else begin
        left_q <= left_q + CountBits'(step && wanted_i[t]) - CountBits'(take_i[t]);
      end
    end

    systole_tile_buffer #(.Lanes(Lanes), .Bytes(Bytes), .CountBits(CountBits)) u_buffer (
      .clk_i, .rst_ni,
      .start_i    (begins),
      .type_i     (type_i[8*t+:8]),
      .passes_i,
      .rows_i     (m_i),
      .vectors_i,
      .base_i     ('0),
      .pitch_i    (WordBits'(vectors_i)),
      .write_i    (write && write_word[WordBits] == 1'(t)),
      .word_i     (write_word[WordBits-1:0]),
      .data_i     (write_data),
      .here_i     (write_here),
      .next_i     (write_next),
      .valid_o    (unused_valid),
      .take_i     (take_i[t]),
      .at_o       (unused_at),
      .row_end_o  (unused_row_end),
      .last_o     (unused_last),
      .type_bits_o(type_bits[2*t+:2]),
      .data_o     (data_o[t*Lanes*32+:Lanes*32])
    );
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Lanes >= 4 && 2**LocalBits == Bytes)
  `SYSTOLE_ASSERT(TakenThere_A, (take_i & ~valid_o) == '0)
  `SYSTOLE_ASSERT(BegunAtStart_A, start_i |-> (begins || begun_q))
  `SYSTOLE_ASSERT(FirstBeforeSecond_A, begins |-> (port_ready && (wanted_i[0] || !wanted_i[1])))

endmodule
