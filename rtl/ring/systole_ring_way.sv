// One way through a core's router: packets from a link go to the core's registers and, with hops
// left, on to the next link. The core's own packets go between them.
//
// Store and forward: a packet whose last flit is taken in cycle c is in the registers with cycle
// c + RouterCycles, and its first flit is on the link in that cycle, if the link is free. A packet
// that has begun is not interrupted; between packets, those that pass through come first. The
// buffer has room for two packets: cores that exchange vectors, each of which sends its part of the
// next vector only when it has all parts of this one, have less than that in flight on the whole
// ring, so there is always a router that can take a flit and the ring never deadlocks.

`include "systole_assert.svh"

module systole_ring_way #(
  parameter  int unsigned FlitBits     = 512,
  parameter  int unsigned MaxFlits     = 4,
  parameter  int unsigned RouterCycles = 4,
  parameter  int unsigned CoreBits     = 6,
  localparam int unsigned IndexBits    = MaxFlits > 1 ? $clog2(MaxFlits) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 valid_i,  // from the link
  output logic                 ready_o,  // depends on the buffer alone
  input  logic                 last_i,
  input  logic [CoreBits-1:0]  core_i,   // that sent the packet
  input  logic [CoreBits-1:0]  hops_i,   // still to go, this one included
  input  logic [FlitBits-1:0]  data_i,

  input  logic                 own_valid_i,  // the core's own
  output logic                 own_ready_o,
  input  logic                 own_last_i,
  input  logic [CoreBits-1:0]  own_core_i,
  input  logic [CoreBits-1:0]  own_hops_i,
  input  logic [FlitBits-1:0]  own_data_i,

  output logic                 valid_o,  // to the link
  input  logic                 ready_i,
  output logic                 last_o,
  output logic [CoreBits-1:0]  core_o,
  output logic [CoreBits-1:0]  hops_o,
  output logic [FlitBits-1:0]  data_o,

  output logic                 write_o,  // to the core's registers, which are always ready
  output logic                 write_last_o,
  output logic [CoreBits-1:0]  write_core_o,
  output logic [IndexBits-1:0] write_index_o,  // of the flit in its packet
  output logic [FlitBits-1:0]  write_data_o
);

  localparam int unsigned Rows      = 2 * MaxFlits;
  localparam int unsigned RowBits   = $clog2(Rows);
  localparam int unsigned EntryBits = FlitBits + 2 * CoreBits + 1;

  logic take, pass;

  assign take = valid_i && ready_o;
  assign pass = take && hops_i > CoreBits'(1);  // goes on to the next link

  // ---------------------------------------------------------------- to the core
  logic [IndexBits-1:0] index_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      index_q <= '0;
    end else if (take) begin
      index_q <= last_i ? '0 : index_q + IndexBits'(1);
    end
  end

  systole_flag_line #(.Width(1), .Depth(RouterCycles)) u_write_valid (
    .clk_i,
    .rst_ni,
    .enable_i(1'b1),
    .flags_i (take),
    .flags_o (write_o),
    .any_o   ()
  );

  systole_delay_line #(
    .Width(FlitBits + IndexBits + CoreBits + 1),
    .Depth(RouterCycles)
  ) u_write_flit (
    .clk_i,
    .enable_i(1'b1),
    .data_i  ({last_i, core_i, index_q, data_i}),
    .data_o  ({write_last_o, write_core_o, write_index_o, write_data_o})
  );

  // ---------------------------------------------------------------- packets that pass through
  logic               complete;         // a packet has been here for long enough
  logic               own, forward;     // what is on the link
  logic               leave, left_last;
  logic               own_packet_q;     // a packet of the core's own is on the link
  logic [RowBits:0]   begin_q, end_q;   // flits in the buffer; the top bit tells full from empty
  logic [RowBits:0]   packets_q;        // that are complete
  logic [RowBits-1:0] read_row;

  logic                entry_last;
  logic [CoreBits-1:0] entry_core, entry_hops;
  logic [FlitBits-1:0] entry_data;
  logic [EntryBits-1:0] unused_written;  // what port 0 would read

  assign ready_o   = end_q - begin_q != (RowBits+1)'(Rows);
  assign leave     = forward && ready_i;
  assign left_last = leave && entry_last;
  assign read_row  = begin_q[RowBits-1:0] + RowBits'(leave);  // of the flit of the next cycle

  systole_flag_line #(.Width(1), .Depth(RouterCycles - 1)) u_complete (
    .clk_i,
    .rst_ni,
    .enable_i(1'b1),
    .flags_i (pass && last_i),
    .flags_o (complete),
    .any_o   ()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begin_q   <= '0;
      end_q     <= '0;
      packets_q <= '0;
    end else begin
      begin_q   <= begin_q + (RowBits+1)'(leave);
      end_q     <= end_q + (RowBits+1)'(pass);
      packets_q <= packets_q + (RowBits+1)'(complete) - (RowBits+1)'(left_last);
    end
  end

  systole_sram_bank #(.Ports(2), .Rows(Rows), .Lanes(1), .LaneBits(EntryBits)) u_buffer (
    .clk_i,
    .enable_i({1'b1, pass}),
    .row_i   ({read_row, end_q[RowBits-1:0]}),
    .data_o  ({entry_last, entry_core, entry_hops, entry_data, unused_written}),
    .write_i (1'b1),
    .mask_i  (1'b1),
    .data_i  ({last_i, core_i, hops_i - CoreBits'(1), data_i})
  );

  // ---------------------------------------------------------------- to the link
  assign own     = own_packet_q || packets_q == '0;
  assign forward = !own;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      own_packet_q <= 1'b0;
    end else if (own && own_valid_i) begin
      own_packet_q <= !(own_last_i && ready_i);
    end
  end

  assign own_ready_o = own && ready_i;
  assign valid_o     = forward || own_valid_i;
  assign last_o      = forward ? entry_last : own_last_i;
  assign core_o      = forward ? entry_core : own_core_i;
  assign hops_o      = forward ? entry_hops : own_hops_i;
  assign data_o      = forward ? entry_data : own_data_i;

  // A packet's length, and whose it is, as far as the assertions below have to know.
  logic                begun_q, own_begun_q;
  logic [CoreBits-1:0] core_q, hops_q, own_core_q, own_hops_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q     <= 1'b0;
      own_begun_q <= 1'b0;
    end else begin
      if (take) begun_q <= !last_i;
      if (own_valid_i && own_ready_o) own_begun_q <= !own_last_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) {core_q, hops_q} <= {core_i, hops_i};
    if (own_valid_i && own_ready_o) {own_core_q, own_hops_q} <= {own_core_i, own_hops_i};
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, MaxFlits == 1 << $clog2(MaxFlits) && RouterCycles >= 2)
  `SYSTOLE_ASSERT(HopsLeft_A, valid_i |-> hops_i != '0)
  `SYSTOLE_ASSERT(OwnHopsLeft_A, own_valid_i |-> own_hops_i != '0)
  `SYSTOLE_ASSERT(LengthFits_A, (valid_i && 32'(index_q) == MaxFlits - 1) |-> last_i)
  `SYSTOLE_ASSERT(OnePacket_A, (valid_i && begun_q) |-> (core_i == core_q && hops_i == hops_q))
  `SYSTOLE_ASSERT(OwnOnePacket_A, (own_valid_i && own_begun_q) |->
                                  (own_core_i == own_core_q && own_hops_i == own_hops_q))
  `SYSTOLE_ASSERT(InputHeld_A,
                  (valid_i && !ready_o) |=> (valid_i && $stable(last_i) && $stable(core_i) &&
                                             $stable(hops_i) && $stable(data_i)))
  `SYSTOLE_ASSERT(OwnHeld_A,
                  (own_valid_i && !own_ready_o) |=>
                  (own_valid_i && $stable(own_last_i) && $stable(own_core_i) &&
                   $stable(own_hops_i) && $stable(own_data_i)))
  `SYSTOLE_ASSERT(OutputHeld_A,
                  (valid_o && !ready_i) |=> (valid_o && $stable(last_o) && $stable(core_o) &&
                                             $stable(hops_o) && $stable(data_o)))

endmodule
