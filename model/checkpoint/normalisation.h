#pragma once

#include "model/checkpoint/vit_checkpoint.h"

/// How a published network reads the bytes x of channel c: (x * rescale - mean[c]) / std[c].
namespace systole::model {

/// Folds the normalisation of kPreprocessorFile (model/metadata/config_file.h), if there is one
/// beside the checkpoint: keys "do_rescale", "rescale_factor", "do_normalize", "image_mean" and
/// "image_std". What is not there is as Hugging Face's ViTImageProcessor has it: 1 / 255, and 0.5
/// for every mean and std.
///
/// It goes into the patch embedding, which then reads the codes of bytes
/// (model/data/image.h) in steps of 1 / kInputSteps, and sets the levels of the shape. A network of
/// one channel without such a file beside it reads the digits, and stays as it is. Throws
/// InputError if the file is wrong.
void fold_normalisation(VitCheckpoint& checkpoint);

}  // namespace systole::model
