// What the stages rely on of a bank of parameters: in each cycle it gives all that was written into the row
// before, also in the cycle in which the memory was read.
//
// A lane of a row is followed, whichever it is.

module parameter_bank_rules #(
  parameter  int unsigned Rows     = 4,
  parameter  int unsigned Lanes    = 2,
  parameter  int unsigned LaneBits = 4,
  localparam int unsigned RowWidth = $clog2(Rows)
) (
  input logic                      clk_i,
  input logic                      write_i,
  input logic [RowWidth-1:0]       to_i,
  input logic [Lanes-1:0]          mask_i,
  input logic [Lanes*LaneBits-1:0] data_i,
  input logic                      move_i,
  input logic [RowWidth-1:0]       row_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [RowWidth-1:0] its_row;   // any, and then the same
  logic                its_lane;
  always_ff @(posedge clk_i) begin
    its_row  <= its_row;
    its_lane <= its_lane;
  end

  logic [Lanes*LaneBits-1:0] data;

  systole_parameter_bank #(.Rows(Rows), .Lanes(Lanes), .LaneBits(LaneBits)) u_dut (
    .clk_i, .write_i, .to_i, .mask_i, .data_i, .move_i, .row_i, .data_o(data)
  );

  logic                known_q, moved_q;  // it has been written; a row has been asked for
  logic [LaneBits-1:0] value_q;
  logic [RowWidth-1:0] row_q;

  always_ff @(posedge clk_i) begin
    row_q   <= row_i;
    moved_q <= rst_ni && (moved_q || move_i);
    if (!rst_ni) begin
      known_q <= 1'b0;
    end else if (write_i && to_i == its_row && mask_i[its_lane]) begin
      known_q <= 1'b1;
      value_q <= data_i[its_lane*LaneBits+:LaneBits];
    end
  end

  // ---------------------------------------------------------------- rules
  always_comb begin
    assume (move_i || row_i == row_q || !moved_q);
    if (rst_ni) begin
      assert (!(known_q && moved_q && row_q == its_row) || data[its_lane*LaneBits+:LaneBits] == value_q);
      cover (known_q && moved_q && row_q == its_row && u_dut.late_lanes_q != '0 && value_q == LaneBits'(5));
    end
  end

  // ---------------------------------------------------------------- invariants
  always_comb begin
    if (rst_ni && known_q) begin
      assert (u_dut.u_memory.memory[its_row][its_lane*LaneBits+:LaneBits] == value_q);
      assert (!(moved_q && row_q == its_row && !u_dut.late_lanes_q[its_lane]) ||
              u_dut.stored[its_lane*LaneBits+:LaneBits] == value_q);
      assert (!(row_q == its_row && u_dut.late_lanes_q[its_lane]) ||
              u_dut.late_q[its_lane*LaneBits+:LaneBits] == value_q);
    end
  end

endmodule
