// The operand memory of a core: banks, each a contiguous piece of the addresses that serves one
// access a cycle. An access is as many bytes as a word has, from any byte on: a bank keeps its even
// and its odd words apart, so the two words that it may touch are read or written together. One that
// begins in the last word of a bank and ends in the next bank takes both.
//
// Who goes first: the load unit's write, then the post-op unit's, then its read of parameters, then
// the two reads of the array, which steps when it has both. Cycles: hw::BankService of
// hw/memory/bank_service.h. What is read is on the output in the cycle after the end of its step, and stays
// until the end of the next one of the same client.

`include "systole_assert.svh"

module systole_scratchpad #(
  parameter  int unsigned Banks     = 4,
  parameter  int unsigned WordBytes = 16,
  parameter  int unsigned BankWords = 4096,  // even
  parameter  int unsigned LoadReads = 0,     // 1: the load unit reads, too, in cycles in which it does not write
  localparam int unsigned DataWidth = 8 * WordBytes,
  localparam int unsigned LaneBits  = $clog2(WordBytes),
  localparam int unsigned WordBits  = $clog2(Banks * BankWords),
  localparam int unsigned AddrBits  = WordBits + LaneBits
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // 0: load unit, 1: post-op unit: bytes of a word and of the one after it
  input  logic [1:0]             write_valid_i,
  output logic [1:0]             write_done_o,
  input  logic [2*WordBits-1:0]  write_word_i,
  input  logic [2*DataWidth-1:0] write_data_i,
  input  logic [2*WordBytes-1:0] write_here_i,
  input  logic [2*WordBytes-1:0] write_next_i,

  input  logic                   load_read_i,         // served at once
  input  logic [AddrBits-1:0]    load_address_i,
  output logic [DataWidth-1:0]   load_data_o,

  input  logic                   parameters_valid_i,
  input  logic                   parameters_late_i,   // they go after the array
  output logic                   parameters_done_o,
  input  logic [AddrBits-1:0]    parameters_address_i,
  output logic [DataWidth-1:0]   parameters_data_o,

  input  logic                   array_valid_i,   // a step of the array
  output logic                   array_done_o,
  input  logic [1:0]             array_reads_i,   // which of its operands it reads in this step
  input  logic [2*AddrBits-1:0]  array_address_i,
  output logic [2*DataWidth-1:0] array_data_o
);

  localparam int unsigned Ports    = 5 + LoadReads;  // two that write, then those that read
  localparam int unsigned Writes   = 2;
  localparam int unsigned LoadPort = 5;
  localparam int unsigned Reads    = Ports - Writes;
  localparam int unsigned Accesses = 8;
  localparam int unsigned BankBits = Banks > 1 ? $clog2(Banks) : 1;
  localparam int unsigned Rows     = BankWords / 2;
  localparam int unsigned RowBits  = Rows > 1 ? $clog2(Rows) : 1;

  // ---------------------------------------------------------------- accesses
  logic [WordBits-1:0] word [Ports];
  logic [BankBits-1:0] bank [Ports];
  logic [BankBits-1:0] next_bank [Ports];
  logic [Ports-1:0]    both, crosses, grant;   // both: it touches the word after `word`

  function automatic logic [BankBits-1:0] bank_of(input logic [WordBits-1:0] index);
    bank_of = BankBits'(index / WordBits'(BankWords));
  endfunction

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    if (p < Writes) begin : gen_write
      assign word[p] = write_word_i[p*WordBits+:WordBits];
      assign both[p] = write_next_i[p*WordBytes+:WordBytes] != '0;
    end else begin : gen_read
      logic [AddrBits-1:0] address;
      assign address = p == Writes ? parameters_address_i :
                       p == LoadPort ? load_address_i :
                       array_address_i[(p-Writes-1)%2*AddrBits+:AddrBits];
      assign word[p] = address[AddrBits-1:LaneBits];
      // At the end of the memory there is no word after; whoever reads there wants no bytes of it.
      assign both[p] = address[LaneBits-1:0] != '0 && 32'(word[p]) != Banks * BankWords - 1;
    end
    assign bank[p]      = bank_of(word[p]);
    assign next_bank[p] = bank_of(word[p] + WordBits'(1));
    assign crosses[p]   = both[p] && next_bank[p] != bank[p];
  end

  logic [Accesses-1:0]          granted, requests;
  logic [Accesses*BankBits-1:0] banks;
  logic [3:0]                   steps;
  logic                         unused_grants;
  logic                         load_crosses;
  logic [BankBits-1:0]          load_bank;
  assign requests = {array_reads_i, 1'b0, 1'b1, 1'b0, 1'b1, load_read_i, write_valid_i[0]};
  assign banks    = {bank[4], bank[3], BankBits'(0), bank[2], BankBits'(0), bank[1], load_bank, bank[0]};
  assign grant[4:0]    = {granted[7:6], granted[4], granted[2], granted[0]};
  assign unused_grants = granted[5] | granted[3];  // clients with one access
  if (LoadReads != 0) begin : gen_load_read
    assign grant[LoadPort] = granted[1];
    assign load_bank       = bank[LoadPort];
    assign load_crosses    = crosses[LoadPort];
  end else begin : gen_no_load_read
    logic unused_load;
    assign unused_load  = granted[1] | ^load_address_i;
    assign load_bank    = '0;
    assign load_crosses = 1'b0;
  end

  systole_bank_arbiter #(.Banks(Banks), .Clients(4)) u_arbiter (
    .clk_i, .rst_ni,
    .valid_i  ({array_valid_i, parameters_valid_i, write_valid_i[1], write_valid_i[0] || load_read_i}),
    .late_i   ({1'b0, parameters_late_i, 2'b00}),
    .request_i(requests),
    .bank_i   (banks),
    .crosses_i({crosses[4:3] & array_reads_i, 1'b0, crosses[2], 1'b0, crosses[1], load_crosses,
                crosses[0]}),
    .grant_o  (granted),
    .step_o   (steps)
  );
  assign write_done_o      = steps[1:0];
  assign parameters_done_o = steps[2];
  assign array_done_o      = steps[3];

  // ---------------------------------------------------------------- banks: even words, odd words
  logic [2*Banks*DataWidth-1:0] stored;   // what was read last: of bank b at 2 b and 2 b + 1

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    for (genvar odd = 0; odd < 2; odd++) begin : gen_half
      logic                 enable, write;
      logic [WordBits-1:0]  at, after;
      logic [RowBits-1:0]   row;
      logic [WordBytes-1:0] mask;
      logic [DataWidth-1:0] data;

      always_comb begin
        enable = 1'b0;
        write  = 1'b0;
        at     = '0;
        after  = '0;
        mask   = '0;
        data   = '0;
        for (int unsigned p = 0; p < Ports; p++) begin
          after = word[p] + WordBits'(1);
          if (grant[p] && bank[p] == BankBits'(b) && word[p][0] == 1'(odd)) begin
            enable = 1'b1;
            at     = word[p];
            write  = p < Writes;
            if (p < Writes) mask = write_here_i[p%Writes*WordBytes+:WordBytes];
            if (p < Writes) data = write_data_i[p%Writes*DataWidth+:DataWidth];
          end else if (grant[p] && both[p] && next_bank[p] == BankBits'(b) && after[0] == 1'(odd)) begin
            enable = 1'b1;
            at     = after;
            write  = p < Writes;
            if (p < Writes) mask = write_next_i[p%Writes*WordBytes+:WordBytes];
            if (p < Writes) data = write_data_i[p%Writes*DataWidth+:DataWidth];
          end
        end
      end
      assign row = RowBits'((at - WordBits'(b * BankWords)) >> 1);

      systole_sram_bank #(.Ports(1), .Rows(Rows), .Lanes(WordBytes), .LaneBits(8)) u_bank (
        .clk_i,
        .enable_i(enable),
        .row_i   (row),
        .data_o  (stored[(2*b+odd)*DataWidth+:DataWidth]),
        .write_i (write),
        .mask_i  (mask),
        .data_i  (data)
      );
    end
  end

  // ---------------------------------------------------------------- what was read
  logic [Reads*DataWidth-1:0] read;

  for (genvar r = 0; r < Reads; r++) begin : gen_data
    localparam int unsigned Port = Writes + r;
    logic                   fresh_q;            // served in the cycle before
    logic [BankBits:0]      here_q, next_q;     // bank and half of its words
    logic [LaneBits-1:0]    lane, lane_q;
    logic [DataWidth-1:0]   words, held_q;

    if (r == 0) begin : gen_parameters
      assign lane = parameters_address_i[LaneBits-1:0];
    end else if (Port == LoadPort) begin : gen_load
      assign lane = load_address_i[LaneBits-1:0];
    end else begin : gen_array
      assign lane = array_address_i[(r-1)*AddrBits+:LaneBits];
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        fresh_q <= 1'b0;
      end else begin
        fresh_q <= grant[Port];
      end
    end

    always_ff @(posedge clk_i) begin
      if (grant[Port]) begin
        here_q <= {bank[Port], word[Port][0]};
        next_q <= {next_bank[Port], !word[Port][0]};
        lane_q <= lane;
      end
      if (fresh_q) held_q <= words;
    end

    always_comb begin
      words = held_q;
      if (fresh_q) begin
        words = DataWidth'({stored[next_q*DataWidth+:DataWidth], stored[here_q*DataWidth+:DataWidth]}
                           >> {lane_q, 3'b000});
      end
    end
    assign read[r*DataWidth+:DataWidth] = words;
  end
  assign parameters_data_o = read[DataWidth-1:0];
  assign array_data_o      = read[3*DataWidth-1:DataWidth];
  if (LoadReads != 0) begin : gen_load_data
    assign load_data_o = read[4*DataWidth-1:3*DataWidth];
  end else begin : gen_no_load_data
    assign load_data_o = '0;
  end

  `SYSTOLE_ASSERT(OneOfLoads_A, !(load_read_i && (write_valid_i[0] || LoadReads == 0)))
  `SYSTOLE_ASSERT_INIT(SizesUsable_A, BankWords >= 2 && BankWords % 2 == 0 && 2**LaneBits == WordBytes)
  for (genvar p = 0; p < Ports; p++) begin : gen_inside
    logic beyond;
    assign beyond = both[p] && 32'(word[p]) == Banks * BankWords - 1;
    `SYSTOLE_ASSERT(Inside_A, !(grant[p] && beyond))
  end

endmodule
