// Loads to the accumulator: keeps the bytes of a tile until all of it is there, and then writes its
// rows, widened to 32 bits, a vector a cycle, unless the array writes. Cycles: hw::SumLoads of
// hw/dma/sum_loads.h.
//
// One such load at a time: the load unit takes no other one before its sums are in the accumulator.
// Bytes have the place of their sums, so a vector is a row of the accumulator. `legal_o` is low for
// sums that do not begin at rows of it, and for no work.

module systole_sum_loader #(
  parameter  int unsigned Lanes     = 4,    // sums in a row of the accumulator, bytes of a beat
  parameter  int unsigned Queue     = 4,    // commands in the station of the load unit
  parameter  int unsigned SumBits   = 8,    // of a row of the accumulator
  parameter  int unsigned CountBits = 24,
  localparam int unsigned TagBits   = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned DataWidth = 8 * Lanes,
  localparam int unsigned LaneBits  = $clog2(Lanes),
  localparam int unsigned WordBits  = SumBits + 2   // of a beat among the bytes of all sums
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic [639:0]         command_i,
  output logic                 legal_o,        // if it is a load to the accumulator
  input  logic [Queue-1:0]     entry_i,        // where a load goes in this cycle
  input  logic                 start_i,        // the load unit takes a command
  input  logic [TagBits-1:0]   start_entry_i,
  output logic                 hold_o,         // and may take no other one
  input  logic [Queue-1:0]     ended_i,        // all bytes of a load have been read
  output logic [Queue-1:0]     completed_o,    // and are in their places

  // what is read, as a write of a local memory
  input  logic                 write_i,
  input  logic [WordBits-1:0]  word_i,
  input  logic [DataWidth-1:0] data_i,
  input  logic [Lanes-1:0]     here_i,
  input  logic [Lanes-1:0]     next_i,

  // a row for the accumulator
  output logic                 sums_valid_o,
  input  logic                 sums_ready_i,
  output logic [SumBits-1:0]   sums_row_o,
  output logic [Lanes-1:0]     sums_mask_o,
  output logic [Lanes*32-1:0]  sums_data_o
);

  localparam int unsigned Bytes     = Lanes * 2**WordBits;
  localparam int unsigned FieldBits = 1 + 8 + 2 * SumBits + 2 * CountBits;

  // ---------------------------------------------------------------- commands, by their entries
  logic [31:0]          m_field, n_field, c_field, pitch_field;
  logic                 sums_field, sums, unused_fields;
  logic [FieldBits-1:0] fields_q [Queue];
  logic [Queue-1:0]     sums_q;
  logic [7:0]           element;
  logic [SumBits-1:0]   c, c_pitch;
  logic [CountBits-1:0] m, n, vectors, last_lanes;

  assign sums_field    = command_i[7:0] == systole_pkg::OpLoadAccumulator;
  assign m_field       = command_i[288+:32];
  assign n_field       = command_i[320+:32];
  assign c_field       = command_i[512+:32];
  assign pitch_field   = command_i[544+:32];
  assign legal_o       = m_field != '0 && n_field != '0 && m_field[31:CountBits] == '0 &&
                         n_field[31:CountBits] == '0 && c_field[LaneBits-1:0] == '0 &&
                         pitch_field[LaneBits-1:0] == '0;
  assign unused_fields = ^{command_i, c_field, pitch_field};

  for (genvar e = 0; e < Queue; e++) begin : gen_entry
    always_ff @(posedge clk_i) begin
      if (entry_i[e]) begin
        sums_q[e]   <= sums_field;
        fields_q[e] <= {sums_field, command_i[15:8], c_field[LaneBits+:SumBits],
                        pitch_field[LaneBits+:SumBits], m_field[CountBits-1:0],
                        n_field[CountBits-1:0]};
      end
    end
  end

  // ---------------------------------------------------------------- one at a time
  logic               start, last, over, row_end, valid;
  logic               ended_q, settled_q, writing_q;   // one after the other
  logic [TagBits-1:0] entry, entry_q;

  assign entry        = hold_o ? entry_q : start_entry_i;
  assign {sums, element, c, c_pitch, m, n} = fields_q[entry];
  assign vectors      = (n - CountBits'(1)) / CountBits'(Lanes) + CountBits'(1);
  assign last_lanes   = (n - CountBits'(1)) % CountBits'(Lanes) + CountBits'(1);
  assign start        = start_i && sums;
  assign over         = sums_valid_o && sums_ready_i && last;
  assign sums_valid_o = writing_q && valid;
  assign completed_o  = (ended_i & ~sums_q) | (over ? Queue'(1) << entry_q : '0);

  for (genvar l = 0; l < Lanes; l++) begin : gen_mask
    assign sums_mask_o[l] = !row_end || CountBits'(l) < last_lanes;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      hold_o    <= 1'b0;
      ended_q   <= 1'b0;
      settled_q <= 1'b0;
      writing_q <= 1'b0;
    end else begin
      hold_o    <= start || (hold_o && !over);
      ended_q   <= hold_o && ended_i[entry_q];
      settled_q <= ended_q;
      writing_q <= settled_q || (writing_q && !over);
    end
  end
  always_ff @(posedge clk_i) entry_q <= entry;

  // ---------------------------------------------------------------- its vectors
  logic [WordBits-1:0] at;
  logic [1:0]          unused_bits;
  logic                unused_at;

  systole_tile_buffer #(.Lanes(Lanes), .Bytes(Bytes), .CountBits(CountBits)) u_buffer (
    .clk_i, .rst_ni,
    .start_i    (start),
    .type_i     (element),
    .passes_i   (2'd1),
    .rows_i     (m),
    .vectors_i  (vectors),
    .base_i     (WordBits'(c)),
    .pitch_i    (WordBits'(c_pitch)),
    .write_i, .word_i, .data_i, .here_i, .next_i,
    .valid_o    (valid),
    .take_i     (sums_valid_o && sums_ready_i),
    .at_o       (at),
    .row_end_o  (row_end),
    .last_o     (last),
    .type_bits_o(unused_bits),
    .data_o     (sums_data_o)
  );
  assign sums_row_o = at[SumBits-1:0];
  assign unused_at  = ^at[WordBits-1:SumBits];

endmodule
