// Integer softmax of rows of 32-bit scores, `Lanes` elements a beat: the softmax stage of the
// post-op chain. Bit-exact reference: StageOp::kSoftmax of hw::apply_chain (hw/postop/postop.h,
// hw/function/softmax.h); cycles: hw::chain_cycles of that stage.
//
// Passes over a row (rtl/common/systole_row_sequencer.sv): A takes the maximum, B sums the
// exponentials, C gives the codes. In the deferred mode there is no B, and the sum of the row's
// codes comes with its last beat. In the normalised modes the codes are exponentials times
// floor(2^32 / sum); the one divider works while the next row streams.

`include "systole_assert.svh"

module systole_softmax_unit #(
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
  input  logic [ColWidth-1:0]    kept_i,              // of row 0, one more in each row; 0: all
  input  logic [1:0]             mode_i,              // hw::SoftmaxMode
  input  logic [30:0]            score_multiplier_i,
  input  logic [5:0]             score_shift_i,
  input  logic [13:0]            q_ln2_i,             // hw::IntExpConstants and its reciprocal
  input  logic [29:0]            reciprocal_i,
  input  logic [14:0]            b_i,
  input  logic [28:0]            c_i,
  input  logic [30:0]            out_multiplier_i,    // deferred mode only
  input  logic [5:0]             out_shift_i,         // deferred mode only
  input  logic [4:0]             out_bits_i,          // 1 .. 16

  input  logic                   valid_i,
  output logic                   ready_o,
  input  logic [Lanes*32-1:0]    data_i,              // signed, lane 0 in the low bits

  output logic                   valid_o,
  input  logic                   ready_i,
  output logic [Lanes*32-1:0]    data_o,              // codes, 0 in masked lanes
  output logic                   last_o,              // last beat of its row
  output logic [31:0]            row_sum_o            // with last_o, deferred mode: at least 1
);

  localparam int unsigned BeatWidth        = ColWidth - $clog2(Lanes);
  localparam int unsigned GapWidth         = 5;
  // Of softmax_lane, score to exponential.
  localparam int unsigned ExpDepth         =
      systole_pkg::SoftmaxDepth - systole_pkg::RequantiseDepth;
  localparam int unsigned ExponentialWidth = 30;
  localparam int unsigned MultiplierWidth  = 31;
  localparam int unsigned SumWidth         = ExponentialWidth + ColWidth - 1;
  localparam int unsigned FactorBits       = systole_pkg::SoftmaxFactorBits;
  localparam int unsigned Digits           = (FactorBits + 2) / 2;  // quotients of up to 2^32

  // ------------------------------------------------------------------ schedule
  logic                 deferred, advance, interval, pass_a, pass_b, pass_c, first, last, result;
  logic [Lanes-1:0]     mask, in_row;
  logic [BeatWidth-1:0] beats;
  logic [GapWidth-1:0]  gap;

  assign deferred = mode_i == systole_pkg::Deferred;
  // An interval has to be as long as a division.
  assign gap = (deferred || beats > BeatWidth'(Digits / 3)) ? '0
                                                            : GapWidth'(Digits) - 3 * beats[4:0];

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
    .two_slots_i(deferred),
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
    .mask_o     (in_row)
  );

  // ------------------------------------------------------------------ causal mask
  // Columns that the rows in passes A, B and C keep, handed on like their maxima. No limit passes
  // rows_i + kept_i, and one at cols_i or above keeps all.
  localparam int unsigned LimitWidth = RowWidth + 1;

  logic [LimitWidth-1:0] limit_a, limit_a_q, limit_b_q, limit_c_q, limit;
  logic [RowWidth-1:0]   row_q;     // of pass A
  logic [ColWidth-1:0]   column_q;  // of lane 0

  assign limit_a = LimitWidth'(row_q) + LimitWidth'(kept_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_q    <= '0;
      column_q <= '0;
    end else if (advance) begin
      if (pass_a && last) row_q <= row_q == rows_i - 1'b1 ? '0 : row_q + 1'b1;
      if (pass_a || pass_b || pass_c) column_q <= last ? '0 : column_q + ColWidth'(Lanes);
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && interval) begin
      limit_a_q <= limit_a;
      limit_b_q <= limit_a_q;
      limit_c_q <= limit_b_q;
    end
  end

  assign limit = pass_a ? limit_a : deferred ? limit_a_q : pass_b ? limit_b_q : limit_c_q;

  always_comb begin
    mask = in_row;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (kept_i != '0 && LimitWidth'(column_q) + LimitWidth'(l) >= limit) mask[l] = 1'b0;
    end
  end

  // ------------------------------------------------------------------ pass A: maximum
  // Rows in passes A, B and C. The first interval after pass A hands the maximum on to B, the next
  // to C.
  logic signed [31:0] maximum_d, maximum_a_q, maximum_b_q, maximum_c_q, maximum;

  always_comb begin
    maximum_d = first ? 32'sh8000_0000 : maximum_a_q;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (mask[l] && signed'(data_i[l*32+:32]) > maximum_d) maximum_d = data_i[l*32+:32];
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && pass_a) maximum_a_q <= maximum_d;
    if (advance && interval) begin
      maximum_b_q <= maximum_a_q;
      maximum_c_q <= maximum_b_q;
    end
  end

  assign maximum = deferred ? maximum_a_q : (pass_b ? maximum_b_q : maximum_c_q);

  // ------------------------------------------------------------------ passes B and C: exponentials
  logic             sum_valid, code_valid, exp_any, code_any, exp_first, exp_last;
  logic             moves;  // the lanes hold something, or take it
  logic [Lanes-1:0] exp_mask;

  assign moves = advance && (pass_b || pass_c || exp_any || code_any);

  systole_flag_line #(.Width(2), .Depth(ExpDepth)) u_exp_flags (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i ({pass_b, pass_c}),
    .flags_o ({sum_valid, code_valid}),
    .any_o   (exp_any)
  );

  systole_delay_line #(.Width(Lanes + 2), .Depth(ExpDepth)) u_exp_tags (
    .clk_i,
    .enable_i(moves),
    .data_i  ({first, last, mask}),
    .data_o  ({exp_first, exp_last, exp_mask})
  );

  logic [Lanes*ExponentialWidth-1:0] exponentials;
  logic [SumWidth-1:0]               sum_d, sum_q;
  logic                              divide_q;

  always_comb begin
    sum_d = exp_first ? '0 : sum_q;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (exp_mask[l]) begin
        sum_d = sum_d + SumWidth'(exponentials[l*ExponentialWidth+:ExponentialWidth]);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      divide_q <= 1'b0;
    end else if (advance) begin
      divide_q <= sum_valid && exp_last;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance && sum_valid) sum_q <= sum_d;
  end

  // ------------------------------------------------------------------ floor(2^32 / sum)
  logic                       divided;
  logic [2*Digits-1:0]        quotient;
  logic [MultiplierWidth-1:0] factor_d, factor_q;

  systole_serial_divider #(.DivisorWidth(SumWidth), .Digits(Digits)) u_divider (
    .clk_i,
    .rst_ni,
    .enable_i  (advance),
    .start_i   (divide_q),
    .digits_i  ($clog2(Digits + 1)'(Digits)),
    .high_i    ('0),
    .low_i     ((2 * Digits)'(1) << FactorBits),
    .divisor_i (sum_q),
    .done_o    (divided),
    .quotient_o(quotient)
  );

  // The next row's division may start in the very cycle in which pass C takes the factor over. No
  // sum is below 7, the exponential of 0 with one fraction bit, so the factor has at most 30 bits.
  assign factor_d = exp_first ? quotient[MultiplierWidth-1:0] : factor_q;

  always_ff @(posedge clk_i) begin
    if (advance && code_valid) factor_q <= factor_d;
  end

  logic unused_division;
  assign unused_division = ^{divided, quotient[2*Digits-1:MultiplierWidth]};

  // ------------------------------------------------------------------ pass C: codes
  logic [MultiplierWidth-1:0] code_multiplier;
  logic [5:0]                 code_shift;
  logic [1:0]                 code_rounding;
  logic [15:0]                highest_code;
  logic                       code_first;
  logic [Lanes-1:0]           code_mask;

  assign code_multiplier = deferred ? out_multiplier_i : factor_d;
  assign code_shift      = deferred ? out_shift_i : 6'(FactorBits) - 6'(out_bits_i);
  assign code_rounding   = (deferred || mode_i == systole_pkg::NormalisedRound)
                           ? systole_pkg::HalfUp : systole_pkg::Floor;
  assign highest_code    = 16'((17'd1 << out_bits_i) - 17'd1);

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [31:0] code;

    systole_softmax_lane u_lane (
      .clk_i,
      .enable_i         (moves),
      .score_i          (data_i[l*32+:32]),
      .maximum_i        (maximum),
      .score_multiplier_i,
      .score_shift_i,
      .q_ln2_i,
      .reciprocal_i,
      .b_i,
      .c_i,
      .exponential_o    (exponentials[l*ExponentialWidth+:ExponentialWidth]),
      .code_multiplier_i(code_multiplier),
      .code_shift_i     (code_shift),
      .code_rounding_i  (code_rounding),
      .highest_code_i   (highest_code),
      .code_o           (code)
    );

    assign data_o[l*32+:32] = code_mask[l] ? code : '0;
  end

  systole_flag_line #(.Width(1), .Depth(systole_pkg::RequantiseDepth)) u_code_flags (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (code_valid),
    .flags_o (result),
    .any_o   (code_any)
  );

  systole_delay_line #(.Width(Lanes + 2), .Depth(systole_pkg::RequantiseDepth)) u_code_tags (
    .clk_i,
    .enable_i(moves),
    .data_i  ({exp_first, exp_last, exp_mask}),
    .data_o  ({code_first, last_o, code_mask})
  );

  // Sum of the codes up to and with this beat.
  logic [31:0] codes_d, codes_q;

  always_comb begin
    codes_d = code_first ? '0 : codes_q;
    for (int unsigned l = 0; l < Lanes; l++) codes_d = codes_d + data_o[l*32+:32];
  end

  always_ff @(posedge clk_i) begin
    if (advance && result) codes_q <= codes_d;
  end

  assign row_sum_o = codes_d == '0 ? 32'd1 : codes_d;

  `SYSTOLE_ASSERT(ModeKnown_A, (valid_i && ready_o) |-> mode_i <= systole_pkg::NormalisedRound)
  `SYSTOLE_ASSERT(BitsInRange_A,
                  (valid_i && ready_o) |-> (out_bits_i >= 5'd1 && out_bits_i <= 5'd16))
  `SYSTOLE_ASSERT(DataHeld_A, (valid_i && !ready_o) |=> $stable(data_i))
  `SYSTOLE_ASSERT(ConstantsHeld_A, (valid_i && !ready_o) |=> $stable({
                      kept_i, mode_i, score_multiplier_i, score_shift_i, q_ln2_i, reciprocal_i, b_i, c_i,
                      out_multiplier_i, out_shift_i, out_bits_i}))
  `SYSTOLE_ASSERT(OutputHeld_A, (valid_o && !ready_i) |=> $stable(data_o))
  `SYSTOLE_ASSERT(LastHeld_A, (valid_o && !ready_i) |=> $stable({last_o, row_sum_o}))
  `SYSTOLE_ASSERT(FactorFits_A, divided |-> quotient[2*Digits-1:MultiplierWidth] == '0)

endmodule
