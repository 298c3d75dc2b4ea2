// A memory and a few registers behind an AXI4 subordinate port: what stands for any RTL of that kind
// on the bridge (tlm/axi/axi_target_bridge.h). It knows nothing of the model.
//
//   from 0                   Words words of DataBytes bytes
//   from Words * DataBytes   four registers, a word each:
//     0  identity: 0x53797374, read-only
//     1  scratch, written by strobes
//     2  write bursts with OKAY so far, read-only
//     3  read bursts with OKAY so far, read-only
//   elsewhere                DECERR
//
// A beat that writes a read-only register, or is wider than the port, gets SLVERR and changes nothing;
// a write burst gets the worst response of its beats. INCR, WRAP and FIXED bursts are served, one each
// way at a time, a beat a cycle.

`include "systole_assert.svh"

module systole_axi_sram #(
  parameter  int unsigned DataBytes = 16,
  parameter  int unsigned Words     = 16,
  parameter  int unsigned AddrWidth = 32,
  parameter  int unsigned IdWidth   = 4,
  localparam int unsigned DataWidth = 8 * DataBytes
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 aw_valid_i,
  output logic                 aw_ready_o,
  input  logic [IdWidth-1:0]   aw_id_i,
  input  logic [AddrWidth-1:0] aw_addr_i,
  input  logic [7:0]           aw_len_i,
  input  logic [2:0]           aw_size_i,
  input  logic [1:0]           aw_burst_i,

  input  logic                 w_valid_i,
  output logic                 w_ready_o,
  input  logic [DataWidth-1:0] w_data_i,
  input  logic [DataBytes-1:0] w_strb_i,
  input  logic                 w_last_i,

  output logic                 b_valid_o,
  input  logic                 b_ready_i,
  output logic [IdWidth-1:0]   b_id_o,
  output logic [1:0]           b_resp_o,

  input  logic                 ar_valid_i,
  output logic                 ar_ready_o,
  input  logic [IdWidth-1:0]   ar_id_i,
  input  logic [AddrWidth-1:0] ar_addr_i,
  input  logic [7:0]           ar_len_i,
  input  logic [2:0]           ar_size_i,
  input  logic [1:0]           ar_burst_i,

  output logic                 r_valid_o,
  input  logic                 r_ready_i,
  output logic [IdWidth-1:0]   r_id_o,
  output logic [DataWidth-1:0] r_data_o,
  output logic [1:0]           r_resp_o,
  output logic                 r_last_o
);

  localparam int unsigned   LaneBits = $clog2(DataBytes);
  localparam int unsigned   WordBits = $clog2(Words);
  localparam int unsigned   MapBits  = LaneBits + WordBits;  // of the memory's addresses
  localparam logic [1:0]    Fixed = 2'd0, Wrap = 2'd2;
  localparam logic [1:0]    Okay = 2'd0, SlvErr = 2'd2, DecErr = 2'd3;
  localparam logic [31:0]   Identity = 32'h53797374;

  // ------------------------------------------------------------------ addresses
  // Of the beat after the one at `address`. An unaligned one stays so: it is in the same word. A burst
  // that wraps stays within its beats' bytes.
  function automatic logic [AddrWidth-1:0] next_address(
    input logic [AddrWidth-1:0] address, input logic [7:0] len, input logic [2:0] size,
    input logic [1:0] burst);
    logic [AddrWidth-1:0] bytes, up, offset;
    bytes        = AddrWidth'(1) << size;
    up           = address + bytes;
    offset       = ((AddrWidth'(len) + 1'b1) << size) - 1'b1;
    next_address = burst == Fixed ? address
                 : burst == Wrap  ? (address & ~offset) | (up & offset) : up;
  endfunction

  localparam logic [AddrWidth-1:0] MemoryEnd = AddrWidth'(Words * DataBytes);
  localparam logic [AddrWidth-1:0] MapEnd    = AddrWidth'((Words + 4) * DataBytes);

  // ------------------------------------------------------------------ writes
  logic                 writing_q, late_q;  // an address has been taken; and all of its data
  logic [IdWidth-1:0]   aw_id_q;
  logic [AddrWidth-1:0] aw_addr_q;
  logic [7:0]           aw_len_q;
  logic [2:0]           aw_size_q;
  logic [1:0]           aw_burst_q, w_resp, w_worst_q, w_worst;
  logic                 aw_take, w_take, b_take, w_memory, w_scratch;
  logic [31:0]          scratch_q, writes_q, reads_q;

  assign aw_ready_o = !writing_q;
  assign w_ready_o  = writing_q && !late_q;
  assign b_valid_o  = late_q;
  assign b_id_o     = aw_id_q;
  assign b_resp_o   = w_worst_q;
  assign aw_take    = aw_valid_i && aw_ready_o;
  assign w_take     = w_valid_i && w_ready_o;
  assign b_take     = b_valid_o && b_ready_i;

  always_comb begin
    w_resp = Okay;
    if (32'(aw_size_q) > LaneBits) begin
      w_resp = SlvErr;
    end else if (aw_addr_q >= MemoryEnd) begin
      if (aw_addr_q >= MapEnd) begin
        w_resp = DecErr;
      end else if (aw_addr_q[LaneBits+:2] != 2'd1) begin
        w_resp = SlvErr;
      end
    end
  end
  assign w_worst   = w_resp > w_worst_q ? w_resp : w_worst_q;
  assign w_memory  = w_take && w_resp == Okay && aw_addr_q < MemoryEnd;
  assign w_scratch = w_take && w_resp == Okay && aw_addr_q >= MemoryEnd;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writing_q <= 1'b0;
      late_q    <= 1'b0;
      writes_q  <= '0;
    end else begin
      if (aw_take) writing_q <= 1'b1;
      if (w_take && w_last_i) late_q <= 1'b1;
      if (b_take) begin
        writing_q <= 1'b0;
        late_q    <= 1'b0;
        if (b_resp_o == Okay) writes_q <= writes_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_take) begin
      aw_id_q    <= aw_id_i;
      aw_addr_q  <= aw_addr_i;
      aw_len_q   <= aw_len_i;
      aw_size_q  <= aw_size_i;
      aw_burst_q <= aw_burst_i;
      w_worst_q  <= Okay;
    end else if (w_take) begin
      aw_addr_q  <= next_address(aw_addr_q, aw_len_q, aw_size_q, aw_burst_q);
      w_worst_q  <= w_worst;
    end
  end

  for (genvar b = 0; b < 4; b++) begin : gen_scratch
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        scratch_q[8*b+:8] <= '0;
      end else if (w_scratch && w_strb_i[b]) begin
        scratch_q[8*b+:8] <= w_data_i[8*b+:8];
      end
    end
  end

  // ------------------------------------------------------------------ reads
  logic                 reading_q;  // beats are left to be fetched
  logic [AddrWidth-1:0] ar_addr_q;
  logic [7:0]           ar_len_q, ar_left_q;
  logic [2:0]           ar_size_q;
  logic [1:0]           ar_burst_q, r_worst_q, r_resp;
  logic                 ar_take, r_fetch, r_take;
  logic [DataWidth-1:0] stored, r_data;
  logic [31:0]          register;

  assign ar_ready_o = !reading_q && !r_valid_o;
  assign ar_take    = ar_valid_i && ar_ready_o;
  assign r_take     = r_valid_o && r_ready_i;
  assign r_fetch    = reading_q && (!r_valid_o || r_ready_i);

  always_comb begin
    unique case (ar_addr_q[LaneBits+:2])
      2'd0:    register = Identity;
      2'd1:    register = scratch_q;
      2'd2:    register = writes_q;
      default: register = reads_q;
    endcase
    r_resp = Okay;
    r_data = ar_addr_q < MemoryEnd ? stored : DataWidth'(register);
    if (32'(ar_size_q) > LaneBits) begin
      r_resp = SlvErr;
    end else if (ar_addr_q >= MapEnd) begin
      r_resp = DecErr;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reading_q <= 1'b0;
      r_valid_o <= 1'b0;
      reads_q   <= '0;
    end else begin
      if (ar_take) begin
        reading_q <= 1'b1;
      end else if (r_fetch && ar_left_q == '0) begin
        reading_q <= 1'b0;
      end
      if (r_fetch) begin
        r_valid_o <= 1'b1;
      end else if (r_take) begin
        r_valid_o <= 1'b0;
      end
      if (r_take && r_last_o && r_worst_q == Okay) reads_q <= reads_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ar_take) begin
      r_id_o     <= ar_id_i;
      ar_addr_q  <= ar_addr_i;
      ar_len_q   <= ar_len_i;
      ar_left_q  <= ar_len_i;
      ar_size_q  <= ar_size_i;
      ar_burst_q <= ar_burst_i;
      r_worst_q  <= Okay;
    end else if (r_fetch) begin
      ar_addr_q  <= next_address(ar_addr_q, ar_len_q, ar_size_q, ar_burst_q);
      ar_left_q  <= ar_left_q - 1'b1;
      r_data_o   <= r_resp == Okay ? r_data : '0;
      r_resp_o   <= r_resp;
      r_last_o   <= ar_left_q == '0;
      if (r_resp > r_worst_q) r_worst_q <= r_resp;
    end
  end

  // ------------------------------------------------------------------ memory, a byte lane at a time
  for (genvar b = 0; b < DataBytes; b++) begin : gen_lane
    logic [7:0] bytes_q [Words];
    assign stored[8*b+:8] = bytes_q[ar_addr_q[LaneBits+:WordBits]];
    always_ff @(posedge clk_i) begin
      if (w_memory && w_strb_i[b]) bytes_q[aw_addr_q[LaneBits+:WordBits]] <= w_data_i[8*b+:8];
    end
  end

  `SYSTOLE_ASSERT_INIT(SizeUsable_A, DataBytes >= 4 && Words >= 4 && MapBits < AddrWidth)
  `SYSTOLE_ASSERT(WriteResponseHeld_A, (b_valid_o && !b_ready_i) |=>
                  (b_valid_o && $stable(b_id_o) && $stable(b_resp_o)))
  `SYSTOLE_ASSERT(ReadDataHeld_A, (r_valid_o && !r_ready_i) |=>
                  (r_valid_o && $stable(r_data_o) && $stable(r_resp_o) && $stable(r_last_o)))

endmodule
