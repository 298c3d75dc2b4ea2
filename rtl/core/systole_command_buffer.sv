// Header and commands of a program as systole_command_fetch has them: bytes of two words a cycle in,
// and what is written in a cycle is on the outputs in it.

`include "systole_assert.svh"

module systole_command_buffer #(
  parameter  int unsigned Commands     = 32,    // behind the header
  parameter  int unsigned DataBytes    = 16,
  parameter  int unsigned WordBits     = 8,     // of an index of such words
  localparam int unsigned HeaderBytes  = 64,
  localparam int unsigned CommandBytes = 80,
  localparam int unsigned LookBytes    = 6,     // of the command that is looked at, from its begin
  localparam int unsigned OperandsByte = 48,    // and four from here on
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
  output logic [31:0]               look_operands_o
);

  // It is kept in pieces of which header and commands are whole ones.
  localparam int unsigned Piece     = DataBytes < 16 ? DataBytes : 16;
  localparam int unsigned Parts     = DataBytes / Piece;  // pieces of a word
  localparam int unsigned Header    = HeaderBytes / Piece;
  localparam int unsigned Command   = CommandBytes / Piece;
  localparam int unsigned Look      = (LookBytes + Piece - 1) / Piece;
  localparam int unsigned Pieces    = Header + Commands * Command;
  localparam int unsigned IndexBits = $clog2(Pieces);
  localparam int unsigned Reads     = Header + Command + Look + 1;

  logic [8*Piece-1:0] buffer_q [Pieces];

  // ---------------------------------------------------------------- pieces of a write
  logic [2*Parts*Piece-1:0]     strobes;
  logic [2*Parts*IndexBits-1:0] written;

  assign strobes = write_i ? {next_i, here_i} : '0;
  for (genvar p = 0; p < 2 * Parts; p++) begin : gen_part
    assign written[p*IndexBits+:IndexBits] = IndexBits'(32'(word_i) * Parts + p);
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < 2 * Parts; p++) begin
      for (int unsigned l = 0; l < Piece; l++) begin
        if (strobes[p*Piece+l]) begin
          buffer_q[written[p*IndexBits+:IndexBits]][8*l+:8] <= data_i[8*(p%Parts*Piece+l)+:8];
        end
      end
    end
  end

  // ---------------------------------------------------------------- pieces of what is read
  logic [IndexBits-1:0]     out_at, look_at;
  logic [8*Reads*Piece-1:0] pieces;
  logic [8*Look*Piece-1:0]  look;
  logic [8*Piece-1:0]       operands;
  logic                     unused_look;

  assign out_at  = IndexBits'(Header + 32'(out_i) * Command);
  assign look_at = IndexBits'(Header + 32'(look_i) * Command);

  for (genvar r = 0; r < Reads; r++) begin : gen_read
    logic [IndexBits-1:0] at;
    logic [8*Piece-1:0]   stored, piece;
    if (r < Header) begin : gen_header
      assign at = IndexBits'(r);
    end else if (r < Header + Command) begin : gen_command
      assign at = out_at + IndexBits'(r - Header);
    end else if (r < Header + Command + Look) begin : gen_look
      assign at = look_at + IndexBits'(r - Header - Command);
    end else begin : gen_operands
      assign at = look_at + IndexBits'(OperandsByte / Piece);
    end
    assign stored = buffer_q[at];
    always_comb begin
      piece = stored;
      for (int unsigned p = 0; p < 2 * Parts; p++) begin
        for (int unsigned l = 0; l < Piece; l++) begin
          if (strobes[p*Piece+l] && written[p*IndexBits+:IndexBits] == at) begin
            piece[8*l+:8] = data_i[8*(p%Parts*Piece+l)+:8];
          end
        end
      end
    end
    assign pieces[8*r*Piece+:8*Piece] = piece;
  end

  assign header_o     = pieces[8*HeaderBytes-1:0];
  assign command_o    = pieces[8*HeaderBytes+:8*CommandBytes];
  assign look         = pieces[8*(HeaderBytes+CommandBytes)+:8*Look*Piece];
  assign look_op_o    = look[7:0];
  assign look_chain_o = look[47:32];

  assign operands        = pieces[8*(HeaderBytes+CommandBytes+Look*Piece)+:8*Piece];
  assign look_operands_o = operands[31:0];
  assign unused_look     = ^{look[8*Look*Piece-1:48], look[31:8], operands};

  `SYSTOLE_ASSERT_INIT(PiecesUsable_A, HeaderBytes % Piece == 0 && CommandBytes % Piece == 0 &&
                       OperandsByte % Piece == 0 && DataBytes % Piece == 0 && 2**PlaceBits >= Commands)

endmodule
