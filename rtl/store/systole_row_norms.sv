// What a LayerNorm of parts of rows needs of each: its mean, and 2^31 over the root of its sum of
// squares about that, both from the sum and the sum of squares in the row statistics. Values:
// hw::layernorm_statistics_from_sums() of hw/function/layernorm.h. Cycles: hw::RowFactors of
// hw/postop/row_flow.h.
//
// Three serial units work ahead of the rows: one divides for the mean, then the squares about it are
// known; one takes the root; one divides by that. Each keeps what it has until the next one is free.

`include "systole_assert.svh"

module systole_row_norms #(
  parameter  int unsigned Words     = 64,  // of the statistics
  parameter  int unsigned CountBits = 24,
  localparam int unsigned WordBits  = Words > 1 ? $clog2(Words) : 1,
  localparam int unsigned InWidth   = systole_pkg::LayerNormInputBits
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // of a command, held from its start on
  input  logic                 start_i,
  input  logic                 wanted_i,     // its chain has such a stage
  input  logic [16:0]          length_i,     // of the whole row, at least 1
  input  logic [WordBits-1:0]  statistics_i, // of its first row
  input  logic [CountBits-1:0] rows_i,
  input  logic [CountBits-1:0] vectors_i,    // of a row

  output logic                 read_o,
  output logic [WordBits-1:0]  read_at_o,
  input  logic [127:0]         data_i,

  // of the row whose vectors come
  output logic                 valid_o,
  output logic [InWidth-1:0]   mean_o,       // in excess 2^23
  output logic [31:0]          factor_o,
  input  logic                 take_i        // a vector takes it
);

  localparam int unsigned FactorBits  = systole_pkg::LayerNormFactorBits;
  localparam int unsigned RowSumBits  = InWidth + 16;   // of a row of 2^16
  localparam int unsigned MeanDigits  = InWidth / 2;
  localparam int unsigned Digits      = 16;             // of root and reciprocal
  localparam int unsigned DividendBits = InWidth + 20;
  localparam int unsigned DivisorBits = 18;
  // Ages of what a unit has, in cycles.
  localparam int unsigned AgeBits     = 5;
  localparam int unsigned Read        = 0;
  localparam int unsigned Load        = 1;
  localparam int unsigned Divide      = 2;
  localparam int unsigned Divided     = Divide + MeanDigits;
  localparam int unsigned Multiply    = Divided + 1;
  localparam int unsigned Multiplied  = Multiply + systole_pkg::MultiplyDepth;
  localparam int unsigned Squared     = Multiplied + 1 + systole_pkg::MultiplyDepth;

  // ---------------------------------------------------------------- rows through three units
  logic               mean_busy_q, root_busy_q, factor_busy_q;
  logic [AgeBits-1:0] mean_age_q, root_age_q, factor_age_q;
  logic               mean_moves, root_moves, factor_moves, row_end;
  logic [CountBits-1:0] rows_q, left_q;      // rows to come; vectors of the row

  assign row_end      = take_i && left_q == CountBits'(1);
  assign factor_moves = factor_busy_q && 32'(factor_age_q) == Digits && (!valid_o || row_end);
  assign root_moves   = root_busy_q && 32'(root_age_q) == Digits && (!factor_busy_q || factor_moves);
  assign mean_moves   = mean_busy_q && 32'(mean_age_q) == Squared && (!root_busy_q || root_moves);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mean_busy_q   <= 1'b0;
      root_busy_q   <= 1'b0;
      factor_busy_q <= 1'b0;
      valid_o       <= 1'b0;
    end else begin
      mean_busy_q   <= (start_i && wanted_i) || (mean_busy_q && !(mean_moves && rows_q == '0));
      root_busy_q   <= mean_moves || (root_busy_q && !root_moves);
      factor_busy_q <= root_moves || (factor_busy_q && !factor_moves);
      valid_o       <= factor_moves || (valid_o && !row_end);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i || mean_moves) begin
      mean_age_q <= '0;
    end else if (32'(mean_age_q) != Squared) begin
      mean_age_q <= mean_age_q + AgeBits'(1);
    end
    if (mean_moves) begin
      root_age_q <= '0;
    end else if (32'(root_age_q) != Digits) begin
      root_age_q <= root_age_q + AgeBits'(1);
    end
    if (root_moves) begin
      factor_age_q <= '0;
    end else if (32'(factor_age_q) != Digits) begin
      factor_age_q <= factor_age_q + AgeBits'(1);
    end
    if (start_i) begin
      read_at_o <= statistics_i;
      rows_q    <= rows_i - CountBits'(1);
      left_q    <= vectors_i;
    end else begin
      if (read_o) read_at_o <= read_at_o + WordBits'(4);
      if (mean_moves) rows_q <= rows_q - CountBits'(1);
      if (take_i) left_q <= row_end ? vectors_i : left_q - CountBits'(1);
    end
  end

  // ---------------------------------------------------------------- mean
  // (2 sum + n) / 2n, rounded down. In excess 2^23 the dividend of a row is positive.
  logic signed [63:0]             sum;
  logic signed [RowSumBits-1:0]   total_d, total_q;
  logic signed [DividendBits-1:0] dividend_d;
  logic [DividendBits-1:0]        dividend_q;
  logic                           below, above_d, above_q, unused_mean_done;
  logic [63:0]                    squares_q;
  logic [2*MeanDigits-1:0]        quotient;
  logic [InWidth-1:0]             mean_q;

  assign read_o     = mean_busy_q && 32'(mean_age_q) == Read;
  assign sum        = signed'(data_i[63:0]);
  assign total_d    = &sum[63:RowSumBits-1] || ~|sum[63:RowSumBits-1]
                      ? sum[RowSumBits-1:0] : {sum[63], {(RowSumBits - 1){!sum[63]}}};
  assign dividend_d = (DividendBits'(total_d) <<< 1) + signed'(DividendBits'(length_i)) +
                      signed'(DividendBits'({length_i, {InWidth{1'b0}}}));
  assign below      = dividend_d < 0;    // than that of a row: its mean is the least
  assign above_d    = !below && DividendBits'(dividend_d) >=
                                  DividendBits'({length_i, {(InWidth + 1){1'b0}}});

  systole_serial_divider #(.DivisorWidth(DivisorBits), .Digits(MeanDigits)) u_mean (
    .clk_i, .rst_ni,
    .enable_i  (1'b1),
    .start_i   (mean_busy_q && 32'(mean_age_q) == Divide),
    .digits_i  (4'(MeanDigits)),
    .high_i    (DivisorBits'(dividend_q >> InWidth)),
    .low_i     (dividend_q[InWidth-1:0]),
    .divisor_i ({length_i, 1'b0}),
    .done_o    (unused_mean_done),
    .quotient_o(quotient)
  );

  always_ff @(posedge clk_i) begin
    if (32'(mean_age_q) == Load) begin
      total_q    <= total_d;
      squares_q  <= data_i[127:64];
      above_q    <= above_d;
      dividend_q <= below || above_d ? '0 : DividendBits'(dividend_d);
    end
    if (32'(mean_age_q) == Divided) mean_q <= above_q ? '1 : quotient;
  end

  // ---------------------------------------------------------------- squares about the mean
  // sum x^2 + mean (n mean - 2 sum x), modulo 2^64; below 0 only for words that are of no row.
  localparam int unsigned ProductBits = InWidth + 18;

  logic signed [InWidth-1:0]     mean;
  logic signed [ProductBits-1:0] times;
  logic signed [ProductBits:0]   difference_q;
  logic signed [63:0]            correction, centred;

  assign mean    = signed'({!mean_q[InWidth-1], mean_q[InWidth-2:0]});
  assign centred = signed'(squares_q) + correction;

  systole_mul_pipe #(.AWidth(InWidth), .BWidth(DivisorBits)) u_times (
    .clk_i,
    .enable_i (1'b1),
    .a_i      (mean),
    .b_i      (signed'({1'b0, length_i})),
    .product_o(times)
  );
  systole_mul_pipe #(.AWidth(InWidth), .BWidth(ProductBits + 1), .ProductWidth(64)) u_correction (
    .clk_i,
    .enable_i (1'b1),
    .a_i      (mean),
    .b_i      (difference_q),
    .product_o(correction)
  );
  always_ff @(posedge clk_i) begin
    difference_q <= (ProductBits+1)'(times) - ((ProductBits+1)'(total_q) <<< 1);
  end

  // ---------------------------------------------------------------- root
  logic [63:0]        radicand_q;
  logic [InWidth-1:0] root_mean_q, factor_mean_q;
  logic [31:0]        root, deviation_q, reciprocal;
  logic               unused_busy, unused_root_done, unused_done;

  always_ff @(posedge clk_i) begin
    if (mean_moves) begin
      radicand_q  <= centred < 0 ? '0 : centred;
      root_mean_q <= mean_q;
    end
    if (root_moves) begin
      deviation_q   <= root == '0 ? 32'd1 : root;
      factor_mean_q <= root_mean_q;
    end
    if (factor_moves) begin
      factor_o <= reciprocal;
      mean_o   <= factor_mean_q;
    end
  end

  systole_serial_sqrt #(.Width(64)) u_root (
    .clk_i, .rst_ni,
    .enable_i  (1'b1),
    .start_i   (root_busy_q && root_age_q == '0),
    .radicand_i(radicand_q),
    .busy_o    (unused_busy),
    .done_o    (unused_root_done),
    .root_o    (root)
  );

  // ---------------------------------------------------------------- its reciprocal
  systole_serial_divider #(.DivisorWidth(32), .Digits(Digits)) u_factor (
    .clk_i, .rst_ni,
    .enable_i  (1'b1),
    .start_i   (factor_busy_q && factor_age_q == '0),
    .digits_i  (5'(Digits)),
    .high_i    ('0),
    .low_i     (32'd1 << FactorBits),
    .divisor_i (deviation_q),
    .done_o    (unused_done),
    .quotient_o(reciprocal)
  );

  `SYSTOLE_ASSERT(StartedIdle_A,
                  start_i |-> !(mean_busy_q || root_busy_q || factor_busy_q || valid_o))
  `SYSTOLE_ASSERT(TakenValid_A, take_i |-> valid_o)
  `SYSTOLE_ASSERT(LengthKnown_A, read_o |-> length_i != '0)

endmodule
