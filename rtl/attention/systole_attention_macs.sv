// The MACs of an attention line, one multiplier each, without flow control: three stages (operands,
// product, sum; hw/number/unit_depths.h). Two ways for the sums, a selection before each
// adder:
//   across_i  the products of all MACs go into one sum, from the highest MAC down to MAC 0
//   else      each MAC keeps its own sum, and all multiply by the same factor
//
// The words of a sum follow each other in enabled cycles without a gap, and every sum begins anew,
// so what the registers do between two sums does not matter.

`include "systole_assert.svh"

module systole_attention_macs #(
  parameter int unsigned Macs = 8
) (
  input  logic                clk_i,
  input  logic                enable_i,
  input  logic                across_i,   // quasi-static

  input  logic                first_i,    // this word begins a sum
  input  logic [Macs*8-1:0]   factors_i,  // int8, MAC 0 in the low bits: across_i
  input  logic signed [8:0]   factor_i,   // of all MACs, -128 .. 255: else
  input  logic [Macs*8-1:0]   word_i,     // int8

  input  logic signed [31:0]  initial_i,  // of a sum, two enabled cycles after its first_i
  output logic [Macs*32-1:0]  sums_o      // int32, three after
);

  localparam int unsigned ProductDepth = systole_pkg::MacDepth - systole_pkg::AddDepth;

  logic first;

  systole_delay_line #(.Width(1), .Depth(ProductDepth)) u_first (
    .clk_i,
    .enable_i,
    .data_i(first_i),
    .data_o(first)
  );

  for (genvar m = 0; m < Macs; m++) begin : gen_mac
    logic signed [8:0]  factor, factor_q;
    logic signed [7:0]  element, element_q;
    logic signed [15:0] product_q;
    logic signed [31:0] addend, sum, sum_q;

    assign factor  = across_i ? 9'(signed'(factors_i[8*m+:8])) : factor_i;
    assign element = word_i[8*m+:8];

    // Sum of the MACs above, or of the words before.
    if (m == Macs - 1) begin : gen_highest
      assign addend = first ? initial_i : across_i ? gen_mac[0].sum_q : sum_q;
    end else begin : gen_other
      assign addend = across_i ? gen_mac[m+1].sum : first ? initial_i : sum_q;
    end
    assign sum = addend + 32'(product_q);

    always_ff @(posedge clk_i) begin
      if (enable_i) begin
        factor_q  <= factor;
        element_q <= element;
        product_q <= 16'(factor_q) * 16'(element_q);
        sum_q     <= sum;
      end
    end

    assign sums_o[32*m+:32] = sum_q;
  end

  `SYSTOLE_ASSERT_INIT(MacsUsable_A, Macs >= 2)

endmodule
