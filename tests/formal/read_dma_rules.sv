// What a core relies on of a port that reads, for any answers of memory, in any order: an ID is in use
// once, requests bring each byte of a command to its place and write nothing else, and a command is
// complete once, with its last byte. That requests cover each byte once is a rule of the cutter.

module read_dma_rules #(
  parameter  int unsigned DataBytes    = 2,
  parameter  int unsigned RequestBytes = 4,
  parameter  int unsigned Outstanding  = 2,
  parameter  int unsigned Commands     = 2,
  parameter  int unsigned AddrWidth    = 5,
  parameter  int unsigned LocalWidth   = 4,
  parameter  int unsigned CountWidth   = 3,
  parameter  int unsigned LateSums     = 0,
  localparam int unsigned DataWidth    = 8 * DataBytes,
  localparam int unsigned LaneBits     = $clog2(DataBytes),
  localparam int unsigned WordWidth    = LocalWidth - LaneBits,
  localparam int unsigned IdBits       = Outstanding > 1 ? $clog2(Outstanding) : 1,
  localparam int unsigned TagBits      = Commands > 1 ? $clog2(Commands) : 1,
  localparam int unsigned LengthBits   = $clog2(RequestBytes) + 1,
  localparam int unsigned CountBits    = $clog2(Outstanding + 1)
) (
  input logic                   clk_i,
  input logic                   start_valid_i,
  input logic [TagBits-1:0]     tag_i,
  input logic                   sums_i,
  input logic [AddrWidth-1:0]   address_i,
  input logic [CountWidth-1:0]  pitch_i,
  input logic [CountWidth-1:0]  rows_i,
  input logic [CountWidth-1:0]  bytes_i,
  input logic [LocalWidth-1:0]  to_i,
  input logic [LocalWidth-1:0]  to_pitch_i,
  input logic [LocalWidth-1:0]  before_i,
  input logic                   ar_ready_i,
  input logic                   r_valid_i,
  input logic [IdBits-1:0]      r_id_i,
  input logic [DataWidth-1:0]   r_data_i,
  input logic [1:0]             r_resp_i,
  input logic                   r_last_i,
  input logic [Outstanding-1:0] placed_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  // Any, and then the same: the order of slots, and a byte of the local memory.
  logic                  in_order;
  logic [CountWidth-1:0] row_bytes;
  logic [LocalWidth-1:0] place;
  always_ff @(posedge clk_i) begin
    in_order  <= in_order;
    row_bytes <= row_bytes;
    place     <= place;
  end

  logic                  start_ready, completed, error, arrived, ar_valid, r_ready;
  logic [TagBits-1:0]    completed_tag;
  logic [IdBits-1:0]     ar_id;
  logic [AddrWidth-1:0]  ar_addr;
  logic [7:0]            ar_len;
  logic [2:0]            ar_size;
  logic [1:0]            ar_burst;
  logic                  write_valid, write_sums;
  logic [WordWidth-1:0]  write_word;
  logic [DataWidth-1:0]  write_data;
  logic [DataBytes-1:0]  write_here, write_next;

  systole_read_dma #(
    .DataBytes(DataBytes), .RequestBytes(RequestBytes), .Outstanding(Outstanding),
    .Commands(Commands), .AddrWidth(AddrWidth), .LocalWidth(LocalWidth),
    .CountWidth(CountWidth), .LateSums(LateSums)
  ) u_dut (
    .clk_i, .rst_ni, .in_order_i(in_order), .row_bytes_i(row_bytes),
    .start_valid_i, .start_ready_o(start_ready), .tag_i, .sums_i, .address_i, .pitch_i, .rows_i,
    .bytes_i, .to_i, .to_pitch_i, .completed_o(completed), .completed_tag_o(completed_tag),
    .error_o(error), .before_i, .arrived_o(arrived),
    .ar_valid_o(ar_valid), .ar_ready_i, .ar_id_o(ar_id), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .ar_size_o(ar_size), .ar_burst_o(ar_burst),
    .r_valid_i, .r_ready_o(r_ready), .r_id_i, .r_data_i, .r_resp_i, .r_last_i,
    .write_valid_o(write_valid), .write_sums_o(write_sums), .write_word_o(write_word),
    .write_data_o(write_data), .write_here_o(write_here), .write_next_o(write_next), .placed_i
  );

  // ---------------------------------------------------------------- requests, by ID
  logic [Outstanding-1:0] open_q;                    // beats are to come
  logic [Outstanding-1:0] placing_q;                 // none is, but the slot is kept
  logic [AddrWidth-1:0]   from_q [Outstanding];
  logic [LocalWidth-1:0]  to_q [Outstanding];
  logic [LengthBits-1:0]  length_q [Outstanding];
  logic [LengthBits-1:0]  beat_q [Outstanding];      // the next one
  logic [LengthBits-1:0]  beats_q [Outstanding];     // less one
  logic [TagBits-1:0]     tag_q [Outstanding];
  logic [Outstanding-1:0] sums_q;
  logic                   issue, last, sums, keeps;
  logic [TagBits-1:0]     tag, cutting_tag_q;
  logic                   cutting_sums_q;

  assign issue = ar_valid && ar_ready_i;
  assign tag   = start_ready ? tag_i : cutting_tag_q;
  assign sums  = start_ready ? sums_i : cutting_sums_q;
  assign last  = r_valid_i && r_last_i;
  assign keeps = LateSums != 0 && sums_q[r_id_i];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q    <= '0;
      placing_q <= '0;
    end else begin
      cutting_tag_q  <= tag;
      cutting_sums_q <= sums;
      placing_q      <= (placing_q | (last && keeps ? Outstanding'(1) << r_id_i : '0)) & ~placed_i;
      open_q         <= (open_q & ~(last ? Outstanding'(1) << r_id_i : '0)) |
                        (issue ? Outstanding'(1) << ar_id : '0);
      if (r_valid_i) beat_q[r_id_i] <= beat_q[r_id_i] + LengthBits'(1);
      if (issue) begin
        from_q[ar_id]   <= ar_addr;
        to_q[ar_id]     <= u_dut.cut_to;
        length_q[ar_id] <= u_dut.cut_length;
        beat_q[ar_id]   <= '0;
        beats_q[ar_id]  <= LengthBits'(ar_len);
        tag_q[ar_id]    <= tag;
        sums_q[ar_id]   <= sums;
      end
    end
  end

  // ---------------------------------------------------------------- commands, by tag
  logic [Commands-1:0]  busy_q;                      // from its start to its completion
  logic [CountBits-1:0] count [Commands];            // of its requests that are open
  logic                 cutting_q;                   // the command that started last has requests to come

  always_comb begin
    for (int unsigned t = 0; t < Commands; t++) begin
      count[t] = '0;
      for (int unsigned s = 0; s < Outstanding; s++) begin
        if (open_q[s] && tag_q[s] == TagBits'(t)) count[t] = count[t] + CountBits'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q    <= '0;
      cutting_q <= 1'b0;
    end else begin
      busy_q    <= (busy_q & ~(completed ? Commands'(1) << completed_tag : '0)) |
                   (start_valid_i && start_ready ? Commands'(1) << tag_i : '0);
      cutting_q <= u_dut.cut_valid && !(issue && u_dut.u_cutter.last);
    end
  end

  // ---------------------------------------------------------------- the beat that is on the pins
  logic [LaneBits-1:0]   lane;                       // of the first byte of the request
  logic [LengthBits:0]   begins, ends;               // bytes of the request that the beat brings
  logic [LocalWidth-1:0] byte_of_request;            // that goes to `place`, if it is of the request
  logic                  brought, brought_q, taken_q, was_sums_q, error_q;
  logic [LaneBits-1:0]   from_lane;
  logic [7:0]            data_q;

  assign lane            = from_q[r_id_i][LaneBits-1:0];
  assign begins          = beat_q[r_id_i] == '0 ? '0 :
                           (LengthBits+1)'(beat_q[r_id_i]) * (LengthBits+1)'(DataBytes) - (LengthBits+1)'(lane);
  assign ends            = (LengthBits+1)'(beat_q[r_id_i] + LengthBits'(1)) * (LengthBits+1)'(DataBytes) -
                           (LengthBits+1)'(lane);
  assign byte_of_request = place - to_q[r_id_i];
  assign brought         = 32'(byte_of_request) >= 32'(begins) && 32'(byte_of_request) < 32'(ends) &&
                           32'(byte_of_request) < 32'(length_q[r_id_i]);
  assign from_lane       = LaneBits'(from_q[r_id_i]) + LaneBits'(byte_of_request);

  always_ff @(posedge clk_i) begin
    taken_q    <= rst_ni && r_valid_i;
    brought_q  <= brought;
    was_sums_q <= sums_q[r_id_i];
    data_q     <= r_data_i[{from_lane, 3'b000}+:8];
    error_q    <= rst_ni && (error_q || (r_valid_i && r_resp_i != '0));
  end

  // ---------------------------------------------------------------- what was on the pins before
  logic                 waited_q;
  logic [IdBits-1:0]    id_q;
  logic [AddrWidth-1:0] addr_q;
  logic [7:0]           len_q;

  always_ff @(posedge clk_i) begin
    waited_q <= rst_ni && ar_valid && !ar_ready_i;
    id_q     <= ar_id;
    addr_q   <= ar_addr;
    len_q    <= ar_len;
  end

  // ---------------------------------------------------------------- rules
  logic strobe;
  assign strobe = (write_word == place[LocalWidth-1:LaneBits] && write_here[place[LaneBits-1:0]]) ||
                  (write_word + WordWidth'(1) == place[LocalWidth-1:LaneBits] &&
                   write_next[place[LaneBits-1:0]]);

  always_comb begin
    assume (!start_valid_i || (rows_i != '0 && bytes_i != '0));
    assume (!(start_valid_i && start_ready) || !busy_q[tag_i]);
    assume (!r_valid_i || (open_q[r_id_i] && r_last_i == (beat_q[r_id_i] == beats_q[r_id_i])));
    assume ((placed_i & ~placing_q) == '0);
    if (rst_ni) begin
      // requests
      assert (!ar_valid || !(open_q[ar_id] || placing_q[ar_id]));
      assert (!waited_q || (ar_valid && ar_id == id_q && ar_addr == addr_q && ar_len == len_q));
      assert (!ar_valid || (32'(ar_addr[LaneBits-1:0]) + 32'(u_dut.cut_length) + DataBytes - 1) / DataBytes ==
              32'(ar_len) + 1);
      assert (r_ready);
      // bytes
      assert (write_valid == taken_q);
      assert (!taken_q || strobe == brought_q);
      assert (!(taken_q && brought_q) || write_data[{place[LaneBits-1:0], 3'b000}+:8] == data_q);
      assert (!taken_q || write_sums == was_sums_q);
      assert (error == error_q);
      // commands
      assert (!completed || (busy_q[completed_tag] && last && completed_tag == tag_q[r_id_i] &&
                             count[completed_tag] == CountBits'(1) &&
                             !(cutting_q && cutting_tag_q == completed_tag)));
      assert (!(last && count[tag_q[r_id_i]] == CountBits'(1) &&
                !(cutting_q && cutting_tag_q == tag_q[r_id_i])) || completed);
      cover (completed && open_q == '1 && tag_q[0] != tag_q[1]);
      cover (taken_q && brought_q && write_next != '0 && in_order);
    end
  end
  for (genvar t = 0; t < Commands; t++) begin : gen_done
    always_comb begin
      if (rst_ni) begin
        assert (busy_q[t] == (count[t] != '0 || (cutting_q && cutting_tag_q == TagBits'(t))));
        assert (u_dut.flight_q[t] == count[t]);
      end
    end
  end

  // ---------------------------------------------------------------- invariants
  always_comb begin
    if (rst_ni) begin
      assert (u_dut.u_cutter.busy_q == cutting_q);
      assert (!cutting_q || u_dut.u_cutter.left_q != '0);
      assert (!cutting_q || u_dut.u_cutter.bytes_q != '0);
      assert (!cutting_q || u_dut.u_cutter.rows_q != '0);
      assert (!cutting_q || row_bytes == '0 || (u_dut.u_cutter.piece_q != '0));
      assert (!cutting_q || (u_dut.tag_q == cutting_tag_q && u_dut.sums_q == cutting_sums_q));
      assert ((open_q & placing_q) == '0);
      assert (u_dut.slot_used == (open_q | placing_q));
      assert (!(u_dut.u_slots.held_q && !in_order) || !u_dut.slot_used[u_dut.u_slots.held_slot_q]);
      assert (32'(u_dut.u_slots.oldest_q) < Outstanding);
      assert (!waited_q || (cutting_q && u_dut.u_slots.held_q && u_dut.u_slots.held_slot_q == id_q &&
                            u_dut.u_cutter.address_q == addr_q && u_dut.ar_len_o == len_q &&
                            (!in_order || (u_dut.u_slots.oldest_q == id_q && !u_dut.slot_used[id_q]))));
    end
  end
  for (genvar s = 0; s < Outstanding; s++) begin : gen_slot
    logic [LengthBits:0] done;  // bytes that have come
    assign done = beat_q[s] == '0 ? '0 : (LengthBits+1)'(beat_q[s]) * (LengthBits+1)'(DataBytes) -
                                         (LengthBits+1)'(from_q[s][LaneBits-1:0]);
    always_comb begin
      if (rst_ni) begin
        assert (!(open_q[s] || placing_q[s]) || u_dut.slot_sums_q[s] == sums_q[s]);
        assert (!placing_q[s] || (LateSums != 0 && sums_q[s]));
        if (open_q[s]) begin
          assert (32'(tag_q[s]) < Commands);
          assert (u_dut.slot_tag_q[s] == tag_q[s]);
          assert (length_q[s] != '0 && 32'(length_q[s]) <= RequestBytes);
          assert (beat_q[s] <= beats_q[s]);
          assert ((32'(from_q[s][LaneBits-1:0]) + 32'(length_q[s]) - 1) / DataBytes == 32'(beats_q[s]));
          assert (u_dut.slot_to_q[s] == to_q[s] + LocalWidth'(done));
          assert (u_dut.slot_lane_q[s] == (beat_q[s] == '0 ? from_q[s][LaneBits-1:0] : '0));
          assert (32'(u_dut.slot_left_q[s]) + 32'(done) == 32'(length_q[s]));
        end
      end
    end
  end

endmodule
