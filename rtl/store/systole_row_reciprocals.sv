// The reciprocals of row sums by which a chain divides: 2^24 over the statistic of a
// row, which its stage multiplies with. Values: hw::deferred_divide() of
// hw/function/softmax.h. Cycles: hw::RowFactors of hw/postop/row_flow.h.
//
// One divider works ahead of the rows: its next quotient waits in it until the row before has let go
// of its own.

`include "systole_assert.svh"

module systole_row_reciprocals #(
  parameter  int unsigned Words     = 64,  // of the statistics
  parameter  int unsigned CountBits = 24,
  localparam int unsigned WordBits  = Words > 1 ? $clog2(Words) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // of a command, held from its start on
  input  logic                 start_i,
  input  logic                 divides_i,    // its chain does
  input  logic [WordBits-1:0]  statistics_i, // of its first row
  input  logic [CountBits-1:0] rows_i,
  input  logic [CountBits-1:0] vectors_i,    // of a row

  output logic                 read_o,
  output logic [WordBits-1:0]  read_at_o,
  input  logic [31:0]          statistic_i,

  // of the row whose vectors come
  output logic                 valid_o,
  output logic [31:0]          reciprocal_o,
  input  logic                 take_i        // a vector takes it
);

  localparam int unsigned ReciprocalBits = systole_pkg::DeferredReciprocalBits;
  localparam int unsigned Digits         = (ReciprocalBits + 2) / 2;  // quotients of up to 2^24
  localparam int unsigned DigitsBits     = $clog2(Digits + 1);

  typedef enum logic [1:0] {
    Idle,
    Read,
    Divide,  // the statistic is there
    Wait     // for the quotient, and for the row before
  } state_e;

  state_e               state_q;
  logic [CountBits-1:0] rows_q, left_q;      // rows to come; vectors of the row
  logic                 divided, held_q, row_end, move;
  logic [2*Digits-1:0]  quotient, value_q;

  assign read_o = state_q == Read;

  systole_serial_divider #(.DivisorWidth(32), .Digits(Digits)) u_divider (
    .clk_i, .rst_ni,
    .enable_i  (1'b1),
    .start_i   (state_q == Divide),
    .digits_i  (DigitsBits'(Digits)),
    .high_i    ('0),
    .low_i     ((2*Digits)'(1) << ReciprocalBits),
    .divisor_i (statistic_i == '0 ? 32'd1 : statistic_i),
    .done_o    (divided),
    .quotient_o(quotient)
  );

  assign row_end      = take_i && left_q == CountBits'(1);
  assign move         = state_q == Wait && (divided || held_q) && (!valid_o || row_end);
  assign reciprocal_o = 32'(value_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      held_q  <= 1'b0;
      valid_o <= 1'b0;
    end else begin
      held_q  <= (held_q || divided) && !move;
      valid_o <= move || (valid_o && !row_end);
      case (state_q)
        Read:    state_q <= Divide;
        Divide:  state_q <= Wait;
        Wait:    if (move) state_q <= rows_q == '0 ? Idle : Read;
        default: if (start_i && divides_i) state_q <= Read;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (move) value_q <= quotient;
    if (start_i) begin
      read_at_o <= statistics_i;
      rows_q    <= rows_i;
      left_q    <= vectors_i;
    end else begin
      if (read_o) read_at_o <= read_at_o + WordBits'(1);
      if (read_o) rows_q <= rows_q - CountBits'(1);
      if (take_i) left_q <= row_end ? vectors_i : left_q - CountBits'(1);
    end
  end

  `SYSTOLE_ASSERT(StartedIdle_A, start_i |-> (state_q == Idle && !valid_o))
  `SYSTOLE_ASSERT(TakenValid_A, take_i |-> valid_o)

endmodule
