// Serial unsigned divider: two quotient bits per cycle, by two restoring steps.
// Cycle contract: hw::serial_cycles(quotient bits) of hw/number/serial_unit.h.
//
// The dividend is high_i * 4^digits_i + the upper 2 * digits_i bits of low_i, so a short division
// takes fewer cycles. In the cycle of start_i the first digit is formed straight from the operands;
// digits_i cycles after it done_o is high for one cycle, and quotient_o stays until the next start.
// While enable_i is low nothing moves.

`include "systole_assert.svh"

module systole_serial_divider #(
  parameter  int unsigned DivisorWidth  = 32,
  parameter  int unsigned Digits        = 16,  // at most
  localparam int unsigned QuotientWidth = 2 * Digits,
  localparam int unsigned CountWidth    = $clog2(Digits + 1)
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     enable_i,

  input  logic                     start_i,
  input  logic [CountWidth-1:0]    digits_i,   // 1 .. Digits
  input  logic [DivisorWidth-1:0]  high_i,     // less than the divisor
  input  logic [QuotientWidth-1:0] low_i,      // bits below the upper 2 * digits_i are zero
  input  logic [DivisorWidth-1:0]  divisor_i,

  output logic                     done_o,
  output logic [QuotientWidth-1:0] quotient_o
);

  logic [CountWidth-1:0]    left_d, left_q;  // digits still to come after this cycle
  logic                     running, done_q;
  logic [DivisorWidth-1:0]  divisor, divisor_q;
  logic [DivisorWidth-1:0]  remainder_d, remainder_q;
  // Dividend bits leave at the top while quotient bits enter at the bottom.
  logic [QuotientWidth-1:0] shift_d, shift_q;

  assign running = start_i || left_q != '0;
  assign left_d  = (start_i ? digits_i : left_q) - CountWidth'(running);
  assign divisor = start_i ? divisor_i : divisor_q;

  logic [DivisorWidth:0] partial;  // remainder with the next dividend bit

  always_comb begin
    remainder_d = start_i ? high_i : remainder_q;
    shift_d     = start_i ? low_i : shift_q;
    partial     = '0;
    for (int unsigned step = 0; step < 2; step++) begin
      partial = {remainder_d, shift_d[QuotientWidth-1]};
      shift_d = {shift_d[QuotientWidth-2:0], partial >= {1'b0, divisor}};
      // Both cases leave less than the divisor, hence no more than its width.
      remainder_d = DivisorWidth'(shift_d[0] ? partial - {1'b0, divisor} : partial);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q <= '0;
      done_q <= 1'b0;
    end else if (enable_i) begin
      left_q <= left_d;
      done_q <= running && left_d == '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (enable_i && running) begin
      divisor_q   <= divisor;
      remainder_q <= remainder_d;
      shift_q     <= shift_d;
    end
  end

  assign done_o     = done_q;
  assign quotient_o = shift_q;

  `SYSTOLE_ASSERT_INIT(WidthsUsable_A, DivisorWidth >= 2 && Digits >= 1)
  `SYSTOLE_ASSERT(QuotientFits_A, start_i |-> high_i < divisor_i)
  `SYSTOLE_ASSERT(DigitsInRange_A, start_i |-> (digits_i >= 1 && digits_i <= CountWidth'(Digits)))
  `SYSTOLE_ASSERT(NotWhileRunning_A, start_i |-> left_q == '0)

endmodule
