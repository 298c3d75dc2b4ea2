// What a store unit does with results: saturates a vector to the output's type, and hands it on in
// pieces of up to a word, to the writing port, or into the scratchpad at any byte.

`include "systole_assert.svh"

module systole_result_pieces #(
  parameter  int unsigned Lanes     = 4,
  parameter  int unsigned DataBytes = 4,    // of a word
  parameter  int unsigned AddrBits  = 12,   // of a byte in the scratchpad
  parameter  int unsigned CountBits = 24,
  localparam int unsigned DataWidth = 8 * DataBytes,
  localparam int unsigned LaneBits  = $clog2(DataBytes),
  localparam int unsigned WordBits  = AddrBits - LaneBits,
  localparam int unsigned Parts     = 4 * Lanes / DataBytes,
  localparam int unsigned PartBits  = Parts > 1 ? $clog2(Parts) : 1
) (
  input  logic                 clk_i,

  // of a command, held from its start on
  input  logic                 start_i,
  input  logic                 move_i,          // into the scratchpad
  input  logic [7:0]           type_i,          // systole_pkg::element_e
  input  logic [CountBits-1:0] m_i,
  input  logic [CountBits-1:0] n_i,
  input  logic [AddrBits-1:0]  to_i,
  input  logic [AddrBits-1:0]  to_pitch_i,
  output logic [1:0]           type_bytes_o,    // of an element, as a power of 2

  input  logic                 valid_i,
  output logic                 ready_o,
  input  logic [Lanes*32-1:0]  data_i,
  output logic                 over_o,          // the last vector of the command is taken

  // a piece for the port
  input  logic                 port_ready_i,
  output logic [DataWidth-1:0] piece_o,
  output logic [LaneBits:0]    count_o,         // bytes
  output logic                 row_end_o,

  // the scratchpad's client
  output logic                 write_valid_o,
  input  logic                 write_done_i,
  output logic [WordBits-1:0]  write_word_o,
  output logic [DataWidth-1:0] write_data_o,
  output logic [DataBytes-1:0] write_here_o,
  output logic [DataBytes-1:0] write_next_o
);

  // ---------------------------------------------------------------- to the output's type
  logic [Lanes*32-1:0] bytes;

  always_comb begin
    case (type_i)
      systole_pkg::TypeS32:                       type_bytes_o = 2'd2;
      systole_pkg::TypeS16, systole_pkg::TypeU16: type_bytes_o = 2'd1;
      default:                                    type_bytes_o = 2'd0;
    endcase
  end

  function automatic logic [31:0] saturated(input logic signed [31:0] value, input logic [7:0] code);
    logic signed [31:0] lo, hi;
    case (code)
      systole_pkg::TypeS8:  begin lo = -32'sd128; hi = 32'sd127; end
      systole_pkg::TypeU8:  begin lo = 32'sd0; hi = 32'sd255; end
      systole_pkg::TypeS16: begin lo = -32'sd32768; hi = 32'sd32767; end
      systole_pkg::TypeU16: begin lo = 32'sd0; hi = 32'sd65535; end
      default:              begin lo = 32'sh80000000; hi = 32'sh7fffffff; end
    endcase
    saturated = value < lo ? lo : value > hi ? hi : value;
  endfunction

  always_comb begin
    bytes = '0;
    if (valid_i) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        case (type_bytes_o)
          2'd0:    bytes[8*l+:8]   = 8'(saturated(data_i[32*l+:32], type_i));
          2'd1:    bytes[16*l+:16] = 16'(saturated(data_i[32*l+:32], type_i));
          default: bytes[32*l+:32] = saturated(data_i[32*l+:32], type_i);
        endcase
      end
    end
  end

  // ---------------------------------------------------------------- pieces of up to a word
  localparam int unsigned BytesBits = $clog2(4 * Lanes + 1);

  logic [CountBits-1:0] out_rows_q, out_columns_q;
  logic [PartBits-1:0]  piece_q;
  logic [BytesBits-1:0] beat_bytes, piece_bytes;
  logic                 piece_take, piece_last, out_row_end;

  assign out_row_end = out_columns_q <= CountBits'(Lanes);
  assign beat_bytes  = (out_row_end ? BytesBits'(out_columns_q) : BytesBits'(Lanes)) << type_bytes_o;
  assign piece_bytes = beat_bytes - (BytesBits'(piece_q) << LaneBits);
  assign piece_last  = piece_bytes <= BytesBits'(DataBytes);
  assign count_o     = piece_last ? (LaneBits+1)'(piece_bytes) : (LaneBits+1)'(DataBytes);
  assign piece_o       = bytes[piece_q*DataWidth+:DataWidth];
  assign piece_take  = valid_i && (move_i ? write_done_i : port_ready_i);
  assign ready_o   = piece_take && piece_last;
  assign over_o    = ready_o && out_row_end && out_rows_q == CountBits'(1);

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      out_rows_q    <= m_i;
      out_columns_q <= n_i;
      piece_q       <= '0;
    end else if (ready_o) begin
      out_columns_q <= out_row_end ? n_i : out_columns_q - CountBits'(Lanes);
      out_rows_q    <= out_rows_q - CountBits'(out_row_end);
      piece_q       <= '0;
    end else if (piece_take) begin
      piece_q <= piece_q + PartBits'(1);
    end
  end

  // ---------------------------------------------------------------- into the scratchpad
  logic [AddrBits-1:0]    move_at_q, move_row_q;
  logic [31:0]            move_lane;

  assign move_lane                    = 32'(move_at_q[LaneBits-1:0]);
  assign write_valid_o                = valid_i && move_i;
  assign write_word_o                 = move_at_q[AddrBits-1:LaneBits];
  assign write_data_o                 = DataWidth'({piece_o, piece_o} >> (DataWidth - 8 * move_lane));
  assign {write_next_o, write_here_o} = ~({2*DataBytes{1'b1}} << count_o) << move_at_q[LaneBits-1:0];
  assign row_end_o                     = piece_last && out_row_end;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      move_at_q  <= AddrBits'(to_i);
      move_row_q <= AddrBits'(to_i);
    end else if (piece_take) begin
      move_at_q <= row_end_o ? move_row_q + AddrBits'(to_pitch_i) : move_at_q + AddrBits'(count_o);
      if (row_end_o) move_row_q <= move_row_q + AddrBits'(to_pitch_i);
    end
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Parts * DataBytes == 4 * Lanes)

endmodule
