// Where the rows of sums go that leave the array, one fold after the other: column tiles outside, tiles
// of k inside, of which the later ones add to what the first has left.

module systole_sum_rows #(
  parameter int unsigned Rows      = 4,   // of the array
  parameter int unsigned Cols      = 4,
  parameter int unsigned SumBits   = 10,  // of a sum in the accumulator
  parameter int unsigned CountBits = 24
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 next_i,        // takes the command below, which holds until the next
  input  logic [SumBits-1:0]   c_i,
  input  logic [SumBits-1:0]   c_pitch_i,
  input  logic [CountBits-1:0] m_i,
  input  logic [CountBits-1:0] n_i,
  input  logic [CountBits-1:0] k_i,
  input  logic                 accumulate_i,
  output logic                 busy_o,        // rows of it are to come
  input  logic                 row_i,         // one leaves
  output logic                 over_o,        // the last one
  output logic [SumBits-1:0]   sums_at_o,     // its first sum
  output logic [Cols-1:0]      sums_mask_o,
  output logic                 sums_accumulate_o
);

  logic                 fold_end, column_end, first_q, accumulate_q;
  logic [SumBits-1:0]   at_q, tile_q;
  logic [CountBits-1:0] rows_q, k_q, n_q;

  assign fold_end   = rows_q == CountBits'(1);
  assign column_end = k_q <= CountBits'(Rows);
  assign over_o     = row_i && fold_end && column_end && n_q <= CountBits'(Cols);

  assign sums_at_o         = at_q;
  assign sums_accumulate_o = accumulate_q || !first_q;
  for (genvar c = 0; c < Cols; c++) begin : gen_column
    assign sums_mask_o[c] = CountBits'(c) < n_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_o <= 1'b0;
    end else begin
      busy_o <= next_i || (busy_o && !over_o);
    end
  end

  always_ff @(posedge clk_i) begin
    if (next_i) begin
      at_q    <= c_i;
      tile_q  <= c_i;
      rows_q  <= m_i;
      k_q     <= k_i;
      n_q     <= n_i;
      first_q <= 1'b1;
      accumulate_q <= accumulate_i;
    end else if (row_i && !fold_end) begin
      at_q   <= at_q + c_pitch_i;
      rows_q <= rows_q - CountBits'(1);
    end else if (row_i) begin
      rows_q <= m_i;
      if (!column_end) begin
        at_q    <= tile_q;
        k_q     <= k_q - CountBits'(Rows);
        first_q <= 1'b0;
      end else begin
        at_q    <= tile_q + SumBits'(Cols);
        tile_q  <= tile_q + SumBits'(Cols);
        k_q     <= k_i;
        n_q     <= n_q - CountBits'(Cols);
        first_q <= 1'b1;
      end
    end
  end

endmodule
