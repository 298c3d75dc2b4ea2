// Transposes tiles of weights: takes them row by row as they are stored, n x k, and gives their beats, a
// row of k for all columns, bottom row first. It holds two tiles, so that one comes in while the other
// leaves. A row is on `data_i` in the cycle after `fill_i`; the beat of a cycle is on the output in the
// next one.

module systole_weight_transposer #(
  parameter  int unsigned Rows    = 4,   // of the array: elements of a stored row
  parameter  int unsigned Cols    = 4,   // stored rows
  localparam int unsigned RowBits = $clog2(Rows),
  localparam int unsigned ColBits = $clog2(Cols)
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               fill_i,
  input  logic               fill_tile_i,   // which of the two
  input  logic [ColBits-1:0] fill_row_i,
  input  logic [Rows*8-1:0]  data_i,
  input  logic               beat_tile_i,
  input  logic [RowBits-1:0] beat_i,
  output logic [Cols*8-1:0]  weights_o
);

  logic               write_q, write_tile_q;
  logic [ColBits-1:0] write_row_q;
  logic [RowBits-1:0] row;

  assign row = RowBits'(Rows - 1) - beat_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q <= 1'b0;
    end else begin
      write_q <= fill_i;
    end
  end
  always_ff @(posedge clk_i) begin
    write_row_q  <= fill_row_i;
    write_tile_q <= fill_tile_i;
  end

  for (genvar c = 0; c < Cols; c++) begin : gen_column
    logic [Rows*8-1:0] column_q [2];
    always_ff @(posedge clk_i) begin
      if (write_q && write_row_q == ColBits'(c)) column_q[write_tile_q] <= data_i;
      weights_o[8*c+:8] <= column_q[beat_tile_i][8*row+:8];
    end
  end

endmodule
