#include "model/token_ids.h"

#include "hw/error.h"
#include "model/safetensors.h"

namespace systole::model {
namespace {

constexpr const char* kName = "input_ids";

}  // namespace

TokenIds load_token_ids(const std::string& path, std::uint32_t vocabulary,
                        std::uint32_t positions) {
  const Safetensors file = Safetensors::open(path);
  const TensorView& tensor = file.tensor(kName);
  const auto fail = [&](const std::string& what) {
    throw hw::InputError(file.path() + ": tensor '" + kName + "': " + what);
  };
  if (tensor.shape.size() != 2 || tensor.shape[0] == 0 || tensor.shape[1] == 0) {
    fail("shape is " + shape_text(tensor.shape) + ", expected [count, length], none of them 0");
  }
  if (tensor.shape[1] > positions) {
    fail("texts of " + std::to_string(tensor.shape[1]) + " tokens, but the network has " +
         std::to_string(positions) + " positions");
  }
  TokenIds result{tensor.shape[0], tensor.shape[1], {}};
  for (const std::int64_t id : file.as_int64(kName)) {
    if (id < 0 || id >= vocabulary) {
      fail("element " + std::to_string(result.ids.size()) + " is " + std::to_string(id) +
           ", expected 0 to " + std::to_string(vocabulary - 1));
    }
    result.ids.push_back(static_cast<std::int32_t>(id));
  }
  return result;
}

}  // namespace systole::model
