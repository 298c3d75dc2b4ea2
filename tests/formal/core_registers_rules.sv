// The registers of a core, whatever a host asks and the core does: a response for each write and each
// beat of a read, with its ID and the value of the table in docs/blocks/core_registers.md; an interrupt
// is high until it is acknowledged, and none is lost; a program starts only while none runs; CYCLES
// counts from a start to its end.

module core_registers_rules (
  input logic        clk_i,

  // what a host asks: each address and its data until they are taken
  input logic        aw_valid_i,
  input logic [1:0]  aw_id_i,
  input logic [11:0] aw_addr_i,
  input logic [7:0]  aw_len_i,
  input logic [2:0]  aw_size_i,
  input logic        w_valid_i,
  input logic [63:0] w_data_i,
  input logic [7:0]  w_strb_i,
  input logic        w_last_i,
  input logic        b_ready_i,
  input logic        ar_valid_i,
  input logic [1:0]  ar_id_i,
  input logic [11:0] ar_addr_i,
  input logic [7:0]  ar_len_i,
  input logic [2:0]  ar_size_i,
  input logic        r_ready_i,

  // what the core does
  input logic        finish_i,
  input logic        fault_i,
  input logic        stuck_i,
  input logic        call_i,
  input logic [63:0] call_address_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic        aw_ready, w_ready, b_valid, ar_ready, r_valid, r_last;
  logic [1:0]  b_id, b_resp, r_id, r_resp;
  logic [63:0] r_data, program_address;
  logic        interrupt, start, running, called, host_done;

  systole_core_registers #(.IdBits(2)) u_dut (
    .clk_i, .rst_ni,
    .aw_valid_i, .aw_ready_o(aw_ready), .aw_id_i, .aw_addr_i, .aw_len_i, .aw_size_i,
    .w_valid_i, .w_ready_o(w_ready), .w_data_i, .w_strb_i, .w_last_i,
    .b_valid_o(b_valid), .b_ready_i, .b_id_o(b_id), .b_resp_o(b_resp),
    .ar_valid_i, .ar_ready_o(ar_ready), .ar_id_i, .ar_addr_i, .ar_len_i, .ar_size_i,
    .r_valid_o(r_valid), .r_ready_i, .r_id_o(r_id), .r_data_o(r_data), .r_resp_o(r_resp),
    .r_last_o(r_last),
    .interrupt_o(interrupt), .start_o(start), .program_o(program_address), .running_o(running),
    .finish_i, .fault_i, .stuck_i, .call_i, .call_address_i, .called_o(called),
    .host_done_o(host_done)
  );

  // ---------------------------------------------------------------- the write and the read inside
  logic        write_q, data_q, read_q;  // its address is there; its data; a read is
  logic [1:0]  write_id_q, read_id_q;
  logic [11:0] write_at_q;
  logic        write_single_q, write_whole_q, read_whole_q, known_q;
  logic [63:0] write_data_q, value_q;
  logic [7:0]  beats_q;                  // of the read, still to come after this one
  logic        responded_q;              // its response was there in the cycle before

  // ---------------------------------------------------------------- what the registers hold
  logic        runs_q, pending_q, waits_q, stuck_q;
  logic [63:0] program_q, cycles_q, passed_q, call_q;
  logic        effect, controls;

  assign effect   = write_q && data_q && !responded_q && write_single_q && write_whole_q;
  assign controls = effect && write_at_q == 12'h10;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {write_q, data_q, read_q, responded_q} <= '0;
      {runs_q, pending_q, waits_q, stuck_q} <= '0;
      program_q <= '0;
      cycles_q  <= '0;
    end else begin
      responded_q <= write_q && data_q;
      if (aw_valid_i && aw_ready) begin
        write_q        <= 1'b1;
        write_id_q     <= aw_id_i;
        write_at_q     <= aw_addr_i;
        write_single_q <= aw_len_i == '0 && aw_size_i == 3'd3;
      end
      if (w_valid_i && w_ready) begin
        if (w_last_i) data_q <= 1'b1;
        write_data_q  <= w_data_i;
        write_whole_q <= w_strb_i == 8'hff;
      end
      if (b_valid && b_ready_i) {write_q, data_q} <= '0;

      if (effect && write_at_q == 12'h08) program_q <= write_data_q;
      if (controls && write_data_q[1]) pending_q <= 1'b0;
      if (finish_i || call_i || (stuck_i && !stuck_q)) pending_q <= 1'b1;
      if (controls && write_data_q[2]) waits_q <= 1'b0;
      if (call_i) begin
        waits_q <= 1'b1;
        call_q  <= call_address_i;
      end
      stuck_q  <= stuck_i;
      passed_q <= passed_q + 64'd1;  // cycles since the start
      if (controls && write_data_q[0] && !runs_q) begin
        runs_q   <= 1'b1;
        passed_q <= 64'd1;
      end
      if (finish_i) begin
        runs_q   <= 1'b0;
        cycles_q <= passed_q;
      end

      if (ar_valid_i && ar_ready) begin
        read_q       <= 1'b1;
        read_id_q    <= ar_id_i;
        beats_q      <= ar_len_i;
        read_whole_q <= ar_len_i == '0 && ar_size_i == 3'd3;
        known_q      <= 1'b1;
        case (ar_addr_i)
          12'h00:  value_q <= 64'h53595354;
          12'h08:  value_q <= program_q;
          12'h18:  value_q <= {60'b0, fault_i, waits_q, pending_q, runs_q};
          12'h20:  value_q <= cycles_q;
          12'h28:  value_q <= waits_q ? call_q : '0;
          default: known_q <= 1'b0;
        endcase
      end else if (r_valid && r_ready_i) begin
        beats_q <= beats_q - 8'd1;
        read_q  <= beats_q != '0;
      end
    end
  end

  // ---------------------------------------------------------------- the host and the core
  logic        aw_waits_q, w_waits_q;
  logic [24:0] aw_q;
  logic [72:0] w_q;
  always_ff @(posedge clk_i) begin
    aw_waits_q <= rst_ni && aw_valid_i && !aw_ready;
    w_waits_q  <= rst_ni && w_valid_i && !w_ready;
    aw_q       <= {aw_id_i, aw_addr_i, aw_len_i, aw_size_i};
    w_q        <= {w_last_i, w_strb_i, w_data_i};
  end

  always_comb begin
    if (rst_ni) begin
      assume (!aw_waits_q || (aw_valid_i && aw_q == {aw_id_i, aw_addr_i, aw_len_i, aw_size_i}));
      assume (!w_waits_q || (w_valid_i && w_q == {w_last_i, w_strb_i, w_data_i}));
      assume (!(finish_i && call_i));
      assume (runs_q || !(finish_i || call_i));
      assume (!waits_q || !(finish_i || call_i));
    end
  end

  // ---------------------------------------------------------------- rules
  always_comb begin
    if (rst_ni) begin
      assert (b_valid == (write_q && data_q));
      assert (!b_valid || b_id == write_id_q);
      assert (!b_valid || b_resp == (!write_single_q || !write_whole_q ? 2'd2
                                     : write_at_q == 12'h08 || write_at_q == 12'h10 ? 2'd0 : 2'd3));
      assert (r_valid == read_q);
      assert (!r_valid || (r_id == read_id_q && r_last == (beats_q == '0)));
      assert (!r_valid || r_resp == (!read_whole_q ? 2'd2 : known_q ? 2'd0 : 2'd3));
      assert (!r_valid || !read_whole_q || !known_q || r_data == value_q);
      assert (start == (controls && write_data_q[0] && !runs_q));
      assert (host_done == (controls && write_data_q[2] && waits_q));
      assert (interrupt == pending_q && running == runs_q && called == waits_q);
      assert (program_address == program_q);
      cover (start && pending_q);
      cover (finish_i && controls && write_data_q[1] && pending_q);
      cover (host_done && cycles_q != '0);
      cover (r_valid && read_whole_q && known_q && value_q == 64'd5);
      cover (b_valid && b_resp == 2'd2);
    end
  end

  // ---------------------------------------------------------------- invariants
  always_comb begin
    if (rst_ni) begin
      assert (u_dut.address_q == write_q && u_dut.data_q == data_q);
      assert (u_dut.answered_q == responded_q);
      assert (!write_q || (u_dut.single_q == write_single_q && u_dut.offset_q == write_at_q));
      assert (!data_q || (u_dut.whole_q == write_whole_q && u_dut.value_q == write_data_q));
      assert (u_dut.stuck_q == stuck_q && u_dut.cycles_q == cycles_q);
      assert (!runs_q || u_dut.counter_q == passed_q);
      assert (!waits_q || (u_dut.call_q == call_q && runs_q));
      assert (!read_q || u_dut.left_q == beats_q);
      assert (!write_q || b_id == write_id_q);
    end
  end

endmodule
