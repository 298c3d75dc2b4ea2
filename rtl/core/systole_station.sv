// The reservation station of one unit: the entries of its commands, from dispatch to completion, and
// the order in which the unit starts them.

`include "systole_assert.svh"

module systole_station #(
  parameter  int unsigned Depth  = 8,
  localparam int unsigned IdBits = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              push_i,       // a command enters; only if it has room
  output logic              room_o,
  output logic [Depth-1:0]  push_entry_o, // one bit: the entry that it gets

  output logic              valid_o,      // the oldest command that has not started
  output logic [IdBits-1:0] entry_o,
  input  logic              pop_i,        // it starts; only if valid

  input  logic [Depth-1:0]  completed_i,
  output logic [Depth-1:0]  used_o
);

  logic [IdBits-1:0] order_q [Depth];     // entries in the order of dispatch, a ring
  logic [IdBits-1:0] head_q, tail_q, free;
  logic [IdBits:0]   waiting_q;

  always_comb begin
    free = '0;
    for (int unsigned i = Depth; i > 0; i--) begin
      if (!used_o[i-1]) free = IdBits'(i - 1);
    end
  end

  assign room_o       = used_o != '1;
  assign push_entry_o = Depth'(1) << free;
  assign valid_o      = waiting_q != '0;
  assign entry_o      = order_q[head_q];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_o    <= '0;
      head_q    <= '0;
      tail_q    <= '0;
      waiting_q <= '0;
    end else begin
      used_o    <= (used_o & ~completed_i) | (push_i ? push_entry_o : '0);
      waiting_q <= waiting_q + (IdBits+1)'(push_i) - (IdBits+1)'(pop_i);
      if (push_i) tail_q <= 32'(tail_q) == Depth - 1 ? '0 : tail_q + IdBits'(1);
      if (pop_i) head_q <= 32'(head_q) == Depth - 1 ? '0 : head_q + IdBits'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push_i) order_q[tail_q] <= free;
  end

  `SYSTOLE_ASSERT(RoomForPush_A, push_i |-> room_o)
  `SYSTOLE_ASSERT(PopOfValid_A, pop_i |-> valid_o)
  `SYSTOLE_ASSERT(CompletedUsed_A, (completed_i & ~used_o) == '0)

endmodule
