// A line of the auto-encoder: mixes the heads of a token, P features at a time. The decoder has as
// many lines as the machine says; the encoder's are the same.
// Bit-exact reference: hw::mix_heads, cycles: hw::HeadMixLines, both of hw/attention/head_mix.h.
//
// A group comes in as in_heads_i beats, head 0 first. Then in_heads_i cycles for each output head,
// an input head a cycle, each MAC on its own feature; the sums begin at the head's bias and
// are requantised by its factor. Meanwhile the next group comes in. A refused output stops
// everything, an input that is late only what waits for it.

`include "systole_assert.svh"

module systole_head_mix_line #(
  parameter  int unsigned Macs       = 8,
  parameter  int unsigned MaxHeads   = 16,
  localparam int unsigned HeadWidth  = $clog2(MaxHeads),
  localparam int unsigned CountWidth = $clog2(MaxHeads + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Coefficients, written while the line has no group.
  input  logic                  config_valid_i,
  input  logic [1:0]            config_field_i,  // systole_pkg::mix_field_e
  input  logic [HeadWidth-1:0]  config_out_i,    // output head
  input  logic [HeadWidth-1:0]  config_in_i,     // input head of a weight
  input  logic [31:0]           config_data_i,

  // Quasi-static: held from a group's first beat to its last.
  input  logic [CountWidth-1:0] in_heads_i,      // 1 .. MaxHeads
  input  logic [CountWidth-1:0] out_heads_i,
  input  logic [1:0]            rounding_i,      // hw::Rounding

  input  logic                  in_valid_i,
  output logic                  in_ready_o,
  input  logic [Macs*8-1:0]     in_i,            // int8, feature 0 of the group in the low bits

  output logic                  out_valid_o,
  input  logic                  out_ready_i,
  output logic [HeadWidth-1:0]  out_head_o,
  output logic [Macs*8-1:0]     out_o            // int8, -127 .. 127
);

  localparam logic signed [31:0] Highest = 32'sd127;

  localparam int unsigned ProductDepth = systole_pkg::MacDepth - systole_pkg::AddDepth;

  logic advance;

  assign advance = !(out_valid_o && !out_ready_i);

  // ------------------------------------------------------------------ coefficients
  logic signed [7:0]  weight_q [MaxHeads*MaxHeads];  // [out][in]
  logic signed [31:0] bias_q [MaxHeads];
  logic signed [31:0] multiplier_q [MaxHeads];
  logic        [5:0]  shift_q [MaxHeads];

  always_ff @(posedge clk_i) begin
    if (config_valid_i) begin
      unique case (config_field_i)
        systole_pkg::MixWeight:     weight_q[{config_out_i, config_in_i}] <= config_data_i[7:0];
        systole_pkg::MixBias:       bias_q[config_out_i]                  <= config_data_i;
        systole_pkg::MixMultiplier: multiplier_q[config_out_i]            <= config_data_i;
        default:                    shift_q[config_out_i]                 <= config_data_i[5:0];
      endcase
    end
  end

  // ------------------------------------------------------------------ groups coming in
  logic [1:0]           full_q;  // banks
  logic                 in_bank_q, work_bank_q;
  logic [HeadWidth-1:0] in_head_q;
  logic                 in_fire, in_last;
  logic [Macs*8-1:0]    group_q [2*MaxHeads];  // [bank][head]

  assign in_ready_o = advance && !full_q[in_bank_q];
  assign in_fire    = in_valid_i && in_ready_o;
  assign in_last    = CountWidth'(in_head_q) == in_heads_i - 1'b1;

  // ------------------------------------------------------------------ the group in use
  logic                 working, sum_ends, group_ends;
  logic [HeadWidth-1:0] head_q, out_q;

  assign working    = full_q[work_bank_q];
  assign sum_ends   = working && CountWidth'(head_q) == in_heads_i - 1'b1;
  assign group_ends = sum_ends && CountWidth'(out_q) == out_heads_i - 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      full_q      <= '0;
      in_bank_q   <= 1'b0;
      work_bank_q <= 1'b0;
      in_head_q   <= '0;
      head_q      <= '0;
      out_q       <= '0;
    end else if (advance) begin
      if (in_fire) begin
        in_head_q <= in_last ? '0 : in_head_q + 1'b1;
        if (in_last) begin
          full_q[in_bank_q] <= 1'b1;
          in_bank_q         <= !in_bank_q;
        end
      end
      if (working) head_q <= sum_ends ? '0 : head_q + 1'b1;
      if (sum_ends) out_q <= group_ends ? '0 : out_q + 1'b1;
      if (group_ends) begin
        full_q[work_bank_q] <= 1'b0;
        work_bank_q         <= !work_bank_q;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (in_fire) group_q[{in_bank_q, in_head_q}] <= in_i;
  end

  // ------------------------------------------------------------------ sums
  logic [HeadWidth-1:0] bias_head, factor_head;
  logic [Macs*32-1:0]   sums;

  systole_delay_line #(.Width(HeadWidth), .Depth(ProductDepth)) u_bias_head (
    .clk_i,
    .enable_i(advance),
    .data_i  (out_q),
    .data_o  (bias_head)
  );

  systole_delay_line #(.Width(HeadWidth), .Depth(systole_pkg::AddDepth)) u_factor_head (
    .clk_i,
    .enable_i(advance),
    .data_i  (bias_head),
    .data_o  (factor_head)
  );

  systole_attention_macs #(.Macs(Macs)) u_macs (
    .clk_i,
    .enable_i (advance),
    .across_i (1'b0),
    .first_i  (head_q == '0),
    .factors_i('0),
    .factor_i (9'(weight_q[{out_q, head_q}])),
    .word_i   (group_q[{work_bank_q, head_q}]),
    .initial_i(bias_q[bias_head]),
    .sums_o   (sums)
  );

  // ------------------------------------------------------------------ requantisation
  for (genvar m = 0; m < Macs; m++) begin : gen_lane
    logic [31:0] data;
    logic        unused_data;

    systole_requantizer_lane u_lane (
      .clk_i,
      .enable_i    (advance),
      .data_i      (sums[32*m+:32]),
      .multiplier_i(multiplier_q[factor_head]),
      .shift_i     (shift_q[factor_head]),
      .rounding_i,
      .lo_i        (-Highest),
      .hi_i        (Highest),
      .data_o      (data)
    );

    assign out_o[8*m+:8] = data[7:0];
    assign unused_data   = ^data[31:8];  // the sign's copies
  end

  systole_flag_line #(
    .Width(1),
    .Depth(systole_pkg::MacDepth + systole_pkg::RequantiseDepth)
  ) u_valid (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (sum_ends),
    .flags_o (out_valid_o),
    .any_o   ()
  );

  systole_delay_line #(.Width(HeadWidth), .Depth(systole_pkg::RequantiseDepth)) u_out_head (
    .clk_i,
    .enable_i(advance),
    .data_i  (factor_head),
    .data_o  (out_head_o)
  );

  `SYSTOLE_ASSERT_INIT(HeadsPowerOfTwo_A, MaxHeads >= 2 && (MaxHeads & (MaxHeads - 1)) == 0)
  `SYSTOLE_ASSERT(HeadsInRange_A, in_valid_i |->
      (in_heads_i != '0 && in_heads_i <= CountWidth'(MaxHeads) && out_heads_i != '0 &&
       out_heads_i <= CountWidth'(MaxHeads)))
  `SYSTOLE_ASSERT(RoundingKnown_A, in_valid_i |-> rounding_i <= systole_pkg::Floor)
  `SYSTOLE_ASSERT(ConfigWhileIdle_A, config_valid_i |->
                                     (full_q == '0 && in_head_q == '0 && !out_valid_o))
  `SYSTOLE_ASSERT(ShapeHeld_A, (full_q != '0 || in_head_q != '0 || out_valid_o) |->
                               $stable({in_heads_i, out_heads_i, rounding_i}))
  `SYSTOLE_ASSERT(InHeld_A, (in_valid_i && !in_ready_o) |=> (in_valid_i && $stable(in_i)))
  `SYSTOLE_ASSERT(OutHeld_A, (out_valid_o && !out_ready_i) |=>
                             (out_valid_o && $stable({out_head_o, out_o})))

endmodule
