// What the decoder has to know of a chain of post-op stages, from its record in memory: 64-bit words
// (hw/program/program_image.h), the first with the output's type, then for each stage a word with its
// codes and eight with immediates. Zeros after the last stage are stages without operands, which
// change nothing. References: hw/postop/postop.h, statistics_read() and the like of hw/postop/stage.h.

`include "systole_assert.svh"

module systole_chain_summary #(
  parameter int unsigned Tensors = 4  // operands that a command has in memory, at most
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  valid_i,
  input  logic                  first_i,             // word of a record: a new chain
  input  logic [63:0]           word_i,

  output logic [1:0]            bytes_o,             // of an element that it writes, as a power of 2
  output logic [7:0]            parameter_words_o,   // for a column
  output logic [2:0]            statistics_words_o,  // for a row
  output logic                  writes_statistics_o,
  output logic                  transposes_o,
  output logic [3:0]            tensors_o,
  output logic [2*Tensors-1:0]  tensor_bytes_o       // of an element, as powers of 2
);

  localparam int unsigned StageWords = 9;  // of micro-code: hw/postop/microcode.h
  localparam logic [2:0]  SumSquares = 3'd4;

  function automatic logic [1:0] type_bytes(input logic [7:0] code);
    case (code)
      systole_pkg::TypeS16, systole_pkg::TypeU16: type_bytes = 2'd1;
      systole_pkg::TypeS32:                       type_bytes = 2'd2;
      default:                                    type_bytes = 2'd0;
    endcase
  endfunction

  logic [3:0] place_q;                       // of the word in its stage
  logic       softmax_q;                     // the stage is one
  logic [7:0] op, operand, element, side;
  logic [1:0] parameters;
  logic [2:0] reads, writes, words;
  logic       stage;                         // the word has codes of a stage
  logic       deferred;                      // ... the mode of a softmax that leaves its row sums

  assign stage    = valid_i && !first_i && place_q == '0;
  assign deferred = valid_i && !first_i && place_q == 4'd1 && softmax_q &&
                    word_i == 64'(systole_pkg::Deferred);
  assign op       = word_i[7:0];
  assign operand  = word_i[15:8];
  assign element  = word_i[31:24];
  assign side     = word_i[39:32];

  always_comb begin
    parameters = '0;
    if (operand == systole_pkg::Channel) begin
      parameters = op == systole_pkg::Requantise || op == systole_pkg::LayerNorm ||
                   op == systole_pkg::LayerNormApply ? 2'd2 : 2'd1;
    end
    reads = operand == systole_pkg::Row ? 3'd1 : 3'd0;
    if (op == systole_pkg::LayerNormApply || op == systole_pkg::RmsNormApply) reads = SumSquares;
    writes = '0;
    if (side != systole_pkg::ReduceNone) writes = 3'd1;
    if (side == systole_pkg::ReduceSumSquares) writes = SumSquares;
    words = reads > writes ? reads : writes;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      place_q             <= '0;
      softmax_q           <= 1'b0;
      bytes_o             <= '0;
      parameter_words_o   <= '0;
      statistics_words_o  <= '0;
      writes_statistics_o <= 1'b0;
      transposes_o        <= 1'b0;
      tensors_o           <= '0;
      tensor_bytes_o      <= '0;
    end else if (valid_i && first_i) begin
      place_q             <= '0;
      bytes_o             <= type_bytes(word_i[7:0]);
      parameter_words_o   <= '0;
      statistics_words_o  <= '0;
      writes_statistics_o <= 1'b0;
      transposes_o        <= 1'b0;
      tensors_o           <= '0;
      tensor_bytes_o      <= '0;
    end else if (valid_i) begin
      place_q <= 32'(place_q) == StageWords - 1 ? '0 : place_q + 4'd1;
      if (deferred) begin
        writes_statistics_o <= 1'b1;
        if (statistics_words_o == '0) statistics_words_o <= 3'd1;
      end
      if (stage) begin
        softmax_q         <= op == systole_pkg::Softmax;
        parameter_words_o <= parameter_words_o + 8'(parameters);
        if (words > statistics_words_o) statistics_words_o <= words;
        if (writes != '0) writes_statistics_o <= 1'b1;
        if (op == systole_pkg::Transpose) transposes_o <= 1'b1;
        if (operand == systole_pkg::Tensor) begin
          tensors_o <= tensors_o + 4'd1;
          for (int unsigned t = 0; t < Tensors; t++) begin
            if (tensors_o == 4'(t)) tensor_bytes_o[2*t+:2] <= type_bytes(element);
          end
        end
      end
    end
  end

endmodule
