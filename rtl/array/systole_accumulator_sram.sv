// Accumulator memory: `Banks` banks of rows of `Cols` 32-bit sums, `Ports` accesses per bank and
// cycle. The array writes or adds rows, the post-op pipeline reads them; a bank that has no port
// left for both serves the array. Values, cycles and the meaning of the handshakes:
// hw/array/accumulator.h.
//
// A row that is accepted is in the write stage in the next cycle, and goes into its bank at the
// end of it. An accumulating row is read in the cycle of its acceptance and added in the write
// stage. Whoever reads a row in the cycle of its write gets it from the write stage, so no order of
// accesses ever shows old sums. Reset forgets what is in flight and leaves the banks alone.

`include "systole_assert.svh"

module systole_accumulator_sram #(
  parameter  int unsigned Banks       = 2,
  parameter  int unsigned Ports       = 2,
  parameter  int unsigned RowsPerBank = 2048,  // what the largest machine description needs
  parameter  int unsigned Cols        = 4,
  parameter  int unsigned Parts       = 1,     // of a sum that are written or keep their bits: 1, 2, 4
  localparam int unsigned BankWidth   = Banks > 1 ? $clog2(Banks) : 1,
  localparam int unsigned RowWidth    = RowsPerBank > 1 ? $clog2(RowsPerBank) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Rows to write.
  input  logic                  write_valid_i,
  output logic                  write_ready_o,
  input  logic [BankWidth-1:0]  write_bank_i,
  input  logic [RowWidth-1:0]   write_row_i,
  input  logic [Cols*Parts-1:0] write_mask_i,  // columns to write, the others keep their sums
  input  logic [Cols*32-1:0]    write_data_i,  // column 0 in the low bits
  input  logic                  accumulate_i,  // add to the sums instead of overwriting them
  output logic                  written_o,     // a row goes into its bank in this cycle

  // Rows to read.
  input  logic                  read_valid_i,
  output logic                  read_ready_o,
  input  logic [BankWidth-1:0]  read_bank_i,
  input  logic [RowWidth-1:0]   read_row_i,

  // The rows that were read, in order.
  output logic                  data_valid_o,
  input  logic                  data_ready_i,
  output logic [Cols*32-1:0]    data_o
);

  // ------------------------------------------------------------------ who gets the ports
  logic write_fire, fetch, read_fire;
  logic advance;             // the reader's pipeline
  logic stage_valid_q;
  logic [BankWidth-1:0] stage_bank_q;
  logic [RowWidth-1:0]  stage_row_q;

  // With one port, a row that accumulates waits until the bank has written the row before it.
  assign write_ready_o = !(Ports == 1 && accumulate_i && stage_valid_q &&
                           stage_bank_q == write_bank_i);
  assign write_fire    = write_valid_i && write_ready_o;
  assign fetch         = write_fire && accumulate_i;

  logic stage_in_way, fetch_in_way;
  assign stage_in_way = stage_valid_q && stage_bank_q == read_bank_i;
  assign fetch_in_way = fetch && write_bank_i == read_bank_i;

  assign advance      = !(data_valid_o && !data_ready_i);
  assign read_ready_o = advance && (Ports == 1 ? !(stage_in_way || fetch_in_way)
                                               : !(stage_in_way && fetch_in_way));
  assign read_fire    = read_valid_i && read_ready_o;

  // ------------------------------------------------------------------ banks
  // Port 0 writes. The last port fetches sums, and serves the reader unless it does.
  localparam int unsigned LastPort = Ports - 1;
  localparam int unsigned RowBits  = Cols * 32;
  localparam int unsigned PartBits = 32 / Parts;

  logic [Cols*Parts-1:0]          stage_mask_q;
  logic [RowBits-1:0]             sum;
  logic [Banks*Ports*RowBits-1:0] bank_data;
  logic                           read_on_port_0;

  assign read_on_port_0 = Ports == 1 || fetch_in_way;

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    logic stage_here, fetch_here, read_here;
    logic [Ports-1:0]          enable;
    logic [Ports*RowWidth-1:0] row;

    assign stage_here = stage_valid_q && stage_bank_q == BankWidth'(b);
    assign fetch_here = fetch && write_bank_i == BankWidth'(b);
    assign read_here  = read_fire && read_bank_i == BankWidth'(b);

    always_comb begin
      enable = '0;
      row    = {Ports{read_row_i}};
      if (read_here) enable[read_on_port_0 ? 0 : LastPort] = 1'b1;
      if (fetch_here) begin
        enable[LastPort]                 = 1'b1;
        row[LastPort*RowWidth+:RowWidth] = write_row_i;
      end
      if (stage_here) begin
        enable[0]         = 1'b1;
        row[RowWidth-1:0] = stage_row_q;
      end
    end

    systole_sram_bank #(
      .Ports   (Ports),
      .Rows    (RowsPerBank),
      .Lanes   (Cols * Parts),
      .LaneBits(PartBits)
    ) u_bank (
      .clk_i,
      .enable_i(enable),
      .row_i   (row),
      .data_o  (bank_data[b*Ports*RowBits+:Ports*RowBits]),
      .write_i (stage_here),
      .mask_i  (stage_mask_q),
      .data_i  (sum)
    );
  end

  // ------------------------------------------------------------------ write stage
  logic               stage_accumulate_q;
  logic [RowBits-1:0] stage_data_q;
  logic [Cols*Parts-1:0] stage_forward_q;  // what was written as it was fetched
  logic [RowBits-1:0] written_q;        // what the write stage wrote last
  logic [RowBits-1:0] fetched;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      stage_valid_q <= 1'b0;
    end else begin
      stage_valid_q <= write_fire;
    end
  end

  logic write_of_stage, read_of_stage;
  assign write_of_stage = stage_valid_q && stage_bank_q == write_bank_i &&
                          stage_row_q == write_row_i;
  assign read_of_stage  = stage_valid_q && stage_bank_q == read_bank_i &&
                          stage_row_q == read_row_i;

  always_ff @(posedge clk_i) begin
    if (write_fire) begin
      stage_bank_q       <= write_bank_i;
      stage_row_q        <= write_row_i;
      stage_mask_q       <= write_mask_i;
      stage_data_q       <= write_data_i;
      stage_accumulate_q <= accumulate_i;
      stage_forward_q    <= write_of_stage ? stage_mask_q : '0;
    end
    if (stage_valid_q) written_q <= sum;
  end

  always_comb begin
    fetched = bank_data[LastPort*RowBits+:RowBits];
    for (int unsigned b = 1; b < Banks; b++) begin
      if (stage_bank_q == BankWidth'(b)) fetched = bank_data[(b*Ports+LastPort)*RowBits+:RowBits];
    end
  end

  logic [RowBits-1:0] addends;

  always_comb begin
    addends = fetched;
    for (int unsigned p = 0; p < Cols * Parts; p++) begin
      if (stage_forward_q[p]) addends[p*PartBits+:PartBits] = written_q[p*PartBits+:PartBits];
    end
    sum = stage_data_q;
    if (stage_accumulate_q) begin
      for (int unsigned c = 0; c < Cols; c++) sum[c*32+:32] += addends[c*32+:32];  // wraps around
    end
  end

  assign written_o = stage_valid_q;

  // ------------------------------------------------------------------ reader
  // The port moves on while the reader's row waits for data_ready_i: then it is held here.
  logic                 data_valid_q, held_valid_q;
  logic [BankWidth-1:0] data_bank_q;
  logic                 data_on_port_0_q;
  logic [Cols*Parts-1:0] data_forward_q;
  logic [RowBits-1:0]   read_data, held_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      data_valid_q <= 1'b0;
      held_valid_q <= 1'b0;
    end else begin
      if (advance) data_valid_q <= read_fire;
      held_valid_q <= !advance;
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_fire) begin
      data_bank_q      <= read_bank_i;
      data_on_port_0_q <= read_on_port_0;
      data_forward_q   <= read_of_stage ? stage_mask_q : '0;
    end
    if (!advance) held_q <= data_o;
  end

  always_comb begin
    read_data = '0;
    for (int unsigned b = 0; b < Banks; b++) begin
      if (data_bank_q == BankWidth'(b)) begin
        read_data = data_on_port_0_q ? bank_data[b*Ports*RowBits+:RowBits]
                                     : bank_data[(b*Ports+LastPort)*RowBits+:RowBits];
      end
    end
  end

  always_comb begin
    data_o = held_valid_q ? held_q : read_data;
    if (!held_valid_q && data_forward_q != '0) begin
      for (int unsigned p = 0; p < Cols * Parts; p++) begin
        if (data_forward_q[p]) data_o[p*PartBits+:PartBits] = written_q[p*PartBits+:PartBits];
      end
    end
  end

  assign data_valid_o = data_valid_q;

  // ------------------------------------------------------------------ assertions
  `SYSTOLE_ASSERT_INIT(SizesUsable_A, Banks >= 1 && RowsPerBank >= 1 && Cols >= 1 && Parts * PartBits == 32)
  `SYSTOLE_ASSERT_INIT(PortsSupported_A, Ports == 1 || Ports == 2)
  `SYSTOLE_ASSERT(WriteInRange_A,
      write_valid_i |-> (32'(write_bank_i) < Banks && 32'(write_row_i) < RowsPerBank))
  `SYSTOLE_ASSERT(ReadInRange_A,
      read_valid_i |-> (32'(read_bank_i) < Banks && 32'(read_row_i) < RowsPerBank))
  `SYSTOLE_ASSERT(WriteStable_A, (write_valid_i && !write_ready_o) |=>
      (write_valid_i && $stable({write_bank_i, write_row_i, write_mask_i, write_data_i,
                                 accumulate_i})))
  `SYSTOLE_ASSERT(ReadStable_A, (read_valid_i && !read_ready_o) |=>
      (read_valid_i && $stable({read_bank_i, read_row_i})))
  `SYSTOLE_ASSERT(DataStable_A, (data_valid_o && !data_ready_i) |=>
      (data_valid_o && $stable(data_o)))

endmodule
