// Integer LayerNorm of rows of 32-bit values saturated to s24, `Lanes` elements a beat: the
// layer_norm stage of the post-op chain. Bit-exact reference: StageOp::kLayerNorm of
// hw::apply_chain (hw/postop/postop.h, hw/function/layernorm.h); cycles: hw::chain_cycles of that
// stage.
//
// Passes over a row (rtl/common/systole_row_sequencer.sv): A sums, B sums the squares of the
// deviations from the mean, C gives the output. One divider forms the mean while the interval of
// pass A goes on, then the reciprocal of the root that serial_sqrt has taken of the sum of squares;
// the interval is long enough for both.

`include "systole_assert.svh"

module systole_layernorm_unit #(
  parameter  int unsigned Lanes    = 4,
  localparam int unsigned MaxCols  = systole_pkg::MaxCols,
  localparam int unsigned ColWidth = $clog2(MaxCols + 1),
  localparam int unsigned RowWidth = 32
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Quasi-static: hold from the first beat to the last output.
  input  logic [RowWidth-1:0]    rows_i,
  input  logic [ColWidth-1:0]    cols_i,
  input  logic [4:0]             fraction_bits_i,  // 1 .. 30
  input  logic [5:0]             shift_i,          // 0 .. 62
  input  logic [31:0]            lo_i,             // signed
  input  logic [31:0]            hi_i,             // signed, not below lo_i

  input  logic                   valid_i,
  output logic                   ready_o,
  input  logic [Lanes*32-1:0]    data_i,           // signed, lane 0 in the low bits
  input  logic [Lanes*32-1:0]    multiplier_i,     // signed, of the channels; used in pass C only
  input  logic [Lanes*32-1:0]    addend_i,         // signed, of the channels; used in pass C only

  output logic                   valid_o,
  input  logic                   ready_i,
  output logic [Lanes*32-1:0]    data_o,           // signed, 0 in masked lanes
  output logic                   last_o            // last beat of its row
);

  localparam int unsigned BeatWidth   = ColWidth - $clog2(Lanes);
  localparam int unsigned GapWidth    = 6;
  localparam int unsigned SquareDepth = systole_pkg::AddDepth + systole_pkg::MultiplyDepth;
  localparam int unsigned InWidth     = systole_pkg::LayerNormInputBits;
  localparam int unsigned SquareWidth = 2 * InWidth;
  localparam int unsigned SumWidth    = 64;
  localparam int unsigned RootWidth   = 32;
  localparam int unsigned FactorBits  = systole_pkg::LayerNormFactorBits;
  // Twice the sum of a row of values in excess 2^23, and half the divisor for the rounding.
  localparam int unsigned TotalWidth  = InWidth + ColWidth + 1;

  localparam int unsigned Digits     = RootWidth / 2;  // of root and reciprocal
  localparam int unsigned MeanDigits = InWidth / 2;
  localparam int unsigned CountWidth = $clog2(Digits + 1);
  // Squares, root and reciprocal follow pass B; the divider then has to be free for the mean of
  // the next row, which begins V cycles into its interval: slots and gap last V + Serial cycles.
  localparam int unsigned Serial     = SquareDepth + 2 * Digits;

  // ------------------------------------------------------------------ schedule
  logic                 advance, interval, pass_a, pass_b, pass_c, first, last, result;
  logic [Lanes-1:0]     mask;
  logic [BeatWidth-1:0] beats;
  logic [GapWidth-1:0]  gap;

  assign gap = beats > BeatWidth'(Serial / 2) ? '0 : GapWidth'(Serial) - 2 * beats[GapWidth-1:0];

  systole_row_sequencer #(
    .Lanes   (Lanes),
    .MaxCols (MaxCols),
    .RowWidth(RowWidth),
    .GapWidth(GapWidth)
  ) u_sequencer (
    .clk_i,
    .rst_ni,
    .rows_i,
    .cols_i,
    .two_slots_i(1'b0),
    .gap_i      (gap),
    .beats_o    (beats),
    .valid_i,
    .ready_o,
    .result_i   (result),
    .valid_o,
    .ready_i,
    .advance_o  (advance),
    .interval_o (interval),
    .pass_a_o   (pass_a),
    .pass_b_o   (pass_b),
    .pass_c_o   (pass_c),
    .first_o    (first),
    .last_o     (last),
    .mask_o     (mask)
  );

  // ------------------------------------------------------------------ pass A: sum
  // Excess 2^23 makes the dividend of the mean unsigned, and the quotient the mean in excess 2^23.
  logic [Lanes*InWidth-1:0] excess;
  logic [TotalWidth-1:0]    total_d, total_q;
  logic                     mean_start_q;

  for (genvar l = 0; l < Lanes; l++) begin : gen_excess
    logic [31:0] word;
    logic        fits;

    assign word = data_i[l*32+:32];
    assign fits = &word[31:InWidth-1] || ~|word[31:InWidth-1];
    assign excess[l*InWidth+:InWidth] = fits ? {!word[InWidth-1], word[InWidth-2:0]}
                                             : {InWidth{!word[31]}};
  end

  always_comb begin
    total_d = first ? TotalWidth'(cols_i) : total_q;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (mask[l]) total_d = total_d + TotalWidth'({excess[l*InWidth+:InWidth], 1'b0});
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && pass_a) total_q <= total_d;
  end

  // ------------------------------------------------------------------ pass B: sum of squares
  logic                         square_valid, square_any, out_any, square_first, square_last;
  logic                         moves;  // the lanes hold something, or take it
  logic [Lanes-1:0]             square_mask;
  logic [Lanes*SquareWidth-1:0] squares;
  logic [SumWidth-1:0]          sum_d, sum_q;
  logic                         root_start_q;

  assign moves = advance && (pass_b || pass_c || square_any || out_any);

  systole_flag_line #(.Width(1), .Depth(SquareDepth)) u_square_flags (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (pass_b),
    .flags_o (square_valid),
    .any_o   (square_any)
  );

  systole_delay_line #(.Width(Lanes + 2), .Depth(SquareDepth)) u_square_tags (
    .clk_i,
    .enable_i(moves),
    .data_i  ({first, last, mask}),
    .data_o  ({square_first, square_last, square_mask})
  );

  always_comb begin
    sum_d = square_first ? '0 : sum_q;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (square_mask[l]) sum_d = sum_d + SumWidth'(squares[l*SquareWidth+:SquareWidth]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && square_valid) sum_q <= sum_d;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mean_start_q <= 1'b0;
      root_start_q <= 1'b0;
    end else if (advance) begin
      mean_start_q <= pass_a && last;
      root_start_q <= square_valid && square_last;
    end
  end

  // ------------------------------------------------------------------ serial units
  logic                  root_busy, root_done, quotient_done;
  logic [RootWidth-1:0]  root, deviation;
  logic [CountWidth-1:0] digits;
  logic [RootWidth-1:0]  high, low, divisor, quotient;
  logic                  mean_next_q;  // the quotient that comes next is a mean

  systole_serial_sqrt #(.Width(SumWidth)) u_root (
    .clk_i,
    .rst_ni,
    .enable_i  (advance),
    .start_i   (root_start_q),
    .radicand_i(sum_q),
    .busy_o    (root_busy),
    .done_o    (root_done),
    .root_o    (root)
  );

  logic unused_root_busy;
  assign unused_root_busy = root_busy;  // the schedule knows

  // A constant row has deviation 1 and gives the addends.
  assign deviation = root == '0 ? RootWidth'(1) : root;

  assign digits  = mean_start_q ? CountWidth'(MeanDigits) : CountWidth'(Digits);
  assign high    = mean_start_q ? RootWidth'(total_q[TotalWidth-1:InWidth]) : '0;
  assign low     = mean_start_q ? {total_q[InWidth-1:0], {(RootWidth - InWidth){1'b0}}}
                                : RootWidth'(1) << FactorBits;
  assign divisor = mean_start_q ? RootWidth'({cols_i, 1'b0}) : deviation;

  systole_serial_divider #(.DivisorWidth(RootWidth), .Digits(Digits)) u_divider (
    .clk_i,
    .rst_ni,
    .enable_i  (advance),
    .start_i   (mean_start_q || root_done),
    .digits_i  (digits),
    .high_i    (high),
    .low_i     (low),
    .divisor_i (divisor),
    .done_o    (quotient_done),
    .quotient_o(quotient)
  );

  // ------------------------------------------------------------------ statistics of rows in flight
  // The first interval after pass A hands the mean on to B, the next to C, as a mean may come while
  // those passes go on. The first beat of pass C takes the factor over, which is used one stage on.
  logic [InWidth-1:0]   mean_a_q, mean_b_q, mean_c_q, mean;
  logic [RootWidth-1:0] factor_b_q, factor_c_q;

  always_ff @(posedge clk_i) begin
    if (advance) begin
      if (mean_start_q || root_done) mean_next_q <= mean_start_q;
      if (quotient_done && mean_next_q) mean_a_q <= quotient[InWidth-1:0];
      if (quotient_done && !mean_next_q) factor_b_q <= quotient;
      if (interval) begin
        mean_b_q <= mean_a_q;
        mean_c_q <= mean_b_q;
      end
      if (pass_c && first) factor_c_q <= factor_b_q;
    end
  end

  assign mean = pass_b ? mean_b_q : mean_c_q;

  // ------------------------------------------------------------------ pass C: output
  logic             square_q;
  logic [Lanes-1:0] out_mask;

  always_ff @(posedge clk_i) begin
    if (advance) square_q <= pass_b;
  end

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [31:0] out;

    systole_layernorm_lane u_lane (
      .clk_i,
      .enable_i    (moves),
      .data_i      (excess[l*InWidth+:InWidth]),
      .mean_i      (mean),
      .multiplier_i(multiplier_i[l*32+:32]),
      .addend_i    (addend_i[l*32+:32]),
      .square_i    (square_q),
      .factor_i    (factor_c_q),
      .norm_shift_i(5'(FactorBits) - fraction_bits_i),
      .shift_i,
      .lo_i,
      .hi_i,
      .square_o    (squares[l*SquareWidth+:SquareWidth]),
      .data_o      (out)
    );

    assign data_o[l*32+:32] = out_mask[l] ? out : '0;
  end

  systole_flag_line #(.Width(1), .Depth(systole_pkg::LayerNormDepth)) u_out_flags (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (pass_c),
    .flags_o (result),
    .any_o   (out_any)
  );

  systole_delay_line #(.Width(Lanes + 1), .Depth(systole_pkg::LayerNormDepth)) u_out_tags (
    .clk_i,
    .enable_i(moves),
    .data_i  ({last, mask}),
    .data_o  ({last_o, out_mask})
  );

  `SYSTOLE_ASSERT(FractionInRange_A,
                  (valid_i && ready_o) |-> (fraction_bits_i >= 5'd1 && fraction_bits_i <= 5'd30))
  `SYSTOLE_ASSERT(ShiftInRange_A, (valid_i && ready_o) |-> shift_i <= 6'd62)
  `SYSTOLE_ASSERT(LimitsOrdered_A, (valid_i && ready_o) |-> signed'(lo_i) <= signed'(hi_i))
  `SYSTOLE_ASSERT(OneDivision_A, !(mean_start_q && root_done))
  `SYSTOLE_ASSERT(DataHeld_A, (valid_i && !ready_o) |=> $stable(data_i))
  `SYSTOLE_ASSERT(MultiplierHeld_A, (valid_i && !ready_o) |=> $stable(multiplier_i))
  `SYSTOLE_ASSERT(AddendHeld_A, (valid_i && !ready_o) |=> $stable(addend_i))
  `SYSTOLE_ASSERT(ConstantsHeld_A,
                  (valid_i && !ready_o) |=> $stable({fraction_bits_i, shift_i, lo_i, hi_i}))
  `SYSTOLE_ASSERT(OutputHeld_A, (valid_o && !ready_i) |=> $stable(data_o))
  `SYSTOLE_ASSERT(LastHeld_A, (valid_o && !ready_i) |=> $stable(last_o))

endmodule
