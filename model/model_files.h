#pragma once

#include <string>
#include <vector>

#include "model/integer/integer_vit.h"

namespace systole::model {

/// Where the models that come with Systole are: "models" under the directory named by the
/// environment variable SYSTOLE_DATA, else the place known at build time.
[[nodiscard]] std::string models_directory();

/// Names of the integer models there, sorted.
[[nodiscard]] std::vector<std::string> model_names();

/// Path of an integer model: of the named one, or the argument itself if it contains a '/' or ends
/// in ".safetensors". An unknown name throws InputError that lists what exists, the names of mere
/// shapes (model/seeded/shapes.h) included: who asks has looked for those before.
[[nodiscard]] std::string find_model(const std::string& name_or_path);

/// The same for the real-valued checkpoint of a model.
[[nodiscard]] std::string find_checkpoint(const std::string& name_or_path);

/// Names of the text generators in FP16 there (model/float/gpt.h), sorted: of the files
/// NAME.f16.safetensors.
[[nodiscard]] std::vector<std::string> gpt_names();

/// As find_model() for a text generator.
[[nodiscard]] std::string find_gpt_checkpoint(const std::string& name_or_path);
/// Whether that is a path, or one of these names: any other can only be a shape's.
[[nodiscard]] bool names_gpt_checkpoint(const std::string& name_or_path);

}  // namespace systole::model
