// What a DMA port relies on of its request cutter: requests cover each byte of each row of a command
// once, in order, none crosses a multiple of RequestBytes or of a piece, and none is shorter than that
// asks for. So the requests of a command are as many as hw::RequestCut says.

module request_cutter_rules #(
  parameter  int unsigned RequestBytes = 4,
  parameter  int unsigned AddrWidth    = 6,
  parameter  int unsigned LocalWidth   = 5,
  parameter  int unsigned CountWidth   = 3,
  localparam int unsigned LengthBits   = $clog2(RequestBytes) + 1
) (
  input logic                  clk_i,
  input logic                  start_valid_i,
  input logic [AddrWidth-1:0]  address_i,
  input logic [CountWidth-1:0] pitch_i,
  input logic [CountWidth-1:0] rows_i,
  input logic [CountWidth-1:0] bytes_i,
  input logic [LocalWidth-1:0] to_i,
  input logic [LocalWidth-1:0] to_pitch_i,
  input logic                  ready_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [CountWidth-1:0] row_bytes;  // any, and then the same
  always_ff @(posedge clk_i) row_bytes <= row_bytes;

  logic                  start_ready, valid;
  logic [AddrWidth-1:0]  address;
  logic [LengthBits-1:0] length;
  logic [LocalWidth-1:0] to;

  systole_request_cutter #(
    .RequestBytes(RequestBytes), .AddrWidth(AddrWidth), .LocalWidth(LocalWidth),
    .CountWidth(CountWidth)
  ) u_dut (
    .clk_i, .rst_ni, .row_bytes_i(row_bytes),
    .start_valid_i, .start_ready_o(start_ready), .address_i, .pitch_i, .rows_i, .bytes_i, .to_i,
    .to_pitch_i, .valid_o(valid), .ready_i, .address_o(address), .length_o(length), .to_o(to)
  );

  // ---------------------------------------------------------------- the command
  typedef struct packed {
    logic [AddrWidth-1:0]  address;
    logic [CountWidth-1:0] pitch, rows, bytes;
    logic [LocalWidth-1:0] to, to_pitch;
  } command_t;

  command_t              command, command_q;
  logic                  begun_q;             // its next byte is `column` of `row`
  logic [CountWidth-1:0] row, row_q, column, column_q;

  always_comb begin
    command = command_q;
    row     = row_q;
    column  = column_q;
    if (!begun_q) begin
      command = '{address_i, pitch_i, rows_i, bytes_i, to_i, to_pitch_i};
      row     = '0;
      column  = '0;
    end
  end

  logic                begins, row_ends, ends;
  logic [CountWidth:0] next;                   // column after the request

  assign begins   = begun_q || start_valid_i;
  assign next     = (CountWidth+1)'(column) + (CountWidth+1)'(length);
  assign row_ends = next == (CountWidth+1)'(command.bytes);
  assign ends     = row_ends && row == command.rows - CountWidth'(1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
    end else begin
      begun_q   <= begins && !(ready_i && ends);
      command_q <= command;
      row_q     <= row + CountWidth'(ready_i && row_ends);
      column_q  <= !ready_i ? column : row_ends ? '0 : next[CountWidth-1:0];
    end
  end

  // ---------------------------------------------------------------- rules
  localparam int unsigned Align = $clog2(RequestBytes);
  logic [LengthBits-1:0]  to_boundary;
  logic [CountWidth-1:0]  to_piece;

  assign to_boundary = LengthBits'(RequestBytes) - LengthBits'(address[Align-1:0]);
  assign to_piece    = row_bytes - column % row_bytes;

  always_comb begin
    assume (!start_valid_i || (rows_i != '0 && bytes_i != '0));
    if (rst_ni) begin
      assert (start_ready == !begun_q);
      assert (valid == begins);
      if (begins) begin
        assert (address == command.address + AddrWidth'(row) * AddrWidth'(command.pitch) +
                           AddrWidth'(column));
        assert (to == command.to + LocalWidth'(row) * command.to_pitch + LocalWidth'(column));
        assert (length != '0);
        assert (next <= (CountWidth+1)'(command.bytes));
        assert (length <= to_boundary);
        assert (row_bytes == '0 || 32'(length) <= 32'(to_piece));
        assert (row_ends || length == to_boundary ||
                (row_bytes != '0 && 32'(length) == 32'(to_piece)));
        cover (ends && ready_i && row == CountWidth'(1) && row_bytes == CountWidth'(3));
      end
    end
  end

  // ---------------------------------------------------------------- invariants
  always_comb begin
    if (rst_ni) begin
      assert (u_dut.busy_q == begun_q);
      if (begun_q) begin
        assert (row_q < command_q.rows && column_q < command_q.bytes);
        assert (u_dut.pitch_q == command_q.pitch && u_dut.bytes_q == command_q.bytes &&
                u_dut.to_pitch_q == command_q.to_pitch);
        assert (u_dut.row_address_q == command_q.address + AddrWidth'(row_q) * AddrWidth'(command_q.pitch));
        assert (u_dut.address_q == u_dut.row_address_q + AddrWidth'(column_q));
        assert (u_dut.row_to_q == command_q.to + LocalWidth'(row_q) * command_q.to_pitch);
        assert (u_dut.to_q == u_dut.row_to_q + LocalWidth'(column_q));
        assert (u_dut.rows_q == command_q.rows - row_q);
        assert (u_dut.left_q == command_q.bytes - column_q);
        assert (row_bytes == '0 || u_dut.piece_q == row_bytes - column_q % row_bytes);
      end
    end
  end

endmodule
