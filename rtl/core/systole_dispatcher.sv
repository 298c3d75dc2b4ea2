// Dispatch of a core: takes decoded commands in order, one a cycle, into the reservation stations of
// the load, compute and store units, and starts each when no older command in flight conflicts with
// its ranges of memory. Cycle contract: hw::dispatch_times() of hw/program/dispatch.h. Of the next command
// of the store unit it also says from when on what it reads may be fetched.
//
// A command that is taken in cycle c is in its station with cycle c + 1. Whatever a unit reports in
// cycle c counts from cycle c + 1 on: an entry is free then, and a command that waited may start.
// Entries are numbered through the stations: those of load first, then compute, then store.
//
// A command has up to two ranges of the scratchpad, one each of accumulator and row statistics, and
// DramRanges of main memory. One that it does not have has the end 0.

`include "systole_assert.svh"

module systole_dispatcher #(
  parameter  int unsigned LoadQueue    = 8,
  parameter  int unsigned ComputeQueue = 16,
  parameter  int unsigned StoreQueue   = 4,
  parameter  int unsigned DramRanges   = 5,  // as many as attention has
  parameter  int unsigned DramBits     = 40,  // of an address
  parameter  int unsigned LocalBits    = 24,
  localparam int unsigned Units        = 3,
  localparam int unsigned Entries      = LoadQueue + ComputeQueue + StoreQueue,
  localparam int unsigned EntryBits    = $clog2(Entries)
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  // decoded commands
  input  logic                           valid_i,
  output logic                           ready_o,
  input  logic                     [1:0] unit_i,
  input  logic          [DramRanges-1:0] dram_write_i,
  input  logic [DramRanges*DramBits-1:0] dram_begin_i,
  input  logic [DramRanges*DramBits-1:0] dram_end_i,
  input  logic                     [1:0] scratchpad_write_i,
  input  logic         [2*LocalBits-1:0] scratchpad_begin_i,
  input  logic         [2*LocalBits-1:0] scratchpad_end_i,
  input  logic                           accumulator_write_i,
  input  logic           [LocalBits-1:0] accumulator_begin_i,
  input  logic           [LocalBits-1:0] accumulator_end_i,
  input  logic                           statistics_write_i,
  input  logic           [LocalBits-1:0] statistics_begin_i,
  input  logic           [LocalBits-1:0] statistics_end_i,
  output logic             [Entries-1:0] entry_o,      // one bit: where it goes when it is taken

  // units
  output logic               [Units-1:0] start_valid_o,
  input  logic               [Units-1:0] start_ready_i,
  output logic     [Units*EntryBits-1:0] start_entry_o,
  output logic                           store_waiting_o,  // one is in the station of the store unit
  output logic                           store_reads_o,    // and no older one in flight writes what it reads
                                                           // of scratchpad and main memory
  input  logic             [Entries-1:0] released_i,   // operands have been read for the last time
  input  logic             [Entries-1:0] completed_i,  // results are in memory
  output logic                           idle_o        // no command in flight
);

  localparam int unsigned ComputeBase = LoadQueue;
  localparam int unsigned StoreBase   = LoadQueue + ComputeQueue;
  localparam int unsigned Compute     = 32'(systole_pkg::ComputeUnit);
  localparam int unsigned Store       = 32'(systole_pkg::StoreUnit);
  localparam int unsigned StoreBits   = StoreQueue > 1 ? $clog2(StoreQueue) : 1;

  logic               take;
  logic [Units-1:0]   push, room, pop, waiting;
  logic [Entries-1:0] push_entry, used_q, released_q;

  // Of each entry: the older ones that it waits for, and its ranges.
  logic [Entries-1:0]             for_release_q [Entries];
  logic [Entries-1:0]             for_completion_q [Entries];
  logic [DramRanges-1:0]          dram_write_q [Entries];
  logic [DramRanges*DramBits-1:0] dram_begin_q [Entries];
  logic [DramRanges*DramBits-1:0] dram_end_q [Entries];
  logic [1:0]                     scratchpad_write_q [Entries];
  logic [2*LocalBits-1:0]         scratchpad_begin_q [Entries];
  logic [2*LocalBits-1:0]         scratchpad_end_q [Entries];
  logic [LocalBits-1:0]           accumulator_begin_q [Entries];
  logic [LocalBits-1:0]           accumulator_end_q [Entries];
  logic [LocalBits-1:0]           statistics_begin_q [Entries];
  logic [LocalBits-1:0]           statistics_end_q [Entries];
  logic [Entries-1:0]             accumulator_write_q, statistics_write_q;

  // -------------------------------------------------------------------------- stations
  assign ready_o = room[unit_i];
  assign take    = valid_i && ready_o;
  assign push    = take ? Units'(1) << unit_i : '0;
  assign entry_o = push_entry;
  assign idle_o  = used_q == '0;

  for (genvar u = 0; u < Units; u++) begin : gen_station
    localparam int unsigned Depth = u == 0 ? LoadQueue : u == 1 ? ComputeQueue : StoreQueue;
    localparam int unsigned Base  = u == 0 ? 0 : u == 1 ? ComputeBase : StoreBase;
    localparam int unsigned Bits  = Depth > 1 ? $clog2(Depth) : 1;

    logic [Depth-1:0] entry;
    logic  [Bits-1:0] head;

    systole_station #(.Depth(Depth)) u_station (
      .clk_i,
      .rst_ni,
      .push_i      (push[u]),
      .room_o      (room[u]),
      .push_entry_o(entry),
      .valid_o     (waiting[u]),
      .entry_o     (head),
      .pop_i       (pop[u]),
      .completed_i (completed_i[Base+:Depth]),
      .used_o      (used_q[Base+:Depth])
    );
    assign push_entry[Base+:Depth] = push[u] ? entry : '0;
    assign start_entry_o[u*EntryBits+:EntryBits] = EntryBits'(Base) + EntryBits'(head);
  end

  // -------------------------------------------------------------------------- hazards
  logic [Entries-1:0] after_read, after_write, read_late, live;
  logic [Entries-1:0] for_reads_q [StoreQueue];  // older ones that write what a store reads

  assign live = used_q & ~completed_i;

  for (genvar e = 0; e < Entries; e++) begin : gen_older
    logic [3:0] reads, writes, late;
    logic       unused_late;
    // The array keeps its accumulations in order itself.
    localparam bit IsCompute = e >= ComputeBase && e < StoreBase;

    systole_range_hazard #(.Ranges(DramRanges), .Bits(DramBits)) u_dram (
      .compare_i      (take),
      .older_write_i  (dram_write_q[e]),
      .older_begin_i  (dram_begin_q[e]),
      .older_end_i    (dram_end_q[e]),
      .younger_write_i(dram_write_i),
      .younger_begin_i(dram_begin_i),
      .younger_end_i  (dram_end_i),
      .after_read_o   (reads[0]),
      .after_write_o  (writes[0]),
      .read_late_o    (late[0])
    );
    systole_range_hazard #(.Ranges(2), .Bits(LocalBits)) u_scratchpad (
      .compare_i      (take),
      .older_write_i  (scratchpad_write_q[e]),
      .older_begin_i  (scratchpad_begin_q[e]),
      .older_end_i    (scratchpad_end_q[e]),
      .younger_write_i(scratchpad_write_i),
      .younger_begin_i(scratchpad_begin_i),
      .younger_end_i  (scratchpad_end_i),
      .after_read_o   (reads[1]),
      .after_write_o  (writes[1]),
      .read_late_o    (late[1])
    );
    systole_range_hazard #(.Ranges(1), .Bits(LocalBits)) u_accumulator (
      .compare_i      (take),
      .older_write_i  (accumulator_write_q[e]),
      .older_begin_i  (accumulator_begin_q[e]),
      .older_end_i    (accumulator_end_q[e]),
      .younger_write_i(accumulator_write_i),
      .younger_begin_i(accumulator_begin_i),
      .younger_end_i  (accumulator_end_i),
      .after_read_o   (reads[2]),
      .after_write_o  (writes[2]),
      .read_late_o    (late[2])
    );
    systole_range_hazard #(.Ranges(1), .Bits(LocalBits)) u_statistics (
      .compare_i      (take),
      .older_write_i  (statistics_write_q[e]),
      .older_begin_i  (statistics_begin_q[e]),
      .older_end_i    (statistics_end_q[e]),
      .younger_write_i(statistics_write_i),
      .younger_begin_i(statistics_begin_i),
      .younger_end_i  (statistics_end_i),
      .after_read_o   (reads[3]),
      .after_write_o  (writes[3]),
      .read_late_o    (late[3])
    );

    logic in_order;
    assign in_order       = IsCompute && 32'(unit_i) == Compute;
    assign after_read[e]  = reads[0] || reads[1] || (reads[2] && !in_order) || reads[3];
    assign after_write[e] = writes[0] || writes[1] || (writes[2] && !in_order) || writes[3];
    assign read_late[e]   = late[0] || late[1];
    assign unused_late    = ^late[3:2];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for_release_q[e]    <= '0;
        for_completion_q[e] <= '0;
      end else if (push_entry[e]) begin
        for_release_q[e]    <= live & ~(released_q | released_i) & after_read & ~after_write;
        for_completion_q[e] <= live & after_write;
      end else begin
        for_release_q[e]    <= for_release_q[e] & ~(released_i | completed_i);
        for_completion_q[e] <= for_completion_q[e] & ~completed_i;
      end
    end

    always_ff @(posedge clk_i) begin
      if (push_entry[e]) begin
        dram_write_q[e]        <= dram_write_i;
        dram_begin_q[e]        <= dram_begin_i;
        dram_end_q[e]          <= dram_end_i;
        scratchpad_write_q[e]  <= scratchpad_write_i;
        scratchpad_begin_q[e]  <= scratchpad_begin_i;
        scratchpad_end_q[e]    <= scratchpad_end_i;
        accumulator_write_q[e] <= accumulator_write_i;
        accumulator_begin_q[e] <= accumulator_begin_i;
        accumulator_end_q[e]   <= accumulator_end_i;
        statistics_write_q[e]  <= statistics_write_i;
        statistics_begin_q[e]  <= statistics_begin_i;
        statistics_end_q[e]    <= statistics_end_i;
      end
    end
  end

  for (genvar s = 0; s < StoreQueue; s++) begin : gen_reads
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for_reads_q[s] <= '0;
      end else begin
        for_reads_q[s] <= push_entry[StoreBase+s] ? live & read_late : for_reads_q[s] & ~completed_i;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      released_q <= '0;
    end else begin
      released_q <= (released_q | released_i) & ~push_entry;
    end
  end

  // -------------------------------------------------------------------------- starts
  for (genvar u = 0; u < Units; u++) begin : gen_start
    logic [EntryBits-1:0] head;
    assign head             = start_entry_o[u*EntryBits+:EntryBits];
    assign start_valid_o[u] = waiting[u] && for_release_q[head] == '0 && for_completion_q[head] == '0;
    assign pop[u]           = start_valid_o[u] && start_ready_i[u];

    `SYSTOLE_ASSERT(StartHeld_A, (start_valid_o[u] && !start_ready_i[u]) |=> start_valid_o[u])
  end

  logic [StoreBits-1:0] store_head;
  assign store_head      = StoreBits'(start_entry_o[Store*EntryBits+:EntryBits] - EntryBits'(StoreBase));
  assign store_waiting_o = waiting[Store];
  assign store_reads_o   = waiting[Store] && for_reads_q[store_head] == '0;

  `SYSTOLE_ASSERT(StartReads_A, start_valid_o[Store] |-> store_reads_o)
  `SYSTOLE_ASSERT_INIT(QueuesUsable_A, LoadQueue > 0 && ComputeQueue > 0 && StoreQueue > 0)
  `SYSTOLE_ASSERT(UnitHasStation_A, valid_i |-> 32'(unit_i) < Units)
  `SYSTOLE_ASSERT(CommandHeld_A, (valid_i && !ready_o) |=> (valid_i && $stable(unit_i)))
  `SYSTOLE_ASSERT(ReleasedUsed_A, (released_i & ~used_q) == '0)

endmodule
