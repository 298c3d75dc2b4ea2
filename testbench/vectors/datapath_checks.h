#pragma once

#include "testbench/vectors/vector_checks.h"
#include "testbench/vectors/vector_fields.h"

namespace systole::model {

/// One case of each operation in the default datapath's form: derives the constants, computes with
/// the functions of hw/ and compares constants, intermediates and outputs. Throw hw::InputError for
/// a malformed case.
void check_default_exponential(const VectorFields& fields, VectorComparison& comparison);
void check_default_gelu(const VectorFields& fields, VectorComparison& comparison);
void check_default_layernorm(const VectorFields& fields, VectorComparison& comparison);
void check_default_requantisation(const VectorFields& fields, VectorComparison& comparison);
void check_default_softmax(const VectorFields& fields, VectorComparison& comparison);

}  // namespace systole::model
