// Copies a range of bytes from one place to another through an AXI4 manager port. Both may begin at
// any byte; they must not overlap unless the target begins before the source.
//
// Read bursts run ahead as far as `Outstanding` and the words between the two sides allow, all with
// ID 0. Their bytes are packed into the lanes of the target, and leave in write bursts whose IDs take
// turns. Bytes outside the range are read but not written.

`include "systole_assert.svh"

module systole_axi_dma #(
  parameter  int unsigned DataBytes   = 16,
  parameter  int unsigned AddrWidth   = 40,
  parameter  int unsigned LengthWidth = 32,
  parameter  int unsigned IdWidth     = 4,
  parameter  int unsigned MaxBeats    = 16,  // of a burst
  parameter  int unsigned Outstanding = 4,   // bursts each way
  localparam int unsigned DataWidth   = 8 * DataBytes,
  localparam int unsigned LaneBits    = $clog2(DataBytes)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   start_i,   // while not busy
  input  logic [AddrWidth-1:0]   source_i,
  input  logic [AddrWidth-1:0]   target_i,
  input  logic [LengthWidth-1:0] bytes_i,
  output logic                   busy_o,
  output logic                   error_o,   // since the last start: a response was no OKAY

  output logic                   aw_valid_o,
  input  logic                   aw_ready_i,
  output logic [IdWidth-1:0]     aw_id_o,
  output logic [AddrWidth-1:0]   aw_addr_o,
  output logic [7:0]             aw_len_o,
  output logic [2:0]             aw_size_o,
  output logic [1:0]             aw_burst_o,

  output logic                   w_valid_o,
  input  logic                   w_ready_i,
  output logic [DataWidth-1:0]   w_data_o,
  output logic [DataBytes-1:0]   w_strb_o,
  output logic                   w_last_o,

  input  logic                   b_valid_i,
  output logic                   b_ready_o,
  input  logic [IdWidth-1:0]     b_id_i,
  input  logic [1:0]             b_resp_i,

  output logic                   ar_valid_o,
  input  logic                   ar_ready_i,
  output logic [IdWidth-1:0]     ar_id_o,
  output logic [AddrWidth-1:0]   ar_addr_o,
  output logic [7:0]             ar_len_o,
  output logic [2:0]             ar_size_o,
  output logic [1:0]             ar_burst_o,

  input  logic                   r_valid_i,
  output logic                   r_ready_o,
  input  logic [IdWidth-1:0]     r_id_i,
  input  logic [DataWidth-1:0]   r_data_i,
  input  logic [1:0]             r_resp_i,
  input  logic                   r_last_i
);

  localparam int unsigned BeatBits  = $clog2(MaxBeats + 1);
  localparam int unsigned CountBits = $clog2(Outstanding + 1);
  localparam int unsigned Words     = 2 * MaxBeats;
  localparam int unsigned WordBits  = $clog2(Words);
  localparam logic [1:0]  Incr      = 2'd1;

  logic start;
  assign start = start_i && !busy_o;

  // ---------------------------------------------------------------- read addresses
  logic                   ar_left;
  logic [AddrWidth-1:0]   ar_address;
  logic [BeatBits-1:0]    ar_beats;
  logic [LengthWidth-1:0] ar_bytes;
  logic [CountBits-1:0]   reads_q;  // bursts under way
  logic                   ar_take, r_take;

  systole_axi_burst_walker #(
    .DataBytes(DataBytes), .AddrWidth(AddrWidth), .LengthWidth(LengthWidth), .MaxBeats(MaxBeats)
  ) u_ar (
    .clk_i, .rst_ni,
    .start_i  (start),
    .address_i(source_i),
    .bytes_i,
    .valid_o  (ar_left),
    .address_o(ar_address),
    .beats_o  (ar_beats),
    .left_o   (ar_bytes),
    .next_i   (ar_take)
  );

  assign ar_valid_o = ar_left && reads_q != CountBits'(Outstanding);
  assign ar_id_o    = '0;
  assign ar_addr_o  = ar_address;
  assign ar_len_o   = 8'(ar_beats) - 8'd1;
  assign ar_size_o  = 3'(LaneBits);
  assign ar_burst_o = Incr;
  assign ar_take    = ar_valid_o && ar_ready_i;

  // ---------------------------------------------------------------- from lanes of the source to the target's
  logic [LengthWidth-1:0] r_left_q;   // bytes to come
  logic [LaneBits-1:0]    r_skip_q;   // bytes of the next word before the range
  logic [DataWidth-1:0]   hold_q;     // bytes of a word that is not full, others 0
  logic [LaneBits-1:0]    held_q;     // lanes that are taken
  logic                   flush_q;    // what is held is the last word
  logic [LaneBits:0]      r_bytes;    // of this beat
  logic                   r_end;
  logic [LaneBits:0]      lanes;
  logic [2*DataWidth-1:0] packed_words;
  logic                   push, full;
  logic [DataWidth-1:0]   push_data;

  always_comb begin
    r_bytes = (LaneBits+1)'(DataBytes) - (LaneBits+1)'(r_skip_q);
    r_end   = r_left_q <= LengthWidth'(r_bytes);
    if (r_end) r_bytes = (LaneBits+1)'(r_left_q);
  end
  assign lanes        = r_bytes + (LaneBits+1)'(held_q);
  assign packed_words = {{DataWidth{1'b0}}, hold_q} |
                        ({{DataWidth{1'b0}}, r_data_i >> {r_skip_q, 3'b000}} << {held_q, 3'b000});
  assign r_ready_o    = !full && !flush_q;
  assign r_take       = r_valid_i && r_ready_o;
  assign push         = flush_q ? !full : r_take && (lanes[LaneBits] || r_end);
  assign push_data    = flush_q ? hold_q : packed_words[DataWidth-1:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      r_left_q <= '0;
      r_skip_q <= '0;
      hold_q   <= '0;
      held_q   <= '0;
      flush_q  <= 1'b0;
      reads_q  <= '0;
    end else if (start) begin
      r_left_q <= bytes_i;
      r_skip_q <= source_i[LaneBits-1:0];
      hold_q   <= '0;
      held_q   <= target_i[LaneBits-1:0];
      flush_q  <= 1'b0;
    end else begin
      reads_q <= reads_q + CountBits'(ar_take) - CountBits'(r_take && r_last_i);
      if (r_take) begin
        r_left_q <= r_left_q - LengthWidth'(r_bytes);
        r_skip_q <= '0;
        hold_q   <= lanes[LaneBits] ? packed_words[2*DataWidth-1:DataWidth]
                                    : packed_words[DataWidth-1:0];
        held_q   <= lanes[LaneBits-1:0];
        flush_q  <= r_end && lanes[LaneBits] && lanes[LaneBits-1:0] != '0;
      end else if (push) begin
        flush_q <= 1'b0;
      end
    end
  end

  // ---------------------------------------------------------------- words between the two sides
  logic [DataWidth-1:0] words_q [Words];
  logic [WordBits-1:0]  head_q, tail_q;
  logic [WordBits:0]    used_q;
  logic                 w_take;

  assign full = used_q == (WordBits+1)'(Words);

  function automatic logic [WordBits-1:0] after(input logic [WordBits-1:0] place);
    after = place == WordBits'(Words - 1) ? '0 : place + WordBits'(1);
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      used_q <= '0;
    end else begin
      if (push) tail_q <= after(tail_q);
      if (w_take) head_q <= after(head_q);
      used_q <= used_q + (WordBits+1)'(push) - (WordBits+1)'(w_take);
    end
  end
  always_ff @(posedge clk_i) begin
    if (push) words_q[tail_q] <= push_data;
  end

  // ---------------------------------------------------------------- write addresses
  logic                   aw_left;
  logic [AddrWidth-1:0]   aw_address;
  logic [BeatBits-1:0]    aw_beats;
  logic [LengthWidth-1:0] aw_bytes;
  logic [CountBits-1:0]   writes_q;  // bursts without a response
  logic [CountBits-1:0]   ahead_q;   // bursts with an address, and data to come
  logic [IdWidth-1:0]     aw_id_q;
  logic                   aw_take, w_end, b_take;

  systole_axi_burst_walker #(
    .DataBytes(DataBytes), .AddrWidth(AddrWidth), .LengthWidth(LengthWidth), .MaxBeats(MaxBeats)
  ) u_aw (
    .clk_i, .rst_ni,
    .start_i  (start),
    .address_i(target_i),
    .bytes_i,
    .valid_o  (aw_left),
    .address_o(aw_address),
    .beats_o  (aw_beats),
    .left_o   (aw_bytes),
    .next_i   (aw_take)
  );

  assign aw_valid_o = aw_left && writes_q != CountBits'(Outstanding);
  assign aw_id_o    = aw_id_q;
  assign aw_addr_o  = aw_address;
  assign aw_len_o   = 8'(aw_beats) - 8'd1;
  assign aw_size_o  = 3'(LaneBits);
  assign aw_burst_o = Incr;
  assign aw_take    = aw_valid_o && aw_ready_i;
  assign b_ready_o  = writes_q != '0;
  assign b_take     = b_valid_i && b_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_q <= '0;
      ahead_q  <= '0;
      aw_id_q  <= '0;
    end else begin
      writes_q <= writes_q + CountBits'(aw_take) - CountBits'(b_take);
      ahead_q  <= ahead_q + CountBits'(aw_take) - CountBits'(w_end);
      if (aw_take) aw_id_q <= aw_id_q + IdWidth'(1);
    end
  end

  // ---------------------------------------------------------------- write data
  logic                   w_left;
  logic [AddrWidth-1:0]   w_address;
  logic [BeatBits-1:0]    w_beats;
  logic [LengthWidth-1:0] w_burst_bytes;  // from the burst on
  logic [BeatBits-1:0]    w_beat_q;
  logic [LaneBits-1:0]    w_first;  // lane
  logic [LengthWidth:0]   w_lanes;  // to the end of the range, from lane 0 of this word on
  logic [DataBytes-1:0]   from_first, to_end;

  systole_axi_burst_walker #(
    .DataBytes(DataBytes), .AddrWidth(AddrWidth), .LengthWidth(LengthWidth), .MaxBeats(MaxBeats)
  ) u_w (
    .clk_i, .rst_ni,
    .start_i  (start),
    .address_i(target_i),
    .bytes_i,
    .valid_o  (w_left),
    .address_o(w_address),
    .beats_o  (w_beats),
    .left_o   (w_burst_bytes),
    .next_i   (w_end)
  );

  assign w_valid_o = used_q != '0 && ahead_q != '0;
  assign w_data_o  = words_q[head_q];
  assign w_last_o  = w_beat_q == w_beats - BeatBits'(1);
  assign w_take    = w_valid_o && w_ready_i;
  assign w_end     = w_take && w_last_o;
  assign w_first   = w_address[LaneBits-1:0];
  assign w_lanes   = {1'b0, w_burst_bytes} + (LengthWidth+1)'(w_first) -
                     ((LengthWidth+1)'(w_beat_q) << LaneBits);

  assign from_first = w_beat_q == '0 ? {DataBytes{1'b1}} << w_first : '1;
  assign to_end     = w_lanes >= (LengthWidth+1)'(DataBytes)
                        ? '1 : ~({DataBytes{1'b1}} << w_lanes[LaneBits-1:0]);
  assign w_strb_o   = from_first & to_end;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      w_beat_q <= '0;
    end else if (w_take) begin
      w_beat_q <= w_last_o ? '0 : w_beat_q + BeatBits'(1);
    end
  end

  // ---------------------------------------------------------------- state
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_o  <= 1'b0;
      error_o <= 1'b0;
    end else if (start) begin
      busy_o  <= bytes_i != '0;
      error_o <= 1'b0;
    end else begin
      if (!w_left && writes_q == '0) busy_o <= 1'b0;
      if ((b_take && b_resp_i != '0) || (r_take && r_resp_i != '0)) error_o <= 1'b1;
    end
  end

  // Who runs ahead of whom is known from counts alone.
  logic unused;
  assign unused = &{1'b0, ar_bytes, aw_bytes, b_id_i, r_id_i, w_address[AddrWidth-1:LaneBits]};

  `SYSTOLE_ASSERT_INIT(WritesUsable_A, Outstanding >= 1 && Words >= 2)
  `SYSTOLE_ASSERT(ReadAddressHeld_A, (ar_valid_o && !ar_ready_i) |=>
                  (ar_valid_o && $stable(ar_addr_o) && $stable(ar_len_o)))
  `SYSTOLE_ASSERT(WriteAddressHeld_A, (aw_valid_o && !aw_ready_i) |=>
                  (aw_valid_o && $stable(aw_addr_o) && $stable(aw_len_o) && $stable(aw_id_o)))
  `SYSTOLE_ASSERT(WriteDataHeld_A, (w_valid_o && !w_ready_i) |=>
                  (w_valid_o && $stable(w_data_o) && $stable(w_strb_o) && $stable(w_last_o)))
  `SYSTOLE_ASSERT(DataWanted_A, r_take |-> (reads_q != '0 && r_left_q != '0))
  `SYSTOLE_ASSERT(ResponseWanted_A, b_valid_i |-> writes_q != '0)
  `SYSTOLE_ASSERT(WordOfBurst_A, w_valid_o |-> w_left)

endmodule
