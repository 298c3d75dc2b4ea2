// The stage that gives a LayerNorm of parts of rows, layer_norm_apply: `Lanes` elements of a row a
// cycle, from the row's mean and factor (systole_row_norms). Values: StageOp::kLayerNormApply of
// hw/postop/stage.h; a vector leaves LayerNormDepth cycles after it came.

`include "systole_assert.svh"

module systole_norm_stage #(
  parameter  int unsigned Lanes   = 4,
  localparam int unsigned InWidth = systole_pkg::LayerNormInputBits
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Quasi-static: hold from the first vector to the last output.
  input  logic [4:0]          fraction_bits_i,  // 1 .. 30
  input  logic [5:0]          shift_i,          // 0 .. 62
  input  logic [31:0]         lo_i,             // signed
  input  logic [31:0]         hi_i,             // signed, not below lo_i

  // of the row that a vector is of
  input  logic                known_i,
  input  logic [InWidth-1:0]  mean_i,           // in excess 2^23
  input  logic [31:0]         factor_i,

  input  logic                valid_i,
  output logic                ready_o,
  input  logic [Lanes*32-1:0] data_i,
  input  logic [Lanes*32-1:0] multiplier_i,     // of its columns
  input  logic [Lanes*32-1:0] addend_i,

  output logic                valid_o,
  input  logic                ready_i,
  output logic [Lanes*32-1:0] data_o
);

  localparam int unsigned FactorBits = systole_pkg::LayerNormFactorBits;

  logic        advance, takes, any, moves;
  logic [31:0] factor_q;

  assign advance = !(valid_o && !ready_i);
  assign ready_o = advance && known_i;
  assign takes   = valid_i && known_i;
  assign moves   = advance && (takes || any);  // the lanes hold something, or take it

  systole_flag_line #(.Width(1), .Depth(systole_pkg::LayerNormDepth)) u_flags (
    .clk_i, .rst_ni,
    .enable_i(advance),
    .flags_i (takes),
    .flags_o (valid_o),
    .any_o   (any)
  );

  // A lane wants it one stage after its element.
  always_ff @(posedge clk_i) begin
    if (moves) factor_q <= factor_i;
  end

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [31:0]          word;
    logic                 fits;
    logic [InWidth-1:0]   excess;
    logic [2*InWidth-1:0] unused_square;

    assign word   = data_i[32*l+:32];
    assign fits   = &word[31:InWidth-1] || ~|word[31:InWidth-1];
    assign excess = fits ? {!word[InWidth-1], word[InWidth-2:0]} : {InWidth{!word[31]}};

    systole_layernorm_lane #(.OwnRow(0)) u_lane (
      .clk_i,
      .enable_i    (moves),
      .data_i      (excess),
      .mean_i,
      .multiplier_i(multiplier_i[32*l+:32]),
      .addend_i    (addend_i[32*l+:32]),
      .square_i    (1'b0),
      .factor_i    (factor_q),
      .norm_shift_i(5'(FactorBits) - fraction_bits_i),
      .shift_i, .lo_i, .hi_i,
      .square_o    (unused_square),
      .data_o      (data_o[32*l+:32])
    );
  end

  `SYSTOLE_ASSERT(FractionInRange_A, (valid_i && ready_o) |-> (fraction_bits_i >= 5'd1 &&
                                                              fraction_bits_i <= 5'd30))

endmodule
