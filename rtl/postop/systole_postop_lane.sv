// A lane of a slot of the post-op pipeline, without flow control. An element goes through the units
// that its stage uses: the product of GELU 8, the requantiser 5, the sum 1.
// Bit-exact reference: a stage of hw::apply_chain (hw/postop/postop.h).
//
// All but element, operand and shift is quasi-static; units have their own enables, so that
// those that a stage does not use do not toggle.

module systole_postop_lane (
  input  logic               clk_i,
  input  logic               gelu_enable_i,
  input  logic               scale_enable_i,
  input  logic               sum_enable_i,

  input  logic signed [31:0] data_i,
  input  logic signed [31:0] operand_i,  // from the stream
  input  logic        [5:0]  shift_i,    // the second word of a channel

  // Of rtl/postop/systole_postop_micro_code.sv.
  input  logic               streams_i,
  input  logic               uses_gelu_i,
  input  logic               uses_scale_i,
  input  logic               uses_sum_i,
  input  logic               scales_operand_i,
  input  logic               by_operand_i,
  input  logic               by_channel_i,
  input  logic        [7:0]  sum_i,           // systole_pkg::stage_op_e
  input  logic        [1:0]  rounding_i,
  input  logic signed [31:0] multiplier_i,
  input  logic        [5:0]  shift_const_i,
  input  logic signed [31:0] lo_i,  // of the requantiser, the limits, or what a mask puts in
  input  logic signed [31:0] hi_i,
  input  logic signed [31:0] value_i,
  input  logic signed [16:0] b_i,
  input  logic signed [41:0] c_i,
  input  logic signed [41:0] one_i,

  output logic signed [31:0] data_o
);

  localparam int unsigned ProductWidth    = 59;
  localparam int unsigned ScaledWidth     = 64;


  logic signed [31:0] operand;

  assign operand = streams_i ? operand_i : value_i;

  // ---------------------------------------------------------------------------- GELU's product
  logic signed [ProductWidth-1:0] product;

  systole_i_gelu_product u_gelu (
    .clk_i,
    .enable_i (gelu_enable_i),
    .data_i,
    .b_i,
    .c_i,
    .one_i,
    .product_o(product)
  );

  // ---------------------------------------------------------------------------- requantiser
  logic signed [ProductWidth-1:0] to_scale;
  logic signed [31:0]             element, multiplier, scaled;
  logic        [5:0]              shift;

  assign element  = scales_operand_i ? operand : data_i;
  assign to_scale = uses_gelu_i ? product : ProductWidth'(element);
  assign shift    = by_channel_i ? shift_i : shift_const_i;

  // Channels have symmetric multipliers.
  always_comb begin
    if (!by_operand_i) begin
      multiplier = multiplier_i;
    end else if (by_channel_i && operand == 32'sh8000_0000) begin
      multiplier = 32'sh8000_0001;
    end else begin
      multiplier = operand;
    end
  end

  systole_requantizer_lane #(.InWidth(ProductWidth), .ScaledWidth(ScaledWidth)) u_scale (
    .clk_i,
    .enable_i    (scale_enable_i),
    .data_i      (to_scale),
    .multiplier_i(multiplier),
    .shift_i     (shift),
    .rounding_i,
    .lo_i,
    .hi_i,
    .data_o      (scaled)
  );

  // ---------------------------------------------------------------------------- sum
  // The element waits for its scaled operand.
  logic signed [31:0] waited, left, right, sum_d, sum_q;
  logic signed [32:0] total;

  systole_delay_line #(.Width(32), .Depth(systole_pkg::RequantiseDepth)) u_wait (
    .clk_i,
    .enable_i(scale_enable_i && scales_operand_i),
    .data_i  (data_i),
    .data_o  (waited)
  );

  assign left  = uses_scale_i ? waited : data_i;
  assign right = uses_scale_i ? scaled : operand;
  assign total = sum_i == systole_pkg::Sub ? 33'(left) - 33'(right) : 33'(left) + 33'(right);

  always_comb begin
    case (sum_i)
      systole_pkg::Add, systole_pkg::Sub: begin
        sum_d = total[32] == total[31] ? total[31:0] : {total[32], {31{!total[32]}}};
      end
      systole_pkg::Clamp: begin
        if (left < lo_i) begin
          sum_d = lo_i;
        end else if (left > hi_i) begin
          sum_d = hi_i;
        end else begin
          sum_d = left;
        end
      end
      default: begin  // a mask
        sum_d = right != 0 ? left : lo_i;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (sum_enable_i) sum_q <= sum_d;
  end

  assign data_o = uses_sum_i ? sum_q : scaled;

endmodule
