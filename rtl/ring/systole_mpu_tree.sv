// One lane of a matrix unit: `Depth` half precision products, a tree that adds them, and an adder
// that keeps the partial sums of `Slots` columns in flight.
//
// A beat is a column's part of a tile: Depth inputs, Depth weights, and the slot of its sum. The
// first beat of a column begins the sum with its bias, the last one hands it over. A beat is taken
// as soon as its slot's sum will be back in time, so one a cycle if a slot's beats are eleven
// cycles apart. While an output is refused nothing moves; where no beat comes, a gap travels along.
// Bit-exact reference: hw::half_gemv of hw/ring/half_gemv.h. Cycles: hw::matrix_cycles of
// hw/machine/matrix_unit.h.

`include "systole_assert.svh"

module systole_mpu_tree #(
  parameter  int unsigned Depth     = 8,  // a power of two, at least 2
  parameter  int unsigned Slots     = 4,
  localparam int unsigned SlotWidth = Slots > 1 ? $clog2(Slots) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 valid_i,
  output logic                 ready_o,  // depends on slot_i and first_i
  input  logic [SlotWidth-1:0] slot_i,
  input  logic                 first_i,
  input  logic                 last_i,
  input  logic [15:0]          bias_i,   // with the first beat of a column
  input  logic [Depth*16-1:0]  x_i,      // element 0 in the low bits
  input  logic [Depth*16-1:0]  weight_i,

  output logic                 valid_o,
  input  logic                 ready_i,
  output logic [SlotWidth-1:0] slot_o,
  output logic [15:0]          data_o
);

  localparam int unsigned TreeStages =
      systole_pkg::HalfMultiplyDepth + $clog2(Depth) * systole_pkg::HalfAddDepth;
  // Cycles that a slot waits after a beat.
  localparam int unsigned Waiting    = systole_pkg::HalfAddDepth - 1;

  logic advance, take;

  assign advance = !(valid_o && !ready_i);
  assign take    = valid_i && ready_o;

  // ---------------------------------------------------------------- slots whose sum is away
  logic [Waiting-1:0]   away_q;
  logic [SlotWidth-1:0] away_slot_q [Waiting];
  logic [Waiting-1:0]   hit;

  for (genvar i = 0; i < Waiting; i++) begin : gen_hit
    assign hit[i] = away_q[i] && away_slot_q[i] == slot_i;
  end

  assign ready_o = advance && (first_i || hit == '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      away_q <= '0;
    end else if (advance) begin
      away_q <= Waiting'({away_q, take});
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance) begin
      away_slot_q[0] <= slot_i;
      for (int unsigned i = 1; i < Waiting; i++) away_slot_q[i] <= away_slot_q[i-1];
    end
  end

  // ---------------------------------------------------------------- products and tree
  // Node n adds one of the upper and one of the lower half of its level: a level of h sums is
  // in the nodes from h on, the products in those from Depth on, the tree's sum in node 1.
  logic [15:0] node [2*Depth];

  for (genvar i = 0; i < Depth; i++) begin : gen_product
    systole_fp16_mul_lane u_mul (
      .clk_i,
      .enable_i(advance),
      .a_i     (x_i[i*16+:16]),
      .b_i     (weight_i[i*16+:16]),
      .data_o  (node[Depth+i])
    );
  end

  for (genvar n = 1; n < Depth; n++) begin : gen_sum
    localparam int unsigned Level = 1 << ($clog2(n + 1) - 1);  // sums of this level

    systole_fp16_add_lane u_add (
      .clk_i,
      .enable_i  (advance),
      .subtract_i(1'b0),
      .a_i       (node[n+Level]),
      .b_i       (node[n+2*Level]),
      .data_o    (node[n])
    );
  end

  assign node[0] = '0;

  // ---------------------------------------------------------------- beside the tree
  logic                 tree_valid, tree_first, tree_last;
  logic [SlotWidth-1:0] tree_slot;
  logic [15:0]          tree_bias;

  systole_flag_line #(.Width(1), .Depth(TreeStages)) u_tree_valid (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (take),
    .flags_o (tree_valid),
    .any_o   ()
  );

  systole_delay_line #(.Width(SlotWidth + 18), .Depth(TreeStages)) u_tree_beat (
    .clk_i,
    .enable_i(advance),
    .data_i  ({slot_i, first_i, last_i, bias_i}),
    .data_o  ({tree_slot, tree_first, tree_last, tree_bias})
  );

  // ---------------------------------------------------------------- partial sums
  logic                 sum_valid, sum_last;
  logic [SlotWidth-1:0] sum_slot;
  logic [15:0]          sum, partial;
  logic [15:0]          sums_q [Slots];

  // The sum that comes back in this very cycle is not in the buffer yet.
  assign partial = tree_first                        ? tree_bias
                   : sum_valid && sum_slot == tree_slot ? sum
                                                        : sums_q[tree_slot];

  systole_fp16_add_lane u_sum (
    .clk_i,
    .enable_i  (advance),
    .subtract_i(1'b0),
    .a_i       (partial),
    .b_i       (node[1]),
    .data_o    (sum)
  );

  systole_flag_line #(.Width(1), .Depth(systole_pkg::HalfAddDepth)) u_sum_valid (
    .clk_i,
    .rst_ni,
    .enable_i(advance),
    .flags_i (tree_valid),
    .flags_o (sum_valid),
    .any_o   ()
  );

  systole_delay_line #(.Width(SlotWidth + 1), .Depth(systole_pkg::HalfAddDepth)) u_sum_beat (
    .clk_i,
    .enable_i(advance),
    .data_i  ({tree_slot, tree_last}),
    .data_o  ({sum_slot, sum_last})
  );

  always_ff @(posedge clk_i) begin
    if (advance && sum_valid) sums_q[sum_slot] <= sum;
  end

  assign valid_o = sum_valid && sum_last;
  assign slot_o  = sum_slot;
  assign data_o  = sum;

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Depth >= 2 && Depth == 1 << $clog2(Depth) && Slots >= 1)
  `SYSTOLE_ASSERT(SlotExists_A, valid_i |-> (32'(slot_i) < Slots))
  `SYSTOLE_ASSERT(InputHeld_A,
                  (valid_i && !ready_o) |=> (valid_i && $stable(slot_i) && $stable(first_i) &&
                                             $stable(last_i) && $stable(bias_i) &&
                                             $stable(x_i) && $stable(weight_i)))
  `SYSTOLE_ASSERT(OutputHeld_A,
                  (valid_o && !ready_i) |=> (valid_o && $stable(slot_o) && $stable(data_o)))

endmodule
