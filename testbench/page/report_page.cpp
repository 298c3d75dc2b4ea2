#include "testbench/page/report_page.h"

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <streambuf>

#include "base/error.h"
#include "base/installation.h"
#include "testbench/report/machine_json.h"

namespace systole::testbench {
namespace {

/// Our scripts, in the order of the page.
constexpr std::array<const char*, 8> kScripts = {"format.js",       "table.js", "charts.js",
                                                 "timeline.js",     "page.js",  "comparison.js",
                                                 "reproduction.js", "main.js"};

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw hw::InputError(path + ": cannot be read, expected a part of the report's page");
  return text.str();
}

std::string page_file(const std::string& name) {
  return hw::installation() + "/testbench/page/" + name;
}

/// As text within a script element: nothing in it ends the element.
std::string script_text(const nlohmann::ordered_json& data) {
  const std::string text =
      data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";  // only within the strings of a JSON text
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      group = group << 8 | (j < bytes.size() ? static_cast<std::uint8_t>(bytes[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

/// Makes a gzip file of what is written.
class ReportPage::Compressor : public std::streambuf {
 public:
  Compressor() : out(this) {
    constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
    if (deflateInit2(&state_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::runtime_error("zlib: cannot compress");
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  ~Compressor() override { deflateEnd(&state_); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  /// All of it; nothing may be written after.
  const std::string& finish() {
    compress(Z_FINISH);
    return bytes_;
  }

  std::ostream out;

 protected:
  int overflow(int c) override {
    compress(Z_NO_FLUSH);
    if (c != traits_type::eof()) sputc(static_cast<char>(c));
    return 0;
  }

 private:
  void compress(int flush) {
    state_.next_in = reinterpret_cast<Bytef*>(pbase());
    state_.avail_in = static_cast<uInt>(pptr() - pbase());
    std::array<char, 1 << 16> chunk{};
    do {
      state_.next_out = reinterpret_cast<Bytef*>(chunk.data());
      state_.avail_out = chunk.size();
      deflate(&state_, flush);
      bytes_.append(chunk.data(), chunk.size() - state_.avail_out);
    } while (state_.avail_out == 0);
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }

  z_stream state_{};
  std::array<char, 1 << 16> buffer_{};
  std::string bytes_;
};

ReportPage::ReportPage(const std::string& path) {
  if (!path.empty()) file_ = std::make_unique<hw::AtomicFile>(path);
}

ReportPage::~ReportPage() = default;

std::ostream& ReportPage::timeline() {
  if (!compressor_) compressor_ = std::make_unique<Compressor>();
  return compressor_->out;
}

void ReportPage::put(const nlohmann::ordered_json& data) {
  std::string scripts;
  for (const char* name : kScripts) scripts += contents_of(page_file(name));
  const std::string page = contents_of(page_file("page.html"));
  std::ostream& out = file_->stream();
  const auto fill = [&](const std::string& name) {
    if (name == "style") {
      out << contents_of(page_file("page.css"));
    } else if (name == "library") {
      out << contents_of(hw::installation() + "/third_party/echarts/echarts.min.js");
    } else if (name == "data") {
      out << script_text(data);
    } else if (name == "timeline") {
      if (compressor_) out << base64(compressor_->finish());
    } else {
      out << scripts;
    }
  };
  // "{{name}}" is replaced.
  std::size_t at = 0;
  for (std::size_t open = page.find("{{"); open != std::string::npos; open = page.find("{{", at)) {
    const std::size_t close = page.find("}}", open);
    out << std::string_view(page).substr(at, open - at);
    fill(page.substr(open + 2, close - open - 2));
    at = close + 2;
  }
  out << std::string_view(page).substr(at);
  file_->commit();
}

void ReportPage::write(const hw::Machine& machine, const nlohmann::ordered_json& statistics,
                       const nlohmann::ordered_json& explanation) {
  if (!wanted()) return;
  nlohmann::ordered_json data{{"statistics", statistics}, {"explanation", explanation}};
  // Every step of the path is a slice of the timeline, too.
  if (data["explanation"].is_object()) data["explanation"].erase("path");
  data["statistics"]["machine_keys"] = machine_json(machine);
  put(data);
}

void ReportPage::write_comparison(const nlohmann::ordered_json& comparison) {
  if (wanted()) put({{"comparison", comparison}});
}

void ReportPage::write_reproductions(const nlohmann::ordered_json& reproductions) {
  if (wanted()) put({{"reproductions", reproductions}});
}

}  // namespace systole::testbench
