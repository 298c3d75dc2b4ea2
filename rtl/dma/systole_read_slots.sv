// The slots of the requests that a port has in flight. A request takes the slot of the oldest one
// once that one is complete, or, unless `in_order_i`, any that is free: the first.

`include "systole_assert.svh"

module systole_read_slots #(
  parameter  int unsigned Slots  = 16,
  localparam int unsigned IdBits = Slots > 1 ? $clog2(Slots) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              in_order_i,

  output logic              free_o,    // there is a slot for the next request
  output logic [IdBits-1:0] slot_o,    // held while it is offered and not taken
  input  logic              offer_i,   // a request wants it
  input  logic              take_i,    // and has it

  input  logic [Slots-1:0]  give_i,    // the requests in these are complete
  output logic [Slots-1:0]  used_o
);

  logic [Slots-1:0]  used_q;
  logic [IdBits-1:0] oldest_q, first, held_slot_q;
  logic              held_q;

  always_comb begin
    first = '0;
    for (int unsigned i = Slots; i > 0; i--) begin
      if (!used_q[i-1]) first = IdBits'(i - 1);
    end
  end

  assign slot_o = in_order_i ? oldest_q : held_q ? held_slot_q : first;
  assign free_o = !used_q[slot_o];
  assign used_o = used_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q   <= '0;
      oldest_q <= '0;
      held_q   <= 1'b0;
    end else begin
      used_q <= (used_q & ~give_i) | (take_i ? Slots'(1) << slot_o : '0);
      if (take_i) oldest_q <= 32'(oldest_q) == Slots - 1 ? '0 : oldest_q + IdBits'(1);
      held_q <= offer_i && free_o && !take_i;
    end
  end

  always_ff @(posedge clk_i) held_slot_q <= slot_o;

  `SYSTOLE_ASSERT(TakenFree_A, take_i |-> free_o)
  `SYSTOLE_ASSERT(GivenUsed_A, (give_i & ~used_q) == '0)

endmodule
