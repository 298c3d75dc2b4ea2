// The row statistics of a core with all that reads and writes them: reciprocals of row sums, means and
// factors of LayerNorms, the row sums of a softmax, side outputs. A chain has one of these at most.

`include "systole_assert.svh"

module systole_statistics_path #(
  parameter  int unsigned Lanes     = 4,
  parameter  int unsigned Words     = 64,   // of the statistics
  parameter  int unsigned CountBits = 24,
  localparam int unsigned WordBits  = Words > 1 ? $clog2(Words) : 1,
  localparam int unsigned InWidth   = systole_pkg::LayerNormInputBits
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // of a command, held from its start on
  input  logic                 start_i,
  input  logic                 divides_i,     // its chain divides by row sums
  input  logic                 norm_i,        // it ends with a LayerNorm of parts of rows
  input  logic [16:0]          length_i,      // of these rows
  input  logic [7:0]           side_i,        // its side output: systole_pkg::reduction_e
  input  logic                 continues_i,
  input  logic [WordBits-1:0]  statistics_i,  // of its first row
  input  logic [CountBits-1:0] rows_i,
  input  logic [CountBits-1:0] vectors_i,     // of a row

  // of the row whose vectors come: systole_row_reciprocals, systole_row_norms
  output logic                 divided_o,
  output logic [31:0]          reciprocal_o,
  input  logic                 divide_take_i,
  output logic                 known_o,
  output logic [InWidth-1:0]   mean_o,
  output logic [31:0]          factor_o,
  input  logic                 norm_take_i,

  input  logic                 sum_write_i,   // a softmax leaves the sum of the next row
  input  logic [31:0]          row_sum_i,

  // results as they leave, and whether side outputs are to come: systole_row_sums
  input  logic                 valid_i,
  input  logic [Lanes-1:0]     mask_i,
  input  logic [Lanes*32-1:0]  data_i,
  output logic                 busy_o,
  output logic                 left_o,

  // what is written to the row statistics
  output logic                 write_o,
  output logic                 write_four_o,
  output logic [WordBits-1:0]  write_at_o,
  output logic [127:0]         write_data_o
);

  logic                divide_read, norm_read, side_read, side_write, side_four;
  logic [WordBits-1:0] divide_at, norm_at, side_at, side_write_at, sum_at_q;
  logic [127:0]        words, side_words;

  systole_row_statistics #(.Words(Words)) u_words (
    .clk_i,
    .read_i      (divide_read || norm_read || side_read),
    .read_at_i   (divide_read ? divide_at : norm_read ? norm_at : side_at),
    .data_o      (words),
    .write_i     (write_o),
    .write_four_i(write_four_o),
    .write_at_i  (write_at_o),
    .data_i      (write_data_o)
  );
  assign write_o      = sum_write_i || side_write;
  assign write_four_o = side_four && side_write;
  assign write_at_o   = side_write ? side_write_at : sum_at_q;
  assign write_data_o = side_write ? side_words : 128'(row_sum_i);

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      sum_at_q <= statistics_i;
    end else if (sum_write_i) begin
      sum_at_q <= sum_at_q + WordBits'(1);
    end
  end

  systole_row_reciprocals #(.Words(Words), .CountBits(CountBits)) u_reciprocals (
    .clk_i, .rst_ni, .start_i, .divides_i, .statistics_i, .rows_i, .vectors_i,
    .read_o      (divide_read),
    .read_at_o   (divide_at),
    .statistic_i (words[31:0]),
    .valid_o     (divided_o),
    .reciprocal_o,
    .take_i      (divide_take_i)
  );

  systole_row_norms #(.Words(Words), .CountBits(CountBits)) u_norms (
    .clk_i, .rst_ni, .start_i,
    .wanted_i (norm_i),
    .length_i, .statistics_i, .rows_i, .vectors_i,
    .read_o   (norm_read),
    .read_at_o(norm_at),
    .data_i   (words),
    .valid_o  (known_o),
    .mean_o, .factor_o,
    .take_i   (norm_take_i)
  );

  systole_row_sums #(.Lanes(Lanes), .Words(Words), .CountBits(CountBits)) u_side (
    .clk_i, .rst_ni, .start_i,
    .kind_i       (side_i),
    .continues_i, .statistics_i, .rows_i, .vectors_i,
    .busy_o, .left_o, .valid_i, .mask_i, .data_i,
    .read_o       (side_read),
    .read_at_o    (side_at),
    .data_before_i(words),
    .write_o      (side_write),
    .write_four_o (side_four),
    .write_at_o   (side_write_at),
    .data_o       (side_words)
  );

  `SYSTOLE_ASSERT(OneReads_A, !(divide_read && norm_read) && !(side_read && (divide_read || norm_read)))
  `SYSTOLE_ASSERT(OneWrites_A, !(sum_write_i && side_write))

endmodule
