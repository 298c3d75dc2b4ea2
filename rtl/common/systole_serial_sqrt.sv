// Serial square root, floor(sqrt(n)): two root bits per cycle, by two restoring steps.
// Cycle contract: hw::kIntSqrtCycles of hw/number/isqrt.h for 64 bits.
//
// In the cycle of start_i the first digit is formed straight from radicand_i; Width / 4 cycles
// after it done_o is high for one cycle, and root_o stays until the next start. While enable_i is
// low nothing moves.

`include "systole_assert.svh"

module systole_serial_sqrt #(
  parameter  int unsigned Width     = 64,
  localparam int unsigned RootWidth = Width / 2
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 enable_i,

  input  logic                 start_i,
  input  logic [Width-1:0]     radicand_i,

  output logic                 busy_o,  // further digits follow this cycle's
  output logic                 done_o,
  output logic [RootWidth-1:0] root_o
);

  localparam int unsigned Digits     = RootWidth / 2;
  localparam int unsigned CountWidth = $clog2(Digits + 1);
  // The remainder is at most twice the root so far; two radicand bits come in below it.
  localparam int unsigned RemainderWidth = RootWidth + 2;

  logic [CountWidth-1:0]     left_d, left_q;  // digits still to come after this cycle
  logic                      running, done_q;
  logic [Width-1:0]          radicand_d, radicand_q;
  logic [RemainderWidth-1:0] remainder_d, remainder_q;
  logic [RootWidth-1:0]      root_d, root_q;

  assign running = start_i || left_q != '0;
  assign left_d  = (start_i ? CountWidth'(Digits) : left_q) - CountWidth'(running);

  logic [RemainderWidth-1:0] partial, trial;
  logic                      fits;

  always_comb begin
    radicand_d  = start_i ? radicand_i : radicand_q;
    remainder_d = start_i ? '0 : remainder_q;
    root_d      = start_i ? '0 : root_q;
    partial     = '0;
    trial       = '0;
    fits        = 1'b0;
    for (int unsigned step = 0; step < 2; step++) begin
      partial     = {remainder_d[RemainderWidth-3:0], radicand_d[Width-1:Width-2]};
      radicand_d  = {radicand_d[Width-3:0], 2'b00};
      // (2 r + 1)^2 - (2 r)^2 = 4 r + 1: what a one as next root bit takes off the remainder.
      trial       = {root_d, 2'b01};
      fits        = partial >= trial;
      remainder_d = fits ? partial - trial : partial;
      root_d      = {root_d[RootWidth-2:0], fits};
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
      radicand_q  <= radicand_d;
      remainder_q <= remainder_d;
      root_q      <= root_d;
    end
  end

  assign busy_o = left_q != '0;
  assign done_o = done_q;
  assign root_o = root_q;

  `SYSTOLE_ASSERT_INIT(WidthUsable_A, Width >= 8 && Width % 4 == 0)
  `SYSTOLE_ASSERT(NotWhileRunning_A, start_i |-> !busy_o)

endmodule
