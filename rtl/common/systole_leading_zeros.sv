// Zeros before the first one of a word, by halves; Width - 1 if there is none. Combinational.

`include "systole_assert.svh"

module systole_leading_zeros #(
  parameter  int unsigned Width      = 16,  // a power of two
  localparam int unsigned CountWidth = $clog2(Width)
) (
  input  logic [Width-1:0]      data_i,
  output logic [CountWidth-1:0] count_o
);

  logic [Width-1:0] rest;  // data_i without the zeros that are counted

  always_comb begin
    rest = data_i;
    for (int unsigned i = 0; i < CountWidth; i++) begin
      count_o[CountWidth-1-i] = rest >> (Width - (Width >> (i + 1))) == '0;
      if (count_o[CountWidth-1-i]) rest = rest << (Width >> (i + 1));
    end
  end

  `SYSTOLE_ASSERT_INIT(WidthUsable_A, Width >= 2 && Width == 1 << CountWidth)

endmodule
