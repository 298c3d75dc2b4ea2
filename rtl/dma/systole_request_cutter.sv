// Cuts rows of bytes into requests, one a cycle: none crosses a multiple of RequestBytes, and, with
// pieces of a row, none a multiple of `row_bytes_i` from the row's begin on. Reference:
// hw::RequestCut of hw/dma/read_dma.h.
//
// The first request of a command is on the output in the cycle in which the command is taken, so commands
// follow each other without a gap.

`include "systole_assert.svh"

module systole_request_cutter #(
  parameter  int unsigned RequestBytes = 64,
  parameter  int unsigned AddrWidth    = 40,
  parameter  int unsigned LocalWidth   = 24,
  parameter  int unsigned CountWidth   = 32,
  localparam int unsigned LengthBits   = $clog2(RequestBytes) + 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [CountWidth-1:0] row_bytes_i,   // pieces of a longer row, 0: whole rows

  // rows: `bytes_i` bytes each, `pitch_i` apart in memory, `to_pitch_i` apart where they go
  input  logic                  start_valid_i,
  output logic                  start_ready_o,
  input  logic [AddrWidth-1:0]  address_i,
  input  logic [CountWidth-1:0] pitch_i,
  input  logic [CountWidth-1:0] rows_i,        // at least 1, as bytes_i
  input  logic [CountWidth-1:0] bytes_i,
  input  logic [LocalWidth-1:0] to_i,
  input  logic [LocalWidth-1:0] to_pitch_i,

  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [AddrWidth-1:0]  address_o,
  output logic [LengthBits-1:0] length_o,      // bytes
  output logic [LocalWidth-1:0] to_o
);

  localparam int unsigned AlignBits = LengthBits - 1;

  logic                  busy_q, row_end, last;
  logic [AddrWidth-1:0]  address_q, row_address, row_address_q;
  logic [CountWidth-1:0] pitch, pitch_q, bytes, bytes_q, rows, rows_q;
  logic [CountWidth-1:0] left, left_q;     // of the row
  logic [CountWidth-1:0] piece, piece_q;   // left of the piece
  logic [LocalWidth-1:0] to_q, row_to, row_to_q, to_pitch, to_pitch_q;

  assign start_ready_o = !busy_q;
  assign valid_o       = busy_q || start_valid_i;
  assign address_o     = busy_q ? address_q : address_i;
  assign row_address   = busy_q ? row_address_q : address_i;
  assign pitch         = busy_q ? pitch_q : pitch_i;
  assign bytes         = busy_q ? bytes_q : bytes_i;
  assign rows          = busy_q ? rows_q : rows_i;
  assign left          = busy_q ? left_q : bytes_i;
  assign piece         = busy_q ? piece_q : row_bytes_i;
  assign to_o          = busy_q ? to_q : to_i;
  assign row_to        = busy_q ? row_to_q : to_i;
  assign to_pitch      = busy_q ? to_pitch_q : to_pitch_i;

  always_comb begin
    length_o = LengthBits'(RequestBytes) - LengthBits'(address_o[AlignBits-1:0]);
    if (left < CountWidth'(length_o)) length_o = LengthBits'(left);
    if (row_bytes_i != '0 && piece < CountWidth'(length_o)) length_o = LengthBits'(piece);
  end
  assign row_end = left == CountWidth'(length_o);
  assign last    = row_end && rows == CountWidth'(1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
    end else begin
      busy_q <= valid_o && !(ready_i && last);
    end
  end

  always_ff @(posedge clk_i) begin
    pitch_q    <= pitch;
    bytes_q    <= bytes;
    to_pitch_q <= to_pitch;
    if (!ready_i) begin
      address_q     <= address_o;
      row_address_q <= row_address;
      rows_q        <= rows;
      left_q        <= left;
      piece_q       <= piece;
      to_q          <= to_o;
      row_to_q      <= row_to;
    end else if (row_end) begin
      address_q     <= row_address + AddrWidth'(pitch);
      row_address_q <= row_address + AddrWidth'(pitch);
      rows_q        <= rows - CountWidth'(1);
      left_q        <= bytes;
      piece_q       <= row_bytes_i;
      to_q          <= row_to + to_pitch;
      row_to_q      <= row_to + to_pitch;
    end else begin
      address_q     <= address_o + AddrWidth'(length_o);
      row_address_q <= row_address;
      rows_q        <= rows;
      left_q        <= left - CountWidth'(length_o);
      piece_q       <= piece == CountWidth'(length_o) ? row_bytes_i : piece - CountWidth'(length_o);
      to_q          <= to_o + LocalWidth'(length_o);
      row_to_q      <= row_to;
    end
  end

  `SYSTOLE_ASSERT_INIT(RequestUsable_A, RequestBytes >= 16 && 2**AlignBits == RequestBytes &&
                       CountWidth >= LengthBits)
  `SYSTOLE_ASSERT(RowsUsable_A, start_valid_i |-> (rows_i != '0 && bytes_i != '0))
  `SYSTOLE_ASSERT(StartHeld_A, (start_valid_i && !start_ready_o) |=>
                  (start_valid_i && $stable(address_i) && $stable(bytes_i) && $stable(rows_i)))

endmodule
