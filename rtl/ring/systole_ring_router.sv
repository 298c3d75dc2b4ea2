// A core's router on the ring: packets of flits, parts of a vector, pass through it to the right
// and to the left, and are put together in the core's registers by core and flit,
// whatever comes first. The core sends its own part both ways, through a port for each, so that
// neither way waits for the other. Way 0, in the low bits of all ports, is from the left neighbour
// to the right one, way 1 back. Parts that are summed in the ring are not this block's.
// Reference: tlm/ring/ring_router.h. Cycles: hw/ring/router_contract.h.

module systole_ring_router #(
  parameter  int unsigned FlitBits     = 512,  // 32 halves
  parameter  int unsigned MaxFlits     = 4,    // of a packet, a power of two
  parameter  int unsigned RouterCycles = 4,    // at least 2
  parameter  int unsigned CoreBits     = 6,
  localparam int unsigned Ways         = 2,
  localparam int unsigned IndexBits    = MaxFlits > 1 ? $clog2(MaxFlits) : 1
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic [Ways-1:0]           valid_i,  // from the neighbours
  output logic [Ways-1:0]           ready_o,
  input  logic [Ways-1:0]           last_i,
  input  logic [Ways*CoreBits-1:0]  core_i,   // that sent the packet
  input  logic [Ways*CoreBits-1:0]  hops_i,   // still to go, this one included
  input  logic [Ways*FlitBits-1:0]  data_i,   // half 0 in the low bits

  input  logic [Ways-1:0]           own_valid_i,  // the core's own
  output logic [Ways-1:0]           own_ready_o,
  input  logic [Ways-1:0]           own_last_i,
  input  logic [CoreBits-1:0]       own_core_i,
  input  logic [Ways*CoreBits-1:0]  own_hops_i,
  input  logic [Ways*FlitBits-1:0]  own_data_i,

  output logic [Ways-1:0]           valid_o,  // to the neighbours
  input  logic [Ways-1:0]           ready_i,
  output logic [Ways-1:0]           last_o,
  output logic [Ways*CoreBits-1:0]  core_o,
  output logic [Ways*CoreBits-1:0]  hops_o,
  output logic [Ways*FlitBits-1:0]  data_o,

  output logic [Ways-1:0]           write_o,  // to the core's registers
  output logic [Ways-1:0]           write_last_o,
  output logic [Ways*CoreBits-1:0]  write_core_o,
  output logic [Ways*IndexBits-1:0] write_index_o,
  output logic [Ways*FlitBits-1:0]  write_data_o
);

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    systole_ring_way #(
      .FlitBits    (FlitBits),
      .MaxFlits    (MaxFlits),
      .RouterCycles(RouterCycles),
      .CoreBits    (CoreBits)
    ) u_way (
      .clk_i,
      .rst_ni,
      .valid_i      (valid_i[w]),
      .ready_o      (ready_o[w]),
      .last_i       (last_i[w]),
      .core_i       (core_i[w*CoreBits+:CoreBits]),
      .hops_i       (hops_i[w*CoreBits+:CoreBits]),
      .data_i       (data_i[w*FlitBits+:FlitBits]),
      .own_valid_i  (own_valid_i[w]),
      .own_ready_o  (own_ready_o[w]),
      .own_last_i   (own_last_i[w]),
      .own_core_i,
      .own_hops_i   (own_hops_i[w*CoreBits+:CoreBits]),
      .own_data_i   (own_data_i[w*FlitBits+:FlitBits]),
      .valid_o      (valid_o[w]),
      .ready_i      (ready_i[w]),
      .last_o       (last_o[w]),
      .core_o       (core_o[w*CoreBits+:CoreBits]),
      .hops_o       (hops_o[w*CoreBits+:CoreBits]),
      .data_o       (data_o[w*FlitBits+:FlitBits]),
      .write_o      (write_o[w]),
      .write_last_o (write_last_o[w]),
      .write_core_o (write_core_o[w*CoreBits+:CoreBits]),
      .write_index_o(write_index_o[w*IndexBits+:IndexBits]),
      .write_data_o (write_data_o[w*FlitBits+:FlitBits])
    );
  end

endmodule
