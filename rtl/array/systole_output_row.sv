// A row of processing elements of the output-stationary array (systole_output_array.sv): takes its
// activation from the left, and weights and sums of the columns from the row above.
//
// What column 0 does in a cycle, column c does c cycles later.

module systole_output_row #(
  parameter int unsigned Cols = 4
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               advance_i,     // enable of every register

  // At column 0.
  input  logic               valid_i,
  input  logic               first_i,
  input  logic               ended_i,       // its sum is complete
  input  logic               moves_i,       // it takes the complete sum from above
  input  logic signed [8:0]  act_i,

  input  logic [Cols*8-1:0]  weights_i,     // column c: that of the beat at column c
  input  logic [Cols*32-1:0] captured_i,    // of the row above

  output logic [Cols*8-1:0]  weights_o,
  output logic [Cols*32-1:0] captured_o
);

  // Data registers carry no reset: the flags say which of them hold something.
  logic [Cols-1:1]    valid_q, ended_q, moves_q, first_q;
  logic [Cols*9-1:9]  acts_q;               // by column
  logic [Cols-1:0]    valid, first, ended, moves;
  logic [Cols*9-1:0]  acts;

  assign valid = {valid_q, valid_i};
  assign first = {first_q, first_i};
  assign ended = {ended_q, ended_i};
  assign moves = {moves_q, moves_i};
  assign acts  = {acts_q, act_i};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      ended_q <= '0;
      moves_q <= '0;
    end else if (advance_i) begin
      valid_q <= valid[Cols-2:0];
      ended_q <= ended[Cols-2:0];
      moves_q <= moves[Cols-2:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      first_q   <= first[Cols-2:0];
      acts_q    <= acts[Cols*9-10:0];
      weights_o <= weights_i;
    end
  end

  for (genvar c = 0; c < Cols; c++) begin : gen_pe
    logic signed [8:0]  act;
    logic signed [7:0]  weight;
    logic signed [31:0] sum_q, captured_q;
    assign act    = acts[9*c+:9];
    assign weight = weights_i[8*c+:8];

    always_ff @(posedge clk_i) begin
      if (advance_i) begin
        if (valid[c]) sum_q <= (first[c] ? '0 : sum_q) + 32'(act) * 32'(weight);
        captured_q <= ended[c] ? sum_q : moves[c] ? captured_i[32*c+:32] : captured_q;
      end
    end

    assign captured_o[32*c+:32] = captured_q;
  end

endmodule
