// Decodes a command of a program in memory (80 bytes: hw/program/command_fields.h): its unit, and the
// ranges of memory that the dispatcher compares. Reference: hw::for_each_range() of
// hw/program/program_ranges.h.
//
// A store, a move and a load with stages name a chain. Its record comes before such a command, a word
// of it a cycle; then `chain_store_i` keeps what matters of it in a slot, which comes with the
// command. So does what the command refers to in the table of operands.
//
// Commands of a core with three units: loads without a window, matmuls, stores without an encoder,
// moves, and end. `legal_o` is low for all else, for a chain with more operands than there are
// ranges, and for a range whose end has more bits than an address.

module systole_command_decoder #(
  parameter  int unsigned DramRanges = 5,
  parameter  int unsigned DramBits   = 40,  // of an address
  parameter  int unsigned LocalBits  = 24,
  parameter  int unsigned ChainSlots = 64,
  localparam int unsigned Tensors    = DramRanges - 1,
  localparam int unsigned SlotBits   = ChainSlots > 1 ? $clog2(ChainSlots) : 1
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              chain_valid_i,
  input  logic                              chain_first_i,
  input  logic [63:0]                       chain_word_i,
  input  logic                              chain_store_i,      // the record is complete
  input  logic [SlotBits-1:0]               chain_slot_i,

  input  logic [639:0]                      command_i,
  input  logic [SlotBits-1:0]               command_slot_i,     // of its chain, if it names one
  output logic                              legal_o,
  output logic                              end_o,
  output logic                              uses_chain_o,
  output logic [15:0]                       chain_o,
  output logic [31:0]                       operands_o,         // the first that it takes of the table
  input  logic [(Tensors-1)*64-1:0]         operand_address_i,  // of the second tensor on
  input  logic [(Tensors-1)*32-1:0]         operand_pitch_i,

  // as the dispatcher takes them
  output logic [1:0]                        unit_o,
  output logic [DramRanges-1:0]             dram_write_o,
  output logic [DramRanges*DramBits-1:0]    dram_begin_o,
  output logic [DramRanges*DramBits-1:0]    dram_end_o,
  output logic [1:0]                        scratchpad_write_o,
  output logic [2*LocalBits-1:0]            scratchpad_begin_o,
  output logic [2*LocalBits-1:0]            scratchpad_end_o,
  output logic                              accumulator_write_o,
  output logic [LocalBits-1:0]              accumulator_begin_o,
  output logic [LocalBits-1:0]              accumulator_end_o,
  output logic                              statistics_write_o,
  output logic [LocalBits-1:0]              statistics_begin_o,
  output logic [LocalBits-1:0]              statistics_end_o,

  // what a load reads and where it goes: in bytes, those to the accumulator as they are in memory
  output logic                              load_plain_o,       // no stages, no weights in groups; fits
  output logic                              load_staged_o,      // with stages, to the scratchpad
  output logic                              load_sums_o,        // to the accumulator
  output logic [DramBits-1:0]               load_address_o,
  output logic [31:0]                       load_pitch_o,
  output logic [31:0]                       load_rows_o,
  output logic [31:0]                       load_bytes_o,       // of a row
  output logic [LocalBits-1:0]              load_to_o,
  output logic [LocalBits-1:0]              load_to_pitch_o
);

  localparam logic [31:0] GroupRows = 32'd32;  // of packed weights: hw/number/weight_groups.h

  // ---------------------------------------------------------------- fields
  logic [7:0]          op, element;
  logic [15:0]         gather, mix;
  logic [31:0]         m, n, k, dram_pitch, tensor_pitch, a_pitch, b_pitch, c_pitch;
  logic [63:0]         dram, tensor, a, b, c, parameters, statistics;
  logic [1:0]          format;  // of weights: int8, groups, mxint8, mxfp4
  logic                b_transposed, packed_weights, b_int4, a_int4, int4, unused_fields;

  assign op             = command_i[7:0];
  assign element        = command_i[15:8];
  assign b_transposed   = command_i[18];
  assign format         = command_i[20:19];
  assign packed_weights = format != 2'd0;
  assign b_int4         = command_i[20];
  assign a_int4         = command_i[21];
  assign int4           = command_i[22];
  assign gather         = command_i[32+:16];
  assign mix            = command_i[48+:16];
  assign dram_pitch     = command_i[96+:32];
  assign dram           = command_i[128+:64];
  assign tensor         = command_i[192+:64];
  assign tensor_pitch   = command_i[256+:32];
  assign m              = command_i[288+:32];
  assign n              = command_i[320+:32];
  assign k              = command_i[352+:32];
  assign a              = 64'(command_i[384+:32]);
  assign a_pitch        = command_i[416+:32];
  assign b              = 64'(command_i[448+:32]);
  assign b_pitch        = command_i[480+:32];
  assign c              = 64'(command_i[512+:32]);
  assign c_pitch        = command_i[544+:32];
  assign parameters     = 64'(command_i[576+:32]);
  assign statistics     = 64'(command_i[608+:32]);
  assign unused_fields  = ^{command_i[95:64], command_i[31:23], command_i[17:16]};

  logic load, loads_sums, matmul, store, move, results;
  assign loads_sums = op == systole_pkg::OpLoadAccumulator;
  assign load       = op == systole_pkg::OpLoad || loads_sums;
  assign matmul     = op == systole_pkg::OpMatmul;
  assign store      = op == systole_pkg::OpStore;
  assign move       = op == systole_pkg::OpMove;
  assign results    = store || move;

  // ---------------------------------------------------------------- its chain
  localparam int unsigned SummaryBits = 19 + 2 * Tensors;

  logic [SummaryBits-1:0] summary, summary_q [ChainSlots];
  logic [1:0]             out_bytes;
  logic [7:0]             parameter_words;
  logic [2:0]             statistics_words;
  logic                   writes_statistics, transposes;
  logic [3:0]             tensors;
  logic [2*Tensors-1:0]   tensor_bytes;

  logic                  known, addressable;
  logic [DramRanges-1:0] dram_fits;
  logic [3:0]            local_fits;

  systole_chain_summary #(.Tensors(Tensors)) u_chain (
    .clk_i, .rst_ni,
    .valid_i            (chain_valid_i),
    .first_i            (chain_first_i),
    .word_i             (chain_word_i),
    .bytes_o            (summary[1:0]),
    .parameter_words_o  (summary[9:2]),
    .statistics_words_o (summary[12:10]),
    .writes_statistics_o(summary[13]),
    .transposes_o       (summary[14]),
    .tensors_o          (summary[18:15]),
    .tensor_bytes_o     (summary[19+:2*Tensors])
  );

  always_ff @(posedge clk_i) begin
    if (chain_store_i) summary_q[chain_slot_i] <= summary;
  end

  assign {tensor_bytes, tensors, transposes, writes_statistics, statistics_words, parameter_words,
          out_bytes} = summary_q[command_slot_i];

  assign uses_chain_o = results || (load && mix != '0);
  assign chain_o      = load ? mix - 16'd1 : gather;
  assign operands_o   = load ? b[31:0] : a[31:0];
  assign end_o        = op == systole_pkg::OpEnd;
  assign known        = end_o || matmul || (load && gather == '0) || move || (store && mix == '0);
  assign legal_o      = known && (!uses_chain_o || 32'(tensors) <= Tensors) &&
                        dram_fits == '1 && local_fits == '1;
  assign unit_o       = load ? systole_pkg::LoadUnit :
                        matmul ? systole_pkg::ComputeUnit : systole_pkg::StoreUnit;

  // ---------------------------------------------------------------- main memory
  logic [1:0]          type_bytes;
  logic [31:0]         read_rows, out_rows, out_cols;
  logic [63:0]         read_bytes, written_bytes;

  assign type_bytes    = element == systole_pkg::TypeS32 ? 2'd2 :
                         element == systole_pkg::TypeS16 || element == systole_pkg::TypeU16 ? 2'd1 :
                         2'd0;
  assign read_rows     = packed_weights ? m / GroupRows : m;
  assign read_bytes    = packed_weights
                         ? (format == 2'd1 ? 64'(n) << 1 : 64'(n)) +
                           ((format == 2'd2 ? 64'(n) : (64'(n) + 64'(1)) >> 1) << 5)
                         : 64'(n) << type_bytes;
  assign out_rows      = transposes ? n : m;
  assign out_cols      = transposes ? m : n;
  assign written_bytes = int4 ? 64'(out_cols[31:1]) + 64'(out_cols[0]) : 64'(out_cols) << out_bytes;

  systole_bounding_range #(.Bits(DramBits)) u_dram (
    .valid_i(load || store),
    .begin_i(dram),
    .rows_i (load ? read_rows : out_rows),
    .width_i(load ? read_bytes : written_bytes),
    .pitch_i(dram_pitch),
    .begin_o(dram_begin_o[DramBits-1:0]),
    .end_o  (dram_end_o[DramBits-1:0]),
    .fits_o (dram_fits[0])
  );
  assign dram_write_o = DramRanges'(store);

  assign load_plain_o    = load && mix == '0 && !packed_weights && addressable;
  assign load_staged_o   = load && mix != '0 && !packed_weights && !loads_sums;
  assign load_sums_o     = loads_sums;
  assign load_address_o  = DramBits'(dram);
  assign load_pitch_o    = dram_pitch;
  assign load_rows_o     = read_rows;
  assign load_bytes_o    = 32'(read_bytes);
  assign load_to_o       = loads_sums ? LocalBits'(c) << type_bytes : LocalBits'(a);
  assign load_to_pitch_o = loads_sums ? LocalBits'(c_pitch) << type_bytes : LocalBits'(a_pitch);

  for (genvar t = 0; t < Tensors; t++) begin : gen_tensor
    logic [63:0] address;
    logic [31:0] pitch;
    if (t == 0) begin : gen_first
      assign address = tensor;
      assign pitch   = tensor_pitch;
    end else begin : gen_other
      assign address = operand_address_i[(t-1)*64+:64];
      assign pitch   = operand_pitch_i[(t-1)*32+:32];
    end
    systole_bounding_range #(.Bits(DramBits)) u_range (
      .valid_i(uses_chain_o && tensors > 4'(t)),
      .begin_i(address),
      .rows_i (m),
      .width_i(64'(n) << tensor_bytes[2*t+:2]),
      .pitch_i(pitch),
      .begin_o(dram_begin_o[(t+1)*DramBits+:DramBits]),
      .end_o  (dram_end_o[(t+1)*DramBits+:DramBits]),
      .fits_o (dram_fits[t+1])
    );
  end

  // ---------------------------------------------------------------- scratchpad
  // First: A of a matmul, where a load or a move writes; second: B, parameters of a chain.
  logic [31:0] a_cols, b_rows, b_cols, pairs, depth;
  assign pairs  = {1'b0, k[31:1]} + 32'(k[0]);
  assign a_cols = a_int4 ? pairs : k;
  assign depth  = b_int4 ? pairs : k;
  assign b_rows = b_transposed ? n : depth;
  assign b_cols = b_transposed ? depth : n;

  systole_bounding_range #(.Bits(LocalBits)) u_first (
    .valid_i(matmul || move || (load && !loads_sums)),
    .begin_i(move ? b : a),
    .rows_i (move ? out_rows : m),
    .width_i(matmul ? 64'(a_cols) : move ? written_bytes : 64'(n)),
    .pitch_i(move ? b_pitch : a_pitch),
    .begin_o(scratchpad_begin_o[LocalBits-1:0]),
    .end_o  (scratchpad_end_o[LocalBits-1:0]),
    .fits_o (local_fits[0])
  );
  systole_bounding_range #(.Bits(LocalBits)) u_second (
    .valid_i(matmul || (uses_chain_o && parameter_words != '0)),
    .begin_i(matmul ? b : parameters),
    .rows_i (matmul ? b_rows : 32'(parameter_words)),
    .width_i(matmul ? 64'(b_cols) : 64'(n) << 2),
    .pitch_i(matmul ? b_pitch : n << 2),
    .begin_o(scratchpad_begin_o[LocalBits+:LocalBits]),
    .end_o  (scratchpad_end_o[LocalBits+:LocalBits]),
    .fits_o (local_fits[1])
  );
  assign scratchpad_write_o = {1'b0, !matmul};

  // ---------------------------------------------------------------- accumulator, row statistics
  systole_bounding_range #(.Bits(LocalBits)) u_accumulator (
    .valid_i(matmul || results || loads_sums),
    .begin_i(c),
    .rows_i (m),
    .width_i(64'(n)),
    .pitch_i(c_pitch),
    .begin_o(accumulator_begin_o),
    .end_o  (accumulator_end_o),
    .fits_o (local_fits[2])
  );
  assign accumulator_write_o = !results;
  assign addressable         = !loads_sums || accumulator_end_o[LocalBits-1:LocalBits-2] == '0;

  systole_bounding_range #(.Bits(LocalBits)) u_statistics (
    .valid_i(uses_chain_o && statistics_words != '0),
    .begin_i(statistics),
    .rows_i (m),
    .width_i(64'(statistics_words)),
    .pitch_i(32'(statistics_words)),
    .begin_o(statistics_begin_o),
    .end_o  (statistics_end_o),
    .fits_o (local_fits[3])
  );
  assign statistics_write_o = writes_statistics;

endmodule
