// The registers by which a host drives a core (docs/blocks/core_registers.md), behind an AXI4
// subordinate port: bursts of one whole beat, one read and one write at a time. Anything else gets
// SLVERR; DECERR where no register is, or not in this direction.
//
// A write takes effect in the cycle of its response, which is the one after the last of its address
// and its data. A read has what the registers hold in the cycle of its address.

`include "systole_assert.svh"

module systole_core_registers #(
  parameter int unsigned IdBits   = 4,
  parameter int unsigned AddrBits = 12   // of an offset
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                aw_valid_i,
  output logic                aw_ready_o,
  input  logic [IdBits-1:0]   aw_id_i,
  input  logic [AddrBits-1:0] aw_addr_i,
  input  logic [7:0]          aw_len_i,
  input  logic [2:0]          aw_size_i,
  input  logic                w_valid_i,
  output logic                w_ready_o,
  input  logic [63:0]         w_data_i,
  input  logic [7:0]          w_strb_i,
  input  logic                w_last_i,
  output logic                b_valid_o,
  input  logic                b_ready_i,
  output logic [IdBits-1:0]   b_id_o,
  output logic [1:0]          b_resp_o,
  input  logic                ar_valid_i,
  output logic                ar_ready_o,
  input  logic [IdBits-1:0]   ar_id_i,
  input  logic [AddrBits-1:0] ar_addr_i,
  input  logic [7:0]          ar_len_i,
  input  logic [2:0]          ar_size_i,
  output logic                r_valid_o,
  input  logic                r_ready_i,
  output logic [IdBits-1:0]   r_id_o,
  output logic [63:0]         r_data_o,
  output logic [1:0]          r_resp_o,
  output logic                r_last_o,

  output logic                interrupt_o,     // until it is acknowledged
  output logic                start_o,         // a program begins
  output logic [63:0]         program_o,       // where
  output logic                running_o,       // from the cycle after the start to that of finish_i
  input  logic                finish_i,        // it is over: running_o is low from the next cycle on
  input  logic                fault_i,         // it was no program for this core, or is stuck
  input  logic                stuck_i,         // it will never be over
  input  logic                call_i,          // the host has to execute a command
  input  logic [63:0]         call_address_i,  // which
  output logic                called_o,        // the core waits for it, from the next cycle on
  output logic                host_done_o      // it waits no longer
);

  localparam logic [63:0] Identity = 64'h53595354;  // "SYST"
  localparam logic [1:0]  Okay = 2'd0, SlvErr = 2'd2, DecErr = 2'd3;
  localparam logic [2:0]  Whole = 3'd3;             // size of a beat of 8 bytes

  localparam logic [AddrBits-1:0] Id       = AddrBits'('h00);
  localparam logic [AddrBits-1:0] Program  = AddrBits'('h08);
  localparam logic [AddrBits-1:0] Control  = AddrBits'('h10);
  localparam logic [AddrBits-1:0] Status   = AddrBits'('h18);
  localparam logic [AddrBits-1:0] Cycles   = AddrBits'('h20);
  localparam logic [AddrBits-1:0] HostCall = AddrBits'('h28);

  // ---------------------------------------------------------------- writes
  logic                address_q, data_q;   // it is there
  logic                single_q, whole_q, answered_q;
  logic [AddrBits-1:0] offset_q;
  logic [63:0]         value_q;
  logic                write, control, acknowledge;

  assign aw_ready_o = !address_q;
  assign w_ready_o  = !data_q;
  assign b_valid_o  = address_q && data_q;

  always_comb begin
    if (!single_q || !whole_q) begin
      b_resp_o = SlvErr;
    end else begin
      b_resp_o = offset_q == Program || offset_q == Control ? Okay : DecErr;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      address_q  <= 1'b0;
      data_q     <= 1'b0;
      answered_q <= 1'b0;
    end else begin
      if (aw_valid_i) address_q <= 1'b1;
      if (w_valid_i && w_last_i) data_q <= 1'b1;
      answered_q <= b_valid_o;
      if (b_valid_o && b_ready_i) begin
        address_q <= 1'b0;
        data_q    <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (aw_valid_i && aw_ready_o) begin
      b_id_o   <= aw_id_i;
      offset_q <= aw_addr_i;
      single_q <= aw_len_i == '0 && aw_size_i == Whole;
    end
    if (w_valid_i && w_ready_o) begin
      value_q <= w_data_i;
      whole_q <= &w_strb_i;
    end
  end

  assign write       = b_valid_o && !answered_q && b_resp_o == Okay;
  assign control     = write && offset_q == Control;
  assign start_o     = control && value_q[0] && !running_o;
  assign acknowledge = control && value_q[1];
  assign host_done_o = control && value_q[2] && called_o;

  // ---------------------------------------------------------------- registers
  logic [63:0] counter_q, cycles_q, call_q;
  logic        stuck_q, raise;

  assign raise = finish_i || call_i || (stuck_i && !stuck_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      program_o   <= '0;
      running_o   <= 1'b0;
      interrupt_o <= 1'b0;
      called_o    <= 1'b0;
      stuck_q     <= 1'b0;
      cycles_q    <= '0;
    end else begin
      if (write && offset_q == Program) program_o <= value_q;
      running_o   <= start_o || (running_o && !finish_i);
      interrupt_o <= raise || (interrupt_o && !acknowledge);
      called_o    <= call_i || (called_o && !host_done_o);
      stuck_q     <= stuck_i;
      if (finish_i) cycles_q <= counter_q;
    end
  end
  always_ff @(posedge clk_i) begin
    counter_q <= start_o ? 64'd1 : counter_q + 64'd1;
    if (call_i) call_q <= call_address_i;
  end

  // ---------------------------------------------------------------- reads
  logic [7:0]  left_q;
  logic [63:0] value;
  logic        known;

  assign ar_ready_o = !r_valid_o;
  assign r_last_o   = left_q == '0;

  always_comb begin
    known = 1'b1;
    case (ar_addr_i)
      Id:       value = Identity;
      Program:  value = program_o;
      Status:   value = {60'b0, fault_i, called_o, interrupt_o, running_o};
      Cycles:   value = cycles_q;
      HostCall: value = called_o ? call_q : '0;
      default: begin
        value = '0;
        known = 1'b0;
      end
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      r_valid_o <= 1'b0;
    end else begin
      r_valid_o <= r_valid_o ? !(r_ready_i && r_last_o) : ar_valid_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!r_valid_o) begin
      r_id_o   <= ar_id_i;
      left_q   <= ar_len_i;
      r_data_o <= ar_len_i == '0 && ar_size_i == Whole ? value : '0;
      r_resp_o <= ar_len_i != '0 || ar_size_i != Whole ? SlvErr : known ? Okay : DecErr;
    end else if (r_ready_i) begin
      left_q <= left_q - 8'd1;
    end
  end

  `SYSTOLE_ASSERT(ResponseHeld_A, (b_valid_o && !b_ready_i) |=> (b_valid_o && $stable(b_id_o) && $stable(b_resp_o)))
  `SYSTOLE_ASSERT(DataHeld_A, (r_valid_o && !r_ready_i) |=> (r_valid_o && $stable(r_data_o) && $stable(r_resp_o)))
  `SYSTOLE_ASSERT(FinishesWhatRuns_A, (finish_i || call_i) |-> running_o)
  `SYSTOLE_ASSERT(OneCall_A, call_i |-> !called_o)

endmodule
