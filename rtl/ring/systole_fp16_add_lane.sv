// Sum or difference of two halves (IEEE 754 binary16), rounded to nearest even, in eleven register
// stages: operands; larger first; significands; distance; aligned by eights; aligned; sum; leading
// zeros; normalised; rounded; packed. Subnormals count in full and every NaN is 0x7e00. No valid
// bits: the user carries them, and enable_i low holds all stages.
// Bit-exact reference: hw::half_add and hw::half_sub of hw/number/half.h.

module systole_fp16_add_lane (
  input  logic        clk_i,
  input  logic        enable_i,
  input  logic        subtract_i,  // a - b
  input  logic [15:0] a_i,
  input  logic [15:0] b_i,
  output logic [15:0] data_o
);

  localparam logic [14:0] Infinity = 15'(systole_pkg::HalfInfinity);
  localparam logic [15:0] Nan      = 16'(systole_pkg::HalfNan);

  // ---------------------------------------------------------------- operands, larger first
  logic [15:0] a_q, b_q, large_q, small_q;
  logic        swap, opposite;
  logic [1:0]  class_q;     // NaN, infinity

  assign swap     = b_q[14:0] > a_q[14:0];
  assign opposite = a_q[15] != b_q[15];

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      a_q        <= a_i;
      b_q        <= {b_i[15] ^ subtract_i, b_i[14:0]};
      large_q    <= swap ? b_q : a_q;
      small_q    <= swap ? a_q : b_q;
      class_q[1] <= a_q[14:0] > Infinity || b_q[14:0] > Infinity ||
                    (opposite && a_q[14:0] == Infinity && b_q[14:0] == Infinity);
      class_q[0] <= a_q[14:0] == Infinity || b_q[14:0] == Infinity;
    end
  end

  // ---------------------------------------------------------------- significands, distance
  logic [10:0] large_significand_q, small_significand_q, distance_significand_q;
  logic [4:0]  large_exponent_q, small_exponent_q, distance_q;
  logic        sign_q, subtract_q;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      large_significand_q    <= {large_q[14:10] != '0, large_q[9:0]};
      small_significand_q    <= {small_q[14:10] != '0, small_q[9:0]};
      large_exponent_q       <= large_q[14:10] + 5'(large_q[14:10] == '0);
      small_exponent_q       <= small_q[14:10] + 5'(small_q[14:10] == '0);
      sign_q                 <= large_q[15];
      subtract_q             <= large_q[15] != small_q[15];
      distance_significand_q <= small_significand_q;
      distance_q             <= large_exponent_q - small_exponent_q;
    end
  end

  // ---------------------------------------------------------------- aligned
  // Three bits below the last place are enough; the lowest says whether anything is below.
  logic [13:0] coarse_q, aligned_q;
  logic [2:0]  rest_q;
  logic [13:0] fine;
  logic [20:0] fine_wide;

  assign fine_wide = {coarse_q, 7'b0} >> rest_q;
  assign fine      = {fine_wide[20:8], fine_wide[7:0] != '0};

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      unique case (distance_q[4:3])
        2'd0:    coarse_q <= {distance_significand_q, 3'b0};
        2'd1:    coarse_q <= {8'b0, distance_significand_q[10:6],
                              distance_significand_q[5:0] != '0};
        default: coarse_q <= {13'b0, distance_significand_q != '0};
      endcase
      rest_q    <= distance_q[2:0];
      aligned_q <= fine;
    end
  end

  // ---------------------------------------------------------------- sum, leading zeros
  logic [10:0] sum_significand;
  logic [4:0]  exponent;     // of the larger one, beside the sum
  logic        sum_subtract;
  logic [14:0] sum_q, counted_q;
  logic [3:0]  zeros, shift, shift_q;
  logic [4:0]  exponent_q;   // less one: that of a normal's hidden bit is added with it

  systole_delay_line #(.Width(11), .Depth(3)) u_significand (
    .clk_i,
    .enable_i,
    .data_i(large_significand_q),
    .data_o(sum_significand)
  );

  systole_delay_line #(.Width(1), .Depth(3)) u_subtract (
    .clk_i,
    .enable_i,
    .data_i(subtract_q),
    .data_o(sum_subtract)
  );

  systole_delay_line #(.Width(5), .Depth(4)) u_exponent (
    .clk_i,
    .enable_i,
    .data_i(large_exponent_q),
    .data_o(exponent)
  );

  systole_leading_zeros #(.Width(16)) u_zeros (
    .data_i ({sum_q, 1'b0}),
    .count_o(zeros)
  );

  // Not beyond the exponent of a subnormal.
  assign shift = exponent < 5'(zeros) ? exponent[3:0] : zeros;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      sum_q      <= sum_subtract ? {1'b0, sum_significand, 3'b0} - 15'(aligned_q)
                                 : {1'b0, sum_significand, 3'b0} + 15'(aligned_q);
      counted_q  <= sum_q;
      shift_q    <= shift;
      exponent_q <= sum_q == '0 ? '0 : exponent - 5'(shift);
    end
  end

  // ---------------------------------------------------------------- normalised, rounded, packed
  logic [14:0] normal_q;
  logic [4:0]  normal_exponent_q;
  logic        up, zero_q, packed_zero_q;
  logic [15:0] rounded_q;
  logic        packed_sign, packed_subtract;
  logic [1:0]  packed_class;
  logic [14:0] magnitude;
  logic [15:0] data_q;

  systole_delay_line #(.Width(2), .Depth(7)) u_sign (
    .clk_i,
    .enable_i,
    .data_i({sign_q, subtract_q}),
    .data_o({packed_sign, packed_subtract})
  );

  systole_delay_line #(.Width(2), .Depth(8)) u_class (
    .clk_i,
    .enable_i,
    .data_i(class_q),
    .data_o(packed_class)
  );

  assign up        = normal_q[3] && (normal_q[4] || normal_q[2:0] != '0);
  assign magnitude = packed_class[0] || rounded_q >= 16'(Infinity) ? Infinity : rounded_q[14:0];

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      normal_q          <= counted_q << shift_q;
      normal_exponent_q <= exponent_q;
      zero_q            <= counted_q == '0;
      rounded_q         <= {1'b0, normal_exponent_q, 10'b0} + 16'(normal_q[14:4]) + 16'(up);
      packed_zero_q     <= zero_q;
      // What cancels is +0.
      data_q            <= packed_class[1] ? Nan
                           : {packed_sign && !(packed_zero_q && packed_subtract), magnitude};
    end
  end

  assign data_o = data_q;

endmodule
