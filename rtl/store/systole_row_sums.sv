// Side outputs: reduces the vectors that leave a chain, row by row, and leaves what it finds in the row
// statistics: maximum, sum, largest magnitude, or sum and sum of squares of the values saturated to
// s24. Values: hw::Reduction of hw/postop/stage.h. Cycles: hw::store_times() of hw/dma/store_schedule.h.
//
// The last vector of a row in cycle c: its statistics are written in c + 4, and what was there before
// has been read in c + 3, if the command continues.

`include "systole_assert.svh"

module systole_row_sums #(
  parameter  int unsigned Lanes     = 4,
  parameter  int unsigned Words     = 64,   // of the statistics
  parameter  int unsigned CountBits = 24,
  localparam int unsigned WordBits  = Words > 1 ? $clog2(Words) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // of a command, held from its start to its last vector
  input  logic                 start_i,
  input  logic [7:0]           kind_i,       // systole_pkg::reduction_e
  input  logic                 continues_i,  // adds to what is there
  input  logic [WordBits-1:0]  statistics_i, // of its first row
  input  logic [CountBits-1:0] rows_i,
  input  logic [CountBits-1:0] vectors_i,    // of a row
  output logic                 busy_o,       // statistics are to come
  output logic                 left_o,       // after this cycle too

  input  logic                 valid_i,      // a vector leaves in this cycle
  input  logic [Lanes-1:0]     mask_i,
  input  logic [Lanes*32-1:0]  data_i,

  output logic                 read_o,
  output logic [WordBits-1:0]  read_at_o,
  input  logic [127:0]         data_before_i,
  output logic                 write_o,
  output logic                 write_four_o,
  output logic [WordBits-1:0]  write_at_o,
  output logic [127:0]         data_o
);

  localparam int unsigned InWidth  = systole_pkg::LayerNormInputBits;
  localparam int unsigned SumWidth = 32 + $clog2(Lanes);  // of a vector
  localparam int unsigned Depth    = systole_pkg::MultiplyDepth;

  // ---------------------------------------------------------------- of a command
  logic [7:0]           kind_q;
  logic                 continues_q, squares, peak, valid, row_end, first_q;
  logic [CountBits-1:0] left_q, vectors_q, rows_q;  // rows that are to be written

  assign squares = kind_q == systole_pkg::ReduceSumSquares;
  assign peak    = kind_q == systole_pkg::ReduceRowPeak;
  assign valid   = valid_i && kind_q != systole_pkg::ReduceNone;
  assign row_end = valid && left_q == CountBits'(1);
  assign busy_o  = rows_q != '0;
  assign left_o  = busy_o && !(write_o && rows_q == CountBits'(1));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rows_q <= '0;
      kind_q <= systole_pkg::ReduceNone;
    end else if (start_i) begin
      rows_q <= kind_i == systole_pkg::ReduceNone ? '0 : rows_i;
      kind_q <= kind_i;
    end else if (write_o) begin
      rows_q <= rows_q - CountBits'(1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      continues_q <= continues_i;
      left_q      <= vectors_i;
      vectors_q   <= vectors_i;
    end else if (valid) begin
      left_q <= row_end ? vectors_q : left_q - CountBits'(1);
    end
  end

  // ---------------------------------------------------------------- a vector
  // A maximum is kept as a rank, an unsigned number: 0 is the least of either kind.
  logic [Lanes*2*InWidth-1:0] products;
  logic signed [SumWidth-1:0] sum_d;
  logic [31:0]                rank_d;
  logic [Lanes*32-1:0]        ranks;
  logic [Lanes*32-1:0]        added;

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [31:0]               word;
    logic                      fits;
    logic signed [InWidth-1:0] narrow;

    assign word   = mask_i[l] ? data_i[32*l+:32] : '0;
    assign fits   = &word[31:InWidth-1] || ~|word[31:InWidth-1];
    assign narrow = fits ? word[InWidth-1:0] : {word[31], {(InWidth - 1){!word[31]}}};

    systole_mul_pipe #(.AWidth(InWidth), .BWidth(InWidth)) u_square (
      .clk_i,
      .enable_i (1'b1),
      .a_i      (narrow),
      .b_i      (narrow),
      .product_o(products[2*InWidth*l+:2*InWidth])
    );

    assign added[32*l+:32] = squares ? 32'(narrow) : word;
    assign ranks[32*l+:32] = !mask_i[l] ? '0 :
                             !peak ? word ^ 32'h8000_0000 : word[31] ? -word : word;
  end

  always_comb begin
    sum_d  = '0;
    rank_d = '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      sum_d = sum_d + SumWidth'(signed'(added[32*l+:32]));
      if (ranks[32*l+:32] > rank_d) rank_d = ranks[32*l+:32];
    end
  end

  // ---------------------------------------------------------------- when its squares are there
  logic                       there, ends, total_q;
  logic signed [SumWidth-1:0] sum;
  logic [31:0]                rank;

  systole_flag_line #(.Width(2), .Depth(Depth)) u_flags (
    .clk_i, .rst_ni,
    .enable_i(1'b1),
    .flags_i ({valid, row_end}),
    .flags_o ({there, ends}),
    .any_o   ()
  );
  systole_delay_line #(.Width(SumWidth + 32), .Depth(Depth)) u_line (
    .clk_i,
    .enable_i(1'b1),
    .data_i  ({sum_d, rank_d}),
    .data_o  ({sum, rank})
  );

  logic [63:0] total_sum_d, total_sum_q, total_squares_d, total_squares_q;
  logic [31:0] total_rank_d, total_rank_q;

  always_comb begin
    total_sum_d     = (first_q ? '0 : total_sum_q) + 64'(sum);
    total_squares_d = first_q ? '0 : total_squares_q;
    for (int unsigned l = 0; l < Lanes; l++) begin
      total_squares_d = total_squares_d + 64'(products[2*InWidth*l+:2*InWidth]);
    end
    total_rank_d = first_q || rank > total_rank_q ? rank : total_rank_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      total_q <= 1'b0;
    end else begin
      total_q <= ends;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      first_q   <= 1'b1;
      read_at_o <= statistics_i;
    end else if (there) begin
      first_q <= ends;
      if (ends) read_at_o <= read_at_o + (squares ? WordBits'(4) : WordBits'(1));
    end
    write_at_o <= read_at_o;
    if (there) begin
      total_sum_q     <= total_sum_d;
      total_squares_q <= total_squares_d;
      total_rank_q    <= total_rank_d;
    end
  end

  // ---------------------------------------------------------------- of a row, with what was there
  logic [63:0] sum_before, squares_before;
  logic [31:0] word_before, rank_before, row_rank, row_word;

  assign word_before    = continues_q ? data_before_i[31:0] : '0;
  assign sum_before     = continues_q ? data_before_i[63:0] : '0;
  assign squares_before = continues_q ? data_before_i[127:64] : '0;
  assign rank_before    = !continues_q ? '0 : peak ? word_before : word_before ^ 32'h8000_0000;
  assign row_rank       = rank_before > total_rank_q ? rank_before : total_rank_q;

  always_comb begin
    case (kind_q)
      systole_pkg::ReduceRowSum:  row_word = word_before + total_sum_q[31:0];
      systole_pkg::ReduceRowPeak: row_word = row_rank;
      default:                    row_word = row_rank ^ 32'h8000_0000;
    endcase
  end

  assign read_o       = ends;
  assign write_o      = total_q;
  assign write_four_o = squares;
  assign data_o       = squares ? {squares_before + total_squares_q, sum_before + total_sum_q}
                                : 128'(row_word);

  `SYSTOLE_ASSERT(StartedIdle_A, start_i |-> (!busy_o && !there && !total_q))

endmodule
