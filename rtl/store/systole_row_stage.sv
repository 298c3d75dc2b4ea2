// The stage at the end of a chain that knows rows, as its micro-code says (hw/postop/microcode.h):
// softmax or LayerNorm of whole rows, or the LayerNorm of parts of rows whose sums are known. Values
// and cycles: those of systole_softmax_unit and systole_layernorm_unit, which want the vectors of a row
// as often as they pass over it, in the order of systole_row_passes, and of systole_norm_stage.

`include "systole_assert.svh"

module systole_row_stage #(
  parameter  int unsigned Lanes     = 4,
  parameter  int unsigned CountBits = 24,
  localparam int unsigned ColBits   = $clog2(systole_pkg::MaxCols + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  code_write_i,   // a word of the stage's micro-code
  input  logic [3:0]            code_word_i,
  input  logic [63:0]           code_i,
  output logic                  legal_o,        // a unit here can do the stage

  // of a command, held from its first vector to its last result
  input  logic [CountBits-1:0]  rows_i,
  input  logic [ColBits-1:0]    cols_i,
  input  logic [ColBits-1:0]    kept_i,         // see systole_softmax_unit

  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [Lanes*32-1:0]   data_i,
  input  logic [Lanes*32-1:0]   multiplier_i,   // parameters of the vector's columns
  input  logic [Lanes*32-1:0]   addend_i,

  // of the row whose vectors come: systole_row_norms
  input  logic                  known_i,
  input  logic [systole_pkg::LayerNormInputBits-1:0] mean_i,
  input  logic [31:0]           factor_i,
  output logic                  norm_take_o,

  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [Lanes*32-1:0]   data_o,
  output logic                  sum_o,          // row_sum_o is that of a row which ends here
  output logic [31:0]           row_sum_o
);

  localparam logic signed [63:0] Lowest  = -64'sd2147483648;
  localparam logic signed [63:0] Highest = 64'sd2147483647;
  localparam int unsigned        Imms    = 7;

  // ---------------------------------------------------------------- micro-code
  logic        [7:0]  op_q, operand_q, side_q;
  logic signed [63:0] imm_q [Imms];
  logic               is_softmax, is_part, softmax_legal, norm_legal, part_legal;

  always_ff @(posedge clk_i) begin
    if (code_write_i && code_word_i == 4'd0) begin
      op_q      <= code_i[7:0];
      operand_q <= code_i[15:8];
      side_q    <= code_i[39:32];
    end
    for (int unsigned i = 0; i < Imms; i++) begin
      if (code_write_i && code_word_i == 4'(i + 1)) imm_q[i] <= code_i;
    end
  end

  function automatic logic between(input logic signed [63:0] value, input logic signed [63:0] least,
                                  input logic signed [63:0] most);
    between = value >= least && value <= most;
  endfunction

  // hw/postop/postop_check.cpp
  assign is_softmax    = op_q == systole_pkg::Softmax;
  assign softmax_legal = is_softmax && operand_q == systole_pkg::Immediate &&
                         between(imm_q[0], 64'sd0, 64'sd2) &&
                         between(imm_q[1], 64'sd0, Highest) && between(imm_q[2], 64'sd0, 64'sd63) &&
                         between(imm_q[3], 64'sd1, 64'sd14) &&
                         between(imm_q[4], 64'sd0, Highest) && between(imm_q[5], 64'sd0, 64'sd63) &&
                         between(imm_q[6], 64'sd1, 64'sd16);
  assign is_part       = op_q == systole_pkg::LayerNormApply;
  assign part_legal    = is_part && between(imm_q[4], 64'sd1, 64'sd65536);
  assign norm_legal    = (op_q == systole_pkg::LayerNorm || part_legal) &&
                         operand_q == systole_pkg::Channel &&
                         between(imm_q[0], 64'sd1, 64'sd30) && between(imm_q[1], 64'sd0, 64'sd62) &&
                         between(imm_q[2], Lowest, imm_q[3]) && between(imm_q[3], Lowest, Highest);
  assign legal_o       = side_q == '0 && (softmax_legal || norm_legal);

  // ---------------------------------------------------------------- softmax
  logic                softmax_ready, softmax_valid, softmax_last, norm_ready, norm_valid, unused_last;
  logic                part_ready, part_valid;
  logic [Lanes*32-1:0] softmax_data, norm_data, part_data;
  logic [13:0]         q_ln2;
  logic [29:0]         reciprocal;
  logic [14:0]         b;
  logic [28:0]         c;

  systole_exp_constants u_constants (
    .fraction_bits_i(imm_q[3][3:0]),
    .q_ln2_o        (q_ln2),
    .reciprocal_o   (reciprocal),
    .b_o            (b),
    .c_o            (c)
  );

  systole_softmax_unit #(.Lanes(Lanes)) u_softmax (
    .clk_i, .rst_ni,
    .rows_i            (32'(rows_i)),
    .cols_i,
    .kept_i,
    .mode_i            (imm_q[0][1:0]),
    .score_multiplier_i(imm_q[1][30:0]),
    .score_shift_i     (imm_q[2][5:0]),
    .q_ln2_i           (q_ln2),
    .reciprocal_i      (reciprocal),
    .b_i               (b),
    .c_i               (c),
    .out_multiplier_i  (imm_q[4][30:0]),
    .out_shift_i       (imm_q[5][5:0]),
    .out_bits_i        (imm_q[6][4:0]),
    .valid_i           (valid_i && is_softmax),
    .ready_o           (softmax_ready),
    .data_i,
    .valid_o           (softmax_valid),
    .ready_i,
    .data_o            (softmax_data),
    .last_o            (softmax_last),
    .row_sum_o
  );

  // ---------------------------------------------------------------- LayerNorm
  systole_layernorm_unit #(.Lanes(Lanes)) u_layernorm (
    .clk_i, .rst_ni,
    .rows_i         (32'(rows_i)),
    .cols_i,
    .fraction_bits_i(imm_q[0][4:0]),
    .shift_i        (imm_q[1][5:0]),
    .lo_i           (imm_q[2][31:0]),
    .hi_i           (imm_q[3][31:0]),
    .valid_i        (valid_i && !is_softmax && !is_part),
    .ready_o        (norm_ready),
    .data_i, .multiplier_i, .addend_i,
    .valid_o        (norm_valid),
    .ready_i,
    .data_o         (norm_data),
    .last_o         (unused_last)
  );

  systole_norm_stage #(.Lanes(Lanes)) u_part (
    .clk_i, .rst_ni,
    .fraction_bits_i(imm_q[0][4:0]),
    .shift_i        (imm_q[1][5:0]),
    .lo_i           (imm_q[2][31:0]),
    .hi_i           (imm_q[3][31:0]),
    .known_i, .mean_i, .factor_i,
    .valid_i        (valid_i && is_part),
    .ready_o        (part_ready),
    .data_i, .multiplier_i, .addend_i,
    .valid_o        (part_valid),
    .ready_i,
    .data_o         (part_data)
  );
  assign norm_take_o = valid_i && is_part && part_ready;

  assign ready_o = is_softmax ? softmax_ready : is_part ? part_ready : norm_ready;
  assign valid_o = is_softmax ? softmax_valid : is_part ? part_valid : norm_valid;
  assign data_o  = is_softmax ? softmax_data : is_part ? part_data : norm_data;
  assign sum_o   = is_softmax && softmax_last && imm_q[0][1:0] == systole_pkg::Deferred;

endmodule
