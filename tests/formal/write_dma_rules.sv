// What a core relies on of a port that writes, for any command, pieces of bytes and answers: an ID is in
// use once, a request has the beats that it says, each byte of a command is written once, to its address
// and with its value, and a command is complete once, with the last response.
//
// A byte of a command is followed, whichever it is. Words and requests are followed from the packer, which
// makes them of bytes, through the queue to the pins: each request that it has made is the one that the
// cutter comes to.

module write_dma_rules #(
  parameter  int unsigned DataBytes    = 2,
  parameter  int unsigned RequestBytes = 4,
  parameter  int unsigned Outstanding  = 2,
  parameter  int unsigned Commands     = 2,
  parameter  int unsigned QueueWords   = 2,
  parameter  int unsigned AddrWidth    = 4,
  parameter  int unsigned CountWidth   = 3,
  localparam int unsigned DataWidth    = 8 * DataBytes,
  localparam int unsigned LaneBits     = $clog2(DataBytes),
  localparam int unsigned IdBits       = Outstanding > 1 ? $clog2(Outstanding) : 1,
  localparam int unsigned TagBits      = Commands > 1 ? $clog2(Commands) : 1,
  localparam int unsigned LengthBits   = $clog2(RequestBytes) + 1
) (
  input logic                  clk_i,
  input logic                  start_valid_i,
  input logic [TagBits-1:0]    tag_i,
  input logic [AddrWidth-1:0]  address_i,
  input logic [CountWidth-1:0] pitch_i,
  input logic [CountWidth-1:0] rows_i,
  input logic [CountWidth-1:0] bytes_i,
  input logic                  valid_i,
  input logic [DataWidth-1:0]  data_i,
  input logic [LaneBits:0]     count_i,
  input logic                  row_end_i,
  input logic                  aw_ready_i,
  input logic                  w_ready_i,
  input logic                  b_valid_i,
  input logic [IdBits-1:0]     b_id_i,
  input logic [1:0]            b_resp_i,
  input logic                  follow_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  // Any, and then the same: the order of slots, and the byte that is followed.
  logic                  in_order;
  logic [CountWidth-1:0] its_row, its_column;
  always_ff @(posedge clk_i) begin
    in_order   <= in_order;
    its_row    <= its_row;
    its_column <= its_column;
  end

  logic                 start_ready, completed, error, ready, aw_valid, w_valid, w_last, b_ready;
  logic [TagBits-1:0]   completed_tag;
  logic [IdBits-1:0]    aw_id;
  logic [AddrWidth-1:0] aw_addr;
  logic [7:0]           aw_len;
  logic [2:0]           aw_size;
  logic [1:0]           aw_burst;
  logic [DataWidth-1:0] w_data;
  logic [DataBytes-1:0] w_strb;

  systole_write_dma #(
    .DataBytes(DataBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .Commands(Commands), .QueueWords(QueueWords), .AddrWidth(AddrWidth), .CountWidth(CountWidth)
  ) u_dut (
    .clk_i, .rst_ni, .in_order_i(in_order), .start_valid_i, .start_ready_o(start_ready), .tag_i,
    .address_i, .pitch_i, .rows_i, .bytes_i, .completed_o(completed), .completed_tag_o(completed_tag),
    .error_o(error), .valid_i, .ready_o(ready), .data_i, .count_i, .row_end_i,
    .aw_valid_o(aw_valid), .aw_ready_i, .aw_id_o(aw_id), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .aw_size_o(aw_size), .aw_burst_o(aw_burst), .w_valid_o(w_valid), .w_ready_i, .w_data_o(w_data),
    .w_strb_o(w_strb), .w_last_o(w_last), .b_valid_i, .b_ready_o(b_ready), .b_id_i, .b_resp_i
  );

  // ---------------------------------------------------------------- bytes that come
  logic                  start, push;
  logic                  pushing_q;            // bytes of the last command are to come
  logic [CountWidth-1:0] rows_q, bytes_q, row_q, column_q;
  logic [CountWidth:0]   next;

  assign start = start_valid_i && start_ready;
  assign push  = valid_i && ready;
  assign next  = (CountWidth+1)'(column_q) + (CountWidth+1)'(count_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pushing_q <= 1'b0;
    end else if (start) begin
      pushing_q <= 1'b1;
      rows_q    <= rows_i;
      bytes_q   <= bytes_i;
      row_q     <= '0;
      column_q  <= '0;
    end else if (push) begin
      column_q  <= row_end_i ? '0 : next[CountWidth-1:0];
      row_q     <= row_q + CountWidth'(row_end_i);
      pushing_q <= !(row_end_i && row_q + CountWidth'(1) == rows_q);
    end
  end

  // ---------------------------------------------------------------- the byte that is followed
  logic                 followed_q, its_command_q, pushed_q, written_q;
  logic [AddrWidth-1:0] its_address_q;
  logic [7:0]           its_value_q;
  logic [TagBits-1:0]   its_tag_q;
  logic                 its_beat;              // on the pins: the word of its address, of its request
  logic                 its_comes;             // it is in the piece that comes

  assign its_comes = push && its_command_q && row_q == its_row && column_q <= its_column &&
                     (CountWidth+1)'(its_column) < next;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      followed_q    <= 1'b0;
      its_command_q <= 1'b0;
      pushed_q      <= 1'b0;
      written_q     <= 1'b0;
    end else begin
      if (start) its_command_q <= 1'b0;
      if (start && follow_i && !followed_q && its_row < rows_i && its_column < bytes_i) begin
        followed_q    <= 1'b1;
        its_command_q <= 1'b1;
        its_tag_q     <= tag_i;
        its_address_q <= address_i + AddrWidth'(its_row) * AddrWidth'(pitch_i) + AddrWidth'(its_column);
      end
      if (its_comes) begin
        pushed_q    <= 1'b1;
        its_value_q <= data_i[{LaneBits'(its_column - column_q), 3'b000}+:8];
      end
      if (its_beat && w_ready_i) written_q <= 1'b1;
    end
  end

  logic its_end_q;                             // its command is complete
  always_ff @(posedge clk_i) begin
    its_end_q <= rst_ni && (its_end_q || (completed && followed_q && completed_tag == its_tag_q));
  end

  // ---------------------------------------------------------------- requests
  // Those with data to come, in their order, and rows and columns that they have got to.
  typedef struct packed {
    logic [IdBits-1:0]     id;
    logic [AddrWidth-1:0]  address;
    logic [LengthBits-1:0] length;
    logic                  its;                // has the byte that is followed
  } request_t;

  request_t               first_q, second_q, request;
  logic [1:0]             count_q;             // of them
  logic [LengthBits-1:0]  beat_q;              // of the first
  logic [Outstanding-1:0] open_q, written_all_q;
  logic [TagBits-1:0]     tag, tag_q, tag_of_q [Outstanding];
  logic [Commands-1:0]    busy_q;
  logic                   issue, w_take, w_end;
  logic [CountWidth-1:0]  cut_row, cut_row_q, cut_column, cut_column_q, cut_bytes, cut_bytes_q;
  logic                   its_cut;

  assign issue      = aw_valid && aw_ready_i;
  assign w_take     = w_valid && w_ready_i;
  assign w_end      = w_take && w_last;
  assign tag        = start_ready ? tag_i : tag_q;
  assign cut_row    = start_ready ? '0 : cut_row_q;
  assign cut_column = start_ready ? '0 : cut_column_q;
  assign cut_bytes  = start_ready ? bytes_i : cut_bytes_q;
  assign its_cut    = start_ready ? 1'b0 : its_command_q;
  assign request    = '{aw_id, aw_addr, u_dut.cut_length,
                        its_cut && cut_row == its_row && cut_column <= its_column &&
                        32'(its_column) < 32'(cut_column) + 32'(u_dut.cut_length)};

  always_ff @(posedge clk_i) begin
    tag_q       <= tag;
    cut_bytes_q <= cut_bytes;
    if (!rst_ni) begin
      count_q       <= '0;
      open_q        <= '0;
      written_all_q <= '0;
      busy_q        <= '0;
      beat_q        <= '0;
    end else begin
      cut_row_q    <= cut_row;
      cut_column_q <= cut_column;
      if (issue) begin
        if (32'(cut_column) + 32'(u_dut.cut_length) == 32'(cut_bytes)) begin
          cut_row_q    <= cut_row + CountWidth'(1);
          cut_column_q <= '0;
        end else begin
          cut_column_q <= cut_column + CountWidth'(u_dut.cut_length);
        end
        tag_of_q[aw_id] <= tag;
      end
      count_q <= count_q + 2'(issue) - 2'(w_end);
      if (w_end) first_q <= second_q;
      if (issue && count_q == 2'(w_end)) first_q <= request;
      if (issue && count_q == 2'(w_end) + 2'd1) second_q <= request;
      if (w_take) beat_q <= w_last ? '0 : beat_q + LengthBits'(1);
      open_q        <= (open_q | (issue ? Outstanding'(1) << aw_id : '0)) &
                       ~(b_valid_i ? Outstanding'(1) << b_id_i : '0);
      written_all_q <= (written_all_q | (w_end ? Outstanding'(1) << first_q.id : '0)) &
                       ~(b_valid_i ? Outstanding'(1) << b_id_i : '0);
      busy_q        <= (busy_q & ~(completed ? Commands'(1) << completed_tag : '0)) |
                       (start ? Commands'(1) << tag_i : '0);
    end
  end

  logic [LengthBits:0]   begins, ends;         // bytes of the first request in the beat on the pins
  logic [LaneBits-1:0]   lane, its_lane;
  logic [LengthBits:0]   its_byte;             // of the request

  assign lane     = first_q.address[LaneBits-1:0];
  assign begins   = beat_q == '0 ? '0 : (LengthBits+1)'(beat_q) * (LengthBits+1)'(DataBytes) - (LengthBits+1)'(lane);
  assign ends     = (LengthBits+1)'(beat_q + LengthBits'(1)) * (LengthBits+1)'(DataBytes) - (LengthBits+1)'(lane);
  assign its_byte = (LengthBits+1)'(its_address_q - first_q.address);
  assign its_lane = its_address_q[LaneBits-1:0];
  assign its_beat = w_valid && first_q.its && its_byte >= begins && its_byte < ends;

  // ---------------------------------------------------------------- what was on the pins before
  logic                           aw_waited_q, w_waited_q;
  logic [IdBits+AddrWidth+7:0]    aw_q;
  logic [DataWidth+DataBytes:0]   w_q;
  always_ff @(posedge clk_i) begin
    aw_waited_q <= rst_ni && aw_valid && !aw_ready_i;
    w_waited_q  <= rst_ni && w_valid && !w_ready_i;
    aw_q        <= {aw_id, aw_addr, aw_len};
    w_q         <= {w_data, w_strb, w_last};
  end

  // ---------------------------------------------------------------- rules
  logic others;  // requests of the command whose response is on the pins, open or to come

  always_comb begin
    others = !start_ready && tag_q == tag_of_q[b_id_i];
    for (int unsigned i = 0; i < Outstanding; i++) begin
      if (open_q[i] && b_id_i != IdBits'(i) && tag_of_q[i] == tag_of_q[b_id_i]) others = 1'b1;
    end
  end

  always_comb begin
    assume (!start_valid_i || (rows_i != '0 && bytes_i != '0 && !(busy_q[tag_i] && start_ready)));
    assume (!start || !pushing_q);
    assume (!valid_i || (pushing_q && count_i != '0 && 32'(count_i) <= DataBytes &&
                         next <= (CountWidth+1)'(bytes_q) && row_end_i == (next == (CountWidth+1)'(bytes_q))));
    assume (!valid_i || row_end_i || data_i >> {count_i, 3'b000} == '0);
    assume (!b_valid_i || written_all_q[b_id_i]);
    if (rst_ni) begin
      assert (!aw_valid || !open_q[aw_id]);
      assert (!aw_waited_q || (aw_valid && {aw_id, aw_addr, aw_len} == aw_q));
      assert (!w_waited_q || (w_valid && {w_data, w_strb, w_last} == w_q));
      assert (!w_valid || count_q != '0);
      if (w_valid) begin
        assert (w_last == (ends >= (LengthBits+1)'(first_q.length)));
        for (int unsigned l = 0; l < DataBytes; l++) begin
          // lanes of the beat that hold bytes of the request
          assert (w_strb[l] == ((beat_q != '0 || l >= 32'(lane)) &&
                                32'(beat_q) * DataBytes + l < 32'(lane) + 32'(first_q.length)));
        end
      end
      assert (!its_beat || (pushed_q && !written_q && w_strb[its_lane] &&
                            w_data[{its_lane, 3'b000}+:8] == its_value_q));
      assert (completed == (b_valid_i && !others));
      assert (!completed || (busy_q[completed_tag] && completed_tag == tag_of_q[b_id_i]));
      assert (!(completed && followed_q && !its_end_q && completed_tag == its_tag_q) || written_q);
      cover (completed && written_q);
    end
  end

  // ---------------------------------------------------------------- where a byte of the command goes
  localparam int unsigned RequestBits = LengthBits - 1;
  localparam int unsigned QueueBits   = $clog2(QueueWords);
  localparam int unsigned EntryBits   = DataWidth + DataBytes + 1;
  localparam int unsigned FlightBits  = $clog2(Outstanding + 1);

  typedef struct packed {
    logic [CountWidth-1:0] row, column;
  } place_t;

  logic [AddrWidth-1:0]  address_q;
  logic [CountWidth-1:0] pitch_q;
  always_ff @(posedge clk_i) begin
    if (start) begin
      address_q <= address_i;
      pitch_q   <= pitch_i;
    end
  end

  function automatic logic [AddrWidth-1:0] address_of(input place_t place);
    address_of = address_q + AddrWidth'(place.row) * AddrWidth'(pitch_q) + AddrWidth'(place.column);
  endfunction

  // Bytes of the request that begins there.
  function automatic logic [LengthBits-1:0] length_of(input place_t place);
    logic [AddrWidth-1:0] address;
    address   = address_of(place);
    length_of = LengthBits'(RequestBytes) - LengthBits'(address[RequestBits-1:0]);
    if (32'(bytes_q) - 32'(place.column) < 32'(length_of)) length_of = LengthBits'(bytes_q - place.column);
  endfunction

  function automatic place_t after(input place_t place);
    logic [CountWidth:0] end_of;
    end_of = (CountWidth+1)'(place.column) + (CountWidth+1)'(length_of(place));
    if (end_of == (CountWidth+1)'(bytes_q)) after = place_t'{place.row + CountWidth'(1), '0};
    else after = place_t'{place.row, end_of[CountWidth-1:0]};
  endfunction

  // Of a request: its last beat, the lanes of a beat that it has bytes in, and whether a byte is in one.
  function automatic logic [LengthBits-1:0] last_beat_of(input logic [AddrWidth-1:0] address,
                                                         input logic [LengthBits-1:0] length);
    last_beat_of = LengthBits'((32'(address[LaneBits-1:0]) + 32'(length) - 1) / DataBytes);
  endfunction
  function automatic logic [DataBytes-1:0] lanes_of(input logic [AddrWidth-1:0] address,
                                                    input logic [LengthBits-1:0] length,
                                                    input logic [LengthBits-1:0] beat);
    for (int unsigned l = 0; l < DataBytes; l++) begin
      lanes_of[l] = (beat != '0 || l >= 32'(address[LaneBits-1:0])) &&
                    32'(beat) * DataBytes + l < 32'(address[LaneBits-1:0]) + 32'(length);
    end
  endfunction
  function automatic logic holds(input logic [AddrWidth-1:0] address, input logic [LengthBits-1:0] beat,
                                 input logic [AddrWidth-1:0] of_byte);
    holds = (32'(address[LaneBits-1:0]) + 32'(AddrWidth'(of_byte - address))) / DataBytes == 32'(beat);
  endfunction
  function automatic logic has_its(input place_t place);
    has_its = its_command_q && place.row == its_row && place.column <= its_column &&
              32'(its_column) < 32'(place.column) + 32'(length_of(place));
  endfunction

  // ---------------------------------------------------------------- words, as they come into the queue
  typedef struct packed {
    logic [AddrWidth-1:0]  address;            // of its request
    logic [LengthBits-1:0] length, beat;
    place_t                place;
    logic                  its;
  } word_t;

  word_t                 words_q [QueueWords];
  place_t                packing_q;            // of the request whose words come
  logic [LengthBits-1:0] packed_q;             // its words that have
  logic                  its_held_q;           // the byte that is followed has come, and is not in the queue
  logic                  its_spills, its_pushed;

  assign its_spills = 32'(u_dut.held_lanes_q) + 32'(its_column) - 32'(column_q) >= DataBytes;
  assign its_pushed = u_dut.push && (its_held_q || (its_comes && !its_spills));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      its_held_q <= 1'b0;
    end else begin
      its_held_q <= (its_held_q || its_comes) && !its_pushed;
      if (start) begin
        packing_q <= '0;
        packed_q  <= '0;
      end else if (u_dut.push) begin
        words_q[u_dut.tail_q] <= '{address_of(packing_q), length_of(packing_q), packed_q, packing_q, its_pushed};
        packing_q <= u_dut.last_word ? after(packing_q) : packing_q;
        packed_q  <= u_dut.last_word ? '0 : packed_q + LengthBits'(1);
      end
    end
  end

  // ---------------------------------------------------------------- invariants: requests
  place_t cut_place_q;
  assign cut_place_q = place_t'{cut_row_q, cut_column_q};

  logic [Outstanding-1:0] leaving;             // requests with data to come
  always_comb begin
    leaving = '0;
    if (count_q != 2'd0) leaving = leaving | (Outstanding'(1) << first_q.id);
    if (count_q == 2'd2) leaving = leaving | (Outstanding'(1) << second_q.id);
  end

  always_comb begin
    if (rst_ni) begin
      assert (count_q <= 2'd2);
      assert (u_dut.left_q == (QueueBits+1)'(count_q));
      assert (count_q != 2'd2 || first_q.id != second_q.id);
      assert (leaving == (open_q & ~written_all_q));
      assert ((written_all_q & ~open_q) == '0);
      assert (u_dut.unused_slots == open_q);
      assert (!(u_dut.u_slots.held_q && !in_order) || !open_q[u_dut.u_slots.held_slot_q]);
      assert (32'(u_dut.u_slots.oldest_q) < Outstanding);
      assert (!aw_waited_q || (!start_ready && u_dut.complete_q != '0 && u_dut.u_slots.held_q &&
                               u_dut.u_slots.held_slot_q == aw_id && aw_q == {aw_id, aw_addr, aw_len} &&
                               !open_q[aw_id]));
      assert (!w_waited_q || (u_dut.left_q != '0 && w_q == {w_data, w_strb, w_last}));
      // the cutter
      if (!start_ready) begin
        assert (u_dut.u_cutter.bytes_q == bytes_q && u_dut.u_cutter.pitch_q == pitch_q && cut_bytes_q == bytes_q);
        assert (rows_q != '0 && bytes_q != '0 && cut_row_q < rows_q && cut_column_q < bytes_q);
        assert (u_dut.u_cutter.rows_q == rows_q - cut_row_q);
        assert (u_dut.u_cutter.left_q == bytes_q - cut_column_q);
        assert (u_dut.u_cutter.row_address_q == address_of(place_t'{cut_row_q, CountWidth'(0)}));
        assert (u_dut.u_cutter.address_q == address_of(cut_place_q));
        assert (u_dut.tag_q == tag_q);
        assert (pushing_q == (row_q != rows_q) && row_q <= rows_q && (pushing_q || column_q == '0));
      end else begin
        assert (!pushing_q && !u_dut.flush_q && u_dut.complete_q == '0);
      end
    end
  end
  for (genvar t = 0; t < Commands; t++) begin : gen_tag
    logic [FlightBits-1:0] count;
    always_comb begin
      count = '0;
      for (int unsigned i = 0; i < Outstanding; i++) begin
        if (open_q[i] && tag_of_q[i] == TagBits'(t)) count = count + FlightBits'(1);
      end
      if (rst_ni) begin
        assert (u_dut.flight_q[t] == count);
        assert (busy_q[t] == (count != '0 || (!start_ready && tag_q == TagBits'(t))));
      end
    end
  end
  for (genvar i = 0; i < Outstanding; i++) begin : gen_open
    always_comb if (rst_ni && open_q[i]) assert (u_dut.slot_tag_q[i] == tag_of_q[i]);
  end

  // ---------------------------------------------------------------- invariants: words in the queue
  logic [QueueBits:0] number [QueueWords+1];  // of the request that a word is of, from the head on
  place_t                   places [QueueWords+2];  // of requests to issue
  logic [QueueBits-1:0] at [QueueWords];
  logic [QueueWords-1:0]    is_last;

  always_comb begin
    places[0] = cut_place_q;
    for (int unsigned i = 0; i <= QueueWords; i++) places[i+1] = after(places[i]);
    number[0] = '0;
    for (int unsigned i = 0; i < QueueWords; i++) begin
      at[i]       = QueueBits'((32'(u_dut.head_q) + i) % QueueWords);
      is_last[i]  = u_dut.queue_q[at[i]][EntryBits-1];
      number[i+1] = number[i] + (QueueBits+1)'(is_last[i] && i < 32'(u_dut.words_q));
    end
  end

  always_comb begin
    if (rst_ni) begin
      assert (32'(u_dut.words_q) <= QueueWords);
      assert (32'(u_dut.head_q) < QueueWords && 32'(u_dut.tail_q) < QueueWords);
      assert (32'(u_dut.tail_q) == (32'(u_dut.head_q) + 32'(u_dut.words_q)) % QueueWords);
      assert (32'(number[QueueWords]) == 32'(u_dut.left_q) + 32'(u_dut.complete_q));
      if (!start_ready) begin
        for (int unsigned i = 0; i < QueueWords; i++) begin
          assert (i >= 32'(u_dut.complete_q) || (places[i].row < rows_q && places[i].column < bytes_q));
        end
        assert (packing_q == places[u_dut.complete_q]);
        assert (packing_q.row <= rows_q && (packing_q.row != rows_q || packing_q.column == '0));
        if (u_dut.words_q == '0 || is_last[u_dut.words_q-1]) begin
          assert (packed_q == '0);
        end else begin
          assert (packed_q == words_q[at[u_dut.words_q-1]].beat + LengthBits'(1));
          assert (words_q[at[u_dut.words_q-1]].place == packing_q);
        end
      end
    end
  end
  for (genvar i = 0; i < QueueWords; i++) begin : gen_word
    word_t                        word;
    request_t                     of;
    logic [EntryBits-1:0]   entry;
    assign word  = words_q[at[i]];
    assign entry = u_dut.queue_q[at[i]];
    assign of    = number[i] == '0 ? first_q : second_q;
    always_comb begin
      if (rst_ni && i < 32'(u_dut.words_q)) begin
        assert (word.length != '0 && 32'(word.length) <= RequestBytes);
        assert (word.beat <= last_beat_of(word.address, word.length));
        assert (is_last[i] == (word.beat == last_beat_of(word.address, word.length)));
        assert (entry[DataWidth+:DataBytes] == lanes_of(word.address, word.length, word.beat));
        assert (!word.its || (pushed_q && !written_q && holds(word.address, word.beat, its_address_q) &&
                              lanes_of(word.address, word.length, word.beat)[its_address_q[LaneBits-1:0]] &&
                              entry[{its_address_q[LaneBits-1:0], 3'b000}+:8] == its_value_q));
        if (number[i] < u_dut.left_q) begin
          assert (word.address == of.address && word.length == of.length);
          assert (word.its == (of.its && holds(of.address, word.beat, its_address_q)));
        end else begin
          assert (!start_ready);
          assert (word.place == places[number[i] - u_dut.left_q]);
          assert (word.address == address_of(word.place) && word.length == length_of(word.place));
          assert (word.its == (has_its(word.place) && holds(word.address, word.beat, its_address_q)));
        end
        if (i == 0) assert (word.beat == (u_dut.left_q != '0 ? beat_q : '0));
        else assert (word.beat == (is_last[i-1] ? '0 : words_q[at[i-1]].beat + LengthBits'(1)));
      end
    end
  end
  logic [QueueWords-1:0] its_words;            // the word that has the byte that is followed
  always_comb begin
    for (int unsigned i = 0; i < QueueWords; i++) its_words[i] = i < 32'(u_dut.words_q) && words_q[at[i]].its;
    if (rst_ni) begin
      assert (u_dut.left_q != '0 || beat_q == '0);
      assert ((pushed_q && !written_q) == (its_held_q || its_words != '0));
      assert ((its_words & (its_words - QueueWords'(1))) == '0 && !(its_held_q && its_words != '0));
    end
  end

  // ---------------------------------------------------------------- invariants: bytes that are held
  logic [AddrWidth-1:0] end_of;                // address after the last byte that has come, of its row
  place_t               come;
  assign come   = u_dut.flush_q ? place_t'{row_q - CountWidth'(1), bytes_q} : place_t'{row_q, column_q};
  assign end_of = address_of(come);

  always_comb begin
    if (rst_ni && !start_ready && (pushing_q || u_dut.flush_q)) begin
      assert (u_dut.pitch_q == RequestBits'(pitch_q));
      assert (u_dut.row_q == RequestBits'(address_of(place_t'{come.row, CountWidth'(0)})));
      assert (column_q < bytes_q && row_q <= rows_q && (!pushing_q || row_q < rows_q));
      assert (packing_q.row == come.row && packing_q.column <= come.column);
      assert (32'(come.column) - 32'(packing_q.column) < 32'(length_of(packing_q)) + 32'(u_dut.flush_q));
      assert (!u_dut.flush_q || (row_q != '0 && column_q == '0 && u_dut.held_lanes_q != '0 &&
                                 32'(packing_q.column) + 32'(length_of(packing_q)) == 32'(bytes_q)));
      assert (u_dut.held_lanes_q == end_of[LaneBits-1:0]);
      assert (u_dut.place_q == end_of[RequestBits-1:LaneBits]);
      assert (32'(packed_q) * DataBytes ==
              32'(address_of(packing_q)[LaneBits-1:0]) + 32'(come.column) - 32'(packing_q.column) -
              32'(end_of[LaneBits-1:0]));
      for (int unsigned l = 0; l < DataBytes; l++) begin
        assert (u_dut.held_strobes_q[l] == (l < 32'(u_dut.held_lanes_q) &&
                (packed_q != '0 || l >= 32'(address_of(packing_q)[LaneBits-1:0]))));
        assert (u_dut.held_strobes_q[l] || u_dut.held_q[8*l+:8] == '0);
      end
    end
  end
  always_comb begin
    if (rst_ni) begin
      assert (pushing_q || u_dut.flush_q || start_ready ||
              (packing_q == {rows_q, CountWidth'(0)} && packed_q == '0));
      assert (!its_held_q || (!start_ready && (pushing_q || u_dut.flush_q) && its_command_q && pushed_q &&
                              !written_q && has_its(packing_q) &&
                              holds(address_of(packing_q), packed_q, its_address_q) &&
                              u_dut.held_strobes_q[its_address_q[LaneBits-1:0]] &&
                              u_dut.held_q[{its_address_q[LaneBits-1:0], 3'b000}+:8] == its_value_q));
    end
  end

  // ---------------------------------------------------------------- invariants: the byte that is followed
  logic to_come, to_issue;                     // it has not come; its request is to issue
  assign to_come  = its_command_q && pushing_q &&
                    (row_q < its_row || (row_q == its_row && column_q <= its_column));
  assign to_issue = its_command_q && !start_ready &&
                    (cut_row_q < its_row || (cut_row_q == its_row && cut_column_q <= its_column));

  always_comb begin
    if (rst_ni) begin
      assert (!its_command_q || followed_q);
      assert (followed_q || (!pushed_q && !written_q));
      assert (!written_q || pushed_q);
      assert (followed_q || !its_end_q);
      assert (!pushed_q || !to_come);
      assert (!followed_q || pushed_q || to_come);
      if (its_command_q) begin
        assert (its_row < rows_q && its_column < bytes_q);
        assert (its_address_q == address_of(place_t'{its_row, its_column}));
        assert (start_ready || tag_q == its_tag_q);
      end
      assert (!to_issue || (!written_q && !its_end_q));
      assert (count_q == 2'd0 || !first_q.its || (followed_q && !its_end_q && !to_issue &&
              open_q[first_q.id] && tag_of_q[first_q.id] == its_tag_q && its_byte < (LengthBits+1)'(first_q.length)));
      assert (count_q != 2'd2 || !second_q.its || (followed_q && !its_end_q && !to_issue && !written_q &&
              open_q[second_q.id] && tag_of_q[second_q.id] == its_tag_q && !(first_q.its) &&
              32'(AddrWidth'(its_address_q - second_q.address)) < 32'(second_q.length)));
      assert (!(count_q != 2'd0 && first_q.its && !written_q) || its_byte >= begins);
      assert (!(count_q != 2'd0 && first_q.its && written_q) || its_byte < begins);
      assert (!followed_q || written_q || to_issue || (count_q != 2'd0 && first_q.its) ||
              (count_q == 2'd2 && second_q.its));
    end
  end

endmodule
