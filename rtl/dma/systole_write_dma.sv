// The writing side of a DMA port: rows of bytes to memory, over an AXI4 write manager. Bytes come in
// pieces of up to a beat, are aligned to the lanes where they go, and wait as words in a queue. A
// request leaves when all of its words are in the queue, so its data follow without a gap. Cycle
// contract: hw::WritePort of hw/dma/write_dma.h.
//
// A command starts when all requests of the one before it have left; its bytes follow its start, row
// after row. A slot of a request is its ID. `completed_o` is high in the cycle of the last response of
// a command.

`include "systole_assert.svh"

module systole_write_dma #(
  parameter  int unsigned DataBytes    = 16,
  parameter  int unsigned RequestBytes = 64,
  parameter  int unsigned Outstanding  = 16,   // requests
  parameter  int unsigned Commands     = 4,    // in flight: what a tag tells apart
  parameter  int unsigned QueueWords   = 2 * RequestBytes / DataBytes,  // at least those of a request
  parameter  int unsigned AddrWidth    = 40,
  parameter  int unsigned CountWidth   = 32,
  localparam int unsigned DataWidth    = 8 * DataBytes,
  localparam int unsigned LaneBits     = $clog2(DataBytes),
  localparam int unsigned IdBits       = Outstanding > 1 ? $clog2(Outstanding) : 1,
  localparam int unsigned TagBits      = Commands > 1 ? $clog2(Commands) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  in_order_i,     // slots come back in the order of issue

  input  logic                  start_valid_i,
  output logic                  start_ready_o,
  input  logic [TagBits-1:0]    tag_i,          // of no command in flight
  input  logic [AddrWidth-1:0]  address_i,
  input  logic [CountWidth-1:0] pitch_i,
  input  logic [CountWidth-1:0] rows_i,
  input  logic [CountWidth-1:0] bytes_i,
  output logic                  completed_o,    // all bytes of command completed_tag_o are in memory
  output logic [TagBits-1:0]    completed_tag_o,
  output logic                  error_o,        // since reset: a response was no OKAY

  // bytes of the command that started last
  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [DataWidth-1:0]  data_i,
  input  logic [LaneBits:0]     count_i,        // from lane 0 on, at least one; lanes above are 0
                                                // unless the row ends
  input  logic                  row_end_i,

  output logic                  aw_valid_o,
  input  logic                  aw_ready_i,
  output logic [IdBits-1:0]     aw_id_o,
  output logic [AddrWidth-1:0]  aw_addr_o,
  output logic [7:0]            aw_len_o,
  output logic [2:0]            aw_size_o,
  output logic [1:0]            aw_burst_o,

  output logic                  w_valid_o,
  input  logic                  w_ready_i,
  output logic [DataWidth-1:0]  w_data_o,
  output logic [DataBytes-1:0]  w_strb_o,
  output logic                  w_last_o,

  input  logic                  b_valid_i,
  output logic                  b_ready_o,
  input  logic [IdBits-1:0]     b_id_i,
  input  logic [1:0]            b_resp_i
);

  localparam int unsigned RequestBits = $clog2(RequestBytes);
  localparam int unsigned LengthBits  = RequestBits + 1;
  localparam int unsigned WordBits    = RequestBits - LaneBits;  // of a word in a request
  localparam int unsigned FlightBits  = $clog2(Outstanding + 1);
  localparam int unsigned QueueBits   = $clog2(QueueWords);
  localparam int unsigned LocalWidth  = 8;
  localparam logic [1:0]  Incr        = 2'd1;

  logic start;
  assign start = start_valid_i && start_ready_o;

  // ---------------------------------------------------------------- bytes to words
  logic [DataWidth-1:0]   held_q, word;
  logic [DataBytes-1:0]   held_strobes_q, strobes;
  logic [LaneBits-1:0]    held_lanes_q;            // of the word, to where the next byte goes
  logic [2*DataWidth-1:0] shifted;
  logic [2*DataBytes-1:0] shifted_strobes;
  logic [LaneBits:0]      lanes;
  logic                   flush_q;                 // what is held is the last word of its row
  logic                   take, push, row_over, spills, full;
  logic [RequestBits-1:0] row_q, next_row, pitch_q;  // address of the row in a request
  logic [WordBits-1:0]    place_q;                 // of the word in its request
  logic                   last_word;               // of the request

  assign ready_o         = !flush_q && !full;
  assign take            = valid_i && ready_o;
  assign lanes           = (LaneBits+1)'(held_lanes_q) + count_i;
  assign shifted         = {{DataWidth{1'b0}}, data_i} << {held_lanes_q, 3'b000};
  assign shifted_strobes = ~({2*DataBytes{1'b1}} << count_i) << held_lanes_q;
  assign spills          = lanes > (LaneBits+1)'(DataBytes);
  assign word            = flush_q ? held_q : held_q | shifted[DataWidth-1:0];
  assign strobes         = flush_q ? held_strobes_q : held_strobes_q | shifted_strobes[DataBytes-1:0];
  assign push            = flush_q ? !full : take && (lanes[LaneBits] || row_end_i);
  assign row_over        = flush_q ? !full : take && row_end_i && !spills;
  assign next_row        = row_q + pitch_q;
  assign last_word       = place_q == '1 || row_over;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flush_q <= 1'b0;
    end else begin
      flush_q <= flush_q ? full : take && row_end_i && spills;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      row_q          <= address_i[RequestBits-1:0];
      pitch_q        <= pitch_i[RequestBits-1:0];
      place_q        <= address_i[RequestBits-1:LaneBits];
      held_lanes_q   <= address_i[LaneBits-1:0];
      held_q         <= '0;
      held_strobes_q <= '0;
    end else if (row_over) begin
      row_q          <= next_row;
      place_q        <= next_row[RequestBits-1:LaneBits];
      held_lanes_q   <= next_row[LaneBits-1:0];
      held_q         <= '0;
      held_strobes_q <= '0;
    end else if (take) begin
      place_q        <= place_q + WordBits'(lanes[LaneBits]);
      held_lanes_q   <= lanes[LaneBits-1:0];
      held_q         <= lanes[LaneBits] ? shifted[2*DataWidth-1:DataWidth] : word;
      held_strobes_q <= lanes[LaneBits] ? shifted_strobes[2*DataBytes-1:DataBytes] : strobes;
    end
  end

  // ---------------------------------------------------------------- words that wait
  localparam int unsigned EntryBits = DataWidth + DataBytes + 1;

  logic [EntryBits-1:0] queue_q [QueueWords];
  logic [QueueBits-1:0] head_q, tail_q;
  logic [QueueBits:0]   words_q;
  logic [QueueBits:0]   complete_q;   // requests with all words in the queue that have not left
  logic [QueueBits:0]   left_q;       // requests that have left with data to come
  logic                 w_take, w_end, issue;

  function automatic logic [QueueBits-1:0] after(input logic [QueueBits-1:0] place);
    after = 32'(place) == QueueWords - 1 ? '0 : place + QueueBits'(1);
  endfunction

  assign full                           = 32'(words_q) == QueueWords;
  assign {w_last_o, w_strb_o, w_data_o} = queue_q[head_q];
  assign w_valid_o                      = left_q != '0;
  assign w_take                         = w_valid_o && w_ready_i;
  assign w_end                          = w_take && w_last_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q     <= '0;
      tail_q     <= '0;
      words_q    <= '0;
      complete_q <= '0;
      left_q     <= '0;
    end else begin
      if (w_take) head_q <= after(head_q);
      if (push) tail_q <= after(tail_q);
      words_q    <= words_q + (QueueBits+1)'(push) - (QueueBits+1)'(w_take);
      complete_q <= complete_q + (QueueBits+1)'(push && last_word) - (QueueBits+1)'(issue);
      left_q     <= left_q + (QueueBits+1)'(issue) - (QueueBits+1)'(w_end);
    end
  end
  always_ff @(posedge clk_i) begin
    if (push) queue_q[tail_q] <= {last_word, strobes, word};
  end

  // ---------------------------------------------------------------- requests
  logic                  cut_valid, slot_free, offer;
  logic [LengthBits-1:0] cut_length;
  logic [LengthBits:0]   last_beat;
  logic [LocalWidth-1:0] unused_to;
  logic [TagBits-1:0]    tag, tag_q, slot_tag_q [Outstanding];

  systole_request_cutter #(
    .RequestBytes(RequestBytes), .AddrWidth(AddrWidth), .LocalWidth(LocalWidth),
    .CountWidth(CountWidth)
  ) u_cutter (
    .clk_i, .rst_ni,
    .row_bytes_i('0),
    .start_valid_i, .start_ready_o, .address_i, .pitch_i, .rows_i, .bytes_i,
    .to_i       ('0),
    .to_pitch_i ('0),
    .valid_o    (cut_valid),
    .ready_i    (issue),
    .address_o  (aw_addr_o),
    .length_o   (cut_length),
    .to_o       (unused_to)
  );

  assign last_beat  = ((LengthBits+1)'(aw_addr_o[LaneBits-1:0]) + (LengthBits+1)'(cut_length) -
                       (LengthBits+1)'(1)) >> LaneBits;
  assign offer      = cut_valid && complete_q != '0;
  assign aw_valid_o = offer && slot_free;
  assign aw_len_o   = 8'(last_beat);
  assign aw_size_o  = 3'(LaneBits);
  assign aw_burst_o = Incr;
  assign issue      = aw_valid_o && aw_ready_i;
  assign tag        = start_ready_o ? tag_i : tag_q;

  logic [Outstanding-1:0] unused_slots;

  systole_read_slots #(.Slots(Outstanding)) u_slots (
    .clk_i, .rst_ni, .in_order_i,
    .free_o (slot_free),
    .slot_o (aw_id_o),
    .offer_i(offer),
    .take_i (issue),
    .give_i (b_valid_i ? Outstanding'(1) << b_id_i : '0),
    .used_o (unused_slots)
  );

  always_ff @(posedge clk_i) begin
    tag_q <= tag;
    if (issue) slot_tag_q[aw_id_o] <= tag;
  end

  // ---------------------------------------------------------------- commands
  logic [FlightBits-1:0] flight_q [Commands];   // requests without a response
  logic                  cutting;

  assign b_ready_o       = 1'b1;
  assign completed_tag_o = slot_tag_q[b_id_i];
  assign cutting         = !start_ready_o && tag_q == completed_tag_o;
  assign completed_o     = b_valid_i && flight_q[completed_tag_o] == FlightBits'(1) && !cutting;

  for (genvar t = 0; t < Commands; t++) begin : gen_command
    logic more, fewer;
    assign more  = issue && tag == TagBits'(t);
    assign fewer = b_valid_i && completed_tag_o == TagBits'(t);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        flight_q[t] <= '0;
      end else begin
        flight_q[t] <= flight_q[t] + FlightBits'(more) - FlightBits'(fewer);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      error_o <= 1'b0;
    end else if (b_valid_i && b_resp_i != '0) begin
      error_o <= 1'b1;
    end
  end

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, DataBytes >= 2 && 2**LaneBits == DataBytes &&
                       RequestBytes > DataBytes && RequestBytes / DataBytes <= 256 &&
                       QueueWords >= RequestBytes / DataBytes)
  `SYSTOLE_ASSERT(AddressHeld_A, (aw_valid_o && !aw_ready_i) |=> (aw_valid_o && $stable(aw_addr_o) &&
                  $stable(aw_len_o) && $stable(aw_id_o)))
  `SYSTOLE_ASSERT(DataHeld_A, (w_valid_o && !w_ready_i) |=> (w_valid_o && $stable(w_data_o) &&
                  $stable(w_strb_o) && $stable(w_last_o)))
  `SYSTOLE_ASSERT(WordThere_A, w_valid_o |-> words_q != '0)
  `SYSTOLE_ASSERT(LanesAboveClear_A, (valid_i && !row_end_i) |-> data_i >> {count_i, 3'b000} == '0)
  `SYSTOLE_ASSERT(CountUsable_A, valid_i |-> (count_i != '0 && 32'(count_i) <= DataBytes))

endmodule
