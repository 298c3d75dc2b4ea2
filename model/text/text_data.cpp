#include "model/text/text_data.h"

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "model/format/safetensors.h"

namespace systole::model {

std::string load_text(const std::string& path) {
  constexpr const char* kName = "valid";
  if (std::filesystem::path(path).extension() != ".safetensors") {
    return std::string(hw::MappedFile(path).bytes());
  }
  const Safetensors file = Safetensors::open(path);
  const std::vector<std::size_t>& shape = file.tensor(kName).shape;
  if (shape.size() != 1 || shape.front() == 0) {
    throw hw::InputError(hw::printable(path) + ": tensor '" + kName + "': shape is " +
                         shape_text(shape) + ", expected [length], not 0");
  }
  const std::vector<std::uint8_t> bytes = file.copy<std::uint8_t>(kName);
  return {bytes.begin(), bytes.end()};
}

}  // namespace systole::model
