// Flags delayed by `Depth` enabled cycles, all clear after reset. They say which stages of a
// pipeline hold something.

`include "systole_assert.svh"

module systole_flag_line #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             enable_i,
  input  logic [Width-1:0] flags_i,
  output logic [Width-1:0] flags_o,
  output logic             any_o    // a stage has one set: data beside them have to move
);

  localparam int unsigned Total = Depth * Width;

  logic [Total-1:0] stages_q;  // oldest at the top

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      stages_q <= '0;
    end else if (enable_i) begin
      stages_q <= Total'({stages_q, flags_i});
    end
  end

  assign flags_o = stages_q[Total-1-:Width];
  assign any_o   = stages_q != '0;

  `SYSTOLE_ASSERT_INIT(SizeUsable_A, Width >= 1 && Depth >= 1)

endmodule
