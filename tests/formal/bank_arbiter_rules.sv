// The arbiter of a memory: no bank serves two accesses in a cycle, an access waits only for one that goes
// before it and wants a bank of its own, and each access of a step is served once.

module bank_arbiter_rules #(
  parameter  int unsigned Banks    = 4,
  parameter  int unsigned Clients  = 4,
  localparam int unsigned Accesses = 2 * Clients,
  localparam int unsigned BankBits = Banks > 1 ? $clog2(Banks) : 1
) (
  input logic                         clk_i,
  input logic [Clients-1:0]           valid_i,
  input logic [Clients-1:0]           late_i,
  input logic [Accesses-1:0]          request_i,
  input logic [Accesses*BankBits-1:0] bank_i,
  input logic [Accesses-1:0]          crosses_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [Accesses-1:0] grant;
  logic [Clients-1:0]  step;

  systole_bank_arbiter #(.Banks(Banks), .Clients(Clients)) u_dut (
    .clk_i, .rst_ni, .valid_i, .late_i, .request_i, .bank_i, .crosses_i, .grant_o(grant), .step_o(step)
  );

  // ---------------------------------------------------------------- steps
  logic [Accesses-1:0]          served_q, wants, request_q, crosses_q;
  logic [Accesses*BankBits-1:0] bank_q;
  logic [Clients-1:0]           held_q;  // a step that was on the pins and is not over

  for (genvar i = 0; i < Accesses; i++) begin : gen_wants
    assign wants[i] = valid_i[i/2] && request_i[i] && !served_q[i];
  end

  always_ff @(posedge clk_i) begin
    request_q <= request_i;
    crosses_q <= crosses_i;
    bank_q    <= bank_i;
    for (int unsigned c = 0; c < Clients; c++) begin
      held_q[c]        <= rst_ni && valid_i[c] && !step[c];
      served_q[2*c+:2] <= !rst_ni || step[c] ? '0 : served_q[2*c+:2] | grant[2*c+:2];
    end
  end

  for (genvar c = 0; c < Clients; c++) begin : gen_held
    always_comb begin
      if (held_q[c]) begin
        assume (valid_i[c] && request_i[2*c+:2] == request_q[2*c+:2] &&
                crosses_i[2*c+:2] == crosses_q[2*c+:2] &&
                bank_i[2*c*BankBits+:2*BankBits] == bank_q[2*c*BankBits+:2*BankBits]);
      end
    end
  end

  // ---------------------------------------------------------------- rules
  // Two accesses meet where the banks of one, which are one or two, hold one of the other's.
  function automatic logic meet(input logic [BankBits-1:0] a, input logic a_crosses,
                                input logic [BankBits-1:0] b, input logic b_crosses);
    return a == b || (a_crosses && 32'(a) + 1 == 32'(b)) || (b_crosses && 32'(b) + 1 == 32'(a));
  endfunction

  for (genvar i = 0; i < Accesses; i++) begin : gen_access
    logic behind;  // an access that goes before it has one of its banks
    always_comb begin
      behind = 1'b0;
      for (int unsigned k = 0; k < Accesses; k++) begin
        if (k != i && grant[k] && meet(bank_i[k*BankBits+:BankBits], crosses_i[k],
                                       bank_i[i*BankBits+:BankBits], crosses_i[i])) begin
          if (rst_ni) assert (!grant[i]);
          if (late_i[k/2] == late_i[i/2] ? k < i : late_i[i/2]) behind = 1'b1;
        end
      end
      if (rst_ni) begin
        assert (!grant[i] || wants[i]);
        assert (!wants[i] || grant[i] || behind);
      end
    end
  end

  for (genvar c = 0; c < Clients; c++) begin : gen_step
    always_comb begin
      if (rst_ni) begin
        assert (step[c] == (valid_i[c] && (wants[2*c+:2] & ~grant[2*c+:2]) == '0));
        assert (u_dut.served_q[2*c+:2] == served_q[2*c+:2]);
        cover (held_q[c] && step[c] && served_q[2*c]);
      end
    end
  end

endmodule
