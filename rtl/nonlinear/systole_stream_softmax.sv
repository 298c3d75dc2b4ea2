// Softmax of a streaming attention core: powers of two, a row in groups that come twice.
// Bit-exact reference: hw::stream::SoftmaxRow of hw/stream/stream_functions.h. Cycle contract:
// hw::stream::softmax_cycles, there too.
//
// The first pass forms maximum and sum of the row, shifting the sum where the maximum grows; then
// the sum's inverse is divided; the second pass shifts the inverse by each score's distance from
// the maximum. last_i marks the last group of either pass. Results leave with the row's maximum,
// sum and inverse beside them.

`include "systole_assert.svh"

module systole_stream_softmax #(
  parameter  int unsigned Group    = 16,
  localparam int unsigned SumWidth = systole_pkg::StreamSumBits
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         valid_i,
  output logic                         ready_o,
  input  logic                         last_i,
  input  logic           [Group*8-1:0] scores_i,         // signed, the first in the low bits

  output logic                         valid_o,
  input  logic                         ready_i,
  output logic           [Group*8-1:0] probabilities_o,  // unsigned
  output logic signed            [7:0] maximum_o,
  output logic          [SumWidth-1:0] sum_o,
  output logic                   [7:0] inverse_o
);

  // Two quotient bits a cycle: eight are enough, as no sum is below 256.
  localparam int unsigned Digits = 4;

  typedef enum logic [1:0] {
    Sums    = 2'd0,
    Divides = 2'd1,
    Shifts  = 2'd2
  } phase_e;

  logic   advance, accept;
  phase_e phase_d, phase_q;

  // An untaken result stops everything.
  assign advance = !(valid_o && !ready_i);
  assign ready_o = advance && phase_q != Divides;
  assign accept  = valid_i && ready_o;

  // -------------------------------------------------------------------------- first pass
  // The group and its maximum, then the row's.
  logic                         group_valid_q, group_last_q;
  logic           [Group*8-1:0] group_q;
  logic signed            [7:0] group_top_d, group_top_q;

  always_comb begin
    group_top_d = $signed(scores_i[7:0]);
    for (int unsigned i = 1; i < Group; i++) begin
      if ($signed(scores_i[i*8+:8]) > group_top_d) group_top_d = $signed(scores_i[i*8+:8]);
    end
  end

  logic                       begun_q;  // a group of the row has been summed
  logic signed          [7:0] earlier, maximum_d, maximum_q;
  logic        [SumWidth-1:0] sum_d, sum_q;

  logic                 [7:0] growth, fall;  // of the maximum; from it to a score

  always_comb begin
    earlier   = begun_q ? maximum_q : -8'sd128;
    maximum_d = group_top_q > earlier ? group_top_q : earlier;
    growth    = maximum_d - earlier;
    fall      = '0;
    sum_d     = begun_q ? sum_q >> growth : '0;
    for (int unsigned i = 0; i < Group; i++) begin
      fall  = maximum_d - group_q[i*8+:8];
      sum_d = sum_d + (SumWidth'(256) >> fall);
    end
  end

  // -------------------------------------------------------------------------- inverse
  logic                start_q, done;
  logic [2*Digits-1:0] inverse;

  systole_serial_divider #(.DivisorWidth(SumWidth), .Digits(Digits)) u_divider (
    .clk_i,
    .rst_ni,
    .enable_i  (advance),
    .start_i   (start_q),
    .digits_i  (($clog2(Digits + 1))'(Digits)),
    .high_i    (SumWidth'(systole_pkg::StreamScale >> (2 * Digits))),
    .low_i     ('0),
    .divisor_i (sum_q),
    .done_o    (done),
    .quotient_o(inverse)
  );

  // -------------------------------------------------------------------------- second pass
  logic [Group*8-1:0] probabilities_d;
  logic         [7:0] distance;

  always_comb begin
    distance = '0;
    for (int unsigned i = 0; i < Group; i++) begin
      distance = maximum_q - scores_i[i*8+:8];
      probabilities_d[i*8+:8] = inverse >> distance;
    end
  end

  // -------------------------------------------------------------------------- control
  always_comb begin
    phase_d = phase_q;
    unique case (phase_q)
      Sums:    if (accept && last_i) phase_d = Divides;
      Divides: if (done) phase_d = Shifts;
      Shifts:  if (accept && last_i) phase_d = Sums;
      default: phase_d = Sums;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      phase_q       <= Sums;
      group_valid_q <= 1'b0;
      begun_q       <= 1'b0;
      start_q       <= 1'b0;
      valid_o       <= 1'b0;
    end else if (advance) begin
      phase_q       <= phase_d;
      group_valid_q <= accept && phase_q == Sums;
      begun_q       <= phase_q != Shifts && (begun_q || group_valid_q);
      start_q       <= group_valid_q && group_last_q;
      valid_o       <= accept && phase_q == Shifts;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept && phase_q == Sums) begin
      group_last_q <= last_i;
      group_q      <= scores_i;
      group_top_q  <= group_top_d;
    end
    if (advance && group_valid_q) begin
      maximum_q <= maximum_d;
      sum_q     <= sum_d;
    end
    if (accept && phase_q == Shifts) begin
      probabilities_o <= probabilities_d;
      maximum_o <= maximum_q;
      sum_o     <= sum_q;
      inverse_o <= inverse;
    end
  end

  `SYSTOLE_ASSERT(OutputHeld_A, (valid_o && !ready_i) |=> (valid_o && $stable(probabilities_o)))
  `SYSTOLE_ASSERT(InputHeld_A,
                  (valid_i && !ready_o) |=> (valid_i && $stable(scores_i) && $stable(last_i)))
  `SYSTOLE_ASSERT(SumIsLarge_A, start_q |-> sum_q >= SumWidth'(256))

endmodule
