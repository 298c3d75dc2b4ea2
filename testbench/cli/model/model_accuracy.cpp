#include "testbench/cli/model/model_accuracy.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "model/build/operator_graph.h"
#include "model/data/dataset.h"
#include "model/format/safetensors.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/text/token_ids.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/text.h"
#include "testbench/network/accuracy.h"
#include "testbench/network/networks.h"
#include "testbench/network/text_similarity.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

/// "DIR/NAME.safetensors" is beside "DIR/NAME.int8.safetensors".
std::string checkpoint_of(const std::string& model) {
  const std::string path = model::find_checkpoint(model);
  const std::string ending = ".int8.safetensors";
  if (path.size() < ending.size() ||
      path.compare(path.size() - ending.size(), ending.size(), ending) != 0) {
    return path;
  }
  return path.substr(0, path.size() - ending.size()) + ".safetensors";
}

Accuracy picture_accuracy(const std::string& name, const std::string& checkpoint,
                          const std::string& pictures) {
  const std::string path = model::find_model(name);
  if (model::model_kind(path) == model::ModelKind::kIntegerOperators) {
    const model::OperatorNetwork network =
        model::make_operator_network(model::NetworkFile(model::Safetensors::open(path)));
    if (!network.pictures) {
      throw hw::InputError("--accuracy: " + network.name +
                           " reads codes, expected a network that classifies pictures");
    }
    return measure_accuracy(network, checkpoint,
                            model::load_images(pictures, network.pictures->format));
  }
  const model::IntegerVit vit = model::load_integer_vit(path);
  return measure_accuracy(vit, checkpoint, model::load_images(pictures, vit.shape.pictures()));
}

/// Of a network that gives states of tokens: the means of texts beside those of real numbers.
int show_similarity(const AccuracyOptions& options, const model::IntegerText& text,
                    const std::string& checkpoint) {
  if (options.input.empty()) {
    throw hw::InputError("--input: " + text.name +
                         " reads texts, expected a safetensors file with input_ids");
  }
  const TextSimilarity found =
      measure_similarity(text, checkpoint, model::load_token_ids(options.input, text.shape));
  if (options.json) {
    print_json(
        {{"similarity",
          {{"model", options.model},
           {"texts", found.texts},
           {"mean_cosine", found.mean},
           {"least_cosine", found.least},
           {"neighbours_kept", found.neighbours ? ordered_json(*found.neighbours) : ordered_json()},
           {"holds", found.holds()}}}});
  } else {
    Table table("model | >texts | >mean cosine | >least | >neighbours kept % | holds");
    table.add({options.model, std::to_string(found.texts), fmt::format("{:.4f}", found.mean),
               fmt::format("{:.4f}", found.least),
               found.neighbours ? fmt::format("{:.1f}", 100 * *found.neighbours) : "-",
               found.holds() ? "yes" : "no"});
    print_text(table.text());
  }
  return found.holds() ? kExitOk : kExitCheckFailed;
}

/// Of a network that classifies texts, on those of --input.
Accuracy text_accuracy(const AccuracyOptions& options, const model::IntegerText& text,
                       const std::string& checkpoint) {
  if (options.input.empty()) {
    throw hw::InputError("--input: " + text.name +
                         " classifies texts, expected a safetensors file with input_ids and "
                         "labels");
  }
  return measure_accuracy(text, checkpoint, model::load_token_ids(options.input, text.shape));
}

}  // namespace

int show_accuracy(const AccuracyOptions& options) {
  const std::vector<std::string> names =
      options.model.empty() ? model::model_names() : std::vector{options.model};
  if (names.empty()) throw hw::InputError("no models in " + model::models_directory());
  if (is_shape_name(options.model)) {
    throw hw::InputError("--accuracy: " + options.model +
                         " has seeded weights, which have no accuracy");
  }
  if (!options.checkpoint.empty() && options.model.empty()) {
    throw hw::InputError("--checkpoint: needs the model that it belongs to");
  }
  const std::string pictures = options.input.empty() ? default_data() : options.input;
  const model::ModelKind kind = options.model.empty()
                                    ? model::ModelKind::kIntegerVit
                                    : model::model_kind(model::find_model(options.model));
  const auto checkpoint_for = [&](const std::string& name) {
    return options.checkpoint.empty() ? checkpoint_of(name) : options.checkpoint;
  };
  std::optional<model::IntegerText> text;
  if (kind == model::ModelKind::kIntegerText) {
    text = model::load_integer_text(model::find_model(options.model));
    if (!text->head) return show_similarity(options, *text, checkpoint_for(options.model));
  }
  // What a network of a user reaches is its task's.
  const bool shipped = kind == model::ModelKind::kIntegerVit;
  const bool pairs = kind == model::ModelKind::kIntegerSeq2Seq;
  const char* const inputs = text ? "texts" : pairs ? "tokens" : "images";
  Table table(fmt::format("model | >{} | >fp32 % | >integer % | >difference | holds", inputs));
  ordered_json document = ordered_json::array();
  bool all_hold = true;
  for (const std::string& name : names) {
    const std::string checkpoint = checkpoint_for(name);
    const Accuracy accuracy =
        text    ? text_accuracy(options, *text, checkpoint)
        : pairs ? measure_accuracy(model::load_integer_seq2seq(model::find_model(name)), checkpoint,
                                   options.input)
                : picture_accuracy(name, checkpoint, pictures);
    const bool holds = shipped ? accuracy.holds() : accuracy.keeps();
    all_hold = all_hold && holds;
    table.add({name, std::to_string(accuracy.inputs), fmt::format("{:.2f}", 100 * accuracy.real),
               fmt::format("{:.2f}", 100 * accuracy.integer),
               fmt::format("{:+.2f}", 100 * (accuracy.integer - accuracy.real)),
               holds ? "yes" : "no"});
    document.push_back({{"model", name},
                        {inputs, accuracy.inputs},
                        {"fp32_accuracy", accuracy.real},
                        {"integer_accuracy", accuracy.integer},
                        {"holds", holds}});
  }
  if (options.json) {
    print_json({{"accuracy", document}});
  } else {
    print_text(table.text());
  }
  return all_hold ? kExitOk : kExitCheckFailed;
}

}  // namespace systole::testbench
