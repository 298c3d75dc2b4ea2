// The parameter block of a chain: reads the words of its stages from the scratchpad, keeps them, and
// gives them to the stages, vector after vector, again for each row. There are two of all buffers: those
// of the command that runs are used while those of the next one are filled.
//
// The block holds word after word, each for all columns: of a stage the first word is its operand, the
// second its shift, or the addend of a LayerNorm, which is the last one. Words for all columns of a
// stage have room for ParameterBeats vectors.

`include "systole_assert.svh"

module systole_parameter_buffers #(
  parameter  int unsigned Lanes          = 4,
  parameter  int unsigned Stages         = 9,
  parameter  int unsigned ParameterBeats = 16,
  parameter  int unsigned DataBytes      = 4,   // of a word of the scratchpad
  parameter  int unsigned AddrBits       = 12,
  parameter  int unsigned CountBits      = 24,
  localparam int unsigned StageBits      = Stages > 1 ? $clog2(Stages) : 1,
  localparam int unsigned DataWidth      = 8 * DataBytes
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       start_i,          // of the next command
  input  logic                       readable_i,       // its block can be read

  // of the command that runs, held from its start on
  input  logic [AddrBits-1:0]        parameters_i,     // where the block is
  input  logic [CountBits-1:0]       n_i,              // columns
  input  logic [Stages-1:0]          channel_i,        // stages with a word
  input  logic [Stages-1:0]          shift_i,          // and with a second one
  input  logic [StageBits-1:0]       norm_i,           // the stage whose second word is an addend
  output logic                       loaded_o,         // all have been read
  output logic                       there_o,          // and are in the buffers

  // of the next one, held while it is readable
  input  logic [AddrBits-1:0]        next_parameters_i,
  input  logic [CountBits-1:0]       next_n_i,
  input  logic [Stages-1:0]          next_channel_i,
  input  logic [Stages-1:0]          next_shift_i,

  // the scratchpad's client
  output logic                       valid_o,
  output logic                       late_o,           // for the next command: they can wait
  input  logic                       done_i,
  output logic [AddrBits-1:0]        address_o,
  input  logic [DataWidth-1:0]       data_i,

  // to the pipeline
  input  logic [Stages-1:0]          operand_ready_i,
  output logic [Stages*Lanes*32-1:0] operands_o,
  output logic [Stages*Lanes*6-1:0]  shifts_o,
  output logic [Lanes*32-1:0]        addend_o          // of stage norm_i
);

  localparam int unsigned Parts     = 4 * Lanes / DataBytes;   // reads for a vector
  localparam int unsigned PartLanes = DataBytes / 4;
  localparam int unsigned PartBits  = Parts > 1 ? $clog2(Parts) : 1;
  localparam int unsigned BeatBits  = $clog2(ParameterBeats);
  localparam int unsigned Beats     = 2 * 2**BeatBits;         // of both buffers

  logic [StageBits-1:0] stage_q, first_stage, next_stage;  // whose words come
  logic                 left_q, second_q, more_stages, vector_end, word_end, step;
  logic                 side_q, fill_side_q;            // buffers of the command that runs, that are filled
  logic                 running, begins, begun_q;       // those of the next command
  logic [AddrBits-1:0]  block;                          // of the command whose words come, or come next
  logic [CountBits-1:0] columns;
  logic [Stages-1:0]    channel, shift;
  logic [AddrBits-1:0]  at_q, word_at_q;                // of this read, of the word's first column
  logic [AddrBits-1:0]  row_bytes;                      // of a word for all columns
  logic [BeatBits-1:0]  beat_q;
  logic [PartBits-1:0]  part_q;
  logic [CountBits-1:0] columns_q;                      // from this vector on
  logic                 fill_q, fill_second_q;          // what was read in the cycle before
  logic [StageBits-1:0] fill_stage_q;
  logic [BeatBits-1:0]  fill_beat_q;
  logic [PartBits-1:0]  fill_part_q;

  always_comb begin
    first_stage = '0;
    next_stage  = '0;
    more_stages = 1'b0;
    for (int unsigned s = Stages; s > 0; s--) begin
      if (channel[s-1]) first_stage = StageBits'(s - 1);
      if (channel[s-1] && 32'(stage_q) < s - 1) begin
        next_stage  = StageBits'(s - 1);
        more_stages = 1'b1;
      end
    end
  end

  // Those of the command that runs are all there before others come.
  assign running    = left_q && fill_side_q == side_q;
  assign begins     = readable_i && !begun_q && !left_q;
  assign block      = running ? parameters_i : next_parameters_i;
  assign columns    = running ? n_i : next_n_i;
  assign channel    = running ? channel_i : next_channel_i;
  assign shift      = running ? shift_i : next_shift_i;

  assign row_bytes  = AddrBits'(columns) << 2;
  assign valid_o    = left_q;
  assign late_o     = !running;
  assign address_o  = at_q;
  assign step       = valid_o && done_i;
  assign vector_end = 32'(part_q) == Parts - 1;
  assign word_end   = columns_q <= CountBits'((32'(part_q) + 1) * PartLanes);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q  <= 1'b0;
      fill_q  <= 1'b0;
      begun_q <= 1'b0;
      side_q  <= 1'b0;
    end else begin
      fill_q  <= step;
      begun_q <= !start_i && (begun_q || begins);
      side_q  <= side_q ^ start_i;
      if (begins) begin
        left_q <= channel != '0;
      end else if (step && word_end && !more_stages && (second_q || !shift[stage_q])) begin
        left_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    fill_stage_q  <= stage_q;
    fill_second_q <= second_q;
    fill_beat_q   <= beat_q;
    fill_part_q   <= part_q;
    if (begins) begin
      fill_side_q <= !side_q;
      stage_q     <= first_stage;
      second_q    <= 1'b0;
      at_q        <= block;
      word_at_q   <= block;
      beat_q      <= '0;
      part_q      <= '0;
      columns_q   <= columns;
    end else if (step) begin
      part_q <= vector_end || word_end ? '0 : part_q + PartBits'(1);
      if (!word_end) begin
        at_q      <= at_q + AddrBits'(DataBytes);
        beat_q    <= beat_q + BeatBits'(vector_end);
        columns_q <= vector_end ? columns_q - CountBits'(Lanes) : columns_q;
      end else begin
        at_q      <= word_at_q + row_bytes;
        word_at_q <= word_at_q + row_bytes;
        beat_q    <= '0;
        columns_q <= columns;
        second_q  <= shift[stage_q] && !second_q;
        if (second_q || !shift[stage_q]) stage_q <= next_stage;
      end
    end
  end

  // ---------------------------------------------------------------- words of the stages
  logic [BeatBits-1:0]     next [Stages], next_q [Stages];  // vector of a stage, in the next cycle and in this
  logic [Stages-1:0]       moves;
  logic [BeatBits-1:0]     last_beat;                       // of a row
  logic [Lanes-1:0]        fill_lanes;
  logic [Lanes*32-1:0]     words;
  logic [Lanes*6-1:0]      amounts;

  assign last_beat = BeatBits'((n_i - CountBits'(1)) / CountBits'(Lanes));

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    assign fill_lanes[l]     = 32'(fill_part_q) == l / PartLanes;
    assign words[32*l+:32]   = data_i[l%PartLanes*32+:32];
    assign amounts[6*l+:6]   = data_i[l%PartLanes*32+:6];
  end

  for (genvar s = 0; s < Stages; s++) begin : gen_operand
    logic takes, fills;

    assign takes    = operand_ready_i[s] && channel_i[s];
    assign fills    = fill_q && fill_stage_q == StageBits'(s);
    assign moves[s] = start_i || takes;

    always_comb begin
      next[s] = next_q[s];
      if (start_i) begin
        next[s] = '0;
      end else if (takes) begin
        next[s] = next_q[s] == last_beat ? '0 : next_q[s] + BeatBits'(1);
      end
    end
    always_ff @(posedge clk_i) next_q[s] <= next[s];

    systole_parameter_bank #(.Rows(Beats), .Lanes(Lanes), .LaneBits(32)) u_values (
      .clk_i,
      .write_i(fills && !fill_second_q),
      .to_i   ({fill_side_q, fill_beat_q}),
      .mask_i (fill_lanes),
      .data_i (words),
      .move_i (moves[s]),
      .row_i  ({side_q ^ start_i, next[s]}),
      .data_o (operands_o[s*Lanes*32+:Lanes*32])
    );
    systole_parameter_bank #(.Rows(Beats), .Lanes(Lanes), .LaneBits(6)) u_shifts (
      .clk_i,
      .write_i(fills && fill_second_q),
      .to_i   ({fill_side_q, fill_beat_q}),
      .mask_i (fill_lanes),
      .data_i (amounts),
      .move_i (moves[s]),
      .row_i  ({side_q ^ start_i, next[s]}),
      .data_o (shifts_o[s*Lanes*6+:Lanes*6])
    );
  end

  // The last second word that comes is that of the last stage. With the start of a command all stages begin
  // with the same vector, whichever has the addend.
  systole_parameter_bank #(.Rows(Beats), .Lanes(Lanes), .LaneBits(32)) u_addends (
    .clk_i,
    .write_i(fill_q && fill_second_q),
    .to_i   ({fill_side_q, fill_beat_q}),
    .mask_i (fill_lanes),
    .data_i (words),
    .move_i (moves[norm_i]),
    .row_i  ({side_q ^ start_i, next[norm_i]}),
    .data_o (addend_o)
  );

  assign loaded_o = !running;
  assign there_o  = !running && !(fill_q && fill_side_q == side_q);

  `SYSTOLE_ASSERT_INIT(SizesUsable_A, DataBytes >= 4 && Parts * DataBytes == 4 * Lanes)
  `SYSTOLE_ASSERT(BegunAtStart_A, start_i |-> (begins || begun_q))
  `SYSTOLE_ASSERT(ParametersFit_A, (begins && channel != '0) |->
                  columns <= CountBits'(Lanes * ParameterBeats))

endmodule
