#pragma once

#include <string>
#include <vector>

namespace systole::testbench {

/// A picture: the input of gnuplot, after the terminal and the output have been set.
struct Plot {
  std::string file;                ///< name without a folder: "cycles.png"
  int width = 1200, height = 700;  ///< pixels
  std::string data;                ///< blocks of data and variables
  std::string script;  ///< what plots/NAME.gp of the data directory draws; "": data does
};

/// The bytes of the PNG file; `path` is what errors name. Throws InputError if gnuplot is not
/// installed or fails.
[[nodiscard]] std::string draw_plot(const Plot& plot, const std::string& path);

/// Writes PNG files into a folder, each whole or not at all.
class PlotWriter {
 public:
  /// Before the work: throws InputError for a folder in which no file can be made. One that is
  /// missing is made by write(). Without a name nothing is written.
  explicit PlotWriter(std::string directory);

  /// Throws InputError if gnuplot is not installed, fails, or a file cannot be written.
  void write(const std::vector<Plot>& plots) const;

 private:
  std::string directory_;
};

/// A text in gnuplot's single quotes.
[[nodiscard]] std::string gnuplot_quoted(const std::string& text);
/// Rows of data, each with its end of line, as $name.
[[nodiscard]] std::string data_block(const std::string& name, const std::string& rows);

}  // namespace systole::testbench
