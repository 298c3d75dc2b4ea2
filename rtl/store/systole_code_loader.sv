// Loads the micro-code of the next command's chain into the stages, a word a cycle, as soon as they are
// empty and unless they hold that chain: nine words a stage (hw/postop/microcode.h). A word is written in
// the cycle after its read.

`include "systole_assert.svh"

module systole_code_loader #(
  parameter  int unsigned Stages     = 8,     // and a row-wise one
  localparam int unsigned StageBits  = $clog2(Stages + 1),
  localparam int unsigned StagesBits = $clog2(Stages + 2)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  waiting_i,     // a command is the next one
  input  logic                  start_i,       // it starts
  input  logic                  busy_i,        // it is not over
  input  logic [15:0]           chain_i,       // its chain: of the one that runs, or else of the next one
  input  logic [StagesBits-1:0] stages_i,
  input  logic                  forget_i,      // a program begins: it has chains of its own
  output logic                  left_o,        // there are words to be read

  output logic                  read_o,
  output logic [StageBits-1:0]  read_stage_o,
  output logic [3:0]            read_word_o,
  output logic                  write_o,
  output logic [StageBits-1:0]  write_stage_o,
  output logic [3:0]            write_word_o
);

  localparam logic [3:0] LastWord = 4'd8;

  logic                known_q;                // the stages hold chain `held_q`
  logic [15:0]         held_q;
  logic                last, begins, begun_q;  // those of the next command

  assign begins = waiting_i && !busy_i && !begun_q;
  assign read_o = left_o;
  assign last   = read_word_o == LastWord &&
                  StagesBits'(read_stage_o) + StagesBits'(1) == stages_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      known_q <= 1'b0;
      begun_q <= 1'b0;
      left_o  <= 1'b0;
      write_o <= 1'b0;
    end else begin
      write_o <= read_o;
      begun_q <= !start_i && (begun_q || begins);
      if (begins) begin
        known_q <= 1'b1;
        left_o  <= stages_i != '0 && !(known_q && held_q == chain_i);
      end else begin
        if (forget_i) known_q <= 1'b0;
        if (read_o && last) left_o <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    write_stage_o <= read_stage_o;
    write_word_o  <= read_word_o;
    if (begins) begin
      held_q       <= chain_i;
      read_stage_o <= '0;
      read_word_o  <= '0;
    end else if (read_o) begin
      read_word_o  <= read_word_o == LastWord ? '0 : read_word_o + 4'd1;
      read_stage_o <= read_stage_o + StageBits'(read_word_o == LastWord);
    end
  end

  `SYSTOLE_ASSERT(BegunAtStart_A, start_i |-> (begins || begun_q))

endmodule
