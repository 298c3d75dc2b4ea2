// The latency contract of the units that work element by element (hw::chain_cycles, hw::int_exp_cycles):
// a beat leaves the unit its depth after it came, and one more for each cycle in which a result was not
// taken. None is lost, none is new, and they leave in the order in which they came.
//
// An arbitrary beat is followed, which differs from those around it in its mask. Values are not looked at.

module stream_unit_rules #(
  parameter int unsigned Unit  = 0,  // requantise, exponential, GELU, division
  parameter int unsigned Lanes = 2
) (
  input logic             clk_i,
  input logic             valid_i,
  input logic [Lanes-1:0] mask_i,
  input logic             ready_i,
  input logic             follow_i
);

  localparam int unsigned Depth = Unit == 0 ? systole_pkg::RequantiseDepth :
                                  Unit == 1 ? systole_pkg::ExpDepth :
                                  Unit == 2 ? systole_pkg::GeluDepth : systole_pkg::DivideDepth;

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic                ready, valid;
  logic [Lanes-1:0]    mask;
  logic [Lanes*32-1:0] data;

  if (Unit == 0) begin : gen_unit
    systole_requantizer #(.Lanes(Lanes)) u_dut (
      .clk_i, .rst_ni, .valid_i, .ready_o(ready), .mask_i, .data_i('0), .multiplier_i('0), .shift_i('0),
      .rounding_i('0), .lo_i('0), .hi_i('0), .valid_o(valid), .ready_i, .mask_o(mask), .data_o(data)
    );
  end else if (Unit == 1) begin : gen_unit
    systole_i_exp #(.Lanes(Lanes)) u_dut (
      .clk_i, .rst_ni, .valid_i, .ready_o(ready), .mask_i, .data_i('0), .q_ln2_i('0), .reciprocal_i('0),
      .b_i('0), .c_i('0), .valid_o(valid), .ready_i, .mask_o(mask), .data_o(data)
    );
  end else if (Unit == 2) begin : gen_unit
    systole_i_gelu #(.Lanes(Lanes)) u_dut (
      .clk_i, .rst_ni, .valid_i, .ready_o(ready), .mask_i, .data_i('0), .b_i('0), .c_i('0), .one_i('0),
      .multiplier_i('0), .shift_i('0), .lo_i('0), .hi_i('0), .valid_o(valid), .ready_i, .mask_o(mask),
      .data_o(data)
    );
  end else begin : gen_unit
    systole_divider #(.Lanes(Lanes)) u_dut (
      .clk_i, .rst_ni, .valid_i, .ready_o(ready), .mask_i, .data_i('0), .divisor_i('0), .shift_i('0),
      .rounding_i('0), .lo_i('0), .hi_i('0), .valid_o(valid), .ready_i, .mask_o(mask), .data_o(data)
    );
  end

  // The stages of the unit, the newest beat at the bottom.
  logic [Depth-1:0]       flags;
  logic [Depth*Lanes-1:0] masks;
  assign flags = gen_unit.u_dut.u_flow.u_valid.stages_q;
  assign masks = gen_unit.u_dut.u_flow.u_mask.stages_q;

  // ---------------------------------------------------------------- the beat that is followed
  logic             followed_q, inside_q;
  logic [Lanes-1:0] mask_q;
  logic [7:0]       moved_q;       // cycles since it came in which no result was refused
  logic             take, refused;

  assign take    = valid_i && ready;
  assign refused = valid && !ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      followed_q <= 1'b0;
      inside_q   <= 1'b0;
    end else begin
      if (inside_q && !refused) moved_q <= moved_q + 8'd1;
      if (inside_q && 32'(moved_q) == Depth && !refused) inside_q <= 1'b0;
      if (take && follow_i && !followed_q) begin
        followed_q <= 1'b1;
        inside_q   <= 1'b1;
        mask_q     <= mask_i;
        moved_q    <= 8'd1;
      end
    end
  end

  // Beats inside.
  logic [7:0] count_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) count_q <= '0;
    else count_q <= count_q + 8'(take) - 8'(valid && ready_i);
  end

  // ---------------------------------------------------------------- rules
  always_comb begin
    assume (!valid_i || mask_i != '0);
    if (rst_ni) begin
      assert (ready == !refused);
      assert (!(inside_q && 32'(moved_q) == Depth) || (valid && mask == mask_q));
      assert (!valid || count_q != '0);
      assert (32'(count_q) <= Depth);
      cover (inside_q && 32'(moved_q) == Depth && refused);
    end
  end

  // ---------------------------------------------------------------- invariants
  always_comb begin
    if (rst_ni) begin
      assert (32'(count_q) == $countones(flags));
      assert (!inside_q || (moved_q != '0 && 32'(moved_q) <= Depth));
      assert (!inside_q || (flags[moved_q-1] && masks[(32'(moved_q)-1)*Lanes+:Lanes] == mask_q));
    end
  end

endmodule
