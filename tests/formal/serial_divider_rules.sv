// The serial divider: the quotient, `digits_i` enabled cycles after its start, for any dividend and any
// divisor above its upper part (hw::serial_cycles).

module serial_divider_rules #(
  parameter  int unsigned DivisorWidth  = 4,
  parameter  int unsigned Digits        = 3,
  localparam int unsigned QuotientWidth = 2 * Digits,
  localparam int unsigned CountWidth    = $clog2(Digits + 1),
  localparam int unsigned DividendWidth = DivisorWidth + QuotientWidth
) (
  input logic                     clk_i,
  input logic                     enable_i,
  input logic                     start_i,
  input logic [CountWidth-1:0]    digits_i,
  input logic [DivisorWidth-1:0]  high_i,
  input logic [QuotientWidth-1:0] low_i,
  input logic [DivisorWidth-1:0]  divisor_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic                     done;
  logic [QuotientWidth-1:0] quotient;

  systole_serial_divider #(.DivisorWidth(DivisorWidth), .Digits(Digits)) u_dut (
    .clk_i, .rst_ni, .enable_i, .start_i, .digits_i, .high_i, .low_i, .divisor_i, .done_o(done),
    .quotient_o(quotient)
  );

  // ---------------------------------------------------------------- the division
  logic                     begun_q;
  logic [CountWidth:0]      moved_q;      // enabled cycles since its start, one more when it is over
  logic [CountWidth-1:0]    digits_q;
  logic [DividendWidth-1:0] dividend_q;   // without the bits that do not count
  logic [DivisorWidth-1:0]  divisor_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
    end else if (enable_i) begin
      if (begun_q && moved_q <= (CountWidth+1)'(digits_q)) moved_q <= moved_q + (CountWidth+1)'(1);
      if (start_i) begin
        begun_q    <= 1'b1;
        moved_q    <= (CountWidth+1)'(1);
        digits_q   <= digits_i;
        dividend_q <= {high_i, low_i} >> (QuotientWidth - 2 * 32'(digits_i));
        divisor_q  <= divisor_i;
      end
    end
  end

  // ---------------------------------------------------------------- rules
  logic [QuotientWidth-1:0] digits_mask;
  assign digits_mask = ~({QuotientWidth{1'b1}} << (2 * 32'(digits_q)));

  always_comb begin
    assume (!start_i || (high_i < divisor_i && digits_i >= 1 && 32'(digits_i) <= Digits));
    assume (!start_i || low_i << (2 * 32'(digits_i)) == '0);
    assume (!start_i || !begun_q || moved_q >= (CountWidth+1)'(digits_q));
    if (rst_ni) begin
      assert (done == (begun_q && moved_q == (CountWidth+1)'(digits_q)));
      assert (!(begun_q && moved_q >= (CountWidth+1)'(digits_q)) ||
              quotient == QuotientWidth'(dividend_q / DividendWidth'(divisor_q)));
      cover (done && quotient == QuotientWidth'(5) && 32'(digits_q) == Digits);
    end
  end

  // ---------------------------------------------------------------- invariants
  // Of the dividend's digits that have come in: quotient * divisor + remainder.
  logic [CountWidth-1:0]    left;
  logic [DividendWidth-1:0] seen;
  logic [QuotientWidth-1:0] partial;
  assign left    = moved_q >= (CountWidth+1)'(digits_q) ? '0 : digits_q - CountWidth'(moved_q);
  assign seen    = dividend_q >> (2 * 32'(left));
  assign partial = u_dut.shift_q & ~({QuotientWidth{1'b1}} << (2 * (32'(digits_q) - 32'(left))));

  always_comb begin
    if (rst_ni) begin
      assert (u_dut.done_q == (begun_q && moved_q == (CountWidth+1)'(digits_q)));
      assert (u_dut.left_q == (begun_q ? left : '0));
      if (begun_q) begin
        assert (moved_q != '0 && moved_q <= (CountWidth+1)'(digits_q) + (CountWidth+1)'(1));
        assert (digits_q >= 1 && 32'(digits_q) <= Digits && divisor_q != '0);
        assert ((dividend_q >> (2 * 32'(digits_q))) < DividendWidth'(divisor_q));
        assert (u_dut.divisor_q == divisor_q && u_dut.remainder_q < divisor_q);
        assert (DividendWidth'(partial) * DividendWidth'(divisor_q) + DividendWidth'(u_dut.remainder_q) == seen);
        assert (u_dut.shift_q == ((QuotientWidth'(dividend_q << (QuotientWidth - 2 * 32'(left)))) | partial));
      end
    end
  end

endmodule
