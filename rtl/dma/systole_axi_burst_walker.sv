// Cuts a range of bytes into AXI4 bursts, one after the other: of at most MaxBeats beats, none across
// a multiple of 4096 bytes (ARM IHI 0022, A3.4.1). Only the first may begin between words.

`include "systole_assert.svh"

module systole_axi_burst_walker #(
  parameter  int unsigned DataBytes   = 16,
  parameter  int unsigned AddrWidth   = 40,
  parameter  int unsigned LengthWidth = 32,
  parameter  int unsigned MaxBeats    = 16,
  localparam int unsigned LaneBits    = $clog2(DataBytes),
  localparam int unsigned BeatBits    = $clog2(MaxBeats + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   start_i,
  input  logic [AddrWidth-1:0]   address_i,
  input  logic [LengthWidth-1:0] bytes_i,

  output logic                   valid_o,    // a burst is left
  output logic [AddrWidth-1:0]   address_o,
  output logic [BeatBits-1:0]    beats_o,
  output logic [LengthWidth-1:0] left_o,     // bytes of this burst and those after it
  input  logic                   next_i      // it has been used
);

  localparam int unsigned PageWords = 4096 / DataBytes;
  localparam int unsigned PageBits  = $clog2(PageWords + 1);

  logic [AddrWidth-1:0]   address_q;
  logic [LengthWidth-1:0] left_q;
  logic [LaneBits-1:0]    offset;
  logic [LengthWidth:0]   words;       // to the end of the range
  logic [PageBits-1:0]    page_words;  // to the end of the page
  logic [LengthWidth:0]   burst_bytes;

  assign offset     = address_q[LaneBits-1:0];
  assign words      = (LengthWidth+1)'({1'b0, left_q} + (LengthWidth+1)'(offset) +
                      (LengthWidth+1)'(DataBytes - 1)) >> LaneBits;
  assign page_words = PageBits'(PageWords) - PageBits'(address_q[11:LaneBits]);

  always_comb begin
    beats_o = BeatBits'(MaxBeats);
    if (words < (LengthWidth+1)'(beats_o)) beats_o = BeatBits'(words);
    if (page_words < PageBits'(beats_o)) beats_o = BeatBits'(page_words);
  end

  assign burst_bytes = ((LengthWidth+1)'(beats_o) << LaneBits) - (LengthWidth+1)'(offset);
  assign valid_o     = left_q != '0;
  assign address_o   = address_q;
  assign left_o      = left_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      address_q <= '0;
      left_q    <= '0;
    end else if (start_i) begin
      address_q <= address_i;
      left_q    <= bytes_i;
    end else if (next_i) begin
      address_q <= address_q + AddrWidth'(burst_bytes);
      left_q    <= burst_bytes >= {1'b0, left_q} ? '0 : left_q - LengthWidth'(burst_bytes);
    end
  end

  `SYSTOLE_ASSERT_INIT(WordUsable_A, DataBytes >= 2 && DataBytes <= 128 && 2**LaneBits == DataBytes)
  `SYSTOLE_ASSERT_INIT(BurstUsable_A, MaxBeats >= 1 && MaxBeats <= 256 && MaxBeats <= PageWords)
  `SYSTOLE_ASSERT(NextOfSomething_A, next_i |-> valid_o)

endmodule
