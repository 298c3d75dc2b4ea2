// Sequencer of the systolic array: says when beats of weights and of activations may enter, so that
// the cycles are those of hw::array_cycles() (hw/array/array.h), and stalls the whole array with
// one enable.
//
// A fold: Rows beats of weights into the shadow registers, the capture of these into the registers
// that the multipliers read, then the rows of activations until `act_last_i`. The capture happens
// with the last of the weights, or with the last row of the fold before, whichever comes later, and
// travels through the array one cycle before the fold's first row.

`include "systole_assert.svh"

module systole_systolic_sequencer #(
  parameter  int unsigned Rows      = 4,
  parameter  int unsigned Cols      = 4,
  localparam int unsigned Diagonals = Rows + Cols - 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic [1:0]           overlap_i,         // systole_pkg::overlap_e
  input  logic                 clear_i,

  input  logic                 weight_valid_i,
  input  logic                 weight_pending_i,
  output logic                 weight_ready_o,

  input  logic                 act_valid_i,
  input  logic                 act_pending_i,
  input  logic                 act_last_i,
  output logic                 act_ready_o,

  // For operands that come from a memory: what is wanted in this cycle, if it can be had, and the
  // memory's say that it cannot.
  input  logic                 hold_i,
  output logic                 weight_wanted_o,
  output logic                 act_wanted_o,

  output logic                 result_valid_o,
  output logic                 result_last_o,
  input  logic                 result_ready_i,

  output logic                 advance_o,         // enable of every register of the array
  output logic                 weights_move_o,    // some shadow or stationary weight may change
  output logic [Rows-1:0]      shift_o,           // rows whose shadow weights move, in column 0
  output logic [Diagonals-1:0] capture_o          // PEs that take their shadow weight, by r + c
);

  typedef enum logic [1:0] {
    NoFold,
    Armed,     // it may begin
    Streaming  // some of its rows have entered, the last has not
  } phase_e;

  logic [Rows-1:0]      filled_q, filled_d;   // a one for every beat in the shadow registers
  phase_e               phase_q;              // of the fold whose weights are captured
  logic [Diagonals-1:0] valid_q, last_q;      // rows in flight: bit 0 has just entered
  logic [Diagonals-2:0] capture_q;
  logic [Cols-1:0]      shifting_q;           // columns that a beat of weights moves to

  // ------------------------------------------------------------------ what may enter
  // Drained: no multiplier is busy. The last row of sums may still be at the output.
  logic drained, act_wanted, starts, weight_wanted;

  assign drained    = valid_q[Diagonals-2:0] == '0;
  assign act_wanted = phase_q == Streaming ||
                      (phase_q == Armed && (overlap_i == systole_pkg::OverlapFull || drained));
  assign starts     = act_wanted && phase_q == Armed && act_valid_i;

  always_comb begin
    weight_wanted = !filled_q[Rows-1];
    if (overlap_i == systole_pkg::OverlapNone) begin
      weight_wanted = weight_wanted && phase_q == NoFold && drained;
    end else begin
      // The next fold's weights begin with the first row of this one, so that at most one fold of
      // weights waits.
      weight_wanted = weight_wanted && (phase_q != Armed || starts);
    end
  end

  logic weight_fire, act_fire;

  // A stall for the inputs does not keep the consumer from taking the result that is offered.
  logic result_taken_q;

  assign result_valid_o = valid_q[Diagonals-1] && !result_taken_q;
  assign result_last_o  = last_q[Diagonals-1];

  assign weight_wanted_o = weight_wanted;
  assign act_wanted_o    = act_wanted;

  assign advance_o = !hold_i && !(result_valid_o && !result_ready_i) &&
                     !(weight_wanted && weight_pending_i && !weight_valid_i) &&
                     !(act_wanted && act_pending_i && !act_valid_i);
  assign weight_ready_o = weight_wanted && advance_o && !clear_i;
  assign act_ready_o    = act_wanted && advance_o && !clear_i;
  assign weight_fire    = weight_ready_o && weight_valid_i;
  assign act_fire       = act_ready_o && act_valid_i;

  // ------------------------------------------------------------------ state
  logic stream_over, capture;

  assign stream_over = act_fire ? act_last_i : phase_q == NoFold;
  assign capture     = stream_over && filled_d[Rows-1];

  // Beat j moves the rows 0 to j only: the rows below still hold what the capture that moves there
  // will take.
  assign filled_d    = weight_fire ? {filled_q[Rows-2:0], 1'b1} : filled_q;
  assign shift_o     = weight_fire ? filled_d : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      filled_q       <= '0;
      phase_q        <= NoFold;
      valid_q        <= '0;
      result_taken_q <= 1'b0;
      capture_q      <= '0;
      shifting_q     <= '1;  // the first cycles clear what the array's registers came up with
    end else begin
      if (clear_i) begin
        filled_q <= '0;
        phase_q  <= NoFold;
      end else if (advance_o) begin
        filled_q <= capture ? '0 : filled_d;
        if (capture) begin
          phase_q <= Armed;
        end else if (act_fire) begin
          phase_q <= act_last_i ? NoFold : Streaming;
        end
      end
      result_taken_q <= !advance_o && (result_taken_q || (result_valid_o && result_ready_i));
      if (advance_o) begin
        valid_q    <= {valid_q[Diagonals-2:0], act_fire};
        capture_q  <= {capture_q[Diagonals-3:0], capture};
        shifting_q <= {shifting_q[Cols-2:0], weight_fire};
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_o) last_q <= {last_q[Diagonals-2:0], act_last_i};
  end

  assign capture_o      = {capture_q, capture};
  assign weights_move_o = weight_fire || shifting_q != '0 || capture_o != '0;

  `SYSTOLE_ASSERT_INIT(SizeUsable_A, Rows >= 2 && Cols >= 2)
  `SYSTOLE_ASSERT(OverlapKnown_A, overlap_i <= systole_pkg::OverlapFull)
  `SYSTOLE_ASSERT(OverlapHeldInFlight_A, (phase_q == Streaming || !drained) |-> $stable(overlap_i))
  `SYSTOLE_ASSERT(ClearBetweenFolds_A, clear_i |-> phase_q != Streaming)

endmodule
