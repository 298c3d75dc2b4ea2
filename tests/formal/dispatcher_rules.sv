// What a core relies on of its dispatcher, for any commands, units and memories: no command starts
// while an older one that it conflicts with is in flight, none is lost or started twice, a command that
// has read its operands and writes nothing holds no other, and each starts at the latest when all older
// ones are complete. The last rule leaves no deadlock: the oldest command in the core can always start.
//
// Two commands are followed: `first` is an arbitrary one, `second` an arbitrary one after it. Both
// touch an arbitrary address of an arbitrary memory or not, which is all that the rules are about.

module dispatcher_rules #(
  parameter  int unsigned LoadQueue    = 3,
  parameter  int unsigned ComputeQueue = 3,
  parameter  int unsigned StoreQueue   = 2,
  parameter  int unsigned DramRanges   = 2,
  parameter  int unsigned DramBits     = 3,  // two ranges and an address in any order
  parameter  int unsigned LocalBits    = 3,
  localparam int unsigned Units        = 3,
  localparam int unsigned Entries      = LoadQueue + ComputeQueue + StoreQueue,
  localparam int unsigned EntryBits    = $clog2(Entries)
) (
  input logic                           clk_i,
  input logic                           valid_i,
  input logic                     [1:0] unit_i,
  input logic          [DramRanges-1:0] dram_write_i,
  input logic [DramRanges*DramBits-1:0] dram_begin_i,
  input logic [DramRanges*DramBits-1:0] dram_end_i,
  input logic                     [1:0] scratchpad_write_i,
  input logic         [2*LocalBits-1:0] scratchpad_begin_i,
  input logic         [2*LocalBits-1:0] scratchpad_end_i,
  input logic                           accumulator_write_i,
  input logic           [LocalBits-1:0] accumulator_begin_i,
  input logic           [LocalBits-1:0] accumulator_end_i,
  input logic                           statistics_write_i,
  input logic           [LocalBits-1:0] statistics_begin_i,
  input logic           [LocalBits-1:0] statistics_end_i,
  input logic               [Units-1:0] start_ready_i,
  input logic             [Entries-1:0] released_i,
  input logic             [Entries-1:0] completed_i,
  input logic                           follow_first_i,
  input logic                           follow_second_i
);

  logic rst_ni = 1'b0;  // in the first cycle
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic                       ready, store_waiting, store_reads, idle;
  logic [Entries-1:0]         entry;
  logic [Units-1:0]           start_valid;
  logic [Units*EntryBits-1:0] start_entry;

  systole_dispatcher #(
    .LoadQueue(LoadQueue), .ComputeQueue(ComputeQueue), .StoreQueue(StoreQueue),
    .DramRanges(DramRanges), .DramBits(DramBits), .LocalBits(LocalBits)
  ) u_dut (
    .clk_i, .rst_ni, .valid_i, .unit_i, .dram_write_i, .dram_begin_i, .dram_end_i,
    .scratchpad_write_i, .scratchpad_begin_i, .scratchpad_end_i,
    .accumulator_write_i, .accumulator_begin_i, .accumulator_end_i,
    .statistics_write_i, .statistics_begin_i, .statistics_end_i,
    .start_ready_i, .released_i, .completed_i,
    .ready_o(ready), .entry_o(entry), .start_valid_o(start_valid), .start_entry_o(start_entry),
    .store_waiting_o(store_waiting), .store_reads_o(store_reads), .idle_o(idle)
  );

  // ---------------------------------------------------------------- what is in the core
  logic [Entries-1:0] waiting_q, flying_q, used, starts;

  assign used = waiting_q | flying_q;

  always_comb begin
    starts = '0;
    for (int unsigned u = 0; u < Units; u++) begin
      if (start_valid[u] && start_ready_i[u]) starts[start_entry[u*EntryBits+:EntryBits]] = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      waiting_q <= '0;
      flying_q  <= '0;
    end else begin
      waiting_q <= (waiting_q | entry) & ~starts;
      flying_q  <= (flying_q | starts) & ~completed_i;
    end
  end

  // ---------------------------------------------------------------- an address
  // Registers that keep what they begin with: any address of any memory.
  logic [1:0]           memory;
  logic [DramBits-1:0]  dram_at;
  logic [LocalBits-1:0] at;

  always_ff @(posedge clk_i) begin
    memory  <= memory;
    dram_at <= dram_at;
    at      <= at;
  end

  typedef struct packed {
    logic [DramRanges-1:0]          dram_write;
    logic [DramRanges*DramBits-1:0] dram_begin, dram_end;
    logic [1:0]                     scratchpad_write;
    logic [2*LocalBits-1:0]         scratchpad_begin, scratchpad_end;
    logic                           accumulator_write;
    logic [LocalBits-1:0]           accumulator_begin, accumulator_end;
    logic                           statistics_write;
    logic [LocalBits-1:0]           statistics_begin, statistics_end;
  } ranges_t;

  typedef struct packed {
    logic reads, writes;  // there
    logic never_writes;   // at any address
  } use_t;

  function automatic use_t use_of(input ranges_t command);
    use_of = '0;
    for (int unsigned r = 0; r < DramRanges; r++) begin
      if (memory == 2'd0 && command.dram_begin[r*DramBits+:DramBits] <= dram_at &&
          dram_at < command.dram_end[r*DramBits+:DramBits]) begin
        if (command.dram_write[r]) use_of.writes = 1'b1;
        else use_of.reads = 1'b1;
      end
    end
    for (int unsigned r = 0; r < 2; r++) begin
      if (memory == 2'd1 && command.scratchpad_begin[r*LocalBits+:LocalBits] <= at &&
          at < command.scratchpad_end[r*LocalBits+:LocalBits]) begin
        if (command.scratchpad_write[r]) use_of.writes = 1'b1;
        else use_of.reads = 1'b1;
      end
    end
    if (memory == 2'd2 && command.accumulator_begin <= at && at < command.accumulator_end) begin
      if (command.accumulator_write) use_of.writes = 1'b1;
      else use_of.reads = 1'b1;
    end
    if (memory == 2'd3 && command.statistics_begin <= at && at < command.statistics_end) begin
      if (command.statistics_write) use_of.writes = 1'b1;
      else use_of.reads = 1'b1;
    end
    use_of.never_writes = command.dram_write == '0 && command.scratchpad_write == '0 &&
                          !command.accumulator_write && !command.statistics_write;
  endfunction

  use_t offered;
  assign offered = use_of('{dram_write_i, dram_begin_i, dram_end_i, scratchpad_write_i, scratchpad_begin_i,
                            scratchpad_end_i, accumulator_write_i, accumulator_begin_i, accumulator_end_i,
                            statistics_write_i, statistics_begin_i, statistics_end_i});

  // ---------------------------------------------------------------- two commands
  logic               first_q, second_q;   // the first is in the core, the second has not started
  logic               followed_q, released_q;
  use_t               first_use_q, second_use_q;
  logic [1:0]         first_unit_q, second_unit_q;
  logic [Entries-1:0] first_entry_q, second_entry_q, older_q;
  logic               take;

  assign take = valid_i && ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q    <= 1'b0;
      second_q   <= 1'b0;
      followed_q <= 1'b0;
    end else begin
      if ((first_entry_q & completed_i) != '0) first_q <= 1'b0;
      if ((first_entry_q & released_i) != '0) released_q <= 1'b1;
      if ((second_entry_q & starts) != '0) second_q <= 1'b0;
      older_q <= older_q & ~completed_i;
      if (take && follow_first_i && !followed_q) begin
        followed_q     <= 1'b1;
        first_q        <= 1'b1;
        first_entry_q  <= entry;
        first_unit_q   <= unit_i;
        first_use_q    <= offered;
        released_q     <= 1'b0;
      end
      if (take && follow_second_i && followed_q && !second_q) begin
        second_q        <= 1'b1;
        second_entry_q  <= entry;
        second_unit_q   <= unit_i;
        second_use_q    <= offered;
        older_q         <= used & ~completed_i;
      end
    end
  end

  // ---------------------------------------------------------------- rules
  logic second_starts, second_at_head, in_order;

  assign second_starts  = second_q && (second_entry_q & starts) != '0;
  assign second_at_head = start_valid[second_unit_q] &&
                          second_entry_q == Entries'(1) << start_entry[second_unit_q*EntryBits+:EntryBits];
  // The array keeps its accumulations in order itself.
  assign in_order       = memory == 2'd2 && first_unit_q == 2'd1 && second_unit_q == 2'd1;

  always_comb begin
    assume (unit_i < 2'd3);
    assume ((completed_i & ~flying_q) == '0);
    assume ((released_i & ~flying_q) == '0);
    if (rst_ni) begin
      // none is lost or doubled
      assert ((entry & used) == '0);
      assert ((entry != '0) == take);
      assert (ready == (unit_i == 2'd0 ? ~used[0+:LoadQueue] != '0 :
                        unit_i == 2'd1 ? ~used[LoadQueue+:ComputeQueue] != '0 :
                        ~used[LoadQueue+ComputeQueue+:StoreQueue] != '0));
      assert ((starts & ~waiting_q) == '0);
      assert (idle == (used == '0));
      // conflicts
      assert (!(second_starts && first_q && first_use_q.writes && (second_use_q.reads || second_use_q.writes) &&
                !in_order));
      assert (!(second_starts && first_q && first_use_q.reads && second_use_q.writes && !in_order) ||
              released_q);
      // order of a unit, and an end of all waiting
      assert (!(second_starts && first_q && first_unit_q == second_unit_q &&
                (first_entry_q & waiting_q) != '0));
      assert (!(second_q && older_q == '0) || second_at_head);
      assert (!(second_q && first_q && older_q == first_entry_q && first_use_q.never_writes && released_q) ||
              second_at_head);
      cover (second_starts && first_q && first_use_q.reads && second_use_q.writes && released_q);
      cover (second_starts && !first_q && first_use_q.writes && second_use_q.reads && flying_q != '0);
      cover (used == '1);
    end
  end

  // ---------------------------------------------------------------- invariants
  // What makes the rules inductive: they say how the registers of the dispatcher go with those above.
  function automatic logic one_hot(input logic [Entries-1:0] bits);
    return bits != '0 && (bits & (bits - Entries'(1))) == '0;
  endfunction

  always_comb begin
    if (rst_ni) begin
      assert (u_dut.used_q == used);
      assert ((waiting_q & flying_q) == '0);
      assert (!second_q || followed_q);
      assert (!first_q || (followed_q && one_hot(first_entry_q) && (first_entry_q & used) != '0 &&
                           ((first_entry_q & u_dut.released_q) != '0) == released_q));
      assert (!(first_q && (first_entry_q & waiting_q) != '0) || !released_q);
      assert (!second_q || (one_hot(second_entry_q) && (second_entry_q & waiting_q) != '0));
      assert (!second_q || ((older_q & ~used) == '0 && (older_q & second_entry_q) == '0));
      assert (!(second_q && first_q) || (older_q & first_entry_q) != '0);
      assert (!first_q || unit_of(first_entry_q) == first_unit_q);
      assert (!second_q || unit_of(second_entry_q) == second_unit_q);
    end
  end

  function automatic logic [1:0] unit_of(input logic [Entries-1:0] bits);
    return bits[0+:LoadQueue] != '0 ? 2'd0 : bits[LoadQueue+:ComputeQueue] != '0 ? 2'd1 : 2'd2;
  endfunction

  for (genvar e = 0; e < Entries; e++) begin : gen_entry
    use_t stored;
    assign stored = use_of('{
        u_dut.dram_write_q[e], u_dut.dram_begin_q[e], u_dut.dram_end_q[e], u_dut.scratchpad_write_q[e],
        u_dut.scratchpad_begin_q[e], u_dut.scratchpad_end_q[e], u_dut.accumulator_write_q[e],
        u_dut.accumulator_begin_q[e], u_dut.accumulator_end_q[e], u_dut.statistics_write_q[e],
        u_dut.statistics_begin_q[e], u_dut.statistics_end_q[e]});

    always_comb begin
      if (rst_ni) begin
        assert (!(first_q && first_entry_q[e]) || stored == first_use_q);
        // what the second one waits for is older, and the first one is in it where they conflict
        if (second_q && second_entry_q[e]) begin
          assert (!(first_q && first_use_q.never_writes) || (u_dut.for_completion_q[e] & first_entry_q) == '0);
          assert (!(first_q && released_q) || (u_dut.for_release_q[e] & first_entry_q) == '0);
          assert (((u_dut.for_release_q[e] | u_dut.for_completion_q[e]) & ~older_q) == '0);
          assert (!(first_q && first_use_q.writes && (second_use_q.reads || second_use_q.writes) && !in_order) ||
                  (u_dut.for_completion_q[e] & first_entry_q) != '0);
          assert (!(first_q && first_use_q.reads && second_use_q.writes && !in_order && !released_q) ||
                  ((u_dut.for_completion_q[e] | u_dut.for_release_q[e]) & first_entry_q) != '0);
        end
      end
    end
  end

  for (genvar u = 0; u < Units; u++) begin : gen_unit
    localparam int unsigned Depth = u == 0 ? LoadQueue : u == 1 ? ComputeQueue : StoreQueue;
    localparam int unsigned Base  = u == 0 ? 0 : u == 1 ? LoadQueue : LoadQueue + ComputeQueue;

    // The station's ring in the order of dispatch: its places that are in use are the commands that wait.
    logic [Depth-1:0] listed, listed_here;
    logic             twice, seen, out_of_order;
    int unsigned      head, place;

    always_comb begin
      listed       = '0;
      twice        = 1'b0;
      seen         = 1'b0;
      out_of_order = 1'b0;
      listed_here  = '0;
      head         = 32'(u_dut.gen_station[u].u_station.head_q);
      for (int unsigned i = 0; i < Depth; i++) begin
        place = head + i >= Depth ? head + i - Depth : head + i;
        if (i < 32'(u_dut.gen_station[u].u_station.waiting_q)) begin
          listed_here = Depth'(1) << u_dut.gen_station[u].u_station.order_q[place];
          if (listed_here == '0 || (listed & listed_here) != '0) twice = 1'b1;
          if (second_q && 32'(second_unit_q) == u) begin
            if (second_entry_q[Base+:Depth] == listed_here) seen = 1'b1;
            else if ((older_q[Base+:Depth] & listed_here) != '0 == seen) out_of_order = 1'b1;
          end
          listed = listed | listed_here;
        end
      end
      if (rst_ni) begin
        assert (head < Depth && 32'(u_dut.gen_station[u].u_station.tail_q) < Depth);
        assert (32'(u_dut.gen_station[u].u_station.waiting_q) <= Depth);
        assert ((head + 32'(u_dut.gen_station[u].u_station.waiting_q)) % Depth ==
                32'(u_dut.gen_station[u].u_station.tail_q));
        assert (!twice && listed == waiting_q[Base+:Depth]);
        assert (!out_of_order);
      end
    end
  end

endmodule
