// The serial square root: floor(sqrt(n)), Width / 4 cycles after the number came (hw::int_sqrt_cycles), for any
// number, and held until it is taken.

module i_sqrt_rules #(
  parameter  int unsigned Width     = 16,
  localparam int unsigned RootWidth = Width / 2,
  localparam int unsigned Digits    = Width / 4
) (
  input logic             clk_i,
  input logic             valid_i,
  input logic [Width-1:0] radicand_i,
  input logic             ready_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic                 ready, valid;
  logic [RootWidth-1:0] root;

  systole_i_sqrt #(.Width(Width)) u_dut (
    .clk_i, .rst_ni, .valid_i, .ready_o(ready), .radicand_i, .valid_o(valid), .ready_i, .root_o(root)
  );

  // ---------------------------------------------------------------- the number inside
  logic             inside_q;
  logic [7:0]       age_q;       // cycles since it came, not beyond those of a root
  logic [Width-1:0] number_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
    end else begin
      if (inside_q && 32'(age_q) < Digits) age_q <= age_q + 8'd1;
      if (valid && ready_i) inside_q <= 1'b0;
      if (valid_i && ready) begin
        inside_q <= 1'b1;
        age_q    <= 8'd1;
        number_q <= radicand_i;
      end
    end
  end

  // ---------------------------------------------------------------- rules
  function automatic logic [Width+1:0] square(input logic [RootWidth:0] x);
    return (Width+2)'(x) * (Width+2)'(x);
  endfunction

  always_comb begin
    if (rst_ni) begin
      assert (valid == (inside_q && 32'(age_q) == Digits));
      assert (ready == (!inside_q || (valid && ready_i)));
      assert (!valid || (square({1'b0, root}) <= (Width+2)'(number_q) &&
                         (Width+2)'(number_q) < square({1'b0, root} + (RootWidth+1)'(1))));
      cover (valid && 32'(root) == 5);
      cover (valid && ready_i && valid_i);
    end
  end

  // ---------------------------------------------------------------- invariants
  // Of the digits that have come in: root^2 + remainder, and a remainder of at most 2 root.
  logic [Width-1:0] seen;
  assign seen = number_q >> (Width - 4 * 32'(age_q));

  always_comb begin
    if (rst_ni) begin
      assert (!inside_q || (age_q != '0 && 32'(age_q) <= Digits));
      assert (u_dut.u_core.done_q == (inside_q && 32'(age_q) == Digits));
      assert (32'(u_dut.u_core.left_q) == (inside_q ? Digits - 32'(age_q) : 0));
      if (inside_q) begin
        assert ((Width+2)'(seen) == square({1'b0, u_dut.u_core.root_q}) + (Width+2)'(u_dut.u_core.remainder_q));
        assert (32'(u_dut.u_core.remainder_q) <= 2 * 32'(u_dut.u_core.root_q));
        assert (u_dut.u_core.root_q >> (2 * 32'(age_q)) == '0);
        assert (u_dut.u_core.radicand_q == number_q << (4 * 32'(age_q)));
      end
    end
  end

endmodule
