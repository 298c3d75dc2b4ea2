// The constants of the integer exponential, by the fraction bits of its argument:
// hw::make_int_exp_constants() and int_exp_reciprocal() of hw/number/int_exp.h. A test reads the table
// below and compares it with them.

module systole_exp_constants (
  input  logic [3:0]  fraction_bits_i,  // 1 .. 14
  output logic [13:0] q_ln2_o,
  output logic [29:0] reciprocal_o,
  output logic [14:0] b_o,
  output logic [28:0] c_o
);

  always_comb begin
    case (fraction_bits_i)
      4'd1:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd1, 30'd536870912, 15'd2, 29'd3};
      4'd2:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd2, 30'd268435456, 15'd5, 29'd15};
      4'd3:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd5, 30'd107374183, 15'd10, 29'd61};
      4'd4:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd11, 30'd48806447, 15'd21, 29'd245};
      4'd5:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd22, 30'd24403224, 15'd43, 29'd982};
      4'd6:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd44, 30'd12201612, 15'd86, 29'd3930};
      4'd7:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd88, 30'd6100806, 15'd173, 29'd15721};
      4'd8:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd177, 30'd3033169, 15'd346, 29'd62885};
      4'd9:   {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd354, 30'd1516585, 15'd692, 29'd251541};
      4'd10:  {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd709, 30'd757223, 15'd1385, 29'd1006164};
      4'd11:  {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd1419, 30'd378345, 15'd2770, 29'd4024659};
      4'd12:  {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd2839, 30'd189106, 15'd5541, 29'd16098639};
      4'd13:  {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd5678, 30'd94553, 15'd11083, 29'd64394558};
      4'd14:  {q_ln2_o, reciprocal_o, b_o, c_o} = {14'd11356, 30'd47277, 15'd22167, 29'd257578233};
      default: {q_ln2_o, reciprocal_o, b_o, c_o} = '0;
    endcase
  end

endmodule
