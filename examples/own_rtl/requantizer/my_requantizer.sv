// A requantiser of one's own: clamp(round(x * multiplier / 2^shift), low, high), `Lanes` elements a
// beat, with the ports of an AXI stream and a reset that is active high. All arithmetic is before the
// first register; a tool that retimes spreads it over the stages.
module my_requantizer #(
  parameter int unsigned Lanes  = 4,
  parameter int unsigned Stages = 5
) (
  input  logic                aclk,
  input  logic                areset,

  input  logic                s_tvalid,
  output logic                s_tready,
  input  logic [Lanes-1:0]    s_tkeep,
  input  logic [32*Lanes-1:0] s_tdata,
  input  logic [32*Lanes-1:0] s_multiplier,
  input  logic [6*Lanes-1:0]  s_shift,

  input  logic [1:0]          rounding,  // 0 half up, 1 half to even, 2 down
  input  logic signed [31:0]  low,
  input  logic signed [31:0]  high,

  output logic                m_tvalid,
  input  logic                m_tready,
  output logic [Lanes-1:0]    m_tkeep,
  output logic [32*Lanes-1:0] m_tdata
);

  function automatic logic signed [31:0] requantise(
    input logic signed [31:0] x,
    input logic signed [31:0] multiplier,
    input logic        [5:0]  shift
  );
    logic signed [64:0] product, below, rest, half, value;
    logic               up;
    product = 65'(x) * 65'(multiplier);
    below   = product >>> shift;
    rest    = product - (below <<< shift);
    half    = (65'sd1 <<< shift) >>> 1;
    case (rounding)
      2'd0:    up = rest >= half;
      2'd1:    up = rest > half || (rest == half && below[0]);
      default: up = 1'b0;
    endcase
    value = (up && shift != 0) ? below + 65'sd1 : below;
    if (value < 65'(low)) return low;
    if (value > 65'(high)) return high;
    return value[31:0];
  endfunction

  logic [32*Lanes-1:0] data_d;
  logic [Stages-1:0]   valid_q;
  logic [Lanes-1:0]    keep_q [Stages];
  logic [32*Lanes-1:0] data_q [Stages];
  logic                move;

  assign move     = !m_tvalid || m_tready;
  assign s_tready = move;
  assign m_tvalid = valid_q[Stages-1];
  assign m_tkeep  = keep_q[Stages-1];
  assign m_tdata  = data_q[Stages-1];

  always_comb begin
    for (int l = 0; l < Lanes; l++) begin
      data_d[32*l+:32] = s_tkeep[l] ? requantise(s_tdata[32*l+:32], s_multiplier[32*l+:32],
                                                 s_shift[6*l+:6])
                                    : '0;
    end
  end

  always_ff @(posedge aclk) begin
    if (areset) begin
      valid_q <= '0;
    end else if (move) begin
      valid_q   <= {valid_q[Stages-2:0], s_tvalid};
      keep_q[0] <= s_tkeep;
      data_q[0] <= data_d;
      for (int s = 1; s < Stages; s++) begin
        keep_q[s] <= keep_q[s-1];
        data_q[s] <= data_q[s-1];
      end
    end
  end

endmodule
