// The load unit's expander of weights in groups: a run of memory, scales, minima and codes of 32 rows
// of an output each, becomes 32 rows of int8. A run comes in by words while the one before is
// expanded; once it is there as a whole it begins with `start_i`, and a row takes a cycle for every
// `Lanes` of its columns. Two stages: product or shift; sum or rounding, and clamp.
// Bit-exact reference: hw::expanded_weight of hw/number/weight_groups.h. Cycles:
// hw::expansion_cycles.

`include "systole_assert.svh"

module systole_weight_expander #(
  parameter int unsigned Lanes   = 4,
  parameter int unsigned MaxCols = 32,
  localparam int unsigned Bytes  = 34 * MaxCols,
  localparam int unsigned AddressBits = $clog2(Bytes),
  localparam int unsigned ColBits     = $clog2(MaxCols + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // the run that comes next, a word of eight bytes at a time
  input  logic                   write_i,
  input  logic [AddressBits-1:0] address_i,  // of its first byte
  input  logic [63:0]            data_i,

  // that run is there
  input  logic                   start_i,
  output logic                   ready_o,
  input  logic [1:0]             format_i,   // hw::WeightFormat, 1 to 3
  input  logic [ColBits-1:0]     cols_i,     // 1 to MaxCols

  output logic                   valid_o,
  output logic [4:0]             row_o,
  output logic [ColBits-1:0]     col_o,      // of lane 0
  output logic [Lanes-1:0]       mask_o,     // lanes with a column
  output logic [Lanes*8-1:0]     data_o      // signed, lane 0 in the low bits
);

  localparam logic [1:0] Groups = 2'd1, MxInt8 = 2'd2;
  localparam int unsigned WordBytes = 8;
  // Of E8M0, and the fraction bits of the elements: a code counts as a whole number.
  localparam logic signed [9:0] Int8Bias = 10'sd133, Fp4Bias = 10'sd128;

  // ---------------------------------------------------------------- two runs
  logic [7:0] run_q [2][Bytes];
  logic       half_q;  // that is expanded; the other one is written

  always_ff @(posedge clk_i) begin
    if (write_i) begin
      for (int unsigned i = 0; i < WordBytes; i++) begin
        if (32'(address_i) + i < Bytes) run_q[!half_q][32'(address_i)+i] <= data_i[8*i+:8];
      end
    end
  end

  // ---------------------------------------------------------------- rows and columns
  logic               busy_q, last;
  logic [1:0]         format_q;
  logic [ColBits-1:0] cols_q, col_q;
  logic [4:0]         row_q;
  logic               end_of_row;

  assign end_of_row = 32'(col_q) + Lanes >= 32'(cols_q);
  assign last       = end_of_row && row_q == '1;
  assign ready_o    = !busy_q || last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      half_q <= 1'b0;
    end else if (start_i && ready_o) begin
      busy_q <= 1'b1;
      half_q <= !half_q;
    end else if (last) begin
      busy_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i && ready_o) begin
      format_q <= format_i;
      cols_q   <= cols_i;
      col_q    <= '0;
      row_q    <= '0;
    end else if (busy_q) begin
      col_q <= end_of_row ? '0 : ColBits'(32'(col_q) + Lanes);
      if (end_of_row) row_q <= row_q + 5'd1;
    end
  end

  // ---------------------------------------------------------------- where the codes are
  logic [31:0] row_bytes, codes;
  assign row_bytes = format_q == MxInt8 ? 32'(cols_q) : (32'(cols_q) + 32'd1) >> 1;
  assign codes     = (format_q == Groups ? 32'(cols_q) << 1 : 32'(cols_q)) +
                     32'(row_q) * row_bytes;

  logic                   valid_q;
  logic [4:0]             row_1q;
  logic [ColBits-1:0]     col_1q;
  logic [Lanes-1:0]       mask, mask_1q;

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [31:0]            column;
    logic [AddressBits-1:0] place;
    logic [7:0]        scale, minimum, both, code;
    logic [3:0]        half;
    logic signed [7:0] element;
    logic signed [9:0] exponent;
    logic [3:0]        right;
    logic [2:0]        left;
    logic [16:0]       shifted;
    logic [7:0]        product;
    logic signed [15:0] whole, whole_q;
    logic [8:0]        rest, rest_q;
    logic signed [7:0] minimum_q;
    logic signed [16:0] sum;

    // ---------------------------------------------------------------- product or shift
    assign column  = 32'(col_q) + l;
    assign mask[l] = column < 32'(cols_q);
    assign place   = AddressBits'(codes + (format_q == MxInt8 ? column : column >> 1));
    assign scale   = mask[l] ? run_q[half_q][AddressBits'(column)] : '0;
    assign minimum = mask[l] ? run_q[half_q][AddressBits'(32'(cols_q)+column)] : '0;
    assign both    = mask[l] ? run_q[half_q][place] : '0;
    assign half    = column[0] ? both[7:4] : both[3:0];
    assign code    = format_q == MxInt8 ? both : 8'(half);
    assign product = 8'((12'(half) * 12'(scale) + 12'd8) >> 4);

    always_comb begin
      // Twice the magnitude of E2M1.
      unique case (code[2:0])
        3'd0: element = 8'sd0;
        3'd1: element = 8'sd1;
        3'd2: element = 8'sd2;
        3'd3: element = 8'sd3;
        3'd4: element = 8'sd4;
        3'd5: element = 8'sd6;
        3'd6: element = 8'sd8;
        3'd7: element = 8'sd12;
      endcase
      if (code[3]) element = -element;
      if (format_q == MxInt8) element = signed'(code);
    end

    assign exponent = signed'({2'b0, scale}) - (format_q == MxInt8 ? Int8Bias : Fp4Bias);
    // Further than this nothing changes: all is zero, or all but zero saturates.
    assign right    = exponent >= 0 ? 4'd0 : exponent < -9 ? 4'd9 : 4'(-exponent);
    assign left     = exponent <= 0 ? 3'd0 : exponent > 7 ? 3'd7 : 3'(exponent);
    assign shifted  = 17'(signed'({element, 9'b0}) >>> right);

    assign whole = format_q == Groups ? 16'(product) :
                                        16'(signed'(shifted[16:9])) <<< left;
    assign rest  = format_q == Groups ? '0 : shifted[8:0];

    always_ff @(posedge clk_i) begin
      whole_q   <= whole;
      rest_q    <= rest;
      minimum_q <= format_q == Groups ? signed'(minimum) : 8'sd0;
    end

    // ---------------------------------------------------------------- sum or rounding, clamp
    logic up;
    assign up  = rest_q > 9'd256 || (rest_q == 9'd256 && whole_q[0]);
    assign sum = 17'(whole_q) + 17'(minimum_q) + signed'({16'b0, up});

    always_ff @(posedge clk_i) begin
      // A lane without a column has a code and a scale of 0.
      data_o[8*l+:8] <= sum > 17'sd127 ? 8'd127 :
                        sum < -17'sd127 ? 8'h81 : sum[7:0];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= busy_q;
      valid_o <= valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    row_1q  <= row_q;
    col_1q  <= col_q;
    mask_1q <= mask;
    row_o   <= row_1q;
    col_o   <= col_1q;
    mask_o  <= mask_1q;
  end

  `SYSTOLE_ASSERT_INIT(LanesUsable_A, Lanes >= 1 && Lanes <= MaxCols)
  `SYSTOLE_ASSERT(FormatKnown_A, start_i |-> (format_i != 2'd0))
  `SYSTOLE_ASSERT(ColumnsFit_A, start_i |-> (cols_i != '0 && 32'(cols_i) <= MaxCols))
  `SYSTOLE_ASSERT(StartTaken_A, start_i |-> ready_o)

endmodule
