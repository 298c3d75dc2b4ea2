// Values of two lanes, for every input of a reduced width: requantisation and the integer exponential are
// what their definitions say (hw/number/dyadic.h, hw/number/int_exp.h). Beats follow each other in every
// cycle, each with other inputs.
//
// A lane has no state but its pipeline, so what comes out `Depth` cycles after the first input depends on
// nothing else: the proof looks at that cycle, and takes the registers before it as they come.

module lane_values_rules #(
  parameter int unsigned Lane           = 0,  // requantise, exponential
  parameter int unsigned DataBits       = 8,
  parameter int unsigned MultiplierBits = 6
) (
  input logic                             clk_i,
  input logic signed [DataBits-1:0]       data_i,
  input logic signed [MultiplierBits-1:0] multiplier_i,
  input logic        [5:0]                shift_i
);

  localparam int unsigned Depth = Lane == 0 ? systole_pkg::RequantiseDepth : systole_pkg::ExpDepth;

  logic [7:0] cycle_q = '0;
  always_ff @(posedge clk_i) cycle_q <= cycle_q + 8'(32'(cycle_q) <= Depth);

  // What came in the first cycle, and constants: any, and then the same.
  logic signed [DataBits-1:0]       data_q;
  logic signed [MultiplierBits-1:0] multiplier_q;
  logic        [5:0]                shift_q;
  logic        [1:0]                rounding;
  logic signed [DataBits-1:0]       lo, hi;
  always_ff @(posedge clk_i) begin
    rounding <= rounding;
    lo       <= lo;
    hi       <= hi;
    if (cycle_q == '0) begin
      data_q       <= data_i;
      multiplier_q <= multiplier_i;
      shift_q      <= shift_i;
    end
  end

  localparam int unsigned Wide = 40;
  logic signed [31:0]     result;
  logic signed [Wide-1:0] expected;

  // Rounded by the definition: the floor of x / 2^shift, or of that and a half, but of two nearest ones
  // the even one.
  function automatic logic signed [Wide-1:0] rounded(input logic signed [Wide-1:0] x,
                                                     input logic [5:0] shift, input logic [1:0] how);
    logic signed [Wide-1:0] floor, rest, half;
    floor = x >>> shift;
    rest  = x - (floor <<< shift);
    half  = shift == '0 ? Wide'(1) : Wide'(1) <<< (shift - 6'd1);
    if (how == 2'd0) return floor + Wide'(rest >= half);
    if (how == 2'd1) return floor + Wide'(rest > half || (rest == half && floor[0]));
    return floor;
  endfunction

  function automatic logic signed [Wide-1:0] clamped(input logic signed [Wide-1:0] x);
    return x < Wide'(lo) ? Wide'(lo) : x > Wide'(hi) ? Wide'(hi) : x;
  endfunction

  if (Lane == 0) begin : gen_requantise
    systole_requantizer_lane #(.InWidth(DataBits)) u_dut (
      .clk_i, .enable_i(1'b1), .data_i, .multiplier_i(32'(multiplier_i)), .shift_i,
      .rounding_i(rounding), .lo_i(32'(lo)), .hi_i(32'(hi)), .data_o(result)
    );
    always_comb assume (shift_q <= 6'(DataBits + MultiplierBits));
    always_comb expected = clamped(rounded(Wide'(data_q) * Wide'(multiplier_q), shift_q, rounding));
  end else begin : gen_exp
    // Any number of steps per ln 2, and any polynomial.
    logic [4:0]        q_ln2;
    logic [5:0]        b, c;
    logic [29:0]       reciprocal;
    logic signed [8:0] magnitude, halvings, sum;
    always_ff @(posedge clk_i) begin
      q_ln2      <= q_ln2;
      b          <= b;
      c          <= c;
      reciprocal <= reciprocal;
    end
    systole_i_exp_lane #(.InWidth(17)) u_dut (
      .clk_i, .enable_i(1'b1), .data_i(17'(data_i)), .q_ln2_i(14'(q_ln2)), .reciprocal_i(reciprocal),
      .b_i(15'(b)), .c_i(29'(c)), .data_o(result)
    );
    always_comb begin
      assume (data_q <= 0);
      assume (q_ln2 != '0);
      // hw::int_exp_reciprocal
      assume (36'(reciprocal) * 36'(q_ln2) >= 36'h2000_0000 &&
              36'(reciprocal) * 36'(q_ln2) < 36'h2000_0000 + 36'(q_ln2));
      magnitude = -9'(data_q);
      halvings  = magnitude / 9'(q_ln2);
      sum       = 9'(b) - (magnitude - halvings * 9'(q_ln2));
      expected  = (Wide'(sum) * Wide'(sum) + Wide'(c)) >>> (halvings > 9'd31 ? 9'd31 : halvings);
    end
  end

  always_comb begin
    assume (rounding <= 2'd2 && lo <= hi);
    if (32'(cycle_q) == Depth) assert (Wide'(result) == expected);
  end

endmodule
