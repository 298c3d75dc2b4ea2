// What a core relies on of a port that writes, for any command, pieces of bytes and answers: an ID is in
// use once, a request has the beats that it says, each byte of a command is written once, to its address
// and with its value, and a command is complete once, with the last response.
//
// A byte of a command is followed, whichever it is. Bounded: the first `depth` cycles after reset.

module write_dma_rules #(
  parameter  int unsigned DataBytes    = 2,
  parameter  int unsigned RequestBytes = 4,
  parameter  int unsigned Outstanding  = 2,
  parameter  int unsigned Commands     = 2,
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
    .Commands(Commands), .AddrWidth(AddrWidth), .CountWidth(CountWidth)
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
      if (push && its_command_q && row_q == its_row && column_q <= its_column &&
          (CountWidth+1)'(its_column) < next) begin
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

endmodule
