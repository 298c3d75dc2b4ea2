// The constants of the RTL that hw/ has as well. tests/rtl/drive/package_test.cpp reads this file
// and compares each constant with its C++ counterpart: a value is a number or a sum of depths.

package systole_pkg;

  // Depths of units, in cycles: hw/number/unit_depths.h.
  localparam int unsigned MultiplyDepth   = 3;
  localparam int unsigned ShiftDepth      = 1;
  localparam int unsigned ClampDepth      = 1;
  localparam int unsigned AddDepth        = 1;
  localparam int unsigned RequantiseDepth = MultiplyDepth + ShiftDepth + ClampDepth;
  localparam int unsigned MacDepth        = 3;

  // Quotient; remainder and offset; square; constant and shift: hw/number/int_exp.h.
  localparam int unsigned ExpDepth =
      MultiplyDepth + MultiplyDepth + AddDepth + MultiplyDepth + ShiftDepth;
  // Magnitude and clip; square; constant and sign; product; requantisation: hw/postop/stage.cpp, as
  // the next two.
  localparam int unsigned GeluDepth =
      ClampDepth + MultiplyDepth + AddDepth + MultiplyDepth + RequantiseDepth;
  // Difference and its scaling; exponential; code.
  localparam int unsigned SoftmaxDepth =
      AddDepth + MultiplyDepth + ShiftDepth + ExpDepth + RequantiseDepth;
  // Deviation; reciprocal and shift; multiplier and addend; shift and clamp.
  localparam int unsigned LayerNormDepth =
      AddDepth + MultiplyDepth + ShiftDepth + MultiplyDepth + AddDepth + ShiftDepth + ClampDepth;
  // Half precision: hw/machine/matrix_unit.h.
  // Shift of the dividend; 32 bits of the quotient, two a stage; rounding and sign; limits:
  // hw/function/divide.h.
  localparam int unsigned DivideDepth = ShiftDepth + 16 + AddDepth + ClampDepth;
  localparam int unsigned HalfMultiplyDepth = 6;
  localparam int unsigned HalfAddDepth      = 11;

  // Of the exponential's division (hw/number/int_exp.h), and of a half (hw/number/half.h).
  localparam int unsigned ReciprocalBits = 29;
  localparam int unsigned HalfInfinity   = 'h7c00;
  localparam int unsigned HalfNan        = 'h7e00;

  // Of rows: columns of the longest, inputs and reciprocals (hw/function/).
  localparam int unsigned MaxCols             = 65536;
  localparam int unsigned SoftmaxFactorBits   = 32;
  localparam int unsigned DeferredReciprocalBits = 24;
  localparam int unsigned DeferredFractionBits   = 8;
  localparam int unsigned LayerNormInputBits  = 24;
  localparam int unsigned LayerNormFactorBits = 31;

  // Of a streaming core's softmax: hw/stream/stream_functions.h.
  localparam int unsigned StreamSumBits = 19;
  localparam int unsigned StreamScale   = 65280;

  // hw/number/dyadic.h
  typedef enum logic [1:0] {
    HalfUp   = 2'd0,
    HalfEven = 2'd1,
    Floor    = 2'd2
  } rounding_e;

  // hw/number/softmax_mode.h
  typedef enum logic [1:0] {
    Deferred        = 2'd0,
    NormalisedFloor = 2'd1,
    NormalisedRound = 2'd2
  } softmax_mode_e;

  // hw::ArrayOverlap of hw/machine/machine.h
  typedef enum logic [1:0] {
    OverlapNone    = 2'd0,
    OverlapPreload = 2'd1,
    OverlapFull    = 2'd2
  } overlap_e;

  // hw/postop/stage.h: those that a slot of the post-op pipeline has, and those that the decoder of
  // commands tells apart.
  typedef enum logic [7:0] {
    Add            = 8'd0,
    Requantise     = 8'd1,
    Sub            = 8'd2,
    Clamp          = 8'd3,
    Relu           = 8'd4,
    Gelu           = 8'd5,
    Softmax        = 8'd6,
    DivideRowSum   = 8'd7,
    LayerNorm      = 8'd8,
    Mul            = 8'd9,
    Mask           = 8'd10,
    LayerNormApply = 8'd13,
    RmsNormApply   = 8'd14,
    Transpose      = 8'd16
  } stage_op_e;

  // hw/postop/stage.h
  typedef enum logic [7:0] {
    ReduceNone       = 8'd0,
    ReduceRowMax     = 8'd1,
    ReduceRowSum     = 8'd2,
    ReduceSumSquares = 8'd3,
    ReduceRowPeak    = 8'd4
  } reduction_e;

  // hw/postop/stage.h
  typedef enum logic [7:0] {
    Immediate = 8'd0,
    Channel   = 8'd1,
    Row       = 8'd2,
    Tensor    = 8'd3,
    Saved     = 8'd4
  } operand_e;

  // hw/number/dtype.h
  typedef enum logic [7:0] {
    TypeS8  = 8'd0,
    TypeU8  = 8'd1,
    TypeS16 = 8'd2,
    TypeS32 = 8'd3,
    TypeU16 = 8'd4
  } element_e;

  // hw::Opcode of hw/program/program.h: those of a core with three units.
  typedef enum logic [7:0] {
    OpEnd             = 8'd0,
    OpLoad            = 8'd1,
    OpLoadAccumulator = 8'd2,
    OpMatmul          = 8'd3,
    OpStore           = 8'd4,
    OpMove            = 8'd5,
    OpHost            = 8'd7
  } opcode_e;

  // Units with a reservation station: hw::Unit of hw/program/program.h.
  typedef enum logic [1:0] {
    LoadUnit    = 2'd0,
    ComputeUnit = 2'd1,
    StoreUnit   = 2'd2
  } unit_e;

  // Coefficients of head_mix_line: MixField of testbench/rtl/attention/head_mix_line_rtl.h.
  typedef enum logic [1:0] {
    MixWeight     = 2'd0,
    MixBias       = 2'd1,
    MixMultiplier = 2'd2,
    MixShift      = 2'd3
  } mix_field_e;

endpackage
