// Where the results of a command go: in pieces of up to a word to memory, through a port of its own,
// or into the scratchpad. Cycles: hw::WritePort of hw/dma/write_dma.h.

module systole_result_path #(
  parameter  int unsigned Lanes        = 4,
  parameter  int unsigned Queue        = 2,   // commands in the station of the unit
  parameter  int unsigned DataBytes    = 4,   // of a word of the scratchpad and of a beat
  parameter  int unsigned RequestBytes = 16,
  parameter  int unsigned Outstanding  = 4,
  parameter  int unsigned DramBits     = 40,
  parameter  int unsigned AddrBits     = 12,  // of a byte in the scratchpad
  parameter  int unsigned CountBits    = 24,
  localparam int unsigned TagBits      = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned DataWidth    = 8 * DataBytes,
  localparam int unsigned LaneBits     = $clog2(DataBytes),
  localparam int unsigned WordBits     = AddrBits - LaneBits,
  localparam int unsigned IdBits       = Outstanding > 1 ? $clog2(Outstanding) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 in_order_i,

  // of a command, held from its start on
  input  logic                 start_i,
  output logic                 ready_o,         // the port has sent all requests
  input  logic [TagBits-1:0]   tag_i,
  input  logic                 move_i,          // into the scratchpad
  input  logic [7:0]           type_i,          // systole_pkg::element_e
  input  logic [CountBits-1:0] m_i,
  input  logic [CountBits-1:0] n_i,
  input  logic [DramBits-1:0]  to_i,
  input  logic [31:0]          to_pitch_i,

  // vectors of results
  input  logic                 valid_i,
  output logic                 taken_o,
  input  logic [Lanes*32-1:0]  data_i,
  output logic                 over_o,          // the last one of the command is taken

  output logic [Queue-1:0]     completed_o,     // results are in their places
  output logic                 error_o,         // since reset: a response was no OKAY

  output logic                 write_valid_o,
  input  logic                 write_done_i,
  output logic [WordBits-1:0]  write_word_o,
  output logic [DataWidth-1:0] write_data_o,
  output logic [DataBytes-1:0] write_here_o,
  output logic [DataBytes-1:0] write_next_o,

  output logic                 aw_valid_o,
  input  logic                 aw_ready_i,
  output logic [IdBits-1:0]    aw_id_o,
  output logic [DramBits-1:0]  aw_addr_o,
  output logic [7:0]           aw_len_o,
  output logic [2:0]           aw_size_o,
  output logic [1:0]           aw_burst_o,
  output logic                 w_valid_o,
  input  logic                 w_ready_i,
  output logic [DataWidth-1:0] w_data_o,
  output logic [DataBytes-1:0] w_strb_o,
  output logic                 w_last_o,
  input  logic                 b_valid_i,
  output logic                 b_ready_o,
  input  logic [IdBits-1:0]    b_id_i,
  input  logic [1:0]           b_resp_i
);

  logic [1:0]           type_bytes;        // as a power of 2
  logic                 port_takes, row_end, stored;
  logic [DataWidth-1:0] piece;
  logic [LaneBits:0]    count;
  logic [TagBits-1:0]   stored_tag;
  logic [Queue-1:0]     moves_end, stores_end;

  systole_result_pieces #(
    .Lanes(Lanes), .DataBytes(DataBytes), .AddrBits(AddrBits), .CountBits(CountBits)
  ) u_pieces (
    .clk_i, .start_i, .move_i, .type_i, .m_i, .n_i,
    .to_i        (AddrBits'(to_i)),
    .to_pitch_i  (AddrBits'(to_pitch_i)),
    .type_bytes_o(type_bytes),
    .valid_i,
    .ready_o     (taken_o),
    .data_i, .over_o,
    .port_ready_i(port_takes),
    .piece_o     (piece),
    .count_o     (count),
    .row_end_o   (row_end),
    .write_valid_o, .write_done_i, .write_word_o, .write_data_o, .write_here_o, .write_next_o
  );

  assign moves_end   = over_o && move_i ? Queue'(1) << tag_i : '0;
  assign stores_end  = stored ? Queue'(1) << stored_tag : '0;
  assign completed_o = moves_end | stores_end;

  systole_write_dma #(
    .DataBytes(DataBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .Commands(Queue), .AddrWidth(DramBits)
  ) u_dma (
    .clk_i, .rst_ni, .in_order_i,
    .start_valid_i  (start_i && !move_i),
    .start_ready_o  (ready_o),
    .tag_i,
    .address_i      (to_i),
    .pitch_i        (to_pitch_i),
    .rows_i         (32'(m_i)),
    .bytes_i        (32'(n_i) << type_bytes),
    .completed_o    (stored),
    .completed_tag_o(stored_tag),
    .error_o,
    .valid_i        (valid_i && !move_i),
    .ready_o        (port_takes),
    .data_i         (piece),
    .count_i        (count),
    .row_end_i      (row_end),
    .aw_valid_o, .aw_ready_i, .aw_id_o, .aw_addr_o, .aw_len_o, .aw_size_o, .aw_burst_o,
    .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .b_valid_i, .b_ready_o, .b_id_i, .b_resp_i
  );

endmodule
