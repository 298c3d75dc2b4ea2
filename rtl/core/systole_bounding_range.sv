// The range of `rows_i` runs of `width_i` units, `pitch_i` apart: from the first unit of the first to
// before the end of the last. Reference: hw::bounding_range() of hw/program/program_ranges.h. One
// that is not valid has the end 0.

module systole_bounding_range #(
  parameter int unsigned Bits = 24
) (
  input  logic            valid_i,
  input  logic [63:0]     begin_i,
  input  logic [31:0]     rows_i,   // at least 1, as width_i
  input  logic [63:0]     width_i,
  input  logic [31:0]     pitch_i,
  output logic [Bits-1:0] begin_o,
  output logic [Bits-1:0] end_o,
  output logic            fits_o    // its end has no more bits than that
);

  logic [31:0] later_rows;
  logic [63:0] last;        // from the begin of the first row to that of the last
  logic [65:0] range_end;

  assign later_rows = rows_i - 32'd1;
  assign last       = 64'(later_rows) * 64'(pitch_i);
  assign range_end  = 66'(begin_i) + 66'(last) + 66'(width_i);
  assign begin_o    = Bits'(begin_i);
  assign end_o      = valid_i ? Bits'(range_end) : '0;
  assign fits_o     = !valid_i || range_end >> Bits == '0;

endmodule
