// Header and commands of a program as systole_command_fetch has them: bytes of two words a cycle in,
// and what is written in a cycle is on the outputs in it.

`include "systole_assert.svh"

module systole_command_buffer #(
  parameter  int unsigned Commands     = 32,    // behind the header
  parameter  int unsigned DataBytes    = 16,
  parameter  int unsigned WordBits     = 8,     // of an index of such words
  localparam int unsigned HeaderBytes  = 64,
  localparam int unsigned CommandBytes = 80,
  localparam int unsigned OperandsByte = 48,    // and four from here on, of a load 8 behind them
  localparam int unsigned PlaceBits    = $clog2(Commands)
) (
  input  logic                      clk_i,

  input  logic                      write_i,
  input  logic [WordBits-1:0]       word_i,
  input  logic [8*DataBytes-1:0]    data_i,
  input  logic [DataBytes-1:0]      here_i,     // bytes of this word
  input  logic [DataBytes-1:0]      next_i,     // of the one after it

  output logic [8*HeaderBytes-1:0]  header_o,
  input  logic [PlaceBits-1:0]      out_i,
  output logic [8*CommandBytes-1:0] command_o,
  input  logic [PlaceBits-1:0]      look_i,
  output logic [7:0]                look_op_o,
  output logic [15:0]               look_chain_o,
  output logic [15:0]               look_mix_o,
  output logic [31:0]               look_operands_o,
  output logic [31:0]               look_load_operands_o
);

  // Words come in pieces of which header and commands are whole ones. Piece r of all commands is a
  // memory of its own, so what is read is selected among commands and not among pieces.
  localparam int unsigned Piece     = DataBytes < 16 ? DataBytes : 16;
  localparam int unsigned Parts     = DataBytes / Piece;  // pieces of a word
  localparam int unsigned Header    = HeaderBytes / Piece;
  localparam int unsigned Command   = CommandBytes / Piece;
  localparam int unsigned IndexBits = $clog2(Header + Commands * Command + 2 * Parts);
  localparam int unsigned PieceBits = $clog2((Header > Command ? Header : Command) + 1);

  // ---------------------------------------------------------------- pieces of a write
  logic [2*Parts-1:0]           to_header, to_command;  // it is for it; of a command with bytes alone
  logic [2*Parts*PieceBits-1:0] piece;                  // of the header or the command
  logic [2*Parts*PlaceBits-1:0] place;                  // of the command
  logic [2*DataBytes-1:0]       strobes;
  logic [IndexBits-1:0]         first;                  // of the pieces, among all
  logic                         in_header;
  logic [PieceBits-1:0]         at_piece;
  logic [PlaceBits-1:0]         at_place;

  assign strobes = {next_i, here_i};
  assign first   = IndexBits'(32'(word_i) * Parts);

  // Tables in place of a division: which command a piece belongs to, and which of its pieces it is.
  localparam int unsigned Indices = 2 ** IndexBits;

  function automatic logic [Indices*PlaceBits-1:0] place_table();
    for (int unsigned i = 0; i < Indices; i++) begin
      place_table[i*PlaceBits+:PlaceBits] = i < Header ? '0 : PlaceBits'((i - Header) / Command);
    end
  endfunction
  function automatic logic [Indices*PieceBits-1:0] piece_table();
    for (int unsigned i = 0; i < Indices; i++) begin
      piece_table[i*PieceBits+:PieceBits] = PieceBits'(i < Header ? i : (i - Header) % Command);
    end
  endfunction
  localparam logic [Indices*PlaceBits-1:0] PlaceOf = place_table();
  localparam logic [Indices*PieceBits-1:0] PieceOf = piece_table();

  always_comb begin
    in_header = first < IndexBits'(Header);
    at_place  = '0;
    at_piece  = '0;
    if (write_i) begin
      at_place = PlaceOf[first*PlaceBits+:PlaceBits];
      at_piece = PieceOf[first*PieceBits+:PieceBits];
    end
    for (int unsigned p = 0; p < 2 * Parts; p++) begin
      to_header[p]                  = write_i && in_header;
      to_command[p]                 = write_i && strobes[p*Piece+:Piece] != '0 && !in_header;
      piece[p*PieceBits+:PieceBits] = at_piece;
      place[p*PlaceBits+:PlaceBits] = at_place;
      at_piece = at_piece + PieceBits'(1);
      if (in_header && at_piece == PieceBits'(Header)) begin
        in_header = 1'b0;
        at_piece  = '0;
        at_place  = '0;
      end else if (!in_header && at_piece == PieceBits'(Command)) begin
        at_piece = '0;
        at_place = at_place + PlaceBits'(1);
      end
    end
  end

  // ---------------------------------------------------------------- header
  for (genvar r = 0; r < Header; r++) begin : gen_header
    logic [8*Piece-1:0] header_q, header;

    always_comb begin
      header = header_q;
      for (int unsigned p = 0; p < 2 * Parts; p++) begin
        if (to_header[p] && piece[p*PieceBits+:PieceBits] == PieceBits'(r)) begin
          for (int unsigned l = 0; l < Piece; l++) begin
            if (strobes[p*Piece+l]) header[8*l+:8] = data_i[8*(p%Parts*Piece+l)+:8];
          end
        end
      end
    end
    always_ff @(posedge clk_i) header_q <= header;
    assign header_o[8*r*Piece+:8*Piece] = header;
  end

  // ---------------------------------------------------------------- commands
  logic [8*CommandBytes-1:0] look;
  logic                      unused_look;

  for (genvar r = 0; r < Command; r++) begin : gen_piece
    logic [8*Piece-1:0]   stored_q [Commands];
    logic [Piece-1:0]     comes;          // bytes of one of the commands, whose place is `to`
    logic [PlaceBits-1:0] to;
    logic [8*Piece-1:0]   data, out, looked_at;

    // A write has bytes of one piece r: it is shorter than a command.
    always_comb begin
      comes = '0;
      to    = '0;
      data  = '0;
      for (int unsigned p = 0; p < 2 * Parts; p++) begin
        if (to_command[p] && piece[p*PieceBits+:PieceBits] == PieceBits'(r)) begin
          comes = strobes[p*Piece+:Piece];
          to    = place[p*PlaceBits+:PlaceBits];
          data  = data_i[8*(p%Parts)*Piece+:8*Piece];
        end
      end
    end

    always_ff @(posedge clk_i) begin
      if (comes != '0) begin
        for (int unsigned l = 0; l < Piece; l++) begin
          if (comes[l]) stored_q[to][8*l+:8] <= data[8*l+:8];
        end
      end
    end

    always_comb begin
      out       = stored_q[out_i];
      looked_at = stored_q[look_i];
      if (comes != '0) begin
        for (int unsigned l = 0; l < Piece; l++) begin
          if (comes[l] && to == out_i) out[8*l+:8] = data[8*l+:8];
          if (comes[l] && to == look_i) looked_at[8*l+:8] = data[8*l+:8];
        end
      end
    end
    assign command_o[8*r*Piece+:8*Piece] = out;
    assign look[8*r*Piece+:8*Piece]      = looked_at;
  end

  assign look_op_o       = look[7:0];
  assign look_chain_o    = look[47:32];
  assign look_mix_o      = look[63:48];
  assign look_operands_o = look[8*OperandsByte+:32];
  assign look_load_operands_o = look[8*OperandsByte+64+:32];
  assign unused_look     = ^{look[8*CommandBytes-1:8*OperandsByte+96], look[8*OperandsByte+32+:32],
                             look[8*OperandsByte-1:64], look[31:8]};

  `SYSTOLE_ASSERT_INIT(PiecesUsable_A, HeaderBytes % Piece == 0 && CommandBytes % Piece == 0 &&
                       DataBytes % Piece == 0 && Parts < Command && 2**PlaceBits >= Commands)

endmodule
