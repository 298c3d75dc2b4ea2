// Who has which bank of a memory, cycle by cycle. Reference: hw::BankService of
// hw/memory/bank_service.h.
//
// A client works in steps. A step has up to two accesses, each to a bank, or to it and the next one
// in the same cycle; it is over in the cycle in which the last of them is served. A bank serves one
// access a cycle. A client with a lower number goes first, and of one client its first access; what
// it had served stays so until its step is over. A client that is late goes after all others.

`include "systole_assert.svh"

module systole_bank_arbiter #(
  parameter  int unsigned Banks    = 4,
  parameter  int unsigned Clients  = 4,
  localparam int unsigned Accesses = 2 * Clients,  // client c has 2 c and 2 c + 1
  localparam int unsigned BankBits = Banks > 1 ? $clog2(Banks) : 1
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic [Clients-1:0]           valid_i,    // a step; all of it is held until it is over
  input  logic [Clients-1:0]           late_i,     // may change meanwhile
  input  logic [Accesses-1:0]          request_i,
  input  logic [Accesses*BankBits-1:0] bank_i,
  input  logic [Accesses-1:0]          crosses_i,  // into the next bank
  output logic [Accesses-1:0]          grant_o,    // served in this cycle
  output logic [Clients-1:0]           step_o      // over with this cycle
);

  logic [Accesses-1:0] served_q;
  logic [Banks-1:0]    taken, wanted;

  always_comb begin
    taken   = '0;
    wanted  = '0;
    grant_o = '0;
    for (int unsigned late = 0; late < 2; late++) begin
      for (int unsigned i = 0; i < Accesses; i++) begin
        wanted = Banks'(1) << bank_i[i*BankBits+:BankBits];
        if (crosses_i[i]) wanted = wanted | (wanted << 1);
        if (late_i[i/2] == (late != 0) && valid_i[i/2] && request_i[i] && !served_q[i] &&
            (taken & wanted) == '0) begin
          grant_o[i] = 1'b1;
          taken      = taken | wanted;
        end
      end
    end
  end

  for (genvar c = 0; c < Clients; c++) begin : gen_client
    logic [1:0] waits;
    assign waits     = request_i[2*c+:2] & ~served_q[2*c+:2] & ~grant_o[2*c+:2];
    assign step_o[c] = valid_i[c] && waits == '0;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        served_q[2*c+:2] <= '0;
      end else begin
        served_q[2*c+:2] <= step_o[c] ? '0 : served_q[2*c+:2] | grant_o[2*c+:2];
      end
    end

    `SYSTOLE_ASSERT(StepHeld_A, (valid_i[c] && !step_o[c]) |=>
                    (valid_i[c] && $stable(request_i[2*c+:2]) && $stable(crosses_i[2*c+:2])))
  end

endmodule
