// One stage's micro-code: the words of a slot, and what they mean to its lanes. Reference:
// hw/postop/microcode.h for the words, hw/postop/stage.h for opcodes, operands and the order of
// immediates, hw/postop/postop_check.cpp for their ranges.

module systole_postop_micro_code (
  input  logic               clk_i,

  input  logic               write_i,
  input  logic        [3:0]  word_i,
  input  logic        [63:0] data_i,

  output logic               legal_o,           // lanes have what it takes
  output logic               streams_o,         // the operand comes over the stream
  output logic               uses_gelu_o,       // units that the element goes through, in order
  output logic               uses_scale_o,
  output logic               uses_sum_o,
  output logic               scales_operand_o,  // the operand is what is scaled
  output logic               by_operand_o,      // the operand is what scales
  output logic               by_channel_o,      // and the shift comes with it
  output logic        [7:0]  sum_o,             // what the last unit does: Add, Sub, Clamp or Mask
  output logic        [1:0]  rounding_o,        // hw::Rounding
  output logic signed [31:0] multiplier_o,
  output logic        [5:0]  shift_o,
  output logic signed [31:0] lo_o,
  output logic signed [31:0] hi_o,
  output logic signed [31:0] value_o,           // the operand, if it is immediate
  output logic signed [16:0] b_o,
  output logic signed [41:0] c_o,
  output logic signed [41:0] one_o
);

  localparam logic signed [63:0] Lowest   = -64'sd2147483648;
  localparam logic signed [63:0] Highest  = 64'sd2147483647;
  localparam logic signed [63:0] GeluClip = 64'sd65536;
  localparam logic signed [63:0] GeluTerm = 64'sd1099511627776;

  // Immediates 0 to 6; no stage here has one more.
  localparam int unsigned Imms = 7;

  logic        [7:0]  op_q, operand_q, rounding_q, side_q;
  logic signed [63:0] imm_q [Imms];

  always_ff @(posedge clk_i) begin
    if (write_i && word_i == 4'd0) begin
      op_q       <= data_i[7:0];
      operand_q  <= data_i[15:8];
      rounding_q <= data_i[23:16];
      side_q     <= data_i[39:32];
    end
    for (int unsigned i = 0; i < Imms; i++) begin
      if (write_i && word_i == 4'(i + 1)) imm_q[i] <= data_i;
    end
  end

  // What each immediate could be, by its value.
  logic [Imms-1:0] is_word, is_shift, is_term;
  logic [Imms-2:0] is_range;  // with the next one

  for (genvar i = 0; i < Imms; i++) begin : gen_imm
    assign is_word[i]  = imm_q[i] >= Lowest && imm_q[i] <= Highest;
    assign is_shift[i] = imm_q[i][63:6] == '0;
    assign is_term[i]  = imm_q[i] >= -GeluTerm && imm_q[i] <= GeluTerm;
  end
  for (genvar i = 0; i + 1 < Imms; i++) begin : gen_range
    assign is_range[i] = is_word[i] && is_word[i+1] && imm_q[i] <= imm_q[i+1];
  end

  // A tensor goes through the multiplier even as it is: its latency is that of the opcode.
  logic scaled, through_scale;
  assign scaled        = imm_q[0] != 0;
  assign through_scale = scaled || operand_q == systole_pkg::Tensor;

  logic fits;
  always_comb begin
    fits             = 1'b0;
    uses_gelu_o      = 1'b0;
    uses_scale_o     = 1'b0;
    uses_sum_o       = 1'b0;
    scales_operand_o = 1'b0;
    by_operand_o     = 1'b0;
    by_channel_o     = 1'b0;
    sum_o            = systole_pkg::Clamp;
    multiplier_o     = imm_q[0][31:0];
    shift_o          = imm_q[1][5:0];
    lo_o             = imm_q[2][31:0];
    hi_o             = imm_q[3][31:0];
    value_o          = imm_q[4][31:0];
    case (op_q)
      systole_pkg::Add, systole_pkg::Sub: begin
        fits             = operand_q <= systole_pkg::Saved && is_word[4] &&
                           (!scaled || (is_word[0] && is_shift[1] && is_range[2]));
        uses_scale_o     = through_scale;
        uses_sum_o       = 1'b1;
        scales_operand_o = 1'b1;
        sum_o            = op_q;
        if (!scaled) begin
          multiplier_o = 32'sd1;
          shift_o      = '0;
          lo_o         = Lowest[31:0];
          hi_o         = Highest[31:0];
        end
      end
      systole_pkg::Requantise: begin
        fits         = (operand_q == systole_pkg::Immediate || operand_q == systole_pkg::Channel) &&
                       is_word[0] && is_shift[1] && is_range[2];
        uses_scale_o = 1'b1;
        by_operand_o = operand_q == systole_pkg::Channel;
        by_channel_o = operand_q == systole_pkg::Channel;
      end
      systole_pkg::Mul: begin
        fits         = operand_q <= systole_pkg::Saved && is_shift[0] &&
                       is_range[1] && is_word[3];
        uses_scale_o = 1'b1;
        by_operand_o = 1'b1;
        shift_o      = imm_q[0][5:0];
        lo_o         = imm_q[1][31:0];
        hi_o         = imm_q[2][31:0];
        value_o      = imm_q[3][31:0];
      end
      systole_pkg::DivideRowSum: begin  // its operand is the reciprocal
        fits         = operand_q == systole_pkg::Row;
        uses_scale_o = 1'b1;
        by_operand_o = 1'b1;
        shift_o      = 6'(systole_pkg::DeferredReciprocalBits - systole_pkg::DeferredFractionBits);
        lo_o         = Lowest[31:0];
        hi_o         = Highest[31:0];
      end
      systole_pkg::Clamp: begin
        fits       = operand_q == systole_pkg::Immediate && is_range[0];
        uses_sum_o = 1'b1;
        lo_o       = imm_q[0][31:0];
        hi_o       = imm_q[1][31:0];
      end
      systole_pkg::Relu: begin
        fits       = operand_q == systole_pkg::Immediate;
        uses_sum_o = 1'b1;
        lo_o       = '0;
        hi_o       = Highest[31:0];
      end
      systole_pkg::Mask: begin
        fits       = operand_q >= systole_pkg::Channel && operand_q <= systole_pkg::Tensor &&
                     is_word[0];
        uses_sum_o = 1'b1;
        sum_o      = systole_pkg::Mask;
        lo_o       = imm_q[0][31:0];
      end
      systole_pkg::Gelu: begin
        fits         = operand_q == systole_pkg::Immediate &&
                       imm_q[0] >= -GeluClip && imm_q[0] <= 0 && is_term[1] &&
                       is_term[2] && is_word[3] && is_shift[4] && is_range[5];
        uses_gelu_o  = 1'b1;
        uses_scale_o = 1'b1;
        multiplier_o = imm_q[3][31:0];
        shift_o      = imm_q[4][5:0];
        lo_o         = imm_q[5][31:0];
        hi_o         = imm_q[6][31:0];
      end
      default: ;
    endcase
  end

  // GELU and the division round in one way, whatever their micro-code says.
  assign rounding_o = uses_gelu_o || op_q == systole_pkg::DivideRowSum ? systole_pkg::HalfUp
                                                                       : rounding_q[1:0];
  assign b_o        = imm_q[0][16:0];
  assign c_o        = imm_q[1][41:0];
  assign one_o      = imm_q[2][41:0];
  assign streams_o  = operand_q != systole_pkg::Immediate;
  assign legal_o    = fits && rounding_q <= 8'(systole_pkg::Floor) && side_q == '0;

endmodule
