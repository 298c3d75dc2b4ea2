#include "mapper/program_file.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "hw/program/program_image.h"
#include "hw/program/program_ranges.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/graph/graph_builder.h"

namespace systole::mapper {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "systole-program 1";
constexpr std::string_view kMemory = "memory.", kProgram = "program.";
/// Pieces of memory closer than this are written as one, with zeros between them.
constexpr std::uint64_t kGap = 4096;

std::string name_at(std::string_view prefix, std::uint64_t address) {
  char digits[17];
  const auto end = std::to_chars(digits, digits + sizeof digits, address, 16).ptr;
  const std::string text(digits, end);
  return std::string(prefix) + std::string(16 - text.size(), '0') + text;
}

model::TensorData tensor_of(std::string_view prefix, std::uint64_t address,
                            const std::vector<std::uint8_t>& bytes) {
  return model::make_tensor(name_at(prefix, address), model::FileDtype::kU8, {bytes.size()}, bytes);
}

std::vector<model::TensorData> memory_tensors(const Mapping& mapping) {
  std::vector<const hw::MemoryPiece*> pieces;
  for (const hw::MemoryPiece& piece : mapping.image) {
    if (piece.address != mapping.program_address) pieces.push_back(&piece);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const auto* a, const auto* b) { return a->address < b->address; });
  std::vector<model::TensorData> tensors;
  std::uint64_t begin = 0;
  std::vector<std::uint8_t> bytes;
  const auto flush = [&] {
    if (!bytes.empty()) tensors.push_back(tensor_of(kMemory, begin, bytes));
    bytes.clear();
  };
  for (const hw::MemoryPiece* const piece : pieces) {
    if (bytes.empty() || piece->address > begin + bytes.size() + kGap) {
      flush();
      begin = piece->address;
    }
    bytes.resize(piece->address - begin);
    const std::shared_ptr<const std::uint8_t> held = piece->bytes.hold();
    bytes.insert(bytes.end(), held.get(), held.get() + piece->bytes.size());
  }
  flush();
  return tensors;
}

ordered_json to_json(const TensorPlace& place) {
  ordered_json json = {{"name", place.name},       {"type", hw::name_of(place.type)},
                       {"address", place.address}, {"pitch", place.pitch},
                       {"rows", place.rows},       {"cols", place.cols}};
  if (place.int4) json["int4"] = true;
  return json;
}

ordered_json to_json(const hw::Operator& op) {
  ordered_json json = {{"name", op.name},
                       {"tensor", op.tensor},
                       {"place", static_cast<int>(op.place)},
                       {"type", hw::name_of(op.type)},
                       {"address", op.address},
                       {"pitch", op.pitch},
                       {"rows", op.rows},
                       {"cols", op.cols},
                       {"macs", op.macs}};
  if (op.int4) json["int4"] = true;
  if (op.section != 0) json["section"] = op.section;
  return json;
}

ordered_json to_json(const hw::HostFunction& function) {
  return {{"op", hw::name_of(function.op)},
          {"in", hw::name_of(function.in)},
          {"tensor", hw::name_of(function.tensor)},
          {"out", hw::name_of(function.out)},
          {"in_scale", function.in_scale},
          {"tensor_scale", function.tensor_scale},
          {"out_scale", function.out_scale},
          {"lo", function.lo},
          {"hi", function.hi},
          {"active", function.active},
          {"gamma", function.gamma},
          {"beta", function.beta}};
}

template <typename Item>
std::string list_text(const std::vector<Item>& items) {
  ordered_json list = ordered_json::array();
  for (const Item& item : items) list.push_back(to_json(item));
  return list.dump();
}

/// Reads the JSON of a metadata entry; what is missing or of another kind is an InputError.
class Fields {
 public:
  Fields(const ordered_json& object, std::string place)
      : object_(object), place_(std::move(place)) {}

  template <typename T>
  void get(const char* key, T& value) const {
    try {
      const ordered_json& field = object_.at(key);
      if constexpr (std::is_integral_v<T>) {
        // The library would wrap what does not fit.
        const bool fits =
            std::is_signed_v<T>
                ? field.is_number_integer() &&
                      field.get<std::int64_t>() == static_cast<T>(field.get<std::int64_t>())
                : field.is_number_unsigned() &&
                      field.get<std::uint64_t>() == static_cast<T>(field.get<std::uint64_t>());
        if (!fits) fail(key);
      }
      value = field.get<T>();
    } catch (const ordered_json::exception&) {
      fail(key);
    }
  }
  /// What is missing is as it was.
  template <typename T>
  void get_if_there(const char* key, T& value) const {
    if (object_.contains(key)) get(key, value);
  }
  /// What is missing is false.
  void get_flag(const char* key, bool& value) const {
    const auto field = object_.find(key);
    if (field == object_.end()) return;
    if (!field->is_boolean()) fail(key);
    value = field->get<bool>();
  }
  template <typename T>
  [[nodiscard]] T below(const char* key, unsigned limit) const {
    std::uint32_t value = 0;
    get(key, value);
    if (value >= limit) fail(key);
    return static_cast<T>(value);
  }
  /// The value whose name_of() the field gives.
  template <typename T>
  [[nodiscard]] T named(const char* key, unsigned count) const {
    std::string word;
    get(key, word);
    for (unsigned i = 0; i < count; ++i) {
      if (hw::name_of(static_cast<T>(i)) == word) return static_cast<T>(i);
    }
    fail(key);
  }

 private:
  [[noreturn]] void fail(const char* key) const {
    throw hw::InputError(place_ + ": " + key + " is missing or not what a program file holds");
  }

  const ordered_json& object_;
  std::string place_;
};

void read_fields(const Fields& in, TensorPlace& place) {
  in.get("name", place.name);
  place.type = in.named<hw::DType>("type", hw::kDTypes);
  in.get("address", place.address);
  in.get("pitch", place.pitch);
  in.get("rows", place.rows);
  in.get("cols", place.cols);
  in.get_flag("int4", place.int4);
}

void read_fields(const Fields& in, hw::Operator& op) {
  in.get("name", op.name);
  in.get("tensor", op.tensor);
  op.place = in.below<hw::Operator::Place>("place", 3);
  op.type = in.named<hw::DType>("type", hw::kDTypes);
  in.get("address", op.address);
  in.get("pitch", op.pitch);
  in.get("rows", op.rows);
  in.get("cols", op.cols);
  in.get_flag("int4", op.int4);
  in.get_if_there("section", op.section);
  in.get("macs", op.macs);
}

void read_fields(const Fields& in, hw::HostFunction& function) {
  function.op = in.named<hw::HostOp>("op", hw::kHostOps);
  function.in = in.named<hw::DType>("in", hw::kDTypes);
  function.tensor = in.named<hw::DType>("tensor", hw::kDTypes);
  function.out = in.named<hw::DType>("out", hw::kDTypes);
  in.get("in_scale", function.in_scale);
  in.get("tensor_scale", function.tensor_scale);
  in.get("out_scale", function.out_scale);
  in.get("lo", function.lo);
  in.get("hi", function.hi);
  in.get("active", function.active);
  in.get("gamma", function.gamma);
  in.get("beta", function.beta);
}

class Reader {
 public:
  explicit Reader(const std::string& path)
      : file_(model::Safetensors::open(path)), name_(hw::printable(path)) {
    const auto format = file_.metadata().find("format");
    if (format == file_.metadata().end() || format->second != kFormat) {
      throw hw::InputError(name_ + ": no program, expected the metadata format = \"" +
                           std::string(kFormat) + "\"");
    }
  }

  LoadableProgram read(const hw::Machine* machine) {
    LoadableProgram result;
    result.network = metadata("network");
    const std::string& macs = metadata("macs");
    const char* const end = macs.data() + macs.size();
    const auto [read, error] = std::from_chars(macs.data(), end, result.macs);
    if (error != std::errc() || read != end) {
      throw hw::InputError(name_ + ": macs: expected a number");
    }
    result.machine =
        machine != nullptr ? *machine : hw::parse_machine(metadata("machine"), name_ + ": machine");
    for (const std::string& name : file_.names()) read_piece(name, result);
    if (!has_program_) throw hw::InputError(name_ + ": no tensor program.ADDRESS");
    const std::vector<TensorPlace> places = list<TensorPlace>("tensors");
    if (places.size() != 2) throw hw::InputError(name_ + ": tensors: expected input and output");
    result.input = places[0];
    result.output = places[1];
    result.program.operators = list<hw::Operator>("operators");
    result.program.host_functions = list<hw::HostFunction>("functions");
    check(result);
    return result;
  }

 private:
  [[nodiscard]] const std::string& metadata(const std::string& key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) throw hw::InputError(name_ + ": no metadata " + key);
    return found->second;
  }

  template <typename Item>
  [[nodiscard]] std::vector<Item> list(const std::string& key) const {
    const ordered_json array = ordered_json::parse(metadata(key), nullptr, false);
    if (!array.is_array()) throw hw::InputError(name_ + ": " + key + ": expected a JSON array");
    std::vector<Item> items;
    for (const ordered_json& object : array) {
      const std::string place = name_ + ": " + key + " " + std::to_string(items.size());
      if (!object.is_object()) throw hw::InputError(place + ": expected a JSON object");
      read_fields(Fields(object, place), items.emplace_back());
    }
    return items;
  }

  void read_piece(const std::string& name, LoadableProgram& result) {
    const bool is_program = name.rfind(kProgram, 0) == 0;
    const std::string_view prefix = is_program ? kProgram : kMemory;
    hw::MemoryPiece piece;
    const char* const end = name.data() + name.size();
    const bool is_piece =
        name.rfind(prefix, 0) == 0 &&
        std::from_chars(name.data() + prefix.size(), end, piece.address, 16).ptr == end;
    if (!is_piece || name != name_at(prefix, piece.address)) {
      throw hw::InputError(name_ + ": tensor " + hw::printable(name, 64) +
                           ", expected memory.ADDRESS or program.ADDRESS");
    }
    piece.bytes = file_.share<std::uint8_t>(name);
    const std::uint64_t dram = std::uint64_t{result.machine.dram.mib} << 20U;
    if (piece.address > dram || piece.bytes.size() > dram - piece.address) {
      throw hw::InputError(name_ + ": tensor " + name + " ends after the " +
                           std::to_string(result.machine.dram.mib) + " MiB of dram.mib");
    }
    if (is_program) {
      if (std::exchange(has_program_, true)) throw hw::InputError(name_ + ": two programs");
      piece.is_program = true;
      result.address = piece.address;
      result.program = hw::decode_program(piece.bytes, name_, dram);
    }
    result.image.push_back(std::move(piece));
  }

  /// Masks are in memory: the program has their addresses.
  void take_masks(LoadableProgram& result) const {
    for (hw::LayerMask& mask : result.program.masks) {
      const auto holds = [&](const hw::MemoryPiece& piece) {
        return mask.address >= piece.address &&
               mask.address - piece.address <= piece.bytes.size() &&
               mask.bytes.size() <= piece.bytes.size() - (mask.address - piece.address);
      };
      const auto piece = std::find_if(result.image.begin(), result.image.end(), holds);
      if (piece == result.image.end()) {
        throw hw::InputError(name_ + ": mask at " + std::to_string(mask.address) +
                             ", expected it in a tensor memory.ADDRESS");
      }
      const std::uint8_t* const from = piece->bytes.data() + (mask.address - piece->address);
      std::copy_n(from, mask.bytes.size(), mask.bytes.begin());
    }
    for (const hw::LayerMask& mask : result.program.masks) {
      result.image.push_back({mask.address, mask.bytes, true});
    }
  }

  void check(LoadableProgram& result) const {
    take_masks(result);
    const std::uint64_t dram = std::uint64_t{result.machine.dram.mib} << 20U;
    for (const TensorPlace* const place : {&result.input, &result.output}) {
      const std::uint64_t end =
          hw::saturating_end(place->address + place->row_bytes(),
                             place->rows == 0 ? 0 : place->rows - 1, place->pitch);
      if (place->rows == 0 || place->cols == 0 || place->address > dram || end > dram) {
        throw hw::InputError(name_ + ": tensor " + hw::printable(place->name, 64) +
                             " is empty or not in DRAM");
      }
    }
    try {
      hw::check_program(result.program, result.machine, dram);
    } catch (const hw::InputError& error) {
      throw hw::InputError(name_ + ": on " + result.machine.name + ": " + error.what());
    }
  }

  model::Safetensors file_;
  std::string name_;
  bool has_program_ = false;
};

}  // namespace

TensorPlace place_of(const model::Graph& graph, const Mapping& mapping, model::TensorId tensor) {
  const model::Tensor& shape = graph.tensors[tensor];
  const Location& location = mapping.tensors[tensor];
  return {shape.name, shape.type, location.address, location.pitch,
          shape.rows, shape.cols, location.int4};
}

void write_program(const std::string& path, const std::string& network, const hw::Machine& machine,
                   const model::Graph& graph, const Mapping& mapping) {
  std::vector<TensorPlace> places;
  for (const model::Tensor::Kind kind :
       {model::Tensor::Kind::kInput, model::Tensor::Kind::kOutput}) {
    for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
      if (graph.tensors[id].kind != kind) continue;
      places.push_back(place_of(graph, mapping, static_cast<model::TensorId>(id)));
    }
  }
  if (places.size() != 2) {
    throw hw::InputError(graph.name + ": expected one input and one output for a program file");
  }
  std::vector<model::TensorData> tensors = memory_tensors(mapping);
  for (const hw::MemoryPiece& piece : mapping.image) {
    if (piece.address == mapping.program_address) {
      tensors.push_back(tensor_of(kProgram, piece.address, piece.bytes));
    }
  }
  model::write_safetensors(path, tensors,
                           {{"format", std::string(kFormat)},
                            {"network", network},
                            {"macs", std::to_string(model::count_macs(graph))},
                            {"machine", hw::to_toml(machine)},
                            {"tensors", list_text(places)},
                            {"operators", list_text(mapping.program.operators)},
                            {"functions", list_text(mapping.program.host_functions)}});
}

LoadableProgram read_program(const std::string& path, const hw::Machine* machine) {
  return Reader(path).read(machine);
}

}  // namespace systole::mapper
