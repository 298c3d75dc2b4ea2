// Words of parameters, a row for each vector, in a memory that answers a cycle after it is asked: it is asked
// for the row of the next cycle. What is written into that row in this cycle comes beside the memory, so
// data_o always has all that has been written.

module systole_parameter_bank #(
  parameter  int unsigned Rows     = 32,
  parameter  int unsigned Lanes    = 4,
  parameter  int unsigned LaneBits = 32,
  localparam int unsigned RowWidth = $clog2(Rows)
) (
  input  logic                      clk_i,

  input  logic                      write_i,
  input  logic [RowWidth-1:0]       to_i,
  input  logic [Lanes-1:0]          mask_i,
  input  logic [Lanes*LaneBits-1:0] data_i,

  input  logic                      move_i,   // another row than in this cycle
  input  logic [RowWidth-1:0]       row_i,    // that is read in the next cycle
  output logic [Lanes*LaneBits-1:0] data_o
);

  logic                      hit;
  logic [Lanes-1:0]          late_lanes_q;    // of the row, that were written when it was read
  logic [Lanes*LaneBits-1:0] late_q, stored, unused_port;

  assign hit = write_i && to_i == row_i;

  always_ff @(posedge clk_i) begin
    late_lanes_q <= hit ? mask_i : '0;
    if (hit) late_q <= data_i;
  end

  systole_sram_bank #(.Ports(2), .Rows(Rows), .Lanes(Lanes), .LaneBits(LaneBits)) u_memory (
    .clk_i,
    .enable_i({move_i || late_lanes_q != '0, write_i}),
    .row_i   ({row_i, to_i}),
    .data_o  ({stored, unused_port}),
    .write_i (1'b1),
    .mask_i,
    .data_i
  );

  always_comb begin
    data_o = stored;
    if (late_lanes_q != '0) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        if (late_lanes_q[l]) data_o[l*LaneBits+:LaneBits] = late_q[l*LaneBits+:LaneBits];
      end
    end
  end

endmodule
