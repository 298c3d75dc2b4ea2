// One bank of on-chip memory: rows of `Lanes` lanes, written lane by lane, read a cycle later.
// Port 0 reads or writes; port 1, where there is one, reads.
//
// No reset, and nothing forwards: what port 1 reads of lanes that port 0 writes in the same cycle
// depends on the memory cells, so the user must not look at it.

`include "systole_assert.svh"

module systole_sram_bank #(
  parameter  int unsigned Ports    = 2,
  parameter  int unsigned Rows     = 128,
  parameter  int unsigned Lanes    = 4,
  parameter  int unsigned LaneBits = 32,
  localparam int unsigned RowWidth = Rows > 1 ? $clog2(Rows) : 1
) (
  input  logic                            clk_i,

  input  logic [Ports-1:0]                enable_i,
  input  logic [Ports*RowWidth-1:0]       row_i,
  output logic [Ports*Lanes*LaneBits-1:0] data_o,   // of the last read of each port

  input  logic                            write_i,  // port 0 writes instead of reading
  input  logic [Lanes-1:0]                mask_i,   // lanes that are written
  input  logic [Lanes*LaneBits-1:0]       data_i
);

  localparam int unsigned RowBits = Lanes * LaneBits;

  logic [RowBits-1:0] memory [Rows];

  always_ff @(posedge clk_i) begin
    if (enable_i[0] && write_i) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        if (mask_i[l]) begin
          memory[row_i[RowWidth-1:0]][l*LaneBits+:LaneBits] <= data_i[l*LaneBits+:LaneBits];
        end
      end
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic               read;
    logic [RowBits-1:0] data_q;

    assign read = enable_i[p] && !(p == 0 && write_i);

    always_ff @(posedge clk_i) begin
      if (read) data_q <= memory[row_i[p*RowWidth+:RowWidth]];
    end

    assign data_o[p*RowBits+:RowBits] = data_q;
  end

  `SYSTOLE_ASSERT_INIT(PortsSupported_A, Ports == 1 || Ports == 2)
  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Rows >= 1 && Lanes >= 1 && LaneBits >= 1)

endmodule
