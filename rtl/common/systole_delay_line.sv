// Data delayed by `Depth` enabled cycles. No reset: flags that travel beside it qualify it.

`include "systole_assert.svh"

module systole_delay_line #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 1
) (
  input  logic             clk_i,
  input  logic             enable_i,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);

  localparam int unsigned Total = Depth * Width;

  logic [Total-1:0] stages_q;  // oldest at the top

  always_ff @(posedge clk_i) begin
    if (enable_i) stages_q <= Total'({stages_q, data_i});
  end

  assign data_o = stages_q[Total-1-:Width];

  `SYSTOLE_ASSERT_INIT(SizeUsable_A, Width >= 1 && Depth >= 1)

endmodule
