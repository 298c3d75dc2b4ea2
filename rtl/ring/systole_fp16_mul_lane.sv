// Product of two halves (IEEE 754 binary16), rounded to nearest even, in six register stages:
// operands; significands; product; leading zeros; normalised; rounded. Subnormals count in full and
// every NaN is 0x7e00. No valid bits: the user carries them, and enable_i low holds all stages.
// Bit-exact reference: hw::half_mul of hw/number/half.h.

module systole_fp16_mul_lane (
  input  logic        clk_i,
  input  logic        enable_i,
  input  logic [15:0] a_i,
  input  logic [15:0] b_i,
  output logic [15:0] data_o
);

  localparam logic [14:0] Infinity = 15'(systole_pkg::HalfInfinity);
  localparam logic [15:0] Nan      = 16'(systole_pkg::HalfNan);

  // ---------------------------------------------------------------- operands, significands
  logic [15:0] a_q, b_q;
  logic        a_zero, b_zero, nan, infinite;
  logic [10:0] a_significand_q, b_significand_q;
  logic [5:0]  exponents_q;    // sum of both, a subnormal's is 1
  logic [2:0]  class_q;        // sign, NaN, infinity

  assign a_zero   = a_q[14:0] == '0;
  assign b_zero   = b_q[14:0] == '0;
  assign nan      = a_q[14:0] > Infinity || b_q[14:0] > Infinity ||
                    (a_q[14:0] == Infinity && b_zero) || (b_q[14:0] == Infinity && a_zero);
  assign infinite = a_q[14:0] == Infinity || b_q[14:0] == Infinity;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      a_q             <= a_i;
      b_q             <= b_i;
      a_significand_q <= {a_q[14:10] != '0, a_q[9:0]};
      b_significand_q <= {b_q[14:10] != '0, b_q[9:0]};
      exponents_q     <= 6'(a_q[14:10]) + 6'(a_q[14:10] == '0) +
                         6'(b_q[14:10]) + 6'(b_q[14:10] == '0);
      class_q         <= {a_q[15] ^ b_q[15], nan, infinite};
    end
  end

  // ---------------------------------------------------------------- product, leading zeros
  logic [21:0] product_q, counted_q;
  logic [5:0]  product_exponents_q;
  logic [4:0]  zeros;            // before the product's first one, 31 of none
  logic signed [6:0] limit;      // the shift that leads to the exponent of a subnormal
  logic signed [6:0] shift, shift_q;
  logic [5:0]  exponent_q;       // less one: that of a normal's hidden bit is added with it

  systole_leading_zeros #(.Width(32)) u_zeros (
    .data_i ({product_q, 10'b0}),
    .count_o(zeros)
  );

  // A product of zero has an operand of exponent 1, so its limit is at most 16: below its zeros.
  assign limit = signed'({1'b0, product_exponents_q}) - 7'sd15;
  assign shift = limit < signed'({2'b0, zeros}) ? limit : signed'({2'b0, zeros});

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      product_q           <= 22'(a_significand_q) * 22'(b_significand_q);
      product_exponents_q <= exponents_q;
      counted_q           <= product_q;
      shift_q             <= shift;
      exponent_q          <= 6'(limit - shift);
    end
  end

  // ---------------------------------------------------------------- normalised, rounded
  // The product moves left, or right by up to 13 places into the bits below.
  logic [5:0]  places;
  logic [34:0] normal, normal_q;
  logic [5:0]  normal_exponent_q;
  logic [2:0]  normal_class;     // of the product that is normalised now
  logic        up;
  logic [15:0] rounded;
  logic [14:0] magnitude;
  logic [15:0] data_q;

  assign places = 6'(shift_q + 7'sd13);
  assign normal = 35'(counted_q) << places;

  assign up        = normal_q[23] && (normal_q[24] || normal_q[22:0] != '0);
  assign rounded   = {normal_exponent_q, 10'b0} + 16'(normal_q[34:24]) + 16'(up);
  assign magnitude = normal_class[0] || rounded >= 16'(Infinity) ? Infinity : rounded[14:0];

  systole_delay_line #(.Width(3), .Depth(3)) u_class (
    .clk_i,
    .enable_i,
    .data_i(class_q),
    .data_o(normal_class)
  );

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      normal_q          <= normal;
      normal_exponent_q <= exponent_q;
      data_q            <= normal_class[1] ? Nan : {normal_class[2], magnitude};
    end
  end

  assign data_o = data_q;

endmodule
