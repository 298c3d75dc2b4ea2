// Whether a younger command has to wait for an older one: any of the ranges of one meets any of the
// other's in the same memory, and one of them writes there. Reference: hw::hazard_between() of
// hw/program/dispatch.h. A range is half open; one with the end 0 meets none. Without compare_i the
// comparators rest, and nothing is said to meet.

module systole_range_hazard #(
  parameter int unsigned Ranges = 1,   // of a command in this memory
  parameter int unsigned Bits   = 24
) (
  input  logic                   compare_i,
  input  logic [Ranges-1:0]      older_write_i,
  input  logic [Ranges*Bits-1:0] older_begin_i,
  input  logic [Ranges*Bits-1:0] older_end_i,
  input  logic [Ranges-1:0]      younger_write_i,
  input  logic [Ranges*Bits-1:0] younger_begin_i,
  input  logic [Ranges*Bits-1:0] younger_end_i,
  output logic                   after_read_o,   // the older one reads what the younger one writes
  output logic                   after_write_o,  // the older one writes what the younger one uses
  output logic                   read_late_o     // what the younger one reads
);

  logic meets;

  always_comb begin
    after_read_o  = 1'b0;
    after_write_o = 1'b0;
    read_late_o   = 1'b0;
    meets         = 1'b0;
    if (compare_i) begin
      for (int unsigned a = 0; a < Ranges; a++) begin
        for (int unsigned b = 0; b < Ranges; b++) begin
          meets = older_begin_i[a*Bits+:Bits] < younger_end_i[b*Bits+:Bits] &&
                  younger_begin_i[b*Bits+:Bits] < older_end_i[a*Bits+:Bits];
          if (meets && older_write_i[a]) after_write_o = 1'b1;
          if (meets && !older_write_i[a] && younger_write_i[b]) after_read_o = 1'b1;
          if (meets && older_write_i[a] && !younger_write_i[b]) read_late_o = 1'b1;
        end
      end
    end
  end

endmodule
