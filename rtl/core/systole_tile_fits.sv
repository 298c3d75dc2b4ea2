// Whether a buffer of Bytes bytes holds a tile of m x n elements, each row from the begin of a vector of
// Lanes elements on.

module systole_tile_fits #(
  parameter  int unsigned Lanes = 4,
  parameter  int unsigned Bytes = 4096
) (
  input  logic [31:0] m_i,
  input  logic [31:0] n_i,
  input  logic [7:0]  type_i,   // systole_pkg::element_e
  output logic        fits_o
);

  localparam int unsigned SizeBits = 34;   // of a tile's size
  localparam int unsigned LaneBits = $clog2(Lanes);
  localparam int unsigned Words    = Bytes / Lanes;

  logic [SizeBits-1:0] vectors, words;     // of a row; of the tile

  // Words of a vector have a byte an element.
  assign vectors = (SizeBits'(n_i) + SizeBits'(Lanes) - SizeBits'(1)) >> LaneBits;
  assign words   = SizeBits'(m_i[15:0]) * SizeBits'(vectors[15:0]) <<
                   (type_i == systole_pkg::TypeS32 ? 2'd2 :
                    type_i == systole_pkg::TypeS16 || type_i == systole_pkg::TypeU16 ? 2'd1 : 2'd0);
  assign fits_o  = m_i[31:16] == '0 && vectors[SizeBits-1:16] == '0 && words <= SizeBits'(Words);

endmodule
