// The reading side of a DMA port: rows of bytes from memory, over an AXI4 read manager, to a local
// memory. Cycle contract: hw::read_schedule() of hw/dma/read_dma.h, which the model's ports spend.
//
// A command holds the port until its last request has been issued. It starts in the cycle in which
// start_valid_i and start_ready_o are high, and its first request may leave in that same cycle. A
// slot of a request is its ID, so answers may come in any order. A beat that is on the pins in cycle
// c is aligned to where it goes and written in cycle c + 1: read data are always taken, and a local
// memory always takes a write. Its port writes up to DataBytes bytes at any byte, which may be the
// end of one word and the begin of the next.
//
// A request is complete with the cycle in which its last byte is written: its slot may be taken
// again in that cycle, and `completed_o` is high in the one before it. With LateSums a request for
// the accumulator keeps its slot until placed_i says that its bytes are in their places, so whoever
// takes them has to keep those of Outstanding requests at most.

`include "systole_assert.svh"

module systole_read_dma #(
  parameter  int unsigned DataBytes    = 16,   // a beat and a local word
  parameter  int unsigned RequestBytes = 64,
  parameter  int unsigned Outstanding  = 16,   // requests
  parameter  int unsigned Commands     = 8,    // in flight: what a tag tells apart
  parameter  int unsigned AddrWidth    = 40,
  parameter  int unsigned LocalWidth   = 24,
  parameter  int unsigned CountWidth   = 32,
  parameter  int unsigned LateSums     = 0,    // 1: see above
  localparam int unsigned DataWidth    = 8 * DataBytes,
  localparam int unsigned LaneBits     = $clog2(DataBytes),
  localparam int unsigned WordWidth    = LocalWidth - LaneBits,
  localparam int unsigned IdBits       = Outstanding > 1 ? $clog2(Outstanding) : 1,
  localparam int unsigned TagBits      = Commands > 1 ? $clog2(Commands) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  in_order_i,     // slots come back in the order of issue
  input  logic [CountWidth-1:0] row_bytes_i,    // pieces of a longer row, 0: whole rows

  input  logic                  start_valid_i,
  output logic                  start_ready_o,
  input  logic [TagBits-1:0]    tag_i,          // of no command in flight
  input  logic                  sums_i,         // goes to the accumulator: its writes say so
  input  logic [AddrWidth-1:0]  address_i,
  input  logic [CountWidth-1:0] pitch_i,
  input  logic [CountWidth-1:0] rows_i,
  input  logic [CountWidth-1:0] bytes_i,
  input  logic [LocalWidth-1:0] to_i,
  input  logic [LocalWidth-1:0] to_pitch_i,
  output logic                  completed_o,    // all bytes of command completed_tag_o are written
  output logic [TagBits-1:0]    completed_tag_o,
  output logic                  error_o,        // since reset: a response was no OKAY

  input  logic [LocalWidth-1:0] before_i,       // whether no byte of a command that has started is to
  output logic                  arrived_o,      // come for a place before that; beats are in a register

  output logic                  ar_valid_o,
  input  logic                  ar_ready_i,
  output logic [IdBits-1:0]     ar_id_o,
  output logic [AddrWidth-1:0]  ar_addr_o,
  output logic [7:0]            ar_len_o,
  output logic [2:0]            ar_size_o,
  output logic [1:0]            ar_burst_o,

  input  logic                  r_valid_i,
  output logic                  r_ready_o,
  input  logic [IdBits-1:0]     r_id_i,
  input  logic [DataWidth-1:0]  r_data_i,
  input  logic [1:0]            r_resp_i,
  input  logic                  r_last_i,

  // a write of the local memory: bytes of word write_word_o, and of the one after it
  output logic                  write_valid_o,
  output logic                  write_sums_o,
  output logic [WordWidth-1:0]  write_word_o,
  output logic [DataWidth-1:0]  write_data_o,
  output logic [DataBytes-1:0]  write_here_o,
  output logic [DataBytes-1:0]  write_next_o,
  input  logic [Outstanding-1:0] placed_i       // requests for the accumulator, by slot
);

  localparam int unsigned LengthBits = $clog2(RequestBytes) + 1;
  localparam int unsigned CountBits  = $clog2(Outstanding + 1);
  localparam logic [1:0]  Incr       = 2'd1;

  // ---------------------------------------------------------------- requests
  logic                  cut_valid, slot_free, issue;
  logic [LengthBits-1:0] cut_length;
  logic [LocalWidth-1:0] cut_to;
  logic [TagBits-1:0]    tag, tag_q;       // of the command whose requests are cut
  logic                  sums, sums_q;
  logic [LengthBits:0]   last_beat;        // of the request

  systole_request_cutter #(
    .RequestBytes(RequestBytes), .AddrWidth(AddrWidth), .LocalWidth(LocalWidth),
    .CountWidth(CountWidth)
  ) u_cutter (
    .clk_i, .rst_ni, .row_bytes_i,
    .start_valid_i, .start_ready_o, .address_i, .pitch_i, .rows_i, .bytes_i, .to_i, .to_pitch_i,
    .valid_o  (cut_valid),
    .ready_i  (issue),
    .address_o(ar_addr_o),
    .length_o (cut_length),
    .to_o     (cut_to)
  );

  assign last_beat  = ((LengthBits+1)'(ar_addr_o[LaneBits-1:0]) + (LengthBits+1)'(cut_length) -
                       (LengthBits+1)'(1)) >> LaneBits;
  assign ar_valid_o = cut_valid && slot_free;
  assign ar_len_o   = 8'(last_beat);
  assign ar_size_o  = 3'(LaneBits);
  assign ar_burst_o = Incr;
  assign issue      = ar_valid_o && ar_ready_i;
  assign tag        = start_ready_o ? tag_i : tag_q;

  assign sums       = start_ready_o ? sums_i : sums_q;

  always_ff @(posedge clk_i) begin
    tag_q  <= tag;
    sums_q <= sums;
  end

  // ---------------------------------------------------------------- slots
  logic                  take, end_of_request;
  logic [Outstanding-1:0] written;                    // requests, by slot
  logic [TagBits-1:0]     slot_tag_q [Outstanding];
  logic [LocalWidth-1:0]  slot_to_q [Outstanding];    // where the next byte goes
  logic [LaneBits-1:0]    slot_lane_q [Outstanding];  // its lane
  logic [LengthBits-1:0]  slot_left_q [Outstanding];  // bytes to come
  logic [Outstanding-1:0] slot_sums_q, slot_used;

  systole_read_slots #(.Slots(Outstanding)) u_slots (
    .clk_i, .rst_ni, .in_order_i,
    .free_o (slot_free),
    .slot_o (ar_id_o),
    .offer_i(cut_valid),
    .take_i (issue),
    .give_i (written | placed_i),
    .used_o (slot_used)
  );

  logic [LocalWidth-1:0] to;
  logic [LaneBits-1:0]   lane;
  logic [LengthBits-1:0] left;
  logic [LaneBits:0]     count;                      // bytes of this beat

  assign r_ready_o      = 1'b1;
  assign take           = r_valid_i && r_ready_o;
  assign end_of_request = take && r_last_i;
  assign written        = end_of_request && !(LateSums != 0 && slot_sums_q[r_id_i])
                          ? Outstanding'(1) << r_id_i : '0;
  assign to             = slot_to_q[r_id_i];
  assign lane           = slot_lane_q[r_id_i];
  assign left           = slot_left_q[r_id_i];

  always_comb begin
    count = (LaneBits+1)'(DataBytes) - (LaneBits+1)'(lane);
    if (left < LengthBits'(count)) count = (LaneBits+1)'(left);
  end

  for (genvar s = 0; s < Outstanding; s++) begin : gen_slot
    always_ff @(posedge clk_i) begin
      if (issue && ar_id_o == IdBits'(s)) begin
        slot_tag_q[s]  <= tag;
        slot_sums_q[s] <= sums;
        slot_to_q[s]   <= cut_to;
        slot_lane_q[s] <= ar_addr_o[LaneBits-1:0];
        slot_left_q[s] <= cut_length;
      end else if (take && r_id_i == IdBits'(s)) begin
        slot_to_q[s]   <= to + LocalWidth'(count);
        slot_lane_q[s] <= '0;
        slot_left_q[s] <= left - LengthBits'(count);
      end
    end
  end

  always_comb begin
    arrived_o = !cut_valid || cut_to >= before_i;
    for (int unsigned s = 0; s < Outstanding; s++) begin
      if (slot_used[s] && slot_to_q[s] < before_i) arrived_o = 1'b0;
    end
  end

  // ---------------------------------------------------------------- alignment
  logic [LaneBits-1:0]    shift;           // lanes, to the left
  logic [DataWidth-1:0]   rotated;
  logic [2*DataBytes-1:0] strobes;

  assign shift   = to[LaneBits-1:0] - lane;
  assign strobes = ~({2*DataBytes{1'b1}} << count) << to[LaneBits-1:0];

  assign rotated = DataWidth'({r_data_i, r_data_i} >> (DataWidth - 8 * 32'(shift)));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_valid_o <= 1'b0;
      error_o       <= 1'b0;
    end else begin
      write_valid_o <= take;
      if (take && r_resp_i != '0) error_o <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      write_sums_o                 <= slot_sums_q[r_id_i];
      write_word_o                 <= to[LocalWidth-1:LaneBits];
      write_data_o                 <= rotated;
      {write_next_o, write_here_o} <= strobes;
    end
  end

  // ---------------------------------------------------------------- commands
  logic [CountBits-1:0] flight_q [Commands];         // requests in flight
  logic [TagBits-1:0]   ended_tag;
  logic                 cutting;                     // the command has requests to come
  logic                 tag_unused;

  assign ended_tag       = slot_tag_q[r_id_i];
  assign cutting         = !start_ready_o && tag_q == ended_tag;
  assign completed_o     = end_of_request && flight_q[ended_tag] == CountBits'(1) && !cutting;
  assign completed_tag_o = ended_tag;
  assign tag_unused      = flight_q[tag_i] == '0;

  for (genvar t = 0; t < Commands; t++) begin : gen_command
    logic more, fewer;
    assign more  = issue && tag == TagBits'(t);
    assign fewer = end_of_request && ended_tag == TagBits'(t);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        flight_q[t] <= '0;
      end else begin
        flight_q[t] <= flight_q[t] + CountBits'(more) - CountBits'(fewer);
      end
    end
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, DataBytes >= 2 && 2**LaneBits == DataBytes &&
                       RequestBytes >= DataBytes && RequestBytes / DataBytes <= 256)
  `SYSTOLE_ASSERT(AddressHeld_A, (ar_valid_o && !ar_ready_i) |=> (ar_valid_o && $stable(ar_addr_o) &&
                  $stable(ar_len_o) && $stable(ar_id_o)))
  `SYSTOLE_ASSERT(TagUnused_A, (start_valid_i && start_ready_o) |-> tag_unused)
  `SYSTOLE_ASSERT(LastOfRequest_A, take |-> (r_last_i == (LengthBits'(count) == left)))

endmodule
