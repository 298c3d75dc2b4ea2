// Loads to the accumulator: keeps the beats that have been read until the array leaves the memories
// alone in which they belong, and writes each in a cycle, widened to 32 bits. Cycles: hw::SumLoads of
// hw/dma/sum_loads.h.
//
// Bytes have the place of their sums: byte b of an element of 2^t bytes is byte b of its sum. A beat
// goes from any byte on, and an element may come in two beats, in any order: so bytes are written, not
// sums, and a byte with a sign writes those above it. There is room for the beats of all requests that
// can be in flight, each of which counts as that until `placed_o`. `legal_o` is low for no work.

`include "systole_assert.svh"

module systole_sum_loader #(
  parameter  int unsigned Lanes        = 4,    // sums in a row of the accumulator, bytes of a beat
  parameter  int unsigned Queue        = 4,    // commands in the station of the load unit
  parameter  int unsigned Slots        = 4,    // requests in flight
  parameter  int unsigned RequestBytes = 16,
  parameter  int unsigned RowBits      = 8,    // of a row of the accumulator
  localparam int unsigned TagBits      = Queue > 1 ? $clog2(Queue) : 1,
  localparam int unsigned IdBits       = Slots > 1 ? $clog2(Slots) : 1,
  localparam int unsigned DataWidth    = 8 * Lanes,
  localparam int unsigned WordBits     = RowBits + 2   // of a beat among the bytes of all sums
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic [639:0]         command_i,
  output logic                 legal_o,        // if it is a load to the accumulator
  input  logic [Queue-1:0]     entry_i,        // where a load goes in this cycle

  // what is read, as a write of a local memory
  input  logic                 write_i,
  input  logic [TagBits-1:0]   tag_i,          // of its load
  input  logic [IdBits-1:0]    slot_i,         // of its request
  input  logic                 last_i,         // beat of the request
  input  logic                 end_i,          // and of the load
  input  logic [WordBits-1:0]  word_i,
  input  logic [DataWidth-1:0] data_i,
  input  logic [Lanes-1:0]     here_i,
  input  logic [Lanes-1:0]     next_i,
  output logic [Slots-1:0]     placed_o,       // requests whose bytes are all in the accumulator
  output logic [Queue-1:0]     completed_o,    // loads

  // bytes for a row of the accumulator, and for the one after it: systole_sum_memory
  output logic                 sums_valid_o,
  input  logic                 sums_ready_i,
  output logic [RowBits-1:0]   sums_row_o,
  output logic                 sums_both_o,    // some are for the one after it
  output logic [Lanes-1:0]     sums_first_o,   // lanes of the first one
  output logic [Lanes*4-1:0]   sums_mask_o,    // bytes
  output logic [Lanes*32-1:0]  sums_data_o
);

  // ---------------------------------------------------------------- types, by the entries of commands
  logic [7:0] type_q [Queue];
  logic       unused_fields;

  assign legal_o       = command_i[288+:32] != '0 && command_i[320+:32] != '0;
  assign unused_fields = ^command_i;

  for (genvar e = 0; e < Queue; e++) begin : gen_entry
    always_ff @(posedge clk_i) begin
      if (entry_i[e]) type_q[e] <= command_i[15:8];
    end
  end

  // ---------------------------------------------------------------- beats that wait
  localparam int unsigned Beats     = Slots * RequestBytes / Lanes;
  localparam int unsigned PlaceBits = $clog2(Beats);
  localparam int unsigned BeatBits  = TagBits + IdBits + 2 + WordBits + DataWidth + 2 * Lanes;

  logic [BeatBits-1:0]  beats_q [Beats];
  logic [PlaceBits-1:0] head_q, tail_q;
  logic [PlaceBits:0]   count_q;
  logic                 take;

  function automatic logic [PlaceBits-1:0] after(input logic [PlaceBits-1:0] place);
    after = 32'(place) == Beats - 1 ? '0 : place + PlaceBits'(1);
  endfunction

  assign sums_valid_o = count_q != '0;
  assign take         = sums_valid_o && sums_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
    end else begin
      if (take) head_q <= after(head_q);
      if (write_i) tail_q <= after(tail_q);
      count_q <= count_q + (PlaceBits+1)'(write_i) - (PlaceBits+1)'(take);
    end
  end
  always_ff @(posedge clk_i) begin
    if (write_i) beats_q[tail_q] <= {tag_i, slot_i, last_i, end_i, word_i, next_i, here_i, data_i};
  end

  // ---------------------------------------------------------------- the first of them
  logic [TagBits-1:0]   tag;
  logic [IdBits-1:0]    slot;
  logic                 last, last_of_load;
  logic [WordBits-1:0]  word;
  logic [DataWidth-1:0] data;
  logic [Lanes-1:0]     here, next;      // bytes of the word, and of the one after it
  logic [7:0]           element;
  logic                 has_sign;
  logic [1:0]           type_bits;       // bytes of an element, as a power of 2
  logic [1:0]           in_row, part, next_part;  // words of a row: which one of them it is

  assign {tag, slot, last, last_of_load, word, next, here, data} = beats_q[head_q];
  assign element     = type_q[tag];
  assign has_sign    = element == systole_pkg::TypeS8 || element == systole_pkg::TypeS16;
  assign placed_o    = take && last ? Slots'(1) << slot : '0;
  assign completed_o = take && last_of_load ? Queue'(1) << tag : '0;

  always_comb begin
    case (element)
      systole_pkg::TypeS32:                       type_bits = 2'd2;
      systole_pkg::TypeS16, systole_pkg::TypeU16: type_bits = 2'd1;
      default:                                    type_bits = 2'd0;
    endcase
  end
  assign in_row      = ~(2'd3 << type_bits);
  assign part        = word[1:0] & in_row;
  assign next_part   = (word[1:0] + 2'd1) & in_row;
  assign sums_row_o  = RowBits'(word >> type_bits);
  assign sums_both_o = next != '0 && next_part == '0;

  // ---------------------------------------------------------------- widened
  for (genvar l = 0; l < Lanes; l++) begin : gen_sum
    // Its bytes in a word, and which word of the row has them.
    localparam int unsigned Half    = 2 * (l % (Lanes / 2));
    localparam int unsigned Whole   = 4 * (l % (Lanes / 4));
    localparam logic [1:0]  OfHalf  = 2'(l / (Lanes / 2));
    localparam logic [1:0]  OfWhole = 2'(l / (Lanes / 4));

    logic [3:0]  of_here, of_next, bytes;
    logic [1:0]  whose;
    logic [31:0] sum;

    always_comb begin
      case (type_bits)
        2'd2: begin
          whose   = OfWhole;
          of_here = here[Whole+:4];
          of_next = next[Whole+:4];
          sum     = data[8*Whole+:32];
        end
        2'd1: begin
          whose   = OfHalf;
          of_here = {{3{here[Half+1]}}, here[Half]};
          of_next = {{3{next[Half+1]}}, next[Half]};
          sum     = {{16{has_sign && data[8*Half+15]}}, data[8*Half+:16]};
        end
        default: begin
          whose   = '0;
          of_here = {4{here[l]}};
          of_next = {4{next[l]}};
          sum     = {{24{has_sign && data[8*l+7]}}, data[8*l+:8]};
        end
      endcase
      bytes = whose == part ? of_here : '0;
    end
    assign sums_first_o[l]        = bytes != '0 || !sums_both_o;
    assign sums_mask_o[4*l+:4]    = bytes | (whose == next_part ? of_next : '0);
    assign sums_data_o[32*l+:32]  = sum;
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Lanes >= 4 && 2**$clog2(Lanes) == Lanes && RequestBytes > Lanes)
  `SYSTOLE_ASSERT(RoomForBeat_A, write_i |-> 32'(count_q) < Beats)

endmodule
